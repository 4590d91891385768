"""Library calls in programs for GPUs: what they read, where they write, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hosted_gpu import HostedGpu, MockDriver, compile_interpreted
from torch import Tensor, fx

from magweld import device_compiler
from magweld.api import options_for
from magweld.artifact import KernelStep, LibraryStep, Program
from magweld.compiler_options import CompileOptions
from magweld.device_compiler import compile_for_device
from magweld.diagnostics import MagweldError
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.runtime.container import decode_program, encode_request
from magweld.runtime.program import LoadedProgram

ALWAYS = CompileOptions(library="always")
TARGET = "nvvm:sm_80"
BF16 = torch.bfloat16


def linear_softmax(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.softmax(F.linear(x, w, b).relu(), -1)


def two_layers(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Values of the arena are written by kernels and calls in turn."""
    return ((x + 1) @ w).relu() @ v


def turned(x: Tensor, w: Tensor) -> Tensor:
    return (x.t() @ w.t()) * 2


def rows_of_batches(x: Tensor, w: Tensor) -> Tensor:
    """Weights that are the same for the whole batch."""
    return (x @ w).relu()


def heads(q: Tensor, k: Tensor) -> Tensor:
    return F.softmax(q @ k.transpose(-1, -2), -1)


def convolved(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(x + 1, w, b, padding=1).relu()


def groups(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, groups=2).relu()


def points(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w).relu()


# The function, shapes, element type, and the calls that its program has.
CASES: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]], Any, list[str]]]
CASES = {
    "linear": (linear_softmax, [(8, 12), (10, 12), (10,)], None, ["matmul"]),
    "two-layers": (two_layers, [(6, 8), (8, 5), (5, 4)], None, ["matmul"] * 2),
    "turned": (turned, [(6, 8), (5, 6)], None, ["matmul"]),
    "batches": (rows_of_batches, [(3, 6, 8), (8, 5)], None, ["matmul"]),
    "heads": (heads, [(2, 3, 4, 8), (2, 3, 5, 8)], None, ["batch_matmul"]),
    "windows": (
        *(convolved, [(1, 2, 6, 6), (3, 2, 3, 3), (3,)]),
        *(None, ["convolution"]),
    ),
    "groups": (groups, [(1, 4, 6, 6), (6, 2, 3, 3)], None, ["convolution"]),
    "points": (points, [(2, 4, 3, 3), (6, 4, 1, 1)], None, ["batch_matmul"]),
    "linear-bf16": (linear_softmax, [(8, 16), (10, 16), (10,)], BF16, ["addmm"]),
    "two-layers-bf16": (
        *(two_layers, [(6, 16), (16, 8), (8, 4)]),
        *(BF16, ["matmul"] * 2),
    ),
    "windows-bf16": (
        *(convolved, [(1, 2, 6, 6), (3, 2, 3, 3), (3,)]),
        *(BF16, ["convolution"]),
    ),
}


def imported(function: Callable[..., Any], inputs: Sequence[Tensor]) -> ImportedGraph:
    graph = fx.symbolic_trace(function)
    return import_graph(graph, inputs, look_ups=True, device=torch.device("cuda", 0))


def no_external(node: str, tensors: Any) -> Any:
    raise AssertionError(node)


def library_steps(program: Program) -> list[LibraryStep]:
    return [step for step in program.steps if isinstance(step, LibraryStep)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_calls_are_part_of_programs(
    name: str, mock: MockDriver, hosted: HostedGpu
) -> None:
    function, shapes, dtype, calls = CASES[name]

    def arguments() -> list[Tensor]:
        return [torch.randn(shape).to(dtype or torch.float32) for shape in shapes]

    graph = imported(function, arguments())
    graph, program, launches = compile_interpreted(graph, TARGET, ALWAYS)
    mock.kernels.update(launches)
    assert [step.op for step in library_steps(program)] == calls
    loaded = LoadedProgram(program, no_external, hosted)
    for _ in range(2):
        mine = arguments()
        kept = [tensor.clone() for tensor in mine]
        found = graph.finish(mine, loaded(graph.prepare(mine)))
        expected = function(*kept)
        tolerance = 1e-2 if dtype else 1e-5
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(mine, kept)


def test_calls_run_between_launches_into_planned_memory(
    mock: MockDriver, hosted: HostedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch has the order: kernels are launched on the stream that it is on."""
    inputs = [torch.randn(shape) for shape in ((6, 8), (8, 5), (5, 4))]
    _, program, launches = compile_interpreted(
        imported(two_layers, inputs), TARGET, ALWAYS
    )
    mock.kernels.update(launches)
    kinds = [type(step) for step in program.steps]
    assert kinds == [KernelStep, LibraryStep, KernelStep, LibraryStep]
    loaded = LoadedProgram(program, no_external, hosted)
    product = torch.mm
    seen: list[tuple[int, Tensor, Tensor]] = []

    def mm(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
        seen.append((len(mock.launched), b, out))
        return product(a, b, out=out)

    monkeypatch.setattr(torch, "mm", mm)
    (found,) = loaded(inputs)
    (first, weights, between), (second, others, out) = seen
    assert (first, second) == (1, 2)
    assert (weights.data_ptr(), others.data_ptr()) == (
        inputs[1].data_ptr(),
        inputs[2].data_ptr(),
    )
    assert out.data_ptr() == found.data_ptr() != between.data_ptr()


def test_a_caller_says_whether_libraries_are_called() -> None:
    for use in ("auto", "never", "always"):
        options = options_for(TARGET, CompileOptions(library=use), None)
        assert options.library == use
        assert not options.loops


def compiled(text: str, settings: str) -> Program:
    return decode_program(compile_for_device(encode_request(settings, text)))


def test_options_travel_to_the_compiler() -> None:
    inputs = [torch.randn(8, 12), torch.randn(10, 12), torch.randn(10)]
    text = imported(linear_softmax, inputs).text
    assert not library_steps(compiled(text, TARGET))
    assert not library_steps(compiled(text, f"{TARGET}\n{CompileOptions().text()}"))
    (step,) = library_steps(compiled(text, f"{TARGET}\n{ALWAYS.text()}"))
    assert (step.op, step.attributes["transpose_b"]) == ("matmul", True)


def test_large_products_are_calls_where_they_are_faster() -> None:
    inputs = [torch.empty(4096, 4096), torch.empty(4096, 4096)]
    text = imported(lambda x, w: (x @ w).relu(), inputs).text
    settings = f"nvvm:sm_90a\n{CompileOptions().text()}"
    assert [step.op for step in library_steps(compiled(text, settings))] == ["matmul"]


def test_of_a_kernel_without_code_products_go_to_torch_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compile_kernel = device_compiler.compile_kernel

    def refuse(function: Any, *rest: Any) -> Any:
        if device_compiler.products_in(function):
            raise MagweldError("there is no code")
        return compile_kernel(function, *rest)

    monkeypatch.setattr(device_compiler, "compile_kernel", refuse)
    inputs = [torch.randn(8, 12), torch.randn(10, 12), torch.randn(10)]
    graph = imported(linear_softmax, inputs)
    program = compiled(graph.text, TARGET)
    (node,) = program.unlowered
    assert program.report["refused"] == {node: "there is no code"}
    again = compiled(graph.with_externals([node]).text, TARGET)
    assert not again.unlowered
    assert again.step_kinds().count("external") == 1
