"""Owns the moving of code between the modules of code for a GPU."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir
from magweld.passes.ir.utils import located_error


def move_symbols(source: Any, target: Any) -> None:
    """Move what a module of code has into another one, if that has no such symbol.

    Raises:
        PassError: Both define a symbol.
    """
    inside = target.operation.regions[0].blocks[0]
    known = {_symbol(op): op for op in inside.operations}
    for op in list(source.operation.regions[0].blocks[0].operations):
        symbol = _symbol(op)
        if symbol not in known:
            last = list(inside.operations)[-1]
            op.operation.move_after(last.operation)
        elif _is_defined(op) or _is_defined(known[symbol]):
            raise located_error(op, f"expected one definition of @{symbol}")


def _symbol(op: Any) -> str:
    attributes = op.operation.attributes
    if "sym_name" not in attributes:
        raise located_error(op, "expected a symbol")
    return str(ir.StringAttr(attributes["sym_name"]).value)


def _is_defined(op: Any) -> bool:
    """Whether a symbol has a body, or a value: others stand for what is elsewhere."""
    operation = op.operation
    blocks = [block for region in operation.regions for block in region.blocks]
    return bool(blocks) or "value" in operation.attributes
