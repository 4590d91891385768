"""Owns how kernels and their operations are found, and the attributes of kernels."""

from __future__ import annotations

from collections.abc import Iterator

from magweld.bindings import func, ir, linalg
from magweld.dialects.tile_graph import is_kernel
from magweld.passes.ir.utils import functions_of, operations_of

TILES = "magweld.tiles"
# How many operations of a kernel are marked as apart from equal ones.
_APART = "tile_graph.apart"
# Bytes that the buffers of a kernel take of the level of its tiles.
PLACED = "tile_graph.placed_bytes"
SCRATCH = "magweld.scratch_bytes"


def kernels_of(module: ir.Operation) -> Iterator[func.FuncOp]:
    """Yield the kernel functions of a module that have a body."""
    for function in functions_of(module):
        if is_kernel(function) and not function.is_external:
            yield function


def mark_apart(op: ir.Operation, name: str) -> None:
    """Give an operation an attribute that no other one in its kernel has.

    Equal operations are one for upstream's clean-up: this one is meant to be another.
    """
    function = op.parent
    while function.name != "func.func":
        function = function.parent
    function = function.operation
    taken = function.attributes[_APART].value if _APART in function.attributes else 0
    number = ir.IntegerType.get_signless(64, op.context)
    function.attributes[_APART] = ir.IntegerAttr.get(number, taken + 1)
    op.attributes[name] = ir.IntegerAttr.get(number, taken)


def generics_of(module: ir.Operation) -> list[tuple[func.FuncOp, ir.Operation]]:
    """Return every `linalg.generic` of the kernels of a module, with its kernel."""
    return [
        (function, op.operation)
        for function in kernels_of(module)
        for op in operations_of(function, linalg.GenericOp)
    ]
