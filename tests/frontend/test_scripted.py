"""Modules and functions of TorchScript inside of a program."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from magweld.frontend.traced import trace

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 1.5, -1.0]])


@torch.jit.script
def halves(x: torch.Tensor):
    return x / 2 if x.size(0) > 1 else x


@torch.jit.script
def prints(x: torch.Tensor):
    print("called")
    return x


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.times = 2

    def forward(self, x):
        y = halves(self.norm(self.linear(x)) * self.scale)
        for _ in range(self.times):
            y = torch.relu(y) + 1.0
        return y


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scripted = torch.jit.script(Inner())
        self.traced = torch.jit.trace(nn.Linear(3, 2), X)

    def forward(self, x):
        return self.traced(self.scripted(x * 2.0)).relu()


def _twins():
    twins = []
    for _ in range(2):
        # Copies of parameters of scripted modules are no leaves of autograd.
        torch.manual_seed(0)
        twins.append(Outer().eval())
    for twin in twins:
        # A scripted module keeps its methods once they have been looked up.
        twin(X)
    return twins


def _outcome(traced, x):
    before = traced.stats()
    result = traced(x)
    after = traced.stats()
    return result, [k for k in ("hits", "misses") if after[k] > before[k]]


def test_scripted_modules_are_operators():
    model, other = _twins()
    traced = trace(model, backend="eager")
    for number in range(3):
        result, how = _outcome(traced, X + number)
        assert torch.equal(result, other(X + number))
        assert how == (["hits"] if number else ["misses"]), traced.explain()
    assert traced.stats()["breaks"] == 0, traced.explain()


def _replaces_buffer(model):
    model.scripted.scale = torch.full((3,), 5.0)


def _writes_weight(model):
    with torch.no_grad():
        model.scripted.linear.weight.mul_(3.0)


@pytest.mark.parametrize("change", [_replaces_buffer, _writes_weight])
def test_hits_read_the_tensors_of_the_module(change):
    model, other = _twins()
    traced = trace(model, backend="eager")
    traced(X)
    change(model), change(other)
    result, how = _outcome(traced, X)
    assert how == ["hits"]
    assert torch.equal(result, other(X))


def _changes_number(model):
    model.scripted.times = 3


def _trains(model):
    model.train()


def _takes_other_size(model):
    model.scripted.scale = torch.tensor(3.0)


def _takes_other_module(model):
    torch.manual_seed(1)
    model.scripted = torch.jit.script(Inner()).eval()


@pytest.mark.parametrize(
    "change", [_changes_number, _trains, _takes_other_size, _takes_other_module]
)
def test_what_else_is_read_is_guarded(change):
    model, other = _twins()
    traced = trace(model, backend="eager")
    traced(X)
    change(model), change(other)
    for _ in range(2):
        result, how = _outcome(traced, X)
        assert torch.equal(result, other(X)), traced.explain()
    assert how == ["hits"]
    state = zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in state)


def test_parameters_of_scripted_modules_get_gradients():
    model, other = _twins()
    traced = trace(model, backend="eager")
    for number in range(2):
        for program in (traced, other):
            program(X + number).sum().backward()
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    grads = [(a.grad, b.grad) for a, b in pairs if a.grad is not None]
    assert len(grads) > 3
    assert all(torch.allclose(mine, theirs) for mine, theirs in grads)
    assert traced.stats()["hits"] == 1, traced.explain()


def test_scripted_code_with_effects_is_left_to_torch(capfd):
    traced = trace(lambda x: prints(x) * 2.0, backend="eager")
    for _ in range(3):
        traced(X)
    assert capfd.readouterr().out.count("called") == 3
    assert any("prim::Print" in one.detail for one in traced.breaks)
