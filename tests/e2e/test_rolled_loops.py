"""Loops that the compiler makes of alike iterations give what eager gives."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import magweld
from magweld.api import compile_graph
from magweld.artifact import LoopStep, Program
from magweld.compiler_options import CompileOptions
from magweld.frontend import trace
from magweld.runtime.layout import Layout


class Module(nn.Module):
    """A function as a module, with layers beside."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(layers)
        self._function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self._function(self.layers, *inputs)


def compiled(function: Callable[..., Any], *inputs: Tensor, **layers: nn.Module) -> Any:
    module = Module(function, **layers).eval()
    with torch.no_grad():
        return module, magweld.compile(module, inputs)


def loops_of(artifact: Any) -> list[LoopStep]:
    return [s for s in artifact.program.steps if isinstance(s, LoopStep)]


def check(module: Any, artifact: Any, *inputs: Tensor) -> None:
    with torch.no_grad():
        expected, actual = module(*inputs), artifact(*inputs)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def is_native(program: Program, step: LoopStep) -> bool:
    return Layout(program).is_native(step)


def newton(count: int) -> Callable[..., Tensor]:
    def function(layers: Any, a: Tensor, y: Tensor) -> Tensor:
        for _ in range(count):
            y = y * (2 - a * y)
        return y.sum(-1)

    return function


@pytest.mark.sample(3)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 17, 61, 128])
def test_elementwise_iterations(count: int) -> None:
    a, y = torch.rand(8, 40) + 1, torch.rand(8, 40) * 0.3
    module, artifact = compiled(newton(count), a, y)
    check(module, artifact, a, y)
    assert len(loops_of(artifact)) == (count >= 61)
    for step in loops_of(artifact):
        assert step.trips * 11 <= count
        assert is_native(artifact.program, step)


def cells(layers: Any, x: Tensor) -> Tensor:
    h = c = x.new_zeros(x.shape[0], 24)
    for t in range(x.shape[1]):
        h, c = layers["cell"](x[:, t], (h, c))
    return h


@cache  # two tests look at some
def lstm(count: int) -> Any:
    """Return cells of so many steps, as they are and compiled."""
    return compiled(cells, torch.randn(3, count, 20), cell=nn.LSTMCell(20, 24))


@pytest.mark.sample(2)
@pytest.mark.parametrize("count", [1, 3, 17, 72])
def test_lstm_cells(count: int) -> None:
    module, artifact = lstm(count)
    check(module, artifact, torch.randn(3, count, 20))
    check(module, artifact, torch.randn(3, count, 20))
    assert len(loops_of(artifact)) == (count >= 17)


def test_code_does_not_grow_with_the_count() -> None:
    # How many iterations one body of the loop has depends on the count, within bounds.
    few, many = (17, 72)
    sizes = [sum(map(len, lstm(count)[1].program.objects)) for count in (few, many)]
    assert sizes[1] < 2 * sizes[0] < sizes[0] * many / few


def outputs(dim: int, reverse: bool = False) -> Callable[..., Any]:
    def function(layers: Any, x: Tensor) -> Any:
        h, made = x.new_ones(x.shape[0], 16), []
        order = range(x.shape[1])
        for t in reversed(order) if reverse else order:
            h = torch.tanh(layers["own"](h) + layers["new"](x[:, t]))
            made.append(h)
        return torch.stack(made, dim), h

    return function


@pytest.mark.sample(3)
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_results_of_all_iterations_are_stacked(
    dim: int, reverse: bool, whole: bool
) -> None:
    if (dim + reverse) % 2 and not whole:
        pytest.skip("one of the pairs of `--whole`")
    x = torch.randn(3, 48, 12)
    layers = {"own": nn.Linear(16, 16), "new": nn.Linear(12, 16)}
    module, artifact = compiled(outputs(dim, reverse), x, **layers)
    check(module, artifact, x)
    [step] = loops_of(artifact)
    assert any(step.stacked)


def test_results_of_all_iterations_are_concatenated() -> None:
    def function(layers: Any, x: Tensor) -> Tensor:
        h, made = x[0], []
        for _ in range(48):
            h = torch.sin(layers["own"](h)) * 1.1
            made.append(h)
        return torch.cat(made[3:20] + made[30:], 1)

    x = torch.randn(2, 3, 16)
    module, artifact = compiled(function, x, own=nn.Linear(16, 16))
    check(module, artifact, x)
    assert loops_of(artifact)


