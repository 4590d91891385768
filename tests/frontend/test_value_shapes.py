"""Shapes and Python values that follow from the values of tensors."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F

from magweld.frontend.traced import trace

X = torch.tensor([1.0, -2.0, 3.0])
Y = torch.tensor([-1.0, -2.0, 4.0])


def selects(x):
    return x[x > 0] * 2.0


def averages_selection(x):
    y = x[x > 0].mean()
    return y.reshape(y.shape)


def selects_by_index(x):
    chosen = x[torch.nonzero(x > 0).squeeze(1)]
    return chosen.to(torch.float64), chosen.dim(), chosen.dtype


def splits_positions(x):
    (where,) = torch.where(x > 0)
    return x.index_select(0, where)


def ranges_over_value(x):
    return torch.arange(x.max())


def repeats(x):
    return x.repeat_interleave(torch.where(x > 0, 1, 2))


def writes_selection(x):
    y = x.clone()
    y[y > 0] = 0.5
    return y.view(-1, 1)


def writes_at_value(x):
    y = x.clone()
    y[x.argmax()] = x[x.argmin()]
    return y


def sparse_of(x):
    where = torch.nonzero(x > 0).t()
    return torch.sparse_coo_tensor(where.repeat(2, 1), x[where[0]], (3, 3))


def multiplies_sparse(x):
    made = sparse_of(x)
    y = made.t() @ x.unsqueeze(1) + made.to_dense()[:, :1]
    assert made.numel() == 9
    return y.view(y.size(0) // 3, 3)


STATIC = [
    multiplies_sparse,
    writes_at_value,
    selects,
    averages_selection,
    selects_by_index,
    splits_positions,
    ranges_over_value,
    repeats,
    writes_selection,
]


@pytest.mark.parametrize("program", STATIC, ids=lambda p: p.__name__)
def test_other_values_give_other_shapes_in_one_graph(checker, program):
    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(Y) == "hit", check.traced.explain()


def asks_size(x):
    y = x[x > 0]
    return y * y.shape[0]


def asks_count(x):
    return x * len(torch.nonzero(x > 0))


def asks_rank(x):
    return x * x[x > 0].squeeze().dim()


def lists_values(x):
    return x * x.add(1).mul(2).tolist()[0]


def reads_written_memory(x):
    y = x * 1.0
    y[1:].add_(x[1:])
    return x * 2.0 if y[2] > 7 else x * 3.0


def reads_memory_written_twice(x):
    y = torch.zeros(3)
    view = y[:2]
    view += x[:2]
    y.mul_(2.0)
    return x * int(view.sum())


def counts_elements(x):
    made = sparse_of(x).coalesce()
    return x * made.values().shape[0] + made.indices().shape[1]


VALUES = [
    counts_elements,
    asks_size,
    asks_count,
    asks_rank,
    lists_values,
    reads_written_memory,
    reads_memory_written_twice,
]


@pytest.mark.parametrize("program", VALUES, ids=lambda p: p.__name__)
def test_a_value_is_tested_on_every_call(checker, program):
    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(X.clone()) == "hit", check.traced.explain()
    assert check(Y) == "record", check.traced.explain()
    assert check(X) == "hit", check.traced.explain()
    assert check(Y) == "hit", check.traced.explain()


def test_a_value_of_constants_needs_no_guard(checker):
    check = checker(lambda x: x * torch.linspace(0, 1, 3).tolist()[1])
    assert check(X) == "record", check.traced.explain()
    assert check(Y) == "hit", check.traced.explain()
    categories = {guard.category for guard in check.traced.records[0].guards}
    assert "predicate" not in categories


def test_a_constant_that_the_program_writes(checker):
    scale = torch.ones(1)

    def program(x):
        value = (scale * 2.0).item()
        return x * value

    check = checker(program)
    assert check(X) == "record"
    scale.add_(1.0)
    assert check(X) == "record"
    assert check(X) == "hit"


def test_backends_get_no_graph_of_open_shape():
    def compile_graph(gm, inputs):
        raise AssertionError("its shapes are those of the example")

    traced = trace(selects, backend=compile_graph)
    for x in (X, Y, X):
        assert torch.equal(traced(x), selects(x))
    assert [item.id for item in traced.records[0].breaks] == ["dynamic-shape"]
    assert traced.stats()["hits"] == 2


def classes(i):
    return F.one_hot(i, num_classes=5).float()[:, 1:].reshape(-1, 2).sum(0)


def repeats(i):
    x = torch.arange(3.0)
    return x.repeat_interleave(i, output_size=6).view(2, 3) * 2


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("program", [classes, repeats])
def test_a_size_that_is_given_follows_from_no_values(program, compiled):
    """What eager refuses is refused by hits as well: the values are checked."""
    options = {"compile": "now"} if compiled else {"backend": "eager"}
    traced = trace(program, **options)
    for values in ([1, 2, 3], [3, 2, 1], [1, 2, 7], [2, 2, 2], [-1, 4, 3], [1, 4, 1]):
        i = torch.tensor(values)
        try:
            expected = program(i)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=re.escape(str(error)[:30])):
                traced(i)
        else:
            torch.testing.assert_close(traced(i), expected)
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == 5
    assert traced.stats()["records"] == 1


def sizes(parts):
    return [tuple(part.shape) for part in parts]


@pytest.mark.parametrize(
    "program",
    [
        lambda i: sizes(torch.arange(9.0).tensor_split(i)),
        lambda i: sizes(torch.tensor_split(torch.ones(9), i.max())),
        lambda i: sizes([torch.sparse_coo_tensor(i[None], i).to_dense()]),
        lambda i: sizes([torch.sparse_csr_tensor(torch.tensor([0, 1, 3]), i, i * 1.0)]),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sizes_that_operators_read_from_memory(program):
    traced = trace(program, backend="eager")
    for values in ([1, 2, 3], [1, 2, 3], [1, 3, 4], [2, 3, 4], [2, 3, 5], [1, 2, 6]):
        i = torch.tensor(values)
        assert traced(i) == program(i)
