"""Owns the attributes of the functions that subgraphs become, and of calls of them."""

from __future__ import annotations

from magweld.bindings import ir

# A function that is a tiled kernel.
KERNEL = "tile_graph.kernel"
# The memory level that holds the tiles of a kernel; the place of an allocation in it.
LEVEL = "tile_graph.level"
PLACE = "tile_graph.place"
# How many loops over tiles a kernel has, where its tiles have several shapes.
PARTS = "tile_graph.parts"
# On a product of a kernel: iterations of a block of its longest reduction.
REDUCTION_BLOCK = "tile_graph.reduction_block"
# On a convolution of a kernel whose image is a part of a tile with a border: `low`, the
# first elements along each dimension that are no border, their number `sizes`, and the
# shape of the `whole` tile.
INTERIOR = "tile_graph.interior"
# On what is made once more for one reader, and on what one reader alone begins from: a
# number of its own in the kernel, so that it equals nothing that cse would take for it.
REMATERIALIZED = "tile_graph.rematerialized"
UNSHARED = "tile_graph.unshared"
# On a product of a kernel: who has which element of its result, as a fragment.
FRAGMENT = "tile_graph.fragment"
# On a call: names of the operators that it computes.
OPERATORS = "tile_graph.operators"


def is_kernel(function: ir.Operation | ir.OpView) -> bool:
    """Return whether an operation is a tiled kernel, or the declaration of one."""
    return KERNEL in function.operation.attributes
