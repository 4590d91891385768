"""Tests of `for` loops over lifted ranges as operators of the graph."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from magweld.frontend.traced import trace
from magweld.graphs.control_operators import ForOperator


@pytest.fixture
def x():
    return torch.linspace(-1, 1, 8).reshape(2, 4)


def same(left, right):
    """Assert that two results agree in values, types, strides and aliases."""
    assert type(left) is type(right)
    if isinstance(left, torch.Tensor):
        assert torch.equal(left, right)
        assert left.dtype is right.dtype
        assert left.stride() == right.stride()
        assert left.requires_grad is right.requires_grad
    elif isinstance(left, (tuple, list)):
        assert len(left) == len(right)
        pattern = [[a is b for b in left] for a in left]
        assert pattern == [[a is b for b in right] for a in right]
        for mine, other in zip(left, right, strict=True):
            same(mine, other)
    else:
        assert left == right


def run(program, calls, records=None, dynamic=None, loops=None):
    """Compare calls of a traced program with eager ones; return what was traced."""
    marked = {"n": True} if dynamic is None else dynamic
    traced = trace(program, backend="eager", dynamic=marked, check=True)
    for args in calls:
        mine, others = copy.deepcopy(args), copy.deepcopy(args)
        same(traced(*mine), program(*others))
        same(mine, others)
    if records is not None:
        assert traced.stats()["records"] == records
    if loops is not None:
        newest = max(traced.records, key=lambda record: record.number)
        nodes = newest.graph.graph.nodes
        assert sum(isinstance(n.target, ForOperator) for n in nodes) == loops
    return traced


COUNTS = (3, 4, 7, 2, 1, 5, 1, 9)


def counted(x, counts=COUNTS):
    return [(x, n) for n in counts]


def test_one_record_answers_every_count(x):
    def repeat(x, n):
        for i in range(n):
            x = x * 0.5 + i
        return x

    run(repeat, counted(x), records=1, loops=1)


def test_no_iteration_has_a_record_of_its_own(x):
    def repeat(x, n):
        for _ in range(n):
            x = x.sin()
        return x

    run(repeat, counted(x, (3, 0, 2, 0, 1, 5)), records=2)


def test_negative_counts_and_bounds(x):
    def repeat(x, n):
        for i in range(2, n, 3):
            x = x + i
        for i in range(n, 0, -2):
            x = x * (i + 1)
        return x

    run(repeat, counted(x, (9, 12, 8, 10, 20, 3, 2, -4, 11)), loops=0)
    traced = run(repeat, counted(x, (9, 12, 8, 10, 20, 11)), records=1)
    assert traced.stats()["hits"] == 5


def test_lists_are_as_long_as_the_loop(x):
    def collect(x, n):
        outputs, states = [x], []
        h = x
        for _ in range(n):
            h = (h + x).tanh()
            outputs.append(h)
            states.append(h * 2)
        outputs.append(h.cos())
        return outputs, torch.stack(states, 1), torch.cat(outputs, 0), h, states

    run(collect, counted(x), records=1, loops=1)


def test_comprehension(x):
    def collect(x, n):
        rows = [x * i for i in range(n)]
        return torch.stack(rows), rows

    run(collect, counted(x), records=1, loops=1)


def test_two_loops_fill_one_list(x):
    def collect(x, n):
        rows = []
        for i in range(n):
            rows.append(x + i)
        for i in range(n):
            rows.append(x * i)
        return torch.stack(rows), rows

    run(collect, counted(x), records=1, loops=2)


def test_steps_of_a_tensor():
    def recur(x):
        h = x.new_zeros(x.size(0), x.size(2))
        outputs = []
        for step in range(x.shape[1]):
            h = torch.tanh(x[:, step] + h * 0.5)
            outputs.append(h)
        return torch.stack(outputs, 1), h

    calls = [(torch.randn(2, steps, 3),) for steps in (3, 5, 2, 7, 9, 4)]
    run(recur, calls, records=1, dynamic={"x": 1}, loops=1)


class Cells(nn.Module):
    """Two LSTM cells, their states in tuples."""

    def __init__(self):
        super().__init__()
        self.first = nn.LSTMCell(3, 4)
        self.second = nn.LSTMCell(4, 4)

    def start(self, x):
        zeros = x.new_zeros(x.size(0), 4)
        return zeros, zeros

    def forward(self, x):
        first, second = self.start(x), self.start(x)
        outputs = []
        for step in range(x.size(1)):
            first = self.first(x[:, step], first)
            second = self.second(first[0], second)
            outputs.append(second[0])
        return torch.stack(outputs, 1), first


@pytest.mark.parametrize("grad", [False, True])
def test_cells_with_changing_steps_and_rows(grad):
    torch.manual_seed(0)
    module = Cells()
    calls = [
        (torch.randn(rows, steps, 3),)
        for rows, steps in ((2, 3), (3, 4), (4, 6), (2, 2), (5, 9), (3, 5), (4, 4))
    ]
    with torch.set_grad_enabled(grad):
        records = 3 if grad else 2
        traced = run(module, calls, records=records, dynamic="auto", loops=1)
    assert traced.stats()["hits"] == len(calls) - records


def test_gradients_flow_through_the_iterations():
    module = Cells()
    traced = trace(module, backend="eager", dynamic={"x": (0, 1)})
    for rows, steps in ((2, 3), (3, 5), (2, 2)):
        x = torch.randn(rows, steps, 3)
        gradients = []
        for call in (traced, module):
            module.zero_grad()
            call(x)[0].square().sum().backward()
            gradients.append([p.grad.clone() for p in module.parameters()])
        for mine, other in zip(*gradients, strict=True):
            torch.testing.assert_close(mine, other)
    assert traced.stats()["records"] == 1


def test_first_iteration_differs(x):
    def recur(x, n):
        h = None
        for i in range(n):
            h = x if h is None else (h + x).sin() * i
        return h * 1

    run(recur, counted(x, (3, 4, 7, 2, 5, 9)), records=1, loops=1)
    run(recur, counted(x, (3, 1, 4, 1, 2)), records=2)


def test_previous_value_is_carried(x):
    def fibonacci(x, n):
        a, b = x, x + 1
        for _ in range(n):
            a, b = b, a + b
        return a * 1, b

    run(fibonacci, counted(x), records=1, loops=1)


def test_loop_in_a_callee(x):
    def inner(x, n):
        for i in range(1, n + 1):
            x = x / i
        return x

    def program(x, n):
        return inner(inner(x, n) + 1, n * 2)

    run(program, counted(x), records=1, loops=2)


def test_inner_loops_of_a_nest(x):
    def program(x, n):
        for _ in range(3):
            for i in range(n):
                x = x * 0.5 + i
        return x

    run(program, counted(x), records=1, loops=3)


def test_nest_over_one_number(x):
    def program(x, n):
        for _ in range(n):
            for i in range(n):
                x = x * 0.5 + i
        return x

    run(program, counted(x), loops=0)


def test_writes_to_tensors_of_the_run(x):
    def program(x, n):
        total = torch.zeros_like(x)
        rows = x.new_zeros(n, 4)
        for i in range(n):
            total.add_(x, alpha=2)
            rows[i] = total[0]
            total[1] += i
        return total, rows

    run(program, counted(x), records=1, loops=1)


def test_writes_to_inputs_stay_unrolled(x):
    def program(x, n):
        for _ in range(n):
            x.add_(1)
        return x * 2

    run(program, counted(x), loops=0)


def test_random_numbers_stay_unrolled(x):
    def program(x, n):
        for _ in range(n):
            x = x + torch.rand_like(x) * 0
        return x

    run(program, counted(x), loops=0)


def test_result_of_the_last_iteration_alone(x):
    def program(x, n):
        y = x + 1
        z = y
        for i in range(n):
            z = x[i % 2] + y
            w = z + 1
        return z, w, y is z

    run(program, counted(x), records=1, loops=1)


def test_list_beside_lists_written_out(x):
    def program(x, n):
        rows = []
        for _ in range(n):
            x = x * 2
            rows.append(x)
        return torch.stack([x]), torch.cat([x, x, x]), rows, [x, x]

    run(program, counted(x), records=1, loops=1)


def test_variables_change_places(x):
    def program(x, n):
        a, b = x, x * 2
        for _ in range(n):
            a, b = b, a
            a = a + 1
        return a, b

    run(program, counted(x), records=1, loops=1)


def test_sum_in_place(x):
    def program(x, n):
        total = 0
        for i in range(n):
            total += (x[i % 2] * float(i)).sum()
        return total

    run(program, counted(x, (3, 4, 7, 2, 5)), records=1, loops=1)


def test_tensors_made_within(x):
    def program(x, n):
        for i in range(n):
            x = x + torch.full_like(x, i) + torch.tensor(i) + torch.arange(4)[i % 4]
        return x

    run(program, counted(x), records=1, loops=1)


def test_condition_within_that_never_changes(x):
    def program(x, n):
        for i in range(n):
            if x.size(0) > 1:
                x = x + i
        else:
            x = x * 2
        return x

    run(program, counted(x), records=1, loops=1)


def test_value_of_a_result_decides(x):
    def program(x, n):
        for _ in range(n):
            x = x * 2
        if x.sum() > 10:
            return x + 1
        return x - 1

    run(program, counted(x + 1), loops=0)


def test_value_within_decides(x):
    def program(x, n):
        for _ in range(n):
            if x.sum() > 4:
                x = x - 1
            x = x * 2
        return x

    run(program, counted(x + 1), loops=0)


def test_shapes_that_grow_stay_unrolled(x):
    def grows(x, n):
        for _ in range(n):
            x = torch.cat([x, x[:1]])
        return x

    def slices(x, n):
        total = x.sum()
        for i in range(n):
            total = total + x[: i + 1].sum()
        return total

    for program in (grows, slices):
        run(program, counted(x), loops=0)


def test_index_beyond_the_end_raises_as_it_does(x):
    def program(x, n):
        total = x[0]
        for i in range(n):
            total = total + x[i]
        return total

    traced = run(program, counted(x, (2, 1, 2)), records=1, loops=1)
    with pytest.raises(IndexError):
        traced(x, 3)
    same(traced(x, 2), program(x, 2))


def test_size_of_a_result_follows(x):
    def program(x, n):
        rows = [x * i for i in range(n)]
        stacked = torch.stack(rows, 1)
        return stacked.reshape(stacked.size(0), -1), stacked.shape[1]

    run(program, counted(x, (3, 4, 7, 2, 5, 9)), records=1, loops=1)


def test_backend_gets_graphs_without_loops(x):
    seen = []

    def backend(gm, inputs):
        assert not any(isinstance(n.target, ForOperator) for n in gm.graph.nodes)
        seen.append(gm)
        return gm.forward

    def program(x, n):
        rows = []
        for i in range(n):
            x = x * 0.5 + (i + 1)
            rows.append(x)
        return torch.stack(rows), rows, x

    traced = trace(program, backend=backend, dynamic={"n": True})
    for n in (4, 3, 3, 3, 3, 5, 5, 5, 3, 5):
        same(traced(x, n), program(x, n))
    assert traced.stats()["records"] == 1
    assert len(seen) == 2


def test_number_that_is_needed_elsewhere(x):
    def program(x, n):
        scale = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0][n]
        for _ in range(n):
            x = x * scale
        return x

    run(program, counted(x), loops=0)


def test_unchanging_loop_stays_written_out(x):
    def program(x):
        for i in range(3):
            x = x + i
        return x

    run(program, [(x,), (x,)], records=1, dynamic="auto", loops=0)


def test_generator_over_a_range(x):
    def program(x, n):
        return sum(x + i for i in range(n))

    run(program, counted(x), loops=0)


class Holder:
    """Counts."""

    total = 0


def leaves(x, n):
    for i in range(n):
        if i == 3:
            break
        x = x + i
    return x


def returns(x, n):
    for i in range(n):
        x = x + i
        if i > 2:
            return x
    return x * 2


def counts(x, n):
    t = 1
    for _ in range(n):
        x = x * t
        t += 1
    return x


def entries(x, n):
    found = {}
    for i in range(n):
        found[i] = x = x + 1
    return list(found.values())


def latest(x, n):
    rows = [x]
    for _ in range(n):
        rows.append(rows[-1] * 2)
    return rows


def switches(x, n):
    first = True
    for _ in range(n):
        x = x * 2 if first else x * 3
        first = not first
    return x


def last(x, n):
    for i in range(n):
        x = x + i
    return x * i, i


def first(x, n):
    rows = [x + i for i in range(n)]
    return rows[0] + rows[-1]


def walks(x, n):
    rows = [x + i for i in range(n)]
    for row in rows:
        x = x + row
    return x


def turns(x, n):
    rows = [x + i for i in range(n)]
    rows.reverse()
    return torch.stack(rows), rows


def copies(x, n):
    rows = [x + i for i in range(n)]
    return tuple(rows), list(rows), rows[:]


def pairs(x, n):
    return [(x + i, i) for i in range(n)]


def buffers(x, n):
    array, text = np.zeros(2), bytearray()
    for _ in range(n):
        array[0] += 1
        x = x * 2
    for _ in range(n):
        text.append(1)
        x = x + 1
    return x * float(array[0]) + len(text)


def modes(x, n):
    rows = []
    for i in range(n):
        with torch.no_grad():
            rows.append(x * i)
    return rows


def inputs(x, n):
    rows = []
    for _ in range(n):
        rows.append(x)
    return torch.stack(rows) + torch.stack([x, x, x])[0]


UNLIKE = [
    buffers,
    modes,
    inputs,
    leaves,
    returns,
    counts,
    entries,
    latest,
    switches,
    last,
    first,
    walks,
    turns,
    copies,
    pairs,
]


@pytest.mark.parametrize("program", UNLIKE, ids=lambda program: program.__name__)
def test_what_differs_or_leaks_stays_unrolled(x, program):
    run(program, counted(x), loops=0)


def walks(x):
    h = x.new_zeros(x.size(1))
    for row in x:
        h = torch.tanh(h * 0.5 + row)
    return h


def columns(x):
    h = x.new_zeros(x.size(0))
    outputs = []
    for column in x.unbind(1):
        h = h * column.size(0) + column
        outputs.append(h)
    return torch.stack(outputs, 1), h


@pytest.mark.parametrize(("program", "dim"), [(walks, 0), (columns, 1)])
def test_rows_of_a_tensor(program, dim):
    calls = []
    for count in (3, 5, 2, 7):
        shape = [4, 4]
        shape[dim] = count
        calls.append((torch.randn(shape),))
    run(program, calls, records=1, dynamic={"x": dim}, loops=1)


def counts_rows(x):
    rows = x.unbind(0)
    h = x.new_zeros(4)
    for row in rows:
        h = h * 0.5 + row
    return h * len(rows)


def keeps_rows(x):
    rows = x.unbind(0)
    h = x.new_zeros(4)
    for row in rows:
        h = h * 0.5 + row
    return h, rows


def mixes_rows(x):
    rows = x.unbind(0)
    first, last = rows[0], rows[-1]
    h = x.new_zeros(4)
    for row in rows:
        h = h * first + row * last
    return h


def collects_rows(x):
    found = []
    for row in x:
        found.append(row)
    return torch.stack(found), found


def ends_with_a_row(x):
    h = x.new_zeros(4)
    for row in x:
        h = h + row
    return h * row


def walks_twice(x):
    rows = x.unbind(0)
    h = x.new_zeros(4)
    for row in rows:
        h = h + row
    for row in rows:
        h = h * row
    return h


def writes_rows(x):
    y = x * 2
    for row in y:
        row.add_(1)
    return y


@pytest.mark.parametrize(
    "program",
    [
        counts_rows,
        keeps_rows,
        mixes_rows,
        collects_rows,
        ends_with_a_row,
        walks_twice,
        writes_rows,
    ],
    ids=lambda program: program.__name__,
)
def test_rows_that_are_used_otherwise(program):
    calls = [(torch.randn(count, 4),) for count in (3, 5, 2, 7, 4, 3)]
    run(program, calls, dynamic={"x": 0})
