"""`torch.compile(backend="magweld")`: found by name, right, and careful."""

from __future__ import annotations

import copy
import warnings
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


def test_gradients_run_through_torch(fresh_dynamo: Any) -> None:
    model, reference = mlp(), mlp()
    reference.load_state_dict(model.state_dict())
    compiled = torch.compile(model, backend="magweld")
    x = torch.randn(4, 6)
    with pytest.warns(UserWarning, match=r"gradients.*runs through torch"):
        compiled(x).sum().backward()
    reference(x).sum().backward()
    for mine, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    assert not fresh_dynamo


def test_symbolic_sizes_run_through_torch(fresh_dynamo: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return x.softmax(-1) * x.shape[0]

    compiled = torch.compile(function, backend="magweld", dynamic=True)
    first = torch.randn(3, 6)
    with pytest.warns(UserWarning, match=r"symbolic sizes.*runs through torch"):
        torch.testing.assert_close(compiled(first), function(first))
    x = torch.randn(5, 6)
    torch.testing.assert_close(compiled(x), function(x))
    assert not fresh_dynamo


def test_other_sizes_than_the_first(fresh_dynamo: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return (x.exp() + 1).sum(0)

    compiled = torch.compile(function, backend="magweld")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for length in (3, 5, 7, 3):
            x = torch.randn(length, 6)
            torch.testing.assert_close(compiled(x), function(x))
    assert len(fresh_dynamo) == 1


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
        return x.to(torch.complex64) * 2

    compiled = torch.compile(function, backend="magweld")
    x = torch.randn(3)
    with pytest.warns(UserWarning, match=r"tensor-dtype.*runs through torch"):
        torch.testing.assert_close(compiled(x), function(x))
