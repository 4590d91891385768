"""Owns the attributes with which our passes mark upstream's ops, and their rules.

They are discardable in MLIR's sense: the ops verify without them, and IRDL cannot state
rules for them. `verify-phase` checks them by this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from magweld.bindings import ir
from magweld.dialects.tile_graph.attributes import (
    DeviceAttr,
    FragmentAttr,
    PlaceAttr,
)
from magweld.dialects.tile_graph.kernels import (
    ASYNC_COPY,
    BAGS,
    BESIDE,
    BULK_COPY,
    EXTERNAL,
    FRAGMENT,
    IN_FLIGHT,
    INTERIOR,
    KERNEL,
    LASTING,
    MATRIX_LOADS,
    NONTEMPORAL_STORES,
    OPERATORS,
    PARTS,
    PLACE,
    REDUCTION_BLOCK,
    REMATERIALIZED,
    REPORTS,
    RUNTIME,
    SUBGROUP_REDUCTION,
    SWIZZLED,
    UNSHARED,
    WARPGROUPS,
)
from magweld.dialects.tile_graph.verification import DEVICE

PREFIXES = ("tile_graph.", "magweld.")
_FUNCTION = ("func.func", "llvm.func")


@dataclass(frozen=True)
class DiscardableAttr:
    """What an attribute says, where it may stand, and what it has to be.

    Attributes:
        name: With its prefix.
        holders: Names of the ops that may have it; any op for none.
        kind: Class of its value.
        meaning: What it says, for readers.
        least: Smallest value of an integer.
    """

    name: str
    holders: tuple[str, ...]
    kind: type
    meaning: str
    least: int = 0

    def violation(self, op: ir.Operation) -> str | None:
        """Return what is wrong with the attribute of an op that has it."""
        value = op.attributes[self.name]
        if self.holders and op.name not in self.holders:
            return f"expected no attribute '{self.name}', which is of {self._where()}"
        if not isinstance(value, self.kind):
            expected = self.kind.__name__
            return f"expected attribute '{self.name}' to be {expected}, got {value}"
        if isinstance(value, ir.IntegerAttr) and value.value < self.least:
            expected = f"at least {self.least}"
            return f"expected attribute '{self.name}' to be {expected}, got {value}"
        if isinstance(value, FragmentAttr) and value.violation():
            return (
                f"expected a fragment in attribute '{self.name}': {value.violation()}"
            )
        return None

    def _where(self) -> str:
        return " or ".join(f"'{name}'" for name in self.holders)


DISCARDABLE: tuple[DiscardableAttr, ...] = (
    DiscardableAttr(
        DEVICE, ("func.func",), DeviceAttr, "what the graph is planned for"
    ),
    DiscardableAttr(KERNEL, _FUNCTION, ir.UnitAttr, "the function is a tiled kernel"),
    DiscardableAttr(
        PARTS, _FUNCTION, ir.IntegerAttr, "loops over tiles, one a shape", least=1
    ),
    DiscardableAttr(
        RUNTIME,
        _FUNCTION,
        ir.DictAttr,
        "tiles along an extent that a call tells: the number that stands for the "
        "`extent`, the `step` of the largest, and how many lie `beside` each other",
    ),
    DiscardableAttr(
        OPERATORS,
        ("func.call",),
        ir.ArrayAttr,
        "operators that the call computes; a list for each member of a batch, and for "
        "each part of a joint call",
    ),
    DiscardableAttr(
        REDUCTION_BLOCK,
        (),
        ir.IntegerAttr,
        "iterations of a block of the longest reduction",
        least=1,
    ),
    DiscardableAttr(
        INTERIOR,
        (),
        ir.DictAttr,
        "what of a tile with a border is none: `low`, `sizes`, and the `whole` shape",
    ),
    DiscardableAttr(
        BESIDE, (), ir.DictAttr, "places of what it has beside its tiles, by role"
    ),
    DiscardableAttr(
        LASTING, (), ir.UnitAttr, "what is filled keeps its border from tile to tile"
    ),
    DiscardableAttr(
        REMATERIALIZED,
        (),
        ir.IntegerAttr,
        "number of what is made for one sum",
    ),
    DiscardableAttr(
        UNSHARED, (), ir.IntegerAttr, "number of what one reader begins from"
    ),
    DiscardableAttr(
        "tile_graph.apart",
        _FUNCTION,
        ir.IntegerAttr,
        "numbers of these two kinds that are taken",
    ),
    DiscardableAttr(
        "tile_graph.plan",
        ("func.func",),
        ir.Attribute,
        "plan that `apply-plans` applies, as measured or written by hand",
    ),
    DiscardableAttr(
        PLACE,
        ("memref.alloc", "memref.alloca"),
        PlaceAttr,
        "where a buffer of a kernel lies",
    ),
    DiscardableAttr(
        FRAGMENT,
        ("linalg.generic",),
        FragmentAttr,
        "the product is computed by matrix instructions, which share it so",
    ),
    DiscardableAttr(
        MATRIX_LOADS,
        ("linalg.generic",),
        ir.DenseI64ArrayAttr,
        "factors of the product, 0 that of the rows and 1 that of the columns, which "
        "all lanes of a subgroup load together, as matrices",
    ),
    DiscardableAttr(
        WARPGROUPS,
        ("linalg.generic",),
        ir.UnitAttr,
        "four subgroups compute the product together, from swizzled factors",
    ),
    DiscardableAttr(
        IN_FLIGHT,
        ("linalg.generic",),
        ir.UnitAttr,
        "what the product reads stays as it is until the barrier behind the next one",
    ),
    DiscardableAttr(
        SWIZZLED,
        ("linalg.copy", "linalg.generic", "memref.alloc"),
        ir.UnitAttr,
        "chunks of the rows of the buffer are permuted",
    ),
    DiscardableAttr(
        ASYNC_COPY,
        ("linalg.copy", "linalg.generic"),
        ir.UnitAttr,
        "threads go on before the bytes are there, and wait for them later",
    ),
    DiscardableAttr(
        BULK_COPY,
        ("linalg.copy",),
        ir.UnitAttr,
        "one thread begins the copy, and an mbarrier counts the bytes that the tensor "
        "memory accelerator has copied",
    ),
    DiscardableAttr(
        NONTEMPORAL_STORES,
        ("linalg.generic",),
        ir.ArrayAttr,
        "numbers of its outputs that are stored past the caches, where these are "
        "vectors of whole lines",
    ),
    DiscardableAttr(
        SUBGROUP_REDUCTION,
        ("linalg.generic",),
        ir.IntegerAttr,
        "neighbouring lanes that have one output: they combine their inputs, and the "
        "first of them writes it",
        least=2,
    ),
    DiscardableAttr(
        "tile_graph.placed_bytes",
        _FUNCTION,
        ir.IntegerAttr,
        "bytes that the buffers of the kernel take of the level of its tiles",
    ),
    *(
        DiscardableAttr(f"tile_graph.{name}", _FUNCTION, kind, meaning)
        for name, (kind, meaning) in REPORTS.items()
    ),
    DiscardableAttr(
        "magweld.adopts",
        ("func.func",),
        ir.UnitAttr,
        "the library gives memory of its own as result",
    ),
    DiscardableAttr(
        "magweld.arena_bytes",
        ("func.func",),
        ir.IntegerAttr,
        "size of the arena that intermediate tensors share",
    ),
    DiscardableAttr(
        BAGS,
        ("func.func",),
        ir.DictAttr,
        "bags that a call computes: their `mode`, the index that is `padding`, whether "
        "it takes `sizes` and `weights`",
    ),
    DiscardableAttr(
        "magweld.batch",
        ("func.func",),
        ir.DictAttr,
        "kernel that a call runs for many members, of the declaration that stands for "
        "it",
    ),
    DiscardableAttr(
        EXTERNAL,
        ("func.func",),
        ir.StringAttr,
        "graph node that torch runs, of a declaration",
    ),
    DiscardableAttr(
        "magweld.launch",
        ("gpu.binary",),
        ir.DictAttr,
        "what a launcher needs: symbol, grid, block, shared bytes, arguments, members",
    ),
    DiscardableAttr(
        "magweld.if",
        ("func.func",),
        ir.DictAttr,
        "branch whose arms are functions, of the declaration that stands for it",
    ),
    DiscardableAttr(
        "magweld.joint",
        ("func.func",),
        ir.ArrayAttr,
        "kernels that a call runs side by side, each with its share of the work, of "
        "the declaration that stands for it",
    ),
    DiscardableAttr(
        "magweld.joint_launch",
        ("func.func",),
        ir.StringAttr,
        "name of the launch that a kernel shares with others",
    ),
    DiscardableAttr(
        "magweld.launch_parts",
        ("gpu.launch_func",),
        ir.ArrayAttr,
        "arguments and members of each kernel of a joint launch",
    ),
    DiscardableAttr(
        "magweld.library",
        ("func.func",),
        ir.DictAttr,
        "library call and its options, of a declaration",
    ),
    DiscardableAttr(
        "magweld.loop",
        ("func.func",),
        ir.DictAttr,
        "loop whose iterations run a function, of the declaration that stands for it",
    ),
    DiscardableAttr(
        "magweld.members",
        ("func.func",),
        ir.IntegerAttr,
        "how many members a launch of a kernel has",
        least=2,
    ),
    DiscardableAttr(
        "magweld.offset",
        ("tensor.empty",),
        ir.IntegerAttr,
        "first byte in the arena",
    ),
    DiscardableAttr(
        "magweld.padding",
        ("memref.alloc",),
        ir.IntegerAttr,
        "elements that lie unused behind each row of a shared tile",
        least=1,
    ),
    DiscardableAttr(
        "magweld.parts",
        ("linalg.generic",),
        ir.IntegerAttr,
        "parts that its reduction was split into",
        least=1,
    ),
    DiscardableAttr(
        "magweld.place",
        ("tensor.empty",),
        ir.StringAttr,
        "memory of a destination: arena, output or adopted",
    ),
    DiscardableAttr(
        "magweld.registers",
        (),
        ir.DictAttr,
        "register tile of a loop nest",
    ),
    DiscardableAttr(
        "magweld.remarks", ("func.func",), ir.ArrayAttr, "remarks of passes, for people"
    ),
    DiscardableAttr(
        "magweld.scratch",
        ("func.call",),
        ir.IntegerAttr,
        "first byte in the arena of what the tiles of the call need",
    ),
    DiscardableAttr(
        "magweld.scratch_bytes",
        _FUNCTION,
        ir.IntegerAttr,
        "bytes that a kernel allocates",
    ),
    DiscardableAttr(
        "magweld.shared_bytes",
        ("func.func",),
        ir.IntegerAttr,
        "shared memory of a kernel",
    ),
    DiscardableAttr(
        "magweld.stand_ins",
        ("builtin.module",),
        ir.DenseI64ArrayAttr,
        "primes that stand for sizes which a call tells",
    ),
    DiscardableAttr(
        "magweld.sweep",
        (),
        ir.IntegerAttr,
        "number of the loop nest that operations share",
    ),
    DiscardableAttr(
        "magweld.tensor_maps",
        ("func.func",),
        ir.ArrayAttr,
        "tensor maps that are the last arguments of a kernel: the `argument` that each "
        "is of, its `box` and `swizzle`",
    ),
    DiscardableAttr(
        "magweld.tile_runs",
        ("func.func",),
        ir.ArrayAttr,
        "tiles that a call runs one by one",
    ),
    DiscardableAttr(
        "magweld.tiles", _FUNCTION, ir.IntegerAttr, "tiles of a kernel", least=1
    ),
    DiscardableAttr(
        "magweld.transient_bytes",
        ("func.func",),
        ir.IntegerAttr,
        "most bytes that libraries allocate meanwhile",
    ),
    DiscardableAttr(
        "magweld.vector_loop",
        ("linalg.generic",),
        ir.IntegerAttr,
        "number of the loop that each thread runs whole",
        least=0,
    ),
    DiscardableAttr(
        "magweld.while",
        ("func.func",),
        ir.DictAttr,
        "loop whose iterations run a function while a truth value is true, of the"
        " declaration that stands for it",
    ),
    DiscardableAttr(
        "magweld.winograd",
        (),
        ir.IntegerAttr,
        "tile of a Winograd convolution",
        least=1,
    ),
    DiscardableAttr(
        "magweld.winograd_weights",
        (),
        ir.IntegerAttr,
        "number of its transformed weights",
    ),
    DiscardableAttr(
        "magweld.written_out",
        ("func.func",),
        ir.ArrayAttr,
        "repeated operations that are no loop, and why: id, reason, count, node",
    ),
)
"""Every such attribute that a phase may end with."""

_BY_NAME = {attribute.name: attribute for attribute in DISCARDABLE}


def discardable_violations(op: ir.Operation) -> Iterator[str]:
    """Yield what is wrong with our attributes of an op of another dialect."""
    if op.name.startswith(PREFIXES):
        return
    for name in op.attributes:
        if not name.startswith(PREFIXES):
            continue
        known = _BY_NAME.get(name)
        found = f"expected no attribute '{name}': no pass leaves such a one"
        violation = found if known is None else known.violation(op)
        if violation is not None:
            yield violation
