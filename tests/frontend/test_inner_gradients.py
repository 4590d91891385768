"""Programs that ask for gradients inside: one graph where all of it is their own."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import magweld
from magweld.frontend.traced import trace

Program = Callable[..., Any]


def network(*sizes: int, act: type[nn.Module] = nn.Tanh) -> nn.Sequential:
    torch.manual_seed(0)
    pairs = itertools.pairwise(sizes)
    layers = [layer for a, b in pairs for layer in (nn.Linear(a, b), act())]
    return nn.Sequential(*layers[:-1])


FROZEN = network(2, 8, 1).requires_grad_(False)
NET = network(2, 8, 1)


def residual(points: Tensor) -> Tensor:
    points = points.detach().requires_grad_()
    with torch.enable_grad():
        (first,) = torch.autograd.grad(FROZEN(points).sum(), points)
    return (first[:, 0] + first[:, 1]).square().mean()


def of_parameters_as_well(points: Tensor) -> Tensor:
    points = points.detach().requires_grad_()
    return torch.autograd.grad(NET(points).sum(), points)[0]


def laplacian(points: Tensor) -> tuple[Tensor, Tensor]:
    points = points.detach().requires_grad_()
    u = NET(points)
    (g,) = torch.autograd.grad(u, points, torch.ones_like(u), create_graph=True)
    parts = [
        torch.autograd.grad(g[:, i].sum(), points, retain_graph=True)[0][:, i]
        for i in range(2)
    ]
    return sum(parts).detach(), u.detach()


def forces(positions: Tensor) -> dict[str, Tensor]:
    positions = positions.detach().clone().requires_grad_(True)
    apart = (positions[:, None] - positions[None] + 1e-3).norm(dim=-1)
    energy = apart.sin().sum()
    found = torch.autograd.grad(energy, positions)[0]
    return {"energy": energy.detach(), "forces": -found}


@torch.no_grad()
def without_gradients_around(x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad([x.exp().sum()], [x])[0]


def unused(x: Tensor) -> tuple[Tensor, bool, Tensor]:
    a, b = (x.detach().clone().requires_grad_() for _ in range(2))
    first, none = torch.autograd.grad(a.pow(3).sum(), [a, b], allow_unused=True)
    made = torch.autograd.grad(a.pow(2).sum(), [a, b], materialize_grads=True)
    return first, none is None, made[1]


def langevin(x: Tensor) -> Tensor:
    x = x.detach()
    for _ in range(3):
        x = x.requires_grad_(True)
        slope = torch.autograd.grad(-(x**4).sum(), x)[0]
        x = (x + 0.01 * slope + 0.1 * torch.randn_like(x)).detach()
    return x


def written_in_place(x: Tensor) -> Tensor:
    y = x.detach().clone().requires_grad_()
    z = y * 1.0
    z[:, 0].mul_(y[:, 1])
    z.relu_()
    return torch.autograd.grad(z.sum(), y)[0]


def drawn(x: Tensor) -> Tensor:
    y = x.detach().clone().requires_grad_()
    return torch.autograd.grad(F.dropout(y).pow(2).sum(), y)[0]


def of_a_result(x: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    hidden = (y * 2).tanh()
    return torch.autograd.grad(hidden.square().sum(), hidden)[0]


def writes_to_its_argument(x: Tensor) -> Tensor:
    y = x.detach().clone().requires_grad_()
    x.add_(torch.autograd.grad(y.square().sum(), y)[0])
    return x


def given_back(x: Tensor) -> tuple[Tensor, bool]:
    y = x.detach().requires_grad_()
    tangent = torch.ones(6, 2)
    (found,) = torch.autograd.grad(y + 1.0, y, tangent)
    return found, found is tangent


def spread(x: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    return torch.autograd.grad(y.sum(), y)[0]


WHOLE: dict[str, Program] = {
    one.__name__: one
    for one in (
        *(residual, of_parameters_as_well, laplacian, forces, unused, langevin),
        *(without_gradients_around, written_in_place, drawn, of_a_result),
        *(writes_to_its_argument, given_back, spread),
    )
}


def assert_same(mine: Any, theirs: Any) -> None:
    """Compare two results: values, structure, strides, what autograd knows."""
    ours, structure = pytree.tree_flatten(mine)
    others, other = pytree.tree_flatten(theirs)
    assert structure == other
    for one, two in zip(ours, others, strict=True):
        assert type(one) is type(two)
        if isinstance(one, Tensor):
            facts = [(t.stride(), t.requires_grad, t.is_leaf) for t in (one, two)]
            assert facts[0] == facts[1]
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
        else:
            assert one == two


def run(program: Program, *inputs: Tensor) -> tuple[Any, Tensor, list[Tensor]]:
    """Return results, the state of the generator behind it, and the inputs."""
    torch.manual_seed(3)
    given = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
    return program(*given), torch.get_rng_state(), [x.detach() for x in given]


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", WHOLE)
def test_gradients_of_what_the_program_makes_are_compiled(name: str) -> None:
    traced = trace(WHOLE[name], compile="now")
    for _ in range(4):
        x = torch.randn(6, 2)
        for one, two in zip(run(traced, x), run(WHOLE[name], x), strict=True):
            assert_same(one, two)
    stats = traced.stats()
    assert (stats["hits"], stats["graphs"], stats["compilations"]) == (3, 1, 1)
    assert not traced.breaks
    assert not any(record.breaks for record in traced.records)


class Residual(nn.Module):
    """A loss on derivatives of a network, to train it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network(2, 8, 1)

    def forward(self, points: Tensor) -> Tensor:
        points = points.detach().requires_grad_()
        u = self.net(points)
        (g,) = torch.autograd.grad(u.sum(), points, create_graph=True)
        (h,) = torch.autograd.grad(g[:, 0].sum(), points, create_graph=True)
        return (g[:, 1] - h[:, 0]).square().mean()


