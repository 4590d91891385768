"""Owns the refusal of tensors whose sizes are no constants."""

from __future__ import annotations

from collections.abc import Iterator

from magweld.bindings import func, ir
from magweld.diagnostics import Diagnostic, Severity, UnsupportedError, position_of
from magweld.passes.ir.utils import node_of, operations_of


def require_static_shapes(module: ir.Operation) -> None:
    """Make sure that every tensor of a module has a constant size.

    Raises:
        UnsupportedError: `dynamic-size`; names the first tensor without, arguments of
            functions before what is computed from them, and is located there.
    """
    for name, type_, location in (*_arguments(module), *_results(module)):
        if not isinstance(type_, ir.RankedTensorType) or type_.has_static_shape:
            continue
        dimension = next(i for i in range(type_.rank) if type_.is_dynamic_dim(i))
        node = node_of(location)
        error = UnsupportedError(
            "dynamic-size",
            f"dimension {dimension} of {name}, {type_}, has no constant size",
            hint="give the module tensors of constant shapes: import or trace the "
            "program for each size",
            nodes=[node] if node else [],
        )
        position = position_of(location)
        error.diagnostics = (Diagnostic(Severity.ERROR, error.message, position),)
        raise error


_Named = tuple[str, ir.Type, ir.Location]


def _arguments(module: ir.Operation) -> Iterator[_Named]:
    for function in operations_of(module, func.FuncOp):
        for number, kind in enumerate(function.type.inputs):
            name = f"argument {number} of @{function.name.value}"
            yield name, kind, function.location


def _results(module: ir.Operation) -> Iterator[_Named]:
    for view in operations_of(module, ir.OpView):
        op = view.operation
        for result in op.results:
            name = f"the result of '{op.name}'"
            if len(op.results) > 1:
                name = f"result {result.result_number} of '{op.name}'"
            yield name, result.type, op.location
