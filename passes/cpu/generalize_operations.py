"""Owns generalize-operations: named linalg operations become generic, windows not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import (
    ir,
    structured_transform,
    transform,
    transform_interpreter,
)
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass

_WINDOWED = ("linalg.conv", "linalg.depthwise_conv", "linalg.pooling")
_NOT_NAMED = ("linalg.generic", "linalg.contract", "linalg.index", "linalg.yield")


@dataclass(frozen=True)
class GeneralizeOperations(Pass):
    """Make named linalg operations generic, except convolutions and poolings.

    Fusion of element-wise operations works on `linalg.generic` alone. What makes the
    input of a window would be computed once for every window that it is in, so
    operations on windows keep their names until fusion is over.
    """

    name: ClassVar[str] = "generalize-operations"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the operations of all kernels of the module."""
        names = sorted(
            {
                name
                for function in kernels_of(module)
                for name in _operation_names(function.operation)
                if name.startswith("linalg.")
                and not name.startswith(_WINDOWED + _NOT_NAMED)
            }
        )
        if names:
            _generalize(module, names)


def _operation_names(root: ir.Operation) -> set[str]:
    names: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        names.add(str(op.name))
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return names


def _generalize(module: ir.Operation, names: list[str]) -> None:
    with ir.Location.unknown(module.context):
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
            module, sequence.operation, script.operation
        )
