"""Owns the attributes of the functions that subgraphs become, and of calls of them."""

from __future__ import annotations

from magweld.bindings import ir

# A function that is a tiled kernel.
KERNEL = "tile_graph.kernel"
# How many loops over tiles a kernel has, where its tiles have several shapes.
PARTS = "tile_graph.parts"
# On a call: names of the operators that it computes.
OPERATORS = "tile_graph.operators"


def is_kernel(function: ir.Operation | ir.OpView) -> bool:
    """Return whether an operation is a tiled kernel, or the declaration of one."""
    return KERNEL in function.operation.attributes
