"""Owns generalize-operations: named linalg operations become generic, windows not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import (
    ir,
    linalg,
    structured_transform,
    transform,
    transform_interpreter,
)
from magweld.dialects.tile_graph import LASTING
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.utils import operations_of

_WINDOWED = ("linalg.conv", "linalg.depthwise_conv", "linalg.pooling")
_NOT_NAMED = ("linalg.generic", "linalg.contract", "linalg.index", "linalg.yield")


@dataclass(frozen=True)
class GeneralizeOperations(Pass):
    """Make named linalg operations generic, except convolutions and poolings.

    What follows works on `linalg.generic`; operations on windows keep their names, as
    `expand-winograd` looks for them. A fill becomes a generic operation that reads
    nothing: its number is used in the body.

        linalg.fill ins(%c) outs(%t)  =>  linalg.generic outs(%t) { linalg.yield %c }
    """

    name: ClassVar[str] = "generalize-operations"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the operations of all kernels of the module."""
        for function in kernels_of(module):
            for fill in operations_of(function, linalg.FillOp):
                _generalize_fill(fill)
        for function in kernels_of(module):
            names = sorted(
                name
                for name in _operation_names(function.operation)
                if name.startswith("linalg.")
                and not name.startswith(_WINDOWED + _NOT_NAMED)
            )
            if names:
                _generalize(function.operation, names)


def _generalize_fill(fill: linalg.FillOp) -> None:
    value, into = fill.operation.operands
    type_ = into.type
    if not isinstance(type_, ir.RankedTensorType) or value.type != type_.element_type:
        return  # of a buffer, or converted to the type of the tensor
    identity = ir.AffineMap.get_identity(len(type_.shape))
    with ir.InsertionPoint(fill), fill.location:
        made = build_generic([], [into], [identity], lambda _: [value])
    if LASTING in fill.operation.attributes:
        made.attributes[LASTING] = ir.UnitAttr.get()
    fill.operation.results[0].replace_all_uses_with(made.results[0])
    fill.operation.erase()


def _operation_names(root: ir.Operation) -> set[str]:
    names: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        names.add(str(op.name))
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return names


def _generalize(function: ir.Operation, names: list[str]) -> None:
    with ir.Location.unknown(function.context):
        script = ir.Module.create()
        script.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
        with ir.InsertionPoint(script.body):
            sequence = transform.NamedSequenceOp(
                "__transform_main",
                [transform.AnyOpType.get()],
                [],
                arg_attrs=[{"transform.consumed": ir.UnitAttr.get()}],
            )
        with ir.InsertionPoint(sequence.body):
            named = structured_transform.MatchOp.match_op_names(
                sequence.bodyTarget, names
            )
            structured_transform.GeneralizeOp(named)
            transform.YieldOp([])
        transform_interpreter.apply_named_sequence(
            function, sequence.operation, script.operation
        )
