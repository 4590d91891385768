"""Owns what is compiled ahead of time: calls of models, and programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from magweld.aot.compile import CapturedCall, capture_call
from magweld.aot.errors import NO_INPUTS
from magweld.aot.exported import arguments_of, exported_call
from magweld.aot.torch_module import TorchModule

Inputs = Sequence[Any] | Mapping[str, Any]
Model = Callable[..., Any] | ExportedProgram | TorchModule


def captured(
    model: Model, inputs: Inputs | None, *, row_major: bool = False
) -> CapturedCall:
    """Return a call of a model or program as a graph.

    Args:
        model: A module or function runs once, without gradients; a program does not.
        inputs: Positional arguments, or keyword arguments by name; None is the
            arguments that a program was exported with, or sizes of a module.
        row_major: Whether the call is one of row-major copies of the tensors.

    Raises:
        UnsupportedError: The call cannot become an artifact.
    """
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    if isinstance(model, TorchModule) and inputs is None:
        args, kwargs = model.example_inputs(), {}
    elif isinstance(model, ExportedProgram):
        args, kwargs = arguments_of(model, inputs)
    elif inputs is None:
        raise NO_INPUTS.at("the call")
    else:
        args, kwargs = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
    if row_major:
        args, kwargs = pytree.tree_map_only(
            Tensor, Tensor.contiguous, (tuple(args), dict(kwargs))
        )
    if isinstance(model, ExportedProgram):
        return exported_call(model, args, kwargs)
    if isinstance(model, TorchModule):
        return model.call(args, kwargs)
    return capture_call(model, args, kwargs)