class Penalty(nn.Module):
    """A critic with a penalty on its slope at a drawn point."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network(2, 8, 1, act=nn.LeakyReLU)

    def forward(self, x: Tensor) -> Tensor:
        t = torch.rand(x.shape[0], 1)
        point = (t * x + (1 - t) * x.flip(0)).detach().requires_grad_(True)
        y = self.net(point)
        (g,) = torch.autograd.grad(y, point, torch.ones_like(y), create_graph=True)
        return self.net(x).mean() + ((g.norm(dim=1) - 1) ** 2).mean()


class EnergyAndForces(nn.Module):
    """Two results: one is the gradient of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network(2, 8, 1, act=nn.SiLU)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        energy = self.net(x)
        return energy, torch.autograd.grad(energy.sum(), x, create_graph=True)[0]


class InnerStep(nn.Module):
    """The loss behind a step down the slope of another loss."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight * 1.0
        loss = (x @ weight).square().mean()
        (slope,) = torch.autograd.grad(loss, weight, create_graph=True)
        return (x @ (weight - 0.1 * slope)).square().mean()


class Detached(nn.Module):
    """The history of the loss is kept, that of its gradient is not made."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network(2, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        energy = self.net(x).sum()
        (slope,) = torch.autograd.grad(energy, x, retain_graph=True)
        return energy * slope.sum()


