"""Owns the running of transform-dialect scripts that are built in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magweld.bindings import (
    ir,
    structured_transform,
    transform,
    transform_interpreter,
)
from magweld.passes.ir.utils import located_error

Build = Callable[[ir.Value], None]
"""Builds the body of a script; gets the handle of the payload root."""


def apply_script(payload: Any, build: Build) -> None:
    """Run a transform script on a payload operation.

    Python objects of operations below the payload are invalid afterwards.

    Raises:
        PassError: A transform failed; located at the payload.
    """
    script = ir.Module.create()
    script.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
    any_op = transform.AnyOpType.get()
    with ir.InsertionPoint(script.body):
        sequence = transform.NamedSequenceOp("__transform_main", [any_op], [])
    with ir.InsertionPoint(sequence.body):
        build(sequence.bodyTarget)
        transform.YieldOp()
    try:
        transform_interpreter.apply_named_sequence(
            payload.operation, sequence.operation, script.operation
        )
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise located_error(payload, f"cannot be transformed: {reason}") from error


def match_tagged(root: ir.Value, name: str, value: ir.Attribute) -> ir.Value:
    """Return a handle of the operations whose attribute `name` is `value`."""
    op = structured_transform.MatchOp(
        transform.AnyOpType.get(),
        root,
        op_attrs=ir.DictAttr.get({name: value}),
    )
    handle: ir.Value = op.result
    return handle


def remove_tags(root: Any, name: str) -> None:
    """Remove the attribute `name` below an operation."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        if name in op.attributes:
            del op.attributes[name]
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
