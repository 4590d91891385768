"""Owns the attributes of the functions that subgraphs become, and of calls of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph.attributes import TileAttr
from magweld.dialects.tile_graph.grid import runtime_loops

# A function that is a tiled kernel.
KERNEL = "tile_graph.kernel"
# The memory level that holds the tiles of a kernel; the place of an allocation in it.
LEVEL = "tile_graph.level"
PLACE = "tile_graph.place"
# Which results of a kernel are stored past the caches.
NONTEMPORAL = "tile_graph.nontemporal"
# How many loops over tiles a kernel has, where its tiles have several shapes.
PARTS = "tile_graph.parts"
# The tiles of a kernel along an extent that a call tells: `extent`, the number that
# stands for it, the `step` of the largest, and how many tiles lie `beside` each other.
RUNTIME = "tile_graph.runtime"
# On a product of a kernel: iterations of a block of its longest reduction.
REDUCTION_BLOCK = "tile_graph.reduction_block"
# On a convolution of a kernel whose image is a part of a tile with a border: `low`, the
# first elements along each dimension that are no border, their number `sizes`, and the
# shape of the `whole` tile.
INTERIOR = "tile_graph.interior"
# On a convolution of a kernel: where its buffers beside tiles lie, by their role.
BESIDE = "tile_graph.beside"
# On what fills the border of a window: it lasts from tile to tile.
LASTING = "tile_graph.lasting"
# On what is made once more for one reader, and on what one reader alone begins from: a
# number of its own in the kernel, so that it equals nothing that cse would take for it.
REMATERIALIZED = "tile_graph.rematerialized"
UNSHARED = "tile_graph.unshared"
# On a declaration: the graph node that torch runs.
EXTERNAL = "magweld.external"
# On a declaration: the bags that a call computes, until `expand-bags`.
BAGS = "magweld.bags"
# On a product of a kernel: who has which element of its result, as a fragment.
FRAGMENT = "tile_graph.fragment"
# On such a product: which of its factors, that of the rows and that of the columns of
# the result, are loaded as matrices by all lanes of a subgroup together.
MATRIX_LOADS = "tile_graph.matrix_loads"
# On such a product: four subgroups compute it together, and read its factors.
WARPGROUPS = "tile_graph.warpgroups"
# On such a product: what it reads stays as it is until the barrier behind the next one.
IN_FLIGHT = "tile_graph.in_flight"
# On a buffer in shared memory, and on what fills it: chunks of its rows are permuted.
SWIZZLED = "tile_graph.swizzled"
# On a reduction of a kernel: how many neighbouring lanes combine what each of them has.
SUBGROUP_REDUCTION = "tile_graph.subgroup_reduction"
# On a kernel: rows of its tiles that a subgroup has in registers.
SUBGROUP_ROWS = "tile_graph.subgroup_rows"
# On a copy of a kernel: threads go on before its bytes are there.
ASYNC_COPY = "tile_graph.async_copy"
# On a copy of a kernel: one thread begins it, the tensor memory accelerator makes it.
BULK_COPY = "tile_graph.bulk_copy"
# On an operation of a kernel: numbers of its outputs that are stored past the caches,
# where these are vectors of whole lines.
NONTEMPORAL_STORES = "tile_graph.nontemporal_stores"
# On a call: names of the operators that it computes.
OPERATORS = "tile_graph.operators"

# What a schedule says of its tiles for people: attributes of a subgraph, of its plan,
# and, with the prefix of the dialect, of the function that it becomes.
REPORTS: dict[str, tuple[type, str]] = {
    "copy_stages": (ir.IntegerAttr, "steps of staged operands that are held"),
    "footprint": (ir.IntegerAttr, "bytes that its tiles take at a time"),
    "level": (ir.StringAttr, "memory level of its tiles"),
    "moved_after": (ir.DictAttr, "bytes to and from each level down to that"),
    "nontemporal": (ir.ArrayAttr, "numbers of results that are stored past caches"),
    "predicted_seconds": (ir.FloatAttr, "predicted time"),
    "recompute": (ir.FloatAttr, "arithmetic over that without fusion"),
    "reduction_step": (ir.IntegerAttr, "elements of a reduction that are held"),
    "stream_step": (ir.IntegerAttr, "elements of the streamed dimension in a block"),
    "subgroup_rows": (ir.IntegerAttr, "rows that a subgroup has in registers"),
    "tile": (TileAttr, "sizes of its tiles"),
    "traffic_after": (ir.IntegerAttr, "bytes to and from the outermost level"),
    "traffic_before": (ir.IntegerAttr, "the same without fusion"),
}
_PREFIX = "tile_graph."
_FUNCTIONS = ("func.func", "llvm.func")


def reports_of(op: ir.Operation | ir.OpView) -> dict[str, ir.Attribute]:
    """Return what a subgraph, a plan or a function of one reports, by name."""
    attributes = op.operation.attributes
    prefix = _PREFIX if op.operation.name in _FUNCTIONS else ""
    names = (name for name in REPORTS if f"{prefix}{name}" in attributes)
    return {name: attributes[f"{prefix}{name}"] for name in names}


def set_reports(
    function: ir.Operation | ir.OpView, reports: Mapping[str, ir.Attribute]
) -> None:
    """Let a function report what the subgraph or plan did that it is made of."""
    for name, value in reports.items():
        function.operation.attributes[f"{_PREFIX}{name}"] = value


@dataclass(frozen=True)
class RuntimeTiles:
    """The tiles of a kernel along an extent that a call tells.

    Attributes:
        extent: The number that stands for the extent.
        step: Size of the largest tiles.
        beside: How many tiles there are for each one along the extent.
    """

    extent: int
    step: int
    beside: int

    def count(self, extent: int) -> int:
        """Return how many tiles there are for an extent."""
        loops = runtime_loops(extent, self.step)
        return self.beside * sum((loop.end - loop.start) // loop.step for loop in loops)

    def attribute(self) -> ir.Attribute:
        """Return it as an attribute of a kernel."""
        numbers = {"extent": self.extent, "step": self.step, "beside": self.beside}
        return ir.DictAttr.get({name: i64(n) for name, n in numbers.items()})

    @staticmethod
    def of(function: ir.Operation | ir.OpView) -> RuntimeTiles | None:
        """Return those of a kernel; None if all its extents are constants."""
        attributes = function.operation.attributes
        if RUNTIME not in attributes:
            return None
        found = ir.DictAttr(attributes[RUNTIME])
        names = ("extent", "step", "beside")
        return RuntimeTiles(*(ir.IntegerAttr(found[name]).value for name in names))


def is_kernel(function: ir.Operation | ir.OpView) -> bool:
    """Return whether an operation is a tiled kernel, or the declaration of one."""
    return KERNEL in function.operation.attributes
