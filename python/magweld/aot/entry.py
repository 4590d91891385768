"""Owns `magweld.compile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from magweld.aot.artifact import Artifact
from magweld.aot.compile import capture_call, compile_call
from magweld.api import AUTO, options_for
from magweld.artifact import HOST_TARGET
from magweld.compiler_options import CompileOptions, parse_bytes
from magweld.runtime.gpu.machine import target_of
from magweld.tuning.options import Tune


def compile(
    model: Callable[..., Any],
    inputs: Sequence[Any] | Mapping[str, Any],
    target: str = AUTO,
    *,
    tune: Tune | None = None,
    memory_budget: int | str | None = None,
) -> Artifact:
    """Compile a model ahead of time, without gradients.

    The model runs once, which is a real run. What it reads beside its inputs, such as
    parameters, is copied into the artifact.

    Args:
        model: Module or function.
        inputs: Positional arguments, or keyword arguments by name: tensors and plain
            constants. Shapes, strides, dtypes and constants become fixed.
        target: "auto" for what the inputs are on, "cpu" for this machine, or a GPU
            such as "nvvm:sm_80", which need not be there.
        tune: Whether plans are chosen by measuring: True, a number of seconds, or
            options; None asks the environment variable `MAGWELD_TUNE`.
        memory_budget: Bytes, e.g. "2GiB", that a call of the artifact may take beside
            arguments, results and its own parameters; what does not fit is made tile
            by tile. Only for this machine.

    Returns:
        What can be saved, and called where there is a machine that takes the code.

    Raises:
        UnsupportedError: Unknown target, or the model cannot become an artifact.
        DeviceError: The inputs are on a GPU that no code is generated for.
        ValueError: The budget is no size.
        WorkerError: The compiler refused the graph or did not come back.
    """
    args, kwargs = _arguments(inputs)
    if target == AUTO:
        target = _target_of([*args, *kwargs.values()])
    budget = CompileOptions(memory_budget=parse_bytes(memory_budget))
    options = options_for(target, budget, tune)
    return compile_call(capture_call(model, args, kwargs), target, options, tune)


def _target_of(inputs: Sequence[Any]) -> str:
    places = (value.device for value in inputs if isinstance(value, Tensor))
    return target_of(next(places, torch.device(HOST_TARGET)))


def _arguments(
    inputs: Sequence[Any] | Mapping[str, Any],
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
