"""Owns what the numbers and tensors of a kernel are in the code of a lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from magweld.bindings import ir, scf, tensor
from magweld.passes.gpu.register_tiles import (
    Held,
    Lanes,
    Place,
    Splat,
    Stored,
    Tile,
    along_of,
    as_value,
    sum_of,
)
from magweld.passes.gpu.streamed_operands import StreamLoop
from magweld.passes.ir.utils import located_error


class StreamValues:
    """Knows them, and builds what is asked for and not yet there.

    Attributes:
        lanes: Who computes.
        scalars: What stands for values that are no tensors.
        tiles: What stands for tensors.
    """

    def __init__(
        self,
        forall: scf.ForallOp,
        loop: StreamLoop,
        arguments: Mapping[Any, Any],
        lanes: Lanes,
        number: Any,
        build: Callable[[Any], None],
    ) -> None:
        """Say what is known.

        Args:
            forall: The loop over tiles.
            loop: The loop over blocks.
            arguments: The buffer of each argument of the kernel.
            lanes: Who computes.
            number: Of the tile.
            build: Builds an operation of the kernel.
        """
        self.lanes = lanes
        self._forall = forall
        self._loop = loop
        self._build = build
        variable, *inside = forall.body.arguments
        self._memories = dict(arguments)
        for argument, destination in zip(inside, forall.outputs, strict=True):
            self._memories[argument] = arguments[destination]
        self.scalars: dict[Any, Any] = {variable: number}
        self.tiles: dict[Any, Tile] = {}

    def scalar(self, value: Any) -> Any:
        """Return what stands for a value that is no tensor."""
        if value not in self.scalars:
            if isinstance(value, ir.BlockArgument):
                raise located_error(self._forall, f"expected a number, got {value}")
            with self.lanes.start():
                self.clone(value.owner.opview)
        return self.scalars[value]

    def clone(self, op: Any) -> None:
        """Make a number again: for all of the launch where it does not move."""
        operands = [self.scalar(operand) for operand in op.operation.operands]
        if self.moves(operands):
            clone = op.operation.clone()
        else:
            with self.lanes.start():
                clone = op.operation.clone()
        for number, operand in enumerate(operands):
            clone.operands[number] = operand
        self.scalars.update(zip(op.operation.results, clone.results, strict=True))

    def moves(self, operands: Sequence[Any]) -> bool:
        """Tell whether one of some values is another one for each block."""
        loop = self._loop.op.induction_variable
        position = self.scalars.get(loop)
        for operand in operands:
            if position is not None and operand == position:
                return True
            if isinstance(operand, ir.BlockArgument):
                continue
            inner = list(operand.owner.operands)
            if inner and self.moves(inner):
                return True
        return False

    def tile(self, value: Any) -> Tile:
        """Return what stands for a tensor, or for a number that is one everywhere."""
        if value in self.tiles:
            return self.tiles[value]
        if not isinstance(value.type, ir.RankedTensorType):
            return Splat(self.scalar(value))
        if value in self._memories:
            memory = self._memories[value]
            shape = tuple(memory.type.shape)
            dims = tuple(range(len(shape)))
            return Stored(memory, (0,) * len(shape), shape, dims, self.lanes)
        if isinstance(value, ir.BlockArgument):
            raise located_error(self._forall, f"expected a tile, got {value}")
        self._build(value.owner.opview)
        return self.tiles[value]

    def take_part(self, op: tensor.ExtractSliceOp) -> None:
        """Know what a slice is."""
        source = self.tile(op.source)
        if isinstance(source, Stored):
            shape = op.result.type.shape
            self.tiles[op.result] = self.part(source, op, shape, self.scalar)
            return
        kept = _kept(op, op.result.type.shape)
        sizes, shape = list(op.static_sizes), list(op.source.type.shape)
        if not isinstance(source, Held) or sizes != shape:
            raise located_error(op, "expected a part of a tensor in global memory")
        self.tiles[op.result] = Held(
            tuple(source.along[dim] for dim in kept),
            tuple(source.shape[dim] for dim in kept),
            {
                tuple(key[dim] for dim in kept): value
                for key, value in source.values.items()
            },
        )

    def part(
        self,
        source: Stored,
        op: Any,
        shape: Sequence[int],
        index: Callable[[Any], Any],
    ) -> Stored:
        """Return a part of a tensor that begins where the indices of a slice say."""
        marker = ir.ShapedType.get_dynamic_stride_or_offset()
        dynamic = iter(op.offsets)
        offsets, sizes = list(source.offsets), list(source.sizes)
        for dim, offset in enumerate(op.static_offsets):
            own = index(next(dynamic)) if offset == marker else int(offset)
            inner = source.kept[dim]
            offsets[inner] = _added(offsets[inner], own)
            sizes[inner] = op.static_sizes[dim]
        kept = tuple(source.kept[dim] for dim in _kept(op, shape))
        return Stored(source.memory, tuple(offsets), tuple(sizes), kept, self.lanes)

    def held(self, value: Any, shape: Sequence[int], like: Held | None = None) -> Held:
        """Return a tile in registers, which may be numbers that are known so far."""
        tile = self.tile(value)
        if isinstance(tile, Held):
            return tile
        along = along_of(shape) if like is None else like.along
        keys: list[tuple[Place, ...]] = [()]
        for one, extent in zip(along, shape, strict=True):
            keys = [(*k, p) for k in keys for p in self.lanes.places(one, extent)]
        return Held(tuple(along), tuple(shape), {key: tile.at(key) for key in keys})

    def unflatten(
        self, values: Sequence[Any], like: Sequence[Held], flat: Sequence[Any]
    ) -> None:
        """Know tensors whose elements, one tile after the other, are some values."""
        left = iter(flat)
        for value, tile in zip(values, like, strict=True):
            held = {key: next(left) for key in tile.values}
            self.tiles[value] = Held(tile.along, tile.shape, held)

    def index_at(self, value: Any, position: Any) -> Any:
        """Build what an index is where the stream is at a position."""
        if value == self._loop.op.induction_variable:
            return as_value(position)
        if value in self.scalars and not self.moves([self.scalars[value]]):
            return self.scalars[value]
        if isinstance(value, ir.BlockArgument):
            return self.scalar(value)
        op = value.owner
        operands = [self.index_at(operand, position) for operand in op.operands]
        clone = op.clone()
        for number, operand in enumerate(operands):
            clone.operands[number] = operand
        return clone.results[0]


def _kept(op: Any, shape: Sequence[int]) -> list[int]:
    """Return the dimensions of a slice that a tile has, the others being one."""
    kept: list[int] = []
    for dim in reversed(range(len(op.static_sizes))):
        left = len(list(shape)) - len(kept)
        if left and op.static_sizes[dim] == shape[left - 1]:
            kept.append(dim)
    return kept[::-1]


def _added(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return sum_of(right, left) if isinstance(right, int) else sum_of(left, right)
