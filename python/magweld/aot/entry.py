"""Owns `magweld.compile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from magweld.aot.artifact import Artifact
from magweld.aot.compile import capture_call, compile_for_host
from magweld.aot.compile_device import compile_for_gpu
from magweld.aot.device import DeviceArtifact
from magweld.compiler_options import CompileOptions, parse_bytes
from magweld.diagnostics import UnsupportedError
from magweld.frontend.importer.importer import import_graph
from magweld.targets import Backend, parse_target
from magweld.tuning.options import Tune


def compile(
    model: Callable[..., Any],
    inputs: Sequence[Any] | Mapping[str, Any],
    target: str = "cpu",
    *,
    tune: Tune | None = None,
    memory_budget: int | str | None = None,
) -> Artifact | DeviceArtifact:
    """Compile a model ahead of time, without gradients.

    The model runs once, which is a real run. What it reads beside its inputs, such as
    parameters, is copied into the artifact.

    Args:
        model: Module or function.
        inputs: Positional arguments, or keyword arguments by name: tensors and plain
            constants. Shapes, strides, dtypes and constants become fixed.
        target: "cpu" for this machine, or a GPU such as "nvvm:sm_80".
        tune: Whether plans are chosen by measuring: True, a number of seconds, or
            options; None asks the environment variable `MAGWELD_TUNE`.
        memory_budget: Bytes, e.g. "2GiB", that a call of the artifact may take beside
            arguments, results and its own parameters; what does not fit is made tile
            by tile. Only for this machine.

    Returns:
        What can be called and saved, for a GPU only saved.

    Raises:
        UnsupportedError: Unknown target, or the model cannot become an artifact.
        ValueError: The budget is no size.
        WorkerError: The compiler refused the graph or did not come back.
    """
    chosen = parse_target(target)
    if tune and chosen.backend is not Backend.CPU:
        raise UnsupportedError(
            "tune-target",
            f"plans for {target} cannot be measured on this machine",
            hint="leave out tune: the model of the device chooses plans",
        )
    options = CompileOptions(memory_budget=parse_bytes(memory_budget))
    if options.memory_budget and chosen.backend is not Backend.CPU:
        raise UnsupportedError(
            "memory-budget-target",
            f"code for {target} is not made for a memory budget",
            hint="leave memory_budget out, or compile for the CPU",
        )
    args, kwargs = _arguments(inputs)
    call = capture_call(model, args, kwargs)
    if chosen.backend is Backend.CPU:
        return compile_for_host(call, options, tune)
    return compile_for_gpu(import_graph(call.graph, call.example_inputs), target)


def _arguments(
    inputs: Sequence[Any] | Mapping[str, Any],
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
