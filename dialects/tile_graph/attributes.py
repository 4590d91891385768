"""Owns the attributes: a memory level, a device, a tile, a place, a fragment.

Their parameters read as plain Python values: str, int, float and tuples.
`magweld.dialects.device_attributes` makes and reads whole devices.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from magweld.bindings import ir
from magweld.dialects.integers import i64, i64s
from magweld.dialects.tile_graph.dialect import Attribute


def _plain_array(attribute: ir.Attribute) -> tuple[Any, ...]:
    return tuple(
        int(element.value) if isinstance(element, ir.IntegerAttr) else element
        for element in ir.ArrayAttr(attribute)
    )


# Parameters arrive as plain `ir.Attribute`s; the declared class says how to read one.
_READERS: dict[type, Callable[[ir.Attribute], Any]] = {
    ir.StringAttr: lambda attribute: str(ir.StringAttr(attribute).value),
    ir.IntegerAttr: lambda attribute: int(ir.IntegerAttr(attribute).value),
    ir.FloatAttr: lambda attribute: float(ir.FloatAttr(attribute).value),
    ir.ArrayAttr: _plain_array,
}


class _PlainAttribute(Attribute):
    """Base of attributes whose parameters read as plain Python values."""

    @classmethod
    def __init_subclass__(cls, *, name: str = "") -> None:
        super().__init_subclass__(name=name)
        for index, field in enumerate(cls._fields):
            read = _READERS[field.constraint]
            setattr(cls, field.name, property(_Reader(index, read)))


class _Reader:
    """Reads the parameter at an index of an attribute."""

    def __init__(self, index: int, read: Callable[[ir.Attribute], Any]) -> None:
        self._index = index
        self._read = read

    def __call__(self, attribute: ir.DynamicAttr) -> Any:
        return self._read(attribute.params[self._index])


class LevelAttr(_PlainAttribute, name="level"):
    """One memory level.

    `#tile_graph.level<"l2", 2, 1048576, 160.0, 64, 2, "cache", 80.0, 64>`

    Attributes:
        name: Unique in its device.
        index: Position in the device, 0 for the outermost level.
        capacity: Bytes of one unit; 0 if unbounded.
        bandwidth: GB/s of all units together.
        transaction: Bytes that the smallest transfer moves.
        units: How many separate memories of this level there are.
        kind: "explicit" or "cache".
        write_bandwidth: GB/s of writes; 0 if as that of reads.
        write_transaction: Bytes of the smallest write; 0 if as that of reads.
    """

    name: ir.StringAttr
    index: ir.IntegerAttr
    capacity: ir.IntegerAttr
    bandwidth: ir.FloatAttr
    transaction: ir.IntegerAttr
    units: ir.IntegerAttr
    kind: ir.StringAttr
    write_bandwidth: ir.FloatAttr
    write_transaction: ir.IntegerAttr


class PeakAttr(_PlainAttribute, name="peak"):
    """Most arithmetic on one element type: `#tile_graph.peak<"f64", 7800.0>`.

    Attributes:
        dtype: Element type.
        gflops: 1e9 operations per second of all units together.
    """

    dtype: ir.StringAttr
    gflops: ir.FloatAttr


class InstructionAttr(_PlainAttribute, name="instruction"):
    """A matrix instruction.

    `#tile_graph.instruction<"mma.m8n8k4", [8, 8, 4], "f16", "f32", 125000.0>`

    Attributes:
        name: Unique in its device.
        shape: Rows, columns and reduction.
        operand: Element type of the factors.
        accumulator: Element type of the result.
        gflops: 1e9 operations per second of all units together.
    """

    name: ir.StringAttr
    shape: ir.ArrayAttr
    operand: ir.StringAttr
    accumulator: ir.StringAttr
    gflops: ir.FloatAttr


class LibraryAttr(_PlainAttribute, name="library"):
    """What a library does of one operation on one element type.

    `#tile_graph.library<"product.f32", "product", "f32", 51800.0>`

    Attributes:
        name: Unique in its device.
        operation: "product" or "convolution".
        operand: Element type of the factors.
        gflops: 1e9 operations per second of a call that is large.
    """

    name: ir.StringAttr
    operation: ir.StringAttr
    operand: ir.StringAttr
    gflops: ir.FloatAttr


class DeviceAttr(_PlainAttribute, name="device"):
    """A processor with its memory levels.

    `#tile_graph.device<"a100", [#tile_graph.level<...>, ...], 108, 1024, 32, 128,
    19500.0, [#tile_graph.peak<...>, ...], [#tile_graph.instruction<...>, ...]>`

    Attributes:
        name: Name of the device.
        levels: Tuple of `LevelAttr`, outermost first.
        units: Processing units: cores or multiprocessors.
        threads: Most threads that work on one tile together.
        warp: Threads that execute in lockstep.
        vector_bits: Width of the widest load of one thread.
        peak_gflops: 1e9 f32 operations per second of all units together.
        peaks: Tuple of `PeakAttr`, those of other element types.
        instructions: Tuple of `InstructionAttr`, and of `LibraryAttr` behind them.
    """

    name: ir.StringAttr
    levels: ir.ArrayAttr
    units: ir.IntegerAttr
    threads: ir.IntegerAttr
    warp: ir.IntegerAttr
    vector_bits: ir.IntegerAttr
    peak_gflops: ir.FloatAttr
    peaks: ir.ArrayAttr
    instructions: ir.ArrayAttr


class PlaceAttr(_PlainAttribute, name="place"):
    """Where a tile lies: `#tile_graph.place<"l2", 4096, 512, 64>`.

    Attributes:
        level: Name of a memory level.
        offset: First byte, from the begin of what one tile may use of the level.
        bytes: How many bytes it takes.
        alignment: What the offset is a multiple of.
    """

    level: ir.StringAttr
    offset: ir.IntegerAttr
    bytes: ir.IntegerAttr
    alignment: ir.IntegerAttr

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return int(self.offset) + int(self.bytes)

    def overlaps(self, other: "PlaceAttr") -> bool:
        """Return whether two tiles of one level share bytes."""
        return int(self.offset) < other.end and int(other.offset) < self.end


class TileAttr(_PlainAttribute, name="tile"):
    """Extents of a tile over a root's parallel dimensions: `#tile_graph.tile<[16, 4]>`.

    Attributes:
        sizes: Tuple of integers in the order of the dimensions; () for a scalar.
    """

    sizes: ir.ArrayAttr


class FragmentAttr(_PlainAttribute, name="fragment"):
    """How subgroups compute a product by matrix instructions, and who has what of it.

    `#tile_graph.fragment<"...mfma.f32.16x16x16f16", [16, 16, 16], [4, 4], [16], [0, 0],
    [2, 2]>`: rows of a result are 4 x 4, of which the first are counted along lanes.
    Thread `t` is, in the order outermost first, a subgroup along rows, one along
    columns, a lane along rows and one along columns.

    Attributes:
        instruction: The intrinsic.
        shape: Rows, columns and reduction of one instruction.
        rows: What the rows of its result are split into.
        columns: What the columns are split into.
        lanes: Which part of the rows and of the columns lanes are counted along; a lane
            has all elements of the others.
        subgroups: How many work along the rows and the columns of the tile.
    """

    instruction: ir.StringAttr
    shape: ir.ArrayAttr
    rows: ir.ArrayAttr
    columns: ir.ArrayAttr
    lanes: ir.ArrayAttr
    subgroups: ir.ArrayAttr

    def violation(self) -> str | None:
        """Return what is wrong with it."""
        shape, lanes, subgroups = (
            tuple(map(int, numbers))
            for numbers in (self.shape, self.lanes, self.subgroups)
        )
        sides = [tuple(map(int, side)) for side in (self.rows, self.columns)]
        if len(shape) != 3 or len(subgroups) != 2 or min(*shape, *subgroups) < 1:
            return f"expected a shape of three sizes and two counts, got {self}"
        for name, side, size in zip(("rows", "columns"), sides, shape, strict=False):
            if math.prod(side) != size:
                return f"expected {name} of product {size}, got {list(side)}"
        within = zip(lanes, sides, strict=False)
        if len(lanes) != 2 or not all(0 <= at < len(side) for at, side in within):
            return f"expected lanes to be a part of each side, got {list(lanes)}"
        return None


def tile_attribute(sizes: Sequence[int]) -> TileAttr:
    """Return `#tile_graph.tile<[...]>` in the current context."""
    return TileAttr.get(i64s(sizes))


def place_attribute(level: str, offset: int, size: int, alignment: int) -> PlaceAttr:
    """Return `#tile_graph.place<...>` in the current context."""
    numbers = map(i64, (offset, size, alignment))
    return PlaceAttr.get(ir.StringAttr.get(level), *numbers)


def fragment_attribute(
    instruction: str, numbers: Sequence[Sequence[int]]
) -> FragmentAttr:
    """Return `#tile_graph.fragment<...>` in the current context.

    Args:
        instruction: The intrinsic.
        numbers: The other parameters in their order.
    """
    return FragmentAttr.get(ir.StringAttr.get(instruction), *map(i64s, numbers))
