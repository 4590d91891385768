"""Tensors that collect gradients and are made inside: leaves, parameters, detached."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch
from halves import Halves, halved
from torch import Tensor, nn

from magweld.frontend.differential.check import run
from magweld.frontend.traced import Traced, trace


def _later(x: Tensor) -> Tensor:
    w = x.detach() * 2
    w.requires_grad = True
    return w


def _detached_and_again(x: Tensor) -> Tensor:
    w = x * 2
    return w.detach_().requires_grad_()


def _without_gradients(x: Tensor) -> Tensor:
    with torch.no_grad():
        return nn.Parameter(x * 2)


LEAVES = {
    "factory": lambda x: torch.ones(3, requires_grad=True),
    "filled": lambda x: torch.full((3,), 2.0, requires_grad=True),
    "from data": lambda x: torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
    "drawn": lambda x: torch.randn(3, requires_grad=True),
    "flag": lambda x: (x * 2).detach().requires_grad_(),
    "flag of a view": lambda x: (x.detach() * 2)[:].requires_grad_(),
    "flag set": _later,
    "detached in place": _detached_and_again,
    "parameter": lambda x: nn.Parameter(x.detach() * 2),
    "parameter without gradient": lambda x: nn.Parameter(x.detach() * 2, False),
    "parameter under no_grad": _without_gradients,
}


def outcome(function: Any, x: Tensor, seed: int, grad: bool) -> list[Any]:
    """Return everything that a caller can ask of a leaf and of what is made of it."""
    torch.manual_seed(seed)
    x = x.detach().clone().requires_grad_(x.requires_grad)
    with torch.set_grad_enabled(grad):
        w, y = function(x)
    if y.requires_grad:
        y.sum().backward()
    known = [(type(t), t.requires_grad, t.is_leaf) for t in (w, y)]
    found = [w.detach(), y.detach(), x.grad, w.grad if w.is_leaf else None]
    return [*known, *(None if t is None else t.tolist() for t in found)]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("needs", [True, False])
@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_collects_its_gradient(name: str, needs: bool, grad: bool) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        w = LEAVES[name](x)
        return w, w * x

    traced = trace(program, backend=Halves())
    for seed in range(3):
        x = torch.randn(3, requires_grad=needs)
        mine = outcome(traced, x, seed, grad)
        assert mine == outcome(program, x, seed, grad), traced.explain()
    assert traced.stats()["hits"] == 2, traced.explain()


def test_a_leaf_that_nobody_gets_is_noticed_by_its_product() -> None:
    def program(x: Tensor) -> Tensor:
        return x * torch.ones(3, requires_grad=True)

    traced = trace(program, backend=Halves())
    for _ in range(3):
        assert traced(torch.ones(3)).requires_grad
    assert [item.id for item in traced.records[0].breaks] == ["new-leaf"]


def test_without_leaves_of_its_own_a_graph_is_compiled() -> None:
    """What is detached or made without gradient is no reason to leave it to torch."""

    def program(x: Tensor) -> Tensor:
        return (x * 2).detach() * x + torch.ones(3) + x.data

    traced = trace(program, backend=Halves())
    for _ in range(2):
        traced(torch.ones(3, requires_grad=True)).sum().backward()
    assert halved(traced)
    assert not traced.records[0].breaks


def test_parameters_that_stay_inside_are_compiled_without_gradients() -> None:
    backend = Halves()

    def program(x: Tensor) -> Tensor:
        return x * nn.Parameter(x + 1)

    traced = trace(program, backend=backend)
    with torch.no_grad():
        for _ in range(2):
            assert traced(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert backend.graphs
    assert not traced.records[0].breaks


def _of_inference() -> Tensor:
    with torch.inference_mode():
        return torch.ones(3, requires_grad=True)


def _part_of_leaf() -> Tensor:
    with torch.no_grad():
        return torch.ones(2, 3, requires_grad=True)[0]


# Arguments that need gradients. None arrives at the last two.
NEEDING = {
    "leaf": lambda: torch.ones(3, requires_grad=True),
    "result": lambda: torch.ones(3, requires_grad=True) * 2,
    "of inference": _of_inference,
    "part of a leaf": _part_of_leaf,
}


def _gradient_inside(x: Tensor) -> tuple[Any, ...]:
    with torch.enable_grad():
        return torch.autograd.grad((x * 2).sum(), x)


def _with_leaf(x: Tensor) -> tuple[Tensor, ...]:
    with torch.enable_grad():
        w = torch.ones(3, requires_grad=True)
        return x.view(3), w * 2 + x.detach(), x * w


def _leaf_inside(x: Tensor) -> Tensor:
    with torch.enable_grad():
        w = torch.ones(3, requires_grad=True)
        return x * w.sum().detach()


def ended(call: Any, x: Tensor) -> str:
    """Return how a call ends, as text; halves have nodes of their own."""
    ending = run(lambda: call(x))
    shown = re.sub(r"grad_fn=<\w+>", "grad_fn", str(ending.result))
    return f"{shown} {type(ending.error).__name__}"


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
@pytest.mark.parametrize("kind", NEEDING)
@pytest.mark.parametrize("program", [_with_leaf, _leaf_inside, _gradient_inside])
def test_leaves_beside_arguments_at_which_no_gradient_arrives(
    program: Any, kind: str, mode: Any
) -> None:
    traced = trace(program, backend=Halves())
    for _ in range(3):
        with mode():
            assert ended(traced, NEEDING[kind]()) == ended(program, NEEDING[kind]())
    assert "monitor-error" not in {item.id for item in traced.breaks}


# Names of methods that write to their tensor, whatever torch adds to them.
IN_PLACE = sorted(
    name
    for name in dir(torch.Tensor)
    if name.endswith("_")
    and not name.startswith("_")
    and not inspect.isfunction(getattr(torch.Tensor, name))
)
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    (),
    (1,),
    (0, 1),
    (torch.full((2, 2), 0.5),),
    (torch.eye(2) > 0, 2.0),
    (0, torch.tensor([1, 0]), torch.ones(2, 2)),
    (torch.ones(2, 2), torch.ones(2, 2)),
)


def _arguments_of(name: str) -> tuple[Any, ...] | None:
    """Return arguments that a method takes, None if none of the usual ones do."""
    for arguments in ARGUMENTS:
        x = torch.full((2, 2), 0.25)
        if run(lambda x=x, a=arguments: getattr(x, name)(*a)).error is None:
            return arguments
    return None


def _asked(function: Any, x: Tensor) -> str:
    """Return what there is to know, as text: not a number is equal to itself there."""
    torch.manual_seed(3)
    y, z = function(x)
    known = [y is z, y.requires_grad, y.is_leaf, y.shape, y.stride(), y.tolist()]
    return repr([*known, y.grad_fn.name() if y.grad_fn else "", z.tolist()])


def test_every_method_in_place_stays_in_the_graph() -> None:
    """Also where it writes no memory: what the watch does not see is not left out."""
    names = {name: _arguments_of(name) for name in IN_PLACE}
    called = {name: a for name, a in names.items() if a is not None}
    assert len(called) > 100
    for name, arguments in called.items():

        def program(
            x: Tensor, name: str = name, arguments: Any = arguments
        ) -> tuple[Tensor, Tensor]:
            y = x * 0.5
            return y, getattr(y, name)(*arguments)

        for needs in (True, False):
            x = torch.tensor([[0.5, 0.2], [0.3, 0.4]], requires_grad=needs)
            if run(lambda x=x, f=program: f(x)).error is not None:
                continue
            expected = _asked(program, x)
            traced: Traced = trace(program, backend="eager")
            for _ in range(2):
                assert _asked(traced, x) == expected, (name, traced.explain())
