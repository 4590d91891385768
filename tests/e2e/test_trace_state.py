"""Programs through the default backend under modes, changes of state and threads."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from magweld.api import CompiledGraph
from magweld.frontend import trace

Compile = Callable[..., Any]


def test_a_buffer_that_the_module_updates() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.total.add_(x.sum(0))  # type: ignore[operator]
            return x * self.total  # type: ignore[operator]

    mine, theirs = Counting(), Counting()
    traced = trace(mine)
    for _ in range(4):
        x = torch.randn(3, 4)
        torch.testing.assert_close(traced(x), theirs(x))
        torch.testing.assert_close(mine.total, theirs.total)
    assert traced.stats()["hits"] >= 2, traced.explain()


def test_autocast(compiled: Compile) -> None:
    model = nn.Linear(8, 8).requires_grad_(False)
    with torch.autocast("cpu", torch.bfloat16):
        checked = compiled(model, torch.randn(4, 8))
        _, result = checked.compare(torch.randn(4, 8))
    assert result.dtype is torch.bfloat16


def test_inference_mode(compiled: Compile) -> None:
    model = nn.Linear(8, 8)
    with torch.inference_mode():
        checked = compiled(model, torch.randn(4, 8))
        _, result = checked.compare(torch.randn(4, 8))
    assert result.is_inference()


def test_parameters_that_change_in_place(compiled: Compile) -> None:
    model = nn.Linear(8, 4).requires_grad_(False)
    checked = compiled(model, torch.randn(4, 8))
    x = torch.randn(4, 8)
    _, before = checked.compare(x)
    model.weight.mul_(2)
    _, after = checked.compare(x)
    assert not torch.equal(before, after)


def test_a_parameter_that_is_replaced() -> None:
    model = nn.Linear(8, 4).requires_grad_(False)
    traced = trace(model)
    x = torch.randn(4, 8)
    traced(x), traced(x)
    model.weight = nn.Parameter(torch.randn(4, 8), requires_grad=False)
    torch.testing.assert_close(traced(x), model(x))


def test_halves_that_cannot_be_apart_run_through_torch() -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.Tanh())
    reference = copy.deepcopy(model)

    def views(module: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = module(x)
        return y, y[0]

    traced = trace(views)
    for _ in range(3):
        x = torch.randn(5, 8)
        traced(model, x)[1].sum().backward()
        views(reference, x)[1].sum().backward()
    (record,) = traced.records
    assert not isinstance(record.compiled, CompiledGraph)
    assert [item.id for item in record.breaks] == ["training-graph"]
    pairs = zip(model.parameters(), reference.parameters(), strict=True)
    for mine, theirs in pairs:
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_one_record_for_each_shape(compiled: Compile) -> None:
    checked = compiled(lambda x: x.softmax(-1), torch.randn(3, 4))
    checked.traced(torch.randn(5, 6))
    assert checked.traced.stats()["records"] == 2
    checked.compare(torch.randn(3, 4))
    checked.compare(torch.randn(5, 6))


def test_threads_at_once() -> None:
    layers = (nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
    model = nn.Sequential(*layers).requires_grad_(False)
    traced = trace(model)
    inputs = [torch.randn(2, 3, 8, 8) for _ in range(4)]
    expected = [model(x) for x in inputs]
    faults: list[BaseException] = []
    gate = threading.Barrier(len(inputs))

    def work(x: Tensor, want: Tensor) -> None:
        try:
            gate.wait()
            for _ in range(5):
                torch.testing.assert_close(traced(x), want)
        except BaseException as error:
            faults.append(error)

    pairs = zip(inputs, expected, strict=True)
    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert traced.stats()["calls"] == 20
