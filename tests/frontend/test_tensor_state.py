"""Flags, forms and gradients of tensors that a program reads or replaces."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

from magweld.frontend import trace

X = torch.tensor([[1.0, -2.0, 3.0]])


def clears_flag(x):
    y = x * 2.0
    y.requires_grad = False
    return y


def changes_form(x):
    y = (x * 2.0).unsqueeze_(0)
    z = y.sum(0).t_()
    return y, z, z.shape


def replaces_data(x):
    y = x.clone()
    z = y.view(-1)
    y.data = x * 3.0
    z.add_(1.0)
    return y, z


def asks_about_gradients(x):
    y = x + 1.0
    known = (x.is_leaf, y.grad_fn, y.grad, y.is_leaf)
    return y if known == (True, None, None, True) else x


def converts(x):
    return x.type(torch.LongTensor), x.type(torch.float64), x.type("torch.HalfTensor")


PROGRAMS = [clears_flag, changes_form, replaces_data, asks_about_gradients, converts]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program_is_captured(checker, program):
    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(X * 2) == "hit", check.traced.explain()


def test_a_predicate_sees_replaced_data(checker):
    def program(x):
        y = torch.zeros(3)
        y.data = x * 3.0
        return x if y.sum() > 0 else -x

    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(-X) == "record", check.traced.explain()
    assert check(X) == "hit", check.traced.explain()


def test_the_form_of_an_argument_stays_the_callers(checker):
    check = checker(lambda x: x.clone() if x.squeeze_() is x else x)
    assert check(X.clone()) == "tensor-write"
    assert check(X[0].clone()) in ("record", "tensor-write")


def test_gradients_of_an_argument_are_no_constants(checker):
    check = checker(lambda x: x if x.grad is None else x + x.grad)
    assert check(X) == "autograd-graph"
    x = X.clone().requires_grad_()
    x.grad = X.clone()
    assert check(x.detach()) == "autograd-graph"


def test_hooks_of_the_backward_pass(checker):
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda *args: None)
    check = checker(layer)
    with torch.no_grad():
        assert check(X) == "record", check.traced.explain()
        assert check(X * 2) == "hit", check.traced.explain()


def test_an_attribute_that_warns(checker):
    check = checker(lambda x: x * 2.0 if x.volatile else x * 3.0)
    for outcome in ("record", "hit"):
        with pytest.warns(UserWarning, match="volatile"):
            assert check(X) == outcome, check.traced.explain()
    with pytest.warns(UserWarning, match="volatile"):
        check.traced(X)


class Masked(nn.Module):
    """Replaces the data of its weight in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.weight = nn.Parameter(torch.arange(9.0).reshape(3, 3) - 4.0)
        self.other = nn.Parameter(torch.ones(3, 3))

    def forward(self, x):
        return self.way(self.weight, self.other, x)


def in_place(weight, other, x):
    weight.data *= other.tril()
    return x @ weight


def new_memory(weight, other, x):
    weight.data = weight.data * 0.5
    return x @ weight


def new_memory_that_is_written(weight, other, x):
    made = weight.sign()
    before = weight.view(-1)
    weight.data = made
    made.add_(1.0)
    weight.view(-1).mul_(2.0)
    return x @ weight, made, before + 1.0


def put_back(weight, other, x):
    before = weight.data
    weight.data = before.clamp(-1.0, 1.0)
    result = x @ weight
    weight.data = before
    return result


def memory_of_another(weight, other, x):
    weight.data = other.data
    return x @ weight


def another_form(weight, other, x):
    weight.data = weight.data.t()
    return x @ weight


def compare_masked(way):
    mine, theirs = Masked(way), Masked(way)
    traced = trace(mine, backend="eager")
    with torch.no_grad():
        for number in range(4):
            results = []
            for call, model in ((traced, mine), (theirs, theirs)):
                result = call(X + number)
                parts = result if isinstance(result, tuple) else (result,)
                shared = [p.data_ptr() == model.weight.data_ptr() for p in parts]
                both = model.weight.data_ptr() == model.other.data_ptr()
                form = model.weight.stride()
                results.append(
                    ([*parts, model.weight, model.other], shared, both, form)
                )
            (left, *facts), (right, *others) = results
            assert facts == others
            assert all(map(torch.equal, left, right)), traced.explain()
    return traced


@pytest.mark.parametrize(
    "way", [in_place, new_memory, new_memory_that_is_written, put_back]
)
def test_data_of_a_parameter_is_replaced(way):
    traced = compare_masked(way)
    assert traced.stats()["hits"] == 3, traced.explain()


@pytest.mark.parametrize("way", [memory_of_another, another_form])
def test_data_that_guards_would_not_describe(way):
    traced = compare_masked(way)
    assert "tensor-write" in [item.id for item in traced.breaks]


def test_data_of_a_sparse_tensor(checker):
    def function(x):
        y = x.to_sparse()
        y.data = (x * 2.0).to_sparse()
        return y.to_dense()

    check = checker(function)
    for _ in range(3):
        check(X)


def written(a, b):
    a.add_(1)
    c = b * 2
    b.mul_(3)
    return c, a + 0


def written_behind_a_branch(a, b):
    h = a
    for _ in range(60):
        h = h * 1.001
    if h.sum() > 0:
        h = h + 1
    a.add_(1)
    c = b * 2
    b.mul_(3)
    return c, a + h


@pytest.mark.filterwarnings("ignore:backend-failed")
@pytest.mark.parametrize("program", [written, written_behind_a_branch])
def test_views_that_begin_to_overlap(program):
    """Compiled code reads what it writes in whatever order is best."""
    fast = trace(program)
    mine, theirs = torch.arange(1.0, 13), torch.arange(1.0, 13)
    for first, second in ((0, 4), (0, 4), (4, 8), (0, 2), (0, 2), (2, 0), (0, 5)):
        for _ in range(2):
            found = fast(mine[first:][:4], mine[second:][:4])
            expected = program(theirs[first:][:4], theirs[second:][:4])
            for left, right in zip((*found, mine), (*expected, theirs), strict=True):
                torch.testing.assert_close(left, right)
            mine.div_(10), theirs.div_(10)
    # Beside each other they may lie anywhere.
    assert fast.stats()["hits"] >= 8, fast.explain(recompiles=True)


def rows_of_what_is_written(x, index):
    x.mul_(2)
    return x[index]


def written_behind_a_break(x, index):
    y = x + 0
    gc.collect()
    y.data = y.data.clone()
    y.mul_(y.storage_offset() + 2)
    return y[index]


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("program", [rows_of_what_is_written, written_behind_a_break])
def test_tensors_without_versions_are_put_back(program, mode):
    """An operator may raise behind the write; tensors of inference count none."""
    fast = trace(program, backend="eager")
    for place in (0, 1, 1, 5, 1):
        with mode():
            mine, theirs = torch.ones(3, 4), torch.ones(3, 4)
            index = torch.tensor([place])
            if place < 3:
                assert torch.equal(fast(mine, index), program(theirs, index))
            else:
                for run, x in ((fast, mine), (program, theirs)):
                    with pytest.raises(IndexError):
                        run(x, index)
            assert torch.equal(mine, theirs)
    assert fast.stats()["hits"]