class Freed(nn.Module):
    """A backward through what is left of the first gradient raises."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network(2, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        energy = self.net(x).square().sum()
        return energy + torch.autograd.grad(energy, x)[0].sum()


def step(model: Program, module: nn.Module, x: Tensor) -> tuple[Any, list[Any]]:
    """Return results and gradients of a step, or what it raises."""
    torch.manual_seed(5)
    module.zero_grad()
    results = model(x)
    parts = results if isinstance(results, tuple) else (results,)
    try:
        sum((n + 2) * part.square().sum() for n, part in enumerate(parts)).backward()
    except RuntimeError as error:
        return type(error), []
    return results, [p.grad for p in module.parameters()]


TRAINED = (Residual, Penalty, EnergyAndForces, InnerStep, Detached, Freed)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", TRAINED)
def test_training_through_gradients_gives_the_gradients_of_eager(
    kind: type[nn.Module],
) -> None:
    module = kind()
    twin = copy.deepcopy(module)
    traced = trace(module, compile="now")
    for _ in range(4):
        x = torch.randn(6, 2)
        mine, theirs = step(traced, module, x), step(twin, twin, x)
        for one, two in zip(mine[1], theirs[1], strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)
        if theirs[0] is RuntimeError:
            assert mine[0] is RuntimeError
            continue
        ours, others = pytree.tree_leaves(mine[0]), pytree.tree_leaves(theirs[0])
        for one, two in zip(ours, others, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
            assert one.requires_grad == two.requires_grad
    (record,) = traced.records
    assert not traced.breaks
    assert [one.id for one in record.breaks] == (
        ["training-graph"] if kind is Freed else []
    )


class Triple(torch.autograd.Function):
    """Gives a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Any:
        return 3 * given[0]


