"""Owns how kernel functions are recognised and the attributes that describe them."""

from __future__ import annotations

from collections.abc import Iterator

from magweld.bindings import func, ir
from magweld.passes.ir_utils import functions_of

KERNEL = "tile_graph.kernel"
TILES = "magweld.tiles"
SCRATCH = "magweld.scratch_bytes"
REMARKS = "magweld.remarks"


def kernels_of(module: ir.Operation) -> Iterator[func.FuncOp]:
    """Yield the kernel functions of a module."""
    for function in functions_of(module):
        if KERNEL in function.attributes:
            yield function


def add_remark(function: func.FuncOp, text: str) -> None:
    """Keep a remark about a decision on the kernel that it is about."""
    known = list(function.attributes[REMARKS]) if REMARKS in function.attributes else []
    remark = ir.StringAttr.get(text)
    if remark not in known:
        function.attributes[REMARKS] = ir.ArrayAttr.get([*known, remark])