def test_some_results_leave() -> None:
    def function(layers: Any, x: Tensor) -> Any:
        h, made = x, []
        for _ in range(64):
            h = torch.sin(layers["own"](h)) * 1.1
            made.append(h)
        return made[5], made[40] + made[63], made[62]

    x = torch.randn(3, 16)
    module, artifact = compiled(function, x, own=nn.Linear(16, 16))
    check(module, artifact, x)
    assert loops_of(artifact)


@pytest.mark.whole
def test_a_loop_reads_the_results_of_another() -> None:
    def function(layers: Any, x: Tensor) -> Tensor:
        rows: Any = x.unbind(1)
        for name in ("first", "second"):
            h, made = x.new_zeros(x.shape[0], 16), []
            for row in rows:
                h = layers[name](row, h)
                made.append(h)
            rows = made
        return torch.stack(rows, 1)

    x = torch.randn(3, 40, 12)
    layers = {"first": nn.GRUCell(12, 16), "second": nn.GRUCell(16, 16)}
    module, artifact = compiled(function, x, **layers)
    check(module, artifact, x)
    assert len(loops_of(artifact)) == 2


@pytest.mark.whole
def test_two_layers_in_one_iteration() -> None:
    def function(layers: Any, x: Tensor) -> Tensor:
        a = b = x.new_zeros(x.shape[1], 12)
        for t in range(x.shape[0]):
            a = layers["first"](x[t], a)
            b = layers["second"](a, b)
        return a + b

    x = torch.randn(20, 3, 12)
    layers = {"first": nn.GRUCell(12, 12), "second": nn.GRUCell(12, 12)}
    module, artifact = compiled(function, x, **layers)
    check(module, artifact, x)
    assert len(loops_of(artifact)) == 1


@pytest.mark.whole
def test_slices_at_two_distances() -> None:
    def function(layers: Any, x: Tensor) -> Tensor:
        h = x[0]
        for t in range(50):
            h = torch.sin(h * x[t]) + x[2 * t] * torch.cos(h) - x[t + 3]
        return h

    x = torch.randn(120, 3, 12)
    module, artifact = compiled(function, x)
    check(module, artifact, x)
    assert loops_of(artifact)


def test_windows_of_rows() -> None:
    def function(layers: Any, x: Tensor) -> Tensor:
        h = x[:4]
        for t in range(48):
            h = torch.tanh(h + x[t : t + 4]) * torch.cos(h) + 1
        return h

    x = torch.randn(60, 5)
    module, artifact = compiled(function, x)
    check(module, artifact, x)
    assert loops_of(artifact)


def test_state_in_place_and_aliases() -> None:
    def function(layers: Any, x: Tensor, state: Tensor) -> Tensor:
        view = state.view(-1)
        for _ in range(100):
            state.mul_(0.99).add_(torch.sin(x))
        return view.sum() + state

    x = torch.randn(3, 5)
    module, artifact = compiled(function, x, torch.zeros(3, 5))
    ours, theirs = torch.ones(3, 5), torch.ones(3, 5)
    with torch.no_grad():
        actual, expected = artifact(x, ours), module(x, theirs)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(ours, theirs)
    assert loops_of(artifact)


def test_results_of_calls_are_apart() -> None:
    a, y = torch.rand(8, 40) + 1, torch.rand(8, 40) * 0.3

    def function(layers: Any, a: Tensor, y: Tensor) -> Tensor:
        for _ in range(55):
            y = y * (2 - a * y)
        return y

    module, artifact = compiled(function, a, y)
    first = artifact(a, y)
    kept = first.clone()
    second = artifact(a, y * 0.5)
    torch.testing.assert_close(first, kept, rtol=0, atol=0)
    torch.testing.assert_close(second, module(a, y * 0.5))
    assert loops_of(artifact)


def changed_constant(layers: Any, x: Tensor) -> Tensor:
    for t in range(64):
        x = torch.sin(x) + x * (1.0 / (2 + t * t))
    return x