def by_a_custom_function(x: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    return torch.autograd.grad(Triple.apply(y).sum(), y)[0]


def of_many_at_once(x: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    tangents = torch.eye(2).expand(6, 2, 2).transpose(0, 1)
    return torch.autograd.grad(y.sin(), y, tangents, is_grads_batched=True)[0]


def with_a_hook(x: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    z = y * 2
    z.register_hook(lambda g: g * 5)
    return torch.autograd.grad(z.square().sum(), y)[0]


def by_an_edge(x: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    edge = torch.autograd.graph.get_gradient_edge(y)
    return torch.autograd.grad(y.square().sum(), edge)[0]


def twice_through_one_history(x: Tensor) -> tuple[Tensor, bool]:
    y = x.detach().requires_grad_()
    z = y.square().sum()
    (first,) = torch.autograd.grad(z, y)
    try:
        torch.autograd.grad(z, y)
    except RuntimeError:
        return first, True
    return first, False


BROKEN: tuple[Program, ...] = (
    *(by_a_custom_function, of_many_at_once, with_a_hook, by_an_edge),
    twice_through_one_history,
)


@pytest.mark.parametrize("program", BROKEN, ids=lambda one: one.__name__)
def test_gradients_by_more_than_operators_of_the_run_break(program: Program) -> None:
    traced = trace(program, compile="now")
    for _ in range(4):
        x = torch.randn(6, 2)
        for one, two in zip(run(traced, x), run(program, x), strict=True):
            assert_same(one, two)
    assert traced.breaks


def for_an_argument(x: Tensor, y: Tensor) -> Tensor:
    return torch.autograd.grad((x * y).square().sum(), x)[0]


def leaves(count: int) -> list[Tensor]:
    return [torch.randn(3, requires_grad=True) for _ in range(count)]


def test_gradients_for_arguments_are_compiled_where_these_are_leaves() -> None:
    traced = trace(for_an_argument, compile="now")
    for _ in range(4):
        x, y = leaves(2)
        assert_same(traced(x, y), for_an_argument(x, y))
    assert traced.stats()["hits"] == 3
    assert not traced.breaks
    # The second one follows from the first now: gradients go on through it.
    assert_same(traced(x, x * 2), for_an_argument(x, x * 2))
    handle = x.register_hook(lambda gradient: 5 * gradient)
    assert_same(traced(x, y), for_an_argument(x, y))
    handle.remove()
    assert_same(traced(x, y), for_an_argument(x, y))
    assert {one.id for one in traced.breaks} == {"autograd-graph"}


def test_gradients_for_an_argument_with_a_history_break() -> None:
    traced = trace(for_an_argument, compile="now")
    for _ in range(3):
        x, y = leaves(2)
        assert_same(traced(x, x * y), for_an_argument(x, x * y))
    assert {one.id for one in traced.breaks} == {"autograd-graph"}


class Momentum:
    """A step of training as one function: loss, gradients, update in place."""

    def __init__(self) -> None:
        self.net = network(2, 8, 1)
        self.moments = [torch.zeros_like(p) for p in self.net.parameters()]

    def __call__(self, x: Tensor) -> Tensor:
        parameters = list(self.net.parameters())
        loss = (self.net(x) - x.sum(1, keepdim=True)).square().mean()
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, g, m in zip(parameters, gradients, self.moments, strict=True):
                m.mul_(0.9).add_(g)
                p.add_(m, alpha=-0.1)
        return loss.detach()


def test_a_whole_step_of_training_is_one_program() -> None:
    mine, theirs = Momentum(), Momentum()
    traced = trace(mine, compile="now")
    for _ in range(5):
        x = torch.randn(6, 2)
        assert_same(traced(x), theirs(x))
    for one, two in zip(mine.net.parameters(), theirs.net.parameters(), strict=True):
        assert_same(one.detach(), two.detach())
        assert one._version == two._version
        assert one.grad is None
    assert_same(mine.moments, theirs.moments)
    assert traced.stats()["hits"] == 4
    assert not traced.records[0].breaks


def test_a_grad_mode_that_is_left_behind_is_left_by_hits() -> None:
    def program(x: Tensor) -> Tensor:
        torch.set_grad_enabled(True)
        y = x.detach().requires_grad_()
        return torch.autograd.grad(y.square().sum(), y)[0]

    traced = trace(program, compile="now")
    for _ in range(3):
        x = torch.randn(3)
        with torch.no_grad():
            mine = traced(x)
            assert torch.is_grad_enabled()
        assert_same(mine, program(x))
    assert [one.id for one in traced.records[0].breaks] == ["training-graph"]


def test_a_leaf_that_comes_back_runs_through_torch() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.detach().requires_grad_()
        return torch.autograd.grad(y.square().sum(), y)[0], y

    traced = trace(program, compile="now")
    for _ in range(3):
        x = torch.randn(3)
        assert_same(traced(x), program(x))
    assert [one.id for one in traced.records[0].breaks] == ["new-leaf"]


def test_sizes_that_change_share_a_record() -> None:
    def program(x: Tensor) -> Tensor:
        y = x.detach().requires_grad_()
        slope = torch.autograd.grad((y.softmax(-1) * y).square().mean(), y)[0]
        return slope * 2

    traced = trace(program, compile="now")
    for size in (3, 4, 5, 6, 3, 4, 5, 6, 1, 7, 7, 7, 1):
        x = torch.randn(size, 2 * size)
        assert_same(traced(x), program(x))
    stats = traced.stats()
    assert stats["hits"] >= 10
    assert stats["graphs"] <= 3
    assert stats["compilations"] == 2
    assert not traced.breaks


def test_gradients_of_other_strides_than_their_tensor_are_not_lifted() -> None:
    def program(x: Tensor) -> Tensor:
        y = x.detach().requires_grad_()
        return torch.autograd.grad(y.sum(), y)[0]

    traced = trace(program, compile="now")
    for size in (3, 4, 5, 6, 3, 4):
        x = torch.randn(size, 2)
        assert_same(traced(x), program(x))


def test_hooks_on_saved_tensors_see_an_ordinary_run() -> None:
    def half(x: Tensor) -> Tensor:
        return x / 2

    traced = trace(of_parameters_as_well, compile="now")
    x = torch.randn(6, 2)
    for _ in range(3):
        traced(x)
    with torch.autograd.graph.saved_tensors_hooks(half, lambda kept: kept):
        changed = of_parameters_as_well(x)
        assert_same(traced(x), changed)
    assert not torch.equal(changed, of_parameters_as_well(x))
    assert_same(traced(x), of_parameters_as_well(x))


def test_an_artifact_makes_gradients_inside() -> None:
    compiled = magweld.compile(residual, (torch.rand(6, 2),))
    x = torch.rand(6, 2)
    assert_same(compiled(x), residual(x))


def test_a_frozen_module_is_left_as_it_is() -> None:
    x = torch.randn(6, 2)
    before = [p.detach().clone() for p in NET.parameters()]
    traced = trace(of_parameters_as_well, compile="now")
    for _ in range(3):
        traced(x)
    assert all(p.grad is None for p in NET.parameters())
    assert_same(before, [p.detach() for p in NET.parameters()])
