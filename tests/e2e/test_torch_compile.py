"""`torch.compile(backend="magweld")`: found by name, right, and careful."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld import api


@pytest.fixture(autouse=True)
def fresh_dynamo(monkeypatch: pytest.MonkeyPatch) -> list[api.CompiledGraph]:
    """Reset TorchDynamo; return the graphs that are compiled from here on."""
    torch._dynamo.reset()
    graphs: list[api.CompiledGraph] = []
    compile_graph = api.compile_graph

    def counted(*args: Any, **kwargs: Any) -> api.CompiledGraph:
        graphs.append(compile_graph(*args, **kwargs))
        return graphs[-1]

    monkeypatch.setattr(api, "compile_graph", counted)
    return graphs


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 3)).eval()


def convolutions() -> nn.Module:
    layers = (nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(4 * 36, 3)).eval()


def test_the_backend_is_found_by_name() -> None:
    assert "magweld" in torch._dynamo.list_backends()


@pytest.mark.parametrize(
    ("make", "shape"), [(mlp, (4, 6)), (convolutions, (2, 2, 8, 8))]
)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_models(make: Any, shape: Any, mode: Any, fresh_dynamo: Any) -> None:
    model = make()
    compiled = torch.compile(model, backend="magweld")
    with mode():
        for _ in range(2):
            x = torch.randn(shape)
            torch.testing.assert_close(compiled(x), model(x))
    assert len(fresh_dynamo) == 1


def assert_trains(
    function: Any, make_inputs: Any, modules: tuple[nn.Module, ...] = ()
) -> None:
    """Compare values, gradients and written inputs of three steps with eager."""
    compiled = torch.compile(function, backend="magweld")
    for seed in range(3):
        found = []
        for run in (compiled, function):
            torch.manual_seed(seed)
            for module in modules:
                module.zero_grad()
            inputs = make_inputs()
            result = run(*inputs)
            results = result if isinstance(result, tuple) else (result,)
            sum(r.sum() for r in results if r.requires_grad).backward()
            leaves = [*inputs, *(p for m in modules for p in m.parameters())]
            gradients = [None if p.grad is None else p.grad.clone() for p in leaves]
            kept = [x.detach().clone() for x in inputs]
            found.append((results, gradients, kept))
        for mine, theirs in zip(*found, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                torch.testing.assert_close(a, b)
        mine, theirs = (results for results, _, _ in found)
        for a, b in zip(mine, theirs, strict=True):
            assert (a.requires_grad, a.stride()) == (b.requires_grad, b.stride())


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, requires_grad=True)


def test_training(fresh_dynamo: Any) -> None:
    model = mlp().train()
    assert_trains(model, lambda: (torch.randn(4, 6),), (model,))
    assert len(fresh_dynamo) == 2  # a forward and a backward half


def test_training_with_dropout() -> None:
    dropout = nn.Dropout(0.5)
    assert_trains(lambda x: dropout(x.sin()) * 2, lambda: (leaf(8, 9),))


def test_training_writes_running_statistics() -> None:
    models = [nn.BatchNorm1d(5), nn.BatchNorm1d(5)]
    compiled = torch.compile(models[0], backend="magweld")
    for _ in range(3):
        x = torch.randn(7, 5)
        for run in (compiled, models[1]):
            run(x).square().sum().backward()
    for mine, theirs in zip(*(m.state_dict().values() for m in models), strict=True):
        torch.testing.assert_close(mine, theirs)
    for mine, theirs in zip(*(m.parameters() for m in models), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def written(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    y.mul_(2)
    return (x * y).exp(), y + 1


def viewed(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.T, (x * 2).view(-1)


def parts_without_gradients(x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        y = x.sigmoid() * 3
    return y, (x * y).tanh()


@pytest.mark.filterwarnings("ignore:a graph is not compiled")
@pytest.mark.parametrize(
    ("function", "make_inputs"),
    [
        (written, lambda: (leaf(3, 4), torch.randn(3, 4))),
        (viewed, lambda: (leaf(3, 4),)),
        (parts_without_gradients, lambda: (leaf(3, 4),)),
        (lambda x: x.double().pow(2).sum(0), lambda: (leaf(3, 4),)),
        (lambda x, i: x[i], lambda: (leaf(5, 4), torch.tensor([0, 3, 3]))),
    ],
)
def test_training_does_what_eager_does(function: Any, make_inputs: Any) -> None:
    assert_trains(function, make_inputs)


def test_gradients_of_gradients() -> None:
    def function(x: Tensor) -> Tensor:
        return (x.sin() * x).sum()

    found = []
    for run in (torch.compile(function, backend="magweld"), function):
        x = torch.linspace(0, 1, 5, requires_grad=True)
        (first,) = torch.autograd.grad(run(x), x, create_graph=True)
        found.append(torch.autograd.grad(first.sum(), x)[0])
    torch.testing.assert_close(*found)


def test_training_with_inputs_that_overlap_only_later() -> None:
    compiled = torch.compile(written, backend="magweld")
    for overlap in (False, True):
        found = []
        for run in (compiled, written):
            base = torch.arange(6.0)
            x = base[2:].detach() if overlap else torch.ones(4)
            results = run(x.requires_grad_(), base[:4])
            results[0].sum().backward()
            found.append([*results, x.grad, base])
        torch.testing.assert_close(*found)


def test_autocast_around_the_call() -> None:
    model = mlp()
    compiled = torch.compile(model, backend="magweld")
    x = torch.randn(4, 6)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        with pytest.warns(UserWarning, match=r"autocast.*runs through torch"):
            result = compiled(x)
        torch.testing.assert_close(result, model(x))


def test_symbolic_sizes_are_compiled_once_they_come_back(fresh_dynamo: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return x.softmax(-1) * x.shape[0]

    compiled = torch.compile(function, backend="magweld", dynamic=True)
    for length in (3, 5, 7) * 4:
        x = torch.randn(length, 6)
        torch.testing.assert_close(compiled(x), function(x))
    assert len(fresh_dynamo) == 3


def test_symbolic_sizes_with_gradients(fresh_dynamo: Any) -> None:
    model = mlp()
    compiled = torch.compile(model, backend="magweld", dynamic=True)
    for length in (3, 5) * 4:
        x = torch.randn(length, 6)
        gradients = []
        for run in (compiled, model):
            model.zero_grad()
            run(x).square().sum().backward()
            gradients.append([p.grad.clone() for p in model.parameters()])
        torch.testing.assert_close(*gradients)
    assert len(fresh_dynamo) == 4


def test_other_sizes_than_the_first(fresh_dynamo: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return (x.exp() + 1).sum(0)

    compiled = torch.compile(function, backend="magweld")
    for length in (3, 5, 7, 3, 5, 5):
        x = torch.randn(length, 6)
        torch.testing.assert_close(compiled(x), function(x))
    assert len(fresh_dynamo) == 2


@pytest.mark.parametrize("mode", ["default", "max-autotune-no-cudagraphs"])
def test_modes(mode: str, fresh_dynamo: Any) -> None:
    compiled = torch.compile(lambda x: x.exp() + 1, backend="magweld", mode=mode)
    x = torch.randn(4)
    torch.testing.assert_close(compiled(x), x.exp() + 1)
    assert len(fresh_dynamo) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "max-autotuned"}, "did you mean 'max-autotune'"),
        ({"options": {"fusio": "all"}}, "did you mean 'fusion'"),
        ({"options": {"fusion": "al"}}, "did you mean 'all'"),
        ({"options": {"library": 3}}, "expected a string, got int"),
        ({"options": {"tune": "yes"}}, "expected a bool"),
        ({"options": {"batch": 1}}, "expected a bool, got int"),
        ({"options": {"batch_depth": True}}, "expected an int, got bool"),
        ({"options": {"batch_rules": "mine"}}, "expected a list of names"),
        ({"options": {"batch_minimum": 1}}, "expected at least two members"),
        ({"options": {"memory_budget": "much"}}, "expected a size"),
    ],
)
def test_settings_that_are_none(arguments: Any, message: str) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="magweld", **arguments)
    with pytest.raises(Exception, match=message):
        compiled(torch.ones(3))


def test_reduce_overhead_is_accepted() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="magweld", mode="reduce-overhead")
    with pytest.warns(UserWarning, match="compiles as by default"):
        torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 2.0))


def test_writes_to_inputs() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return x + y

    compiled = torch.compile(function, backend="magweld")
    inputs = torch.randn(2, 3, 4)
    mine, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    torch.testing.assert_close(compiled(*mine), function(*theirs))
    torch.testing.assert_close(mine, theirs)


def test_inputs_that_overlap_only_later() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return x + y

    compiled = torch.compile(function, backend="magweld")
    compiled(torch.randn(4), torch.randn(4))
    mine = torch.randn(6)
    theirs = mine.clone()
    result = compiled(mine[:4], mine[2:])
    torch.testing.assert_close(result, function(theirs[:4], theirs[2:]))
    torch.testing.assert_close(mine, theirs)


def test_a_graph_that_is_refused_runs_through_torch(fresh_dynamo: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return x.to(torch.complex128) * 2

    compiled = torch.compile(function, backend="magweld")
    x = torch.randn(3)
    with pytest.warns(UserWarning, match=r"tensor-dtype.*runs through torch"):
        torch.testing.assert_close(compiled(x), function(x))