def two_back(layers: Any, x: Tensor) -> Tensor:
    before = x * 2
    for _ in range(64):
        x, before = torch.sin(before) + x * 0.5, x
    return x


def irregular_rows(layers: Any, x: Tensor) -> Tensor:
    h = x[0]
    for t in range(64):
        h = torch.sin(h) + x[t * t % 61]
    return h


def reordered(layers: Any, x: Tensor) -> Tensor:
    y = x * 2
    for t in range(64):
        x = x / (y + 3) if (t * t) % 7 < 3 else (y + 3) / x
    return x


def test_what_is_two_iterations_back_is_carried() -> None:
    x = torch.rand(64, 6) + 0.5
    module, artifact = compiled(two_back, x)
    check(module, artifact, x)
    (loop,) = loops_of(artifact)
    assert len(loop.fed_by) == 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", [changed_constant, irregular_rows, reordered])
def test_near_misses_stay(function: Callable[..., Tensor]) -> None:
    x = torch.rand(64, 6) + 0.5
    module, artifact = compiled(function, x)
    check(module, artifact, x)
    assert not loops_of(artifact)


def test_other_weights_stay() -> None:
    layers = {f"layer{n}": nn.Linear(16, 16) for n in range(30)}

    def function(layers: Any, x: Tensor) -> Tensor:
        for layer in layers.values():
            x = torch.relu(layer(x)) + x
        return x

    x = torch.randn(3, 16)
    module, artifact = compiled(function, x, **layers)
    check(module, artifact, x)
    assert not loops_of(artifact)


def test_a_change_in_the_middle_ends_the_loop() -> None:
    def function(layers: Any, x: Tensor) -> Tensor:
        for t in range(120):
            x = torch.sin(x * (1.5 if t < 60 else 0.5)) + x
        return x

    x = torch.randn(3, 16)
    module, artifact = compiled(function, x)
    check(module, artifact, x)
    assert loops_of(artifact)


class Repeated(nn.Module):
    """A layer whose results all leave."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        made = []
        for _ in range(34):
            x = torch.tanh(
                F.linear(x, self.own.weight, self.own.bias)
            ) * 0.5 + torch.sin(x)
            made.append(x)
        return x, torch.stack(made)


def test_iterations_with_library_calls() -> None:
    x, module = torch.randn(5, 16), Repeated().eval()
    options = CompileOptions(library="always")
    graph = compile_graph(torch.fx.symbolic_trace(module), [x], options=options)
    [step] = [s for s in graph.program.steps if isinstance(s, LoopStep)]
    assert not is_native(graph.program, step)
    with torch.no_grad():
        torch.testing.assert_close(tuple(graph(x)), module(x), rtol=1e-5, atol=1e-5)


def test_weights_are_read_in_each_call() -> None:
    module = Repeated().eval()
    traced = trace(module)
    x = torch.randn(5, 16)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(traced(x), module(x), rtol=1e-5, atol=1e-5)
            module.own.weight.mul_(0.5)
    assert traced.stats()["records"] == 1


@pytest.mark.parametrize("threads", [1, 4])
def test_concurrent_calls(threads: int) -> None:
    a, y = torch.rand(8, 40) + 1, torch.rand(8, 40) * 0.3
    module, artifact = compiled(newton(64), a, y)
    inputs = [y * (n + 1) / 16 for n in range(16)]
    with ThreadPoolExecutor(threads) as pool:
        actual = list(pool.map(lambda one: artifact(a, one), inputs))
    for one, result in zip(inputs, actual, strict=True):
        torch.testing.assert_close(result, module(a, one), rtol=1e-5, atol=1e-5)


def test_iterations_give_the_bits_of_the_unrolled_graph() -> None:
    x, module = torch.randn(5, 16), Repeated().eval()
    graph = torch.fx.symbolic_trace(module)
    rolled, unrolled = (
        compile_graph(graph, [x], options=CompileOptions(loops=roll))
        for roll in (True, False)
    )
    kinds = [one.program.step_kinds() for one in (rolled, unrolled)]
    assert ["loop" in kind for kind in kinds] == [True, False]
    for ours, theirs in zip(rolled(x), unrolled(x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
