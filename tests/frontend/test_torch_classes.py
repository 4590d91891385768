"""Classes and objects of torch whose calls make tensors beside the function mode."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn
from torch.autograd import Variable

from magweld.frontend.traced import trace

X = torch.tensor([1.0, -2.0, 3.0])


class Reflected:
    """An operand that answers instead of the tensor."""

    def __init__(self, factor):
        self.factor = factor

    def __rsub__(self, other):
        return other * self.factor

    def __rmatmul__(self, other):
        return other + self.factor

    def __rfloordiv__(self, other):
        return other - self.factor

    def __eq__(self, other):
        return other / self.factor

    __hash__ = None


@torch.jit.script
def scripted(x: torch.Tensor, scale: float):
    return x * scale


# Numbers in its code are tensors that a dispatch mode is shown as numbers.
made_by_tracing = torch.jit.trace(lambda x: 3 - x * 2, (torch.ones(2, 3),))

PROGRAMS = {
    "made by tracing": lambda x: made_by_tracing(x) + 1,
    "variable": lambda x: (Variable(x), Variable(x, requires_grad=True)),
    "parameter": lambda x: nn.Parameter(x * 2),
    "float tensor": lambda x: x + torch.FloatTensor([1.0, 2.0, 3.0]),
    "filled": lambda x: torch.Tensor(2, 3).fill_(2) * x,
    "long tensor": lambda x: x[torch.LongTensor([1, 0])],
    "scripted": lambda x: scripted(x, 2.0),
    "spread size": lambda x: x.view(*x.size()) + x.reshape(*(3 for _ in range(1))),
    "device": lambda x: x * (2 if x.device.type == "cpu" else 3),
    "comparisons": lambda x: (x == None, x != "a", x == [1]),  # noqa: E711
    "operators": lambda x: (pow(x, 2), abs(x), x.clone().__ipow__(2)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_captured(checker, name):
    check = checker(PROGRAMS[name])
    assert check(X) == "record", check.traced.explain()
    assert check(X * 2) == "hit", check.traced.explain()


def test_a_variable_shares_memory():
    def program(x):
        Variable(x).add_(1.0)
        return x * 2.0

    traced = trace(program, backend="eager")
    x = X.clone()
    for step in (1.0, 2.0, 3.0):
        assert torch.equal(traced(x), (X + step) * 2.0)
    assert torch.equal(x, X + 3.0)
    assert traced.stats()["hits"] == 2


def test_an_operand_that_answers_instead_of_the_tensor(checker):
    operand = Reflected(2.0)
    program = lambda x: (x - operand, x @ operand, x // operand, x == operand)  # noqa: E731
    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(X * 3) == "hit", check.traced.explain()
    operand.factor = 4.0
    assert check(X) == "record", check.traced.explain()


def test_a_tensor_class_asks_for_the_dtype(checker):
    program = lambda x, y: x * (2 if isinstance(y, torch.FloatTensor) else 3)  # noqa: E731
    check = checker(program)
    assert check(X, X + 1) == "record", check.traced.explain()
    assert check(X, (X + 1).double()) == "record", check.traced.explain()
    assert check(X, X + 1) == "hit", check.traced.explain()


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_recurrent_layers(checker, kind):
    layer = kind(3, 4, num_layers=2, bidirectional=True)
    check = checker(lambda x: layer(x))
    assert check(torch.randn(2, 5, 3)) == "record", check.traced.explain()
    assert check(torch.randn(2, 5, 3)) == "hit", check.traced.explain()


class Target:
    factor = 2.0


def test_a_weak_reference(checker):
    held = [Target(), Target()]
    cell = [weakref.ref(held[0])]

    def program(x):
        target = cell[0]()
        return x if target is None else x * target.factor

    check = checker(program)
    assert check(X) == "record", check.traced.explain()
    assert check(X) == "hit", check.traced.explain()
    held[0].factor = 5.0
    assert check(X) == "record", check.traced.explain()
    other = Target()
    other.factor = 7.0
    cell[0] = weakref.ref(other)
    check(X)
    cell[0] = lambda: None
    check(X)


TABLE = torch.eye(3).to_sparse()


def sparse_inside(x):
    places = x.nonzero().t()
    table = torch.sparse_coo_tensor(places, x[places[0], places[1]], (3, 3))
    product = table @ x
    assert not product.isnan().any()
    return product


def sparse_values_written(x):
    values = torch.ones(3)
    table = torch.sparse_coo_tensor(torch.arange(3).repeat(2, 1), values, (3, 3))
    values.mul_(x[0])
    return x if (table @ x).sum() > 100.0 else -x


SPARSE = {
    "inside": sparse_inside,
    "values written": sparse_values_written,
    "written": lambda x: x.to_sparse().mul_(2.0).to_dense(),
    "argument": lambda x: torch.sparse.mm(TABLE, x),
    "compressed": lambda x: x.to_sparse_csr() @ x,
}


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_not_in_the_way(checker, name):
    check = checker(SPARSE[name])
    outcomes = [check(torch.full((3, 3), 2.0) * n) for n in (1.0, 2.0, 30.0, 1.0)]
    hits = outcomes.count("hit") == 3
    assert hits == (name not in ("written", "argument")), check.traced.explain()
