"""Owns models of ONNX as programs that can be compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from magweld.aot.errors import (
    EXPORT_INPUTS,
    ONNX_DAMAGED,
    ONNX_OPERATOR,
    ONNX_PACKAGE,
)
from magweld.aot.onnx_task import TASK
from magweld.aot.torch_module import TorchModule, read_torch_module
from magweld.diagnostics import UnsupportedError
from magweld.runtime.errors import TaskFailedError
from magweld.runtime.worker_pool import WorkerPool

_SECONDS: Final = 600.0
# Passes read the elements of short tensors, such as shapes; longer ones pass them by.
_SHORT: Final = 64
_FLOATS: Final = ("float16", "float32", "float64")


def load_onnx(path: Path, shapes: Sequence[Sequence[int]] | None = None) -> TorchModule:
    """Read a model of ONNX; its inputs are positional, in their order.

    torch-mlir imports it and converts operators of ONNX into those of torch, in a
    process of its own. Weights in files beside the model are read as well.

    Args:
        path: The file.
        shapes: Of the inputs, for a model that leaves sizes open: what computes with
            these sizes needs no code then.

    Raises:
        UnsupportedError: `onnx-package`: the package onnx is missing; `onnx-damaged`:
            the file is no model; `onnx-operator`: there is no conversion of an
            operator; `export-inputs`: the model does not take inputs of these shapes.
        WorkerError: The process of the conversion did not come back.
        OSError: The file cannot be read.
    """
    onnx = _package()
    model = _checked(onnx, path, shapes)
    weights = list(_weights(onnx, model.graph))
    read = _converted(model, path)
    return replace(
        read,
        arguments=read.arguments[: len(read.arguments) - len(weights)],
        literals=(*weights, *read.literals),
    )


def _converted(model: Any, path: Path) -> TorchModule:
    """Return a model as operators of torch.

    Raises:
        UnsupportedError: `onnx-operator`.
        WorkerError: See `load_onnx`.
    """
    workers = WorkerPool(1)
    try:
        module = workers.run(TASK, model.SerializeToString(), _SECONDS)
    except TaskFailedError as error:
        reason = " ".join(error.error_message.split())
        raise ONNX_OPERATOR.at(f"'{path}': {reason}") from error
    finally:
        workers.close()
    try:
        return read_torch_module(module, path)
    except UnsupportedError as error:
        raise ONNX_OPERATOR.at(error.where) from error


def _package() -> Any:
    try:
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
        import onnx.shape_inference
    except ImportError as error:
        raise ONNX_PACKAGE.at(str(error)) from error
    return onnx


def _checked(onnx: Any, path: Path, shapes: Sequence[Sequence[int]] | None) -> Any:
    """Return the model of a file, with the types of its values.

    Raises:
        UnsupportedError: `onnx-damaged`, or `export-inputs`.
        OSError: The file cannot be read.
    """
    try:
        model = onnx.load_model(path)
        onnx.checker.check_model(model)
        if shapes is not None:
            _set_shapes(model.graph, shapes, path)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (OSError, UnsupportedError):
        raise
    except Exception as error:
        # The file is data, of which any of three libraries may complain.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ONNX_DAMAGED.at(f"'{path}': {reason}") from error


def _inputs(graph: Any) -> list[Any]:
    """Return what a graph is called with: old ones list their weights as well."""
    initial = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in initial]


def _set_shapes(graph: Any, shapes: Sequence[Sequence[int]], path: Path) -> None:
    """Set the sizes that the inputs of a graph leave open.

    Raises:
        UnsupportedError: `export-inputs`: they are of others.
    """
    inputs = _inputs(graph)
    open_sizes = [value.type.tensor_type.shape.dim for value in inputs]
    if [*map(len, shapes)] != [*map(len, open_sizes)]:
        raise EXPORT_INPUTS.at(f"'{path}' for inputs of {len(shapes)} shapes")
    for value, sizes, shape in zip(inputs, open_sizes, shapes, strict=True):
        for found, wanted in zip(sizes, shape, strict=True):
            if found.HasField("dim_value") and found.dim_value != wanted:
                raise EXPORT_INPUTS.at(f"'{path}' for '{value.name}' of {tuple(shape)}")
            found.dim_value = wanted


def _weights(onnx: Any, graph: Any) -> Iterator[Tensor]:
    """Make inputs of the long weights of a graph, behind its own, and yield them.

    They are neither copied into a module nor out of it, nor looked at by a pass.
    """
    inputs, kept = _inputs(graph), []
    for tensor in graph.initializer:
        elements = onnx.numpy_helper.to_array(tensor)
        if prod(tensor.dims) <= _SHORT or elements.dtype.name not in _FLOATS:
            kept.append(tensor)
            continue
        inputs.append(
            onnx.helper.make_tensor_value_info(
                tensor.name, tensor.data_type, list(tensor.dims)
            )
        )
        yield torch.from_numpy(elements.copy())
    for field, values in ((graph.initializer, kept), (graph.input, inputs)):
        del field[:]
        field.extend(values)
