"""Owns loads and stores of elements and vectors in a flat view of a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from magweld.bindings import arith, ir, llvm, memref, vector
from magweld.passes.cpu.emit_index import Index
from magweld.passes.cpu.emit_vectors import (
    broadcast,
    first_lanes,
    from_lanes,
    lane,
    lanes_of,
    shuffle,
    zeros,
)
from magweld.passes.cpu.loop_nest import Access, LoopNest
from magweld.passes.tiling.first_cache import LINE_BYTES


@dataclass(frozen=True)
class FlatBuffer:
    """A buffer seen as one row of elements that starts at the operand's own start.

    Attributes:
        view: Memref of rank one.
        start: Index of the view's first element behind the allocation's start.
        strides: Elements that each loop of the nest moves.
        origin: Index of the element at iteration zero.
        nontemporal: Whether vectors are stored past the caches: each begins a line, or
            has a part of one that is a multiple of its size.
    """

    view: ir.Value
    start: ir.Value
    strides: tuple[int, ...]
    origin: Index
    nontemporal: bool = False

    @property
    def element(self) -> ir.Type:
        """Type of an element."""
        return self.view.type.element_type

    @property
    def unit(self) -> int:
        """Elements of the view that are read as one."""
        return 1

    def load(
        self, index: Index, lanes: int, stride: int, filled: int | None = None
    ) -> ir.Value:
        """Load `lanes` elements `stride` apart; a scalar for stride 0 or one lane.

        Args:
            index: Of the first element.
            lanes: How many there are.
            stride: Elements from one to the next; 0, 1 or 2 if not all are loaded.
            filled: How many of the first are loaded, the others being zero; None for
                all.
        """
        if lanes == 1 or stride == 0:
            return memref.LoadOp(self.view, [index.emit()]).result
        if stride == 1:
            return self._load_contiguous(index, lanes, filled)
        if stride == 2 and self.element != _boolean():
            return self._load_even(index, lanes, filled)
        scalars = [
            memref.LoadOp(self.view, [index.shifted(k * stride).emit()]).result
            for k in range(lanes)
        ]
        return from_lanes(scalars)

    def is_before(self, other: FlatBuffer) -> bool:
        """Whether each element of another one follows the same element of this one."""
        same = self.view == other.view and self.strides == other.strides
        return same and self.origin.shifted(1) == other.origin

    def store_pairs(self, values: Sequence[ir.Value], index: Index) -> None:
        """Store the lanes of two vectors in turns."""
        lanes = lanes_of(values[0])
        order = [number for k in range(lanes) for number in (k, lanes + k)]
        for part, half in enumerate((order[:lanes], order[lanes:])):
            at = index.shifted(part * lanes)
            self._store_contiguous(shuffle(values[0], values[1], half), at)

    def store(
        self,
        value: ir.Value,
        index: Index,
        lanes: int,
        stride: int,
        filled: int | None = None,
    ) -> None:
        """Store a value of `lanes` lanes, `stride` apart; see `load`."""
        if lanes > 1 and stride == 1:
            self._store_contiguous(broadcast(value, lanes), index, filled)
            return
        for k in range(lanes):
            at = index.shifted(k * stride).emit()
            element = lane(value, k) if lanes_of(value) > 1 else value
            memref.StoreOp(element, self.view, [at])

    def _load_contiguous(
        self, index: Index, lanes: int, filled: int | None = None
    ) -> ir.Value:
        kind = ir.VectorType.get([lanes], self.element)
        if filled is not None and filled < lanes:
            zero = zeros(kind)
            mask = first_lanes(lanes, filled)
            at = [index.emit()]
            return vector.MaskedLoadOp(kind, self.view, at, mask, zero).result
        if self.element != _boolean():
            return vector.LoadOp(kind, self.view, [index.emit()]).result
        byte = ir.VectorType.get([lanes], ir.IntegerType.get_signless(8))
        loaded = llvm.LoadOp(byte, self._pointer(index), alignment=1).res
        return arith.TruncIOp(kind, loaded).result

    def _store_contiguous(
        self, value: ir.Value, index: Index, filled: int | None = None
    ) -> None:
        if filled is not None and filled < lanes_of(value):
            mask = first_lanes(lanes_of(value), filled)
            vector.MaskedStoreOp(self.view, [index.emit()], mask, value)
            return
        if self.nontemporal:
            size = lanes_of(value) * int(self.element.width) // 8
            vector.StoreOp(
                value,
                self.view,
                [index.emit()],
                nontemporal=True,
                alignment=min(size, LINE_BYTES),
            )
            return
        if self.element != _boolean():
            vector.StoreOp(value, self.view, [index.emit()])
            return
        byte = ir.VectorType.get([lanes_of(value)], ir.IntegerType.get_signless(8))
        widened = arith.ExtUIOp(byte, value).result
        llvm.StoreOp(widened, self._pointer(index), alignment=1)

    def _load_even(
        self, index: Index, lanes: int, filled: int | None = None
    ) -> ir.Value:
        # The second vector starts one element early: nothing is read behind the
        # last element that is asked for.
        count = lanes if filled is None else filled
        early = lanes - 1
        low = self._load_contiguous(index, lanes, min(lanes, 2 * count - 1))
        # Vectors that are half full need no second one.
        high = low
        if 2 * count > lanes:
            behind = 2 * count - 1 - early
            high = self._load_contiguous(index.shifted(early), lanes, behind)
        mask = [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]
        return shuffle(low, high, mask)

    def _pointer(self, index: Index) -> ir.Value:
        # A boolean takes a byte in memory, but a vector of booleans is packed bits
        # to MLIR: such vectors are moved as bytes.
        base = memref.ExtractAlignedPointerAsIndexOp(self.view).result
        first = arith.AddIOp(base, self.start).result
        address = arith.AddIOp(first, index.emit()).result
        number = arith.IndexCastOp(ir.IntegerType.get_signless(64), address).result
        return llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr"), number).res


# A buffer, or a scalar that is the operand itself.
Operand: TypeAlias = "FlatBuffer | ir.Value"


def _boolean() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def flatten(operand: ir.Value, access: Access, nest: LoopNest) -> FlatBuffer:
    """Emit the flat view of an operand of a nest."""
    (buffer,) = flatten_together([operand], [access], nest)
    assert isinstance(buffer, FlatBuffer), "only buffers are flattened"
    return buffer


def flatten_together(
    operands: Sequence[ir.Value], accesses: Sequence[Access], nest: LoopNest
) -> list[Operand]:
    """Emit the flat views of operands, one for each buffer; scalars stay."""
    sizes: dict[ir.Value, int] = {}
    for operand, access in zip(operands, accesses, strict=True):
        steps = zip(nest.extents, access.strides, strict=True)
        size = 1 + access.offset + sum((e - 1) * max(s, 0) for e, s in steps)
        sizes[operand] = max(size, sizes.get(operand, 0))
    views = {
        operand: _flat_view(operand, size)
        for operand, size in sizes.items()
        if isinstance(operand.type, ir.MemRefType)
    }
    return [
        FlatBuffer(*views[operand], access.strides, Index(None, access.offset))
        if operand in views
        else operand
        for operand, access in zip(operands, accesses, strict=True)
    ]


def _flat_view(operand: ir.Value, size: int) -> tuple[ir.Value, ir.Value]:
    """Emit a view of rank one, return it and where it starts."""
    metadata = memref.ExtractStridedMetadataOp(operand)
    base, offset = metadata.results[0], metadata.results[1]
    dynamic = ir.ShapedType.get_dynamic_size()
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), [1])
    kind = ir.MemRefType.get([size], operand.type.element_type, layout)
    view = memref.ReinterpretCastOp(
        kind, base, [offset], [], [], [dynamic], [size], [1]
    ).result
    return view, offset


def scratch(elements: int, element: ir.Type) -> ir.Value:
    """Emit scratch memory for a number of elements; return a memref of rank one."""
    kind = ir.MemRefType.get([elements], element)
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    return memref.AllocOp(kind, [], [], alignment=alignment).result
