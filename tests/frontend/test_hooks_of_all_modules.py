"""Hooks for all modules: a graph is no module of the program, whatever runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn.modules import module as modules

from magweld.frontend import trace

WEIGHT = torch.ones(3, requires_grad=True)


def program(x: Tensor) -> Tensor:
    return torch.relu(x * WEIGHT) + 1


@contextmanager
def noted(log: list[type]) -> Iterator[None]:
    """Note the classes of modules that run, and change what they give."""

    def before(module: nn.Module, args: Any) -> None:
        log.append(type(module))

    def behind(module: nn.Module, args: Any, result: Any) -> Any:
        return result[0] + 5 if type(result) is tuple else result + 5

    handles = [
        modules.register_module_forward_pre_hook(before),
        modules.register_module_forward_hook(behind),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


BACKENDS: dict[str, Any] = {
    "eager": "eager",
    "a graph": lambda graph, inputs: graph,
    "of torch.compile": "aot_eager",
}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_no_hook_runs_for_a_graph(backend: Any) -> None:
    fast, log, x = trace(program, backend=backend), [], torch.randn(2, 3)
    fast(x)
    with noted(log):
        for _ in range(2):
            torch.testing.assert_close(fast(x), program(x))
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            torch.testing.assert_close(fast(x), program(x))
    stats = fast.stats()
    assert (stats["hits"], stats["misses"]) == (3, 1)
    assert not any(issubclass(cls, fx.GraphModule) for cls in log)


def test_what_the_halves_leave_to_torch_runs_without_hooks() -> None:
    def plainly(graph: fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        return graph.forward

    plainly.differentiates = False  # type: ignore[attr-defined]
    fast, log, x = trace(program, backend=plainly), [], torch.randn(2, 3)
    fast(x)
    with (
        noted(log),
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        result = fast(x)
        torch.testing.assert_close(result, program(x))
        result.sum().backward()
    assert log == []
    assert fast.stats()["hits"] == 1
