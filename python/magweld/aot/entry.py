"""Owns `magweld.compile`."""

from __future__ import annotations

import torch

from magweld.aot.artifact import Artifact
from magweld.aot.compile import compile_call
from magweld.aot.sources import Inputs, Model, captured
from magweld.api import AUTO, options_for
from magweld.artifact import HOST_TARGET
from magweld.compiler_options import CompileOptions, parse_bytes
from magweld.runtime.gpu.machine import target_of
from magweld.targets import parse_target
from magweld.tuning.options import Tune


def compile(
    model: Model,
    inputs: Inputs | None = None,
    target: str = AUTO,
    *,
    tune: Tune | None = None,
    memory_budget: int | str | None = None,
) -> Artifact:
    """Compile a model ahead of time, without gradients.

    A module or function runs once, which is a real run; what `torch.export` made does
    not run. What the model reads beside its inputs, such as parameters, is copied into
    the artifact.

    Args:
        model: Module, function, or `torch.export.ExportedProgram`.
        inputs: Positional arguments, or keyword arguments by name: tensors and plain
            constants, in tuples, lists and dicts. Shapes, strides, dtypes and constants
            become fixed. None is the arguments that a program was exported with.
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
    budget = CompileOptions(memory_budget=parse_bytes(memory_budget))
    if target != AUTO:
        parse_target(target)
    call = captured(model, inputs)
    if target == AUTO:
        places = (tensor.device for tensor in (*call.inputs, *call.state.values()))
        target = target_of(next(places, torch.device(HOST_TARGET)))
    options = options_for(target, budget, tune)
    return compile_call(call, target, options, tune)
