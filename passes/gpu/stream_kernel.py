"""Owns the code of a lane for the tile of a kernel whose tiles lie in registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from magweld.bindings import arith, gpu, ir, linalg, memref, nvvm, scf, tensor, vector
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    inputs_of,
    is_structured,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.matrix_calls import vector_of
from magweld.passes.gpu.register_tiles import (
    Along,
    Held,
    Lanes,
    Place,
    Splat,
    Stored,
    Tile,
    along_of,
    applied,
    as_value,
    constant_index,
    sum_of,
)
from magweld.passes.gpu.stream_bodies import Bodies
from magweld.passes.gpu.stream_products import ProductLoops, StreamProduct
from magweld.passes.gpu.stream_rings import Block, Ring, Stream
from magweld.passes.gpu.streamed_operands import StreamedOperand, StreamLoop
from magweld.passes.gpu.structure import element_bytes, workgroup_space
from magweld.passes.gpu.swizzled_tiles import FENCE
from magweld.passes.ir.utils import located_error
from magweld.passes.tiling.register_streams import SUBGROUPS


class StreamKernel:
    """Builds it, operation by operation of the loop over tiles.

    Attributes:
        lanes: Who computes.
    """

    def __init__(
        self,
        forall: scf.ForallOp,
        arguments: Mapping[Any, Any],
        lanes: Lanes,
        number: Any,
        stages: int,
        *,
        has_async_copies: bool,
        has_warpgroups: bool,
    ) -> None:
        """Say what is built.

        Args:
            forall: The loop over tiles.
            arguments: The buffer of each argument of the kernel.
            lanes: Who computes.
            number: Of the tile.
            stages: Slots of a ring.
            has_async_copies: Whether threads go on while they copy.
            has_warpgroups: Whether four subgroups compute products together.
        """
        self._forall = forall
        self.lanes = lanes
        self._loop = StreamLoop.of(forall)
        variable, *inside = forall.body.arguments
        self._memories = dict(arguments)
        for argument, destination in zip(inside, forall.outputs, strict=True):
            self._memories[argument] = arguments[destination]
        self._scalars: dict[Any, Any] = {variable: number}
        self._tiles: dict[Any, Tile] = {}
        self._lefts: dict[Any, Any] = {}
        self._bodies = Bodies(lanes, self._scalar)
        self._stream = Stream(
            self._loop.extent,
            self._loop.step,
            stages,
            SUBGROUPS * lanes.layout.subgroup,
            lanes.thread,
            has_async_copies,
            has_warpgroups,
        )
        self._rings: list[Ring] = []
        # The position of the stream, and which product of the block is next.
        self._at: Any = None
        self._next = 0

    def build(self) -> None:
        """Build all of it at the insertion point."""
        for op in self._forall.body:
            self._build(op)

    def _build(self, op: Any) -> None:
        with op.location:
            for kind, build in _BUILDERS:
                if isinstance(op, kind):
                    build(self, op)
                    return
            if is_structured(op):
                self._tiles[op.results[0]] = self._computed(op)
            elif not isinstance(op, scf.YieldOp):
                self._clone(op)

    # ---- values ----------------------------------------------------------------------

    def _scalar(self, value: Any) -> Any:
        """Return what stands for a value that is no tensor."""
        if value not in self._scalars:
            if isinstance(value, ir.BlockArgument):
                raise located_error(self._forall, f"expected a number, got {value}")
            with self.lanes.start():
                self._clone(value.owner.opview)
        return self._scalars[value]

    def _clone(self, op: Any) -> None:
        """Make a number again: for all of the launch where it does not move."""
        operands = [self._scalar(operand) for operand in op.operation.operands]
        if self._moves(operands):
            clone = op.operation.clone()
        else:
            with self.lanes.start():
                clone = op.operation.clone()
        for number, operand in enumerate(operands):
            clone.operands[number] = operand
        self._scalars.update(zip(op.operation.results, clone.results, strict=True))

    def _moves(self, operands: Sequence[Any]) -> bool:
        loop = self._loop.op.induction_variable
        position = self._scalars.get(loop)
        for operand in operands:
            if position is not None and operand == position:
                return True
            if isinstance(operand, ir.BlockArgument):
                continue
            inner = list(operand.owner.operands)
            if inner and self._moves(inner):
                return True
        return False

    def _tile(self, value: Any) -> Tile:
        if value in self._tiles:
            return self._tiles[value]
        if not isinstance(value.type, ir.RankedTensorType):
            return Splat(self._scalar(value))
        if value in self._memories:
            memory = self._memories[value]
            shape = tuple(memory.type.shape)
            dims = tuple(range(len(shape)))
            return Stored(memory, (0,) * len(shape), shape, dims, self.lanes)
        if isinstance(value, ir.BlockArgument):
            raise located_error(self._forall, f"expected a tile, got {value}")
        self._build(value.owner.opview)
        return self._tiles[value]

    def _empty(self, op: tensor.EmptyOp) -> None:
        self._tiles[op.result] = Splat(None)

    def _fill(self, op: linalg.FillOp) -> None:
        self._tiles[op.results[0]] = Splat(self._scalar(op.operands[0]))

    def _slice(self, op: tensor.ExtractSliceOp) -> None:
        source = self._tile(op.source)
        if isinstance(source, Stored):
            shape = op.result.type.shape
            self._tiles[op.result] = self._part(source, op, shape, self._scalar)
            return
        kept = _kept(op, op.result.type.shape)
        sizes, shape = list(op.static_sizes), list(op.source.type.shape)
        if not isinstance(source, Held) or sizes != shape:
            raise located_error(op, "expected a part of a tensor in global memory")
        self._tiles[op.result] = Held(
            tuple(source.along[dim] for dim in kept),
            tuple(source.shape[dim] for dim in kept),
            {
                tuple(key[dim] for dim in kept): value
                for key, value in source.values.items()
            },
        )

    def _part(
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

    # ---- operations ------------------------------------------------------------------

    def _computed(self, op: Any) -> Tile:
        nest = loop_nest_of(op)
        if any(nest.extents[loop] > 1 for loop in nest.reduction):
            inputs = [self._tile(value) for value in inputs_of(op)]
            start = self._tile(outputs_of(op)[0])
            if len(inputs) == 2:
                return self._product(op, nest, inputs, start)
            return self._bodies.reduction(op, nest, inputs, start)
        tiles = [self._tile(value) for value in op.operands]
        return self._bodies.elementwise(op, nest, tiles)

    def _product(
        self, op: Any, nest: LoopNest, inputs: Sequence[Tile], start: Tile
    ) -> Tile:
        loops = ProductLoops.of(op, nest)
        product = StreamProduct(op, nest, loops, self.lanes)
        if self._next >= len(self._rings):
            raise located_error(op, "expected products of blocks of a stream alone")
        if self._at is None:
            # The block behind the loop: the last one that was copied.
            self._at = self._loop.upper
            self._wait()
        ring = self._rings[self._next]
        self._next += 1
        left = self._left(product, inputs[loops.left])
        return product.build(left, ring, self._at, start)

    def _left(self, product: StreamProduct, tile: Tile) -> Any:
        """The operands of the left factor, loaded once if they do not move."""
        if not isinstance(tile, Stored) or self._moves(
            [offset for offset in tile.offsets if not isinstance(offset, int)]
        ):
            return product.operands(tile)
        key = (tile.memory, tile.offsets)
        if key not in self._lefts:
            with self.lanes.start():
                self._lefts[key] = product.operands(tile)
        return self._lefts[key]

    # ---- the stream ------------------------------------------------------------------

    def _walk(self, op: scf.ForOp) -> None:
        """Build the loop over blocks; what it carries are elements of lanes."""
        self._make_rings()
        carried = [self._held(v, v.type.shape) for v in op.initArgs]
        flat = [value for tile in carried for value in tile.values.values()]
        bounds = (0, self._loop.upper, self._loop.step)
        self._copy_first()
        loop = scf.ForOp(*map(constant_index, bounds), flat)
        with ir.InsertionPoint(loop.body):
            self._at = loop.induction_variable
            self._scalars[op.induction_variable] = self._at
            self._copy_ahead()
            arguments = list(op.inner_iter_args)
            self._unflatten(arguments, carried, list(loop.inner_iter_args))
            for nested in op.body:
                self._build(nested)
            *_, terminator = op.body
            made = [
                self._held(v, v.type.shape, like)
                for v, like in zip(terminator.operands, carried, strict=True)
            ]
            scf.YieldOp(
                [
                    tile.values[k]
                    for tile, old in zip(made, carried, strict=True)
                    for k in old.values
                ]
            )
        self._unflatten(list(op.results), carried, list(loop.results))
        self._at, self._next = None, 0

    def _held(self, value: Any, shape: Sequence[int], like: Held | None = None) -> Held:
        """Return a tile in registers, which may be numbers that are known so far."""
        tile = self._tile(value)
        if isinstance(tile, Held):
            return tile
        along = along_of(shape) if like is None else like.along
        keys: list[tuple[Place, ...]] = [()]
        for one, extent in zip(along, shape, strict=True):
            keys = [(*k, p) for k in keys for p in self.lanes.places(one, extent)]
        return Held(tuple(along), tuple(shape), {key: tile.at(key) for key in keys})

    def _unflatten(
        self, values: Sequence[Any], like: Sequence[Held], flat: Sequence[Any]
    ) -> None:
        left = iter(flat)
        for value, tile in zip(values, like, strict=True):
            held = {key: next(left) for key in tile.values}
            self._tiles[value] = Held(tile.along, tile.shape, held)

    def _make_rings(self) -> None:
        i8 = ir.IntegerType.get_signless(8)
        dynamic = ir.ShapedType.get_dynamic_size()
        shared = gpu.DynamicSharedMemoryOp(
            ir.MemRefType.get([dynamic], i8, memory_space=workgroup_space())
        ).result
        starts = self._loop.starts(
            self._stream.stages, has_warpgroups=self._stream.has_warpgroups
        )
        for operand, start in zip(self._loop.operands, starts, strict=False):
            ring = Ring(self._block(operand), self._stream, shared, start)
            self._rings.append(ring)

    def _block(self, operand: StreamedOperand) -> Block:
        source = self._tile(operand.op.source)
        if not isinstance(source, Stored):
            raise located_error(operand.op, "expected a part of an argument")

        def offsets(position: Any) -> Sequence[Any]:
            def index(value: Any) -> Any:
                return self._index_at(value, position)

            shape = operand.op.result.type.shape
            return self._part(source, operand.op, shape, index).offsets

        return Block(
            source.memory,
            offsets,
            source.kept[operand.outer],
            source.kept[operand.inner],
            operand.shape,
            operand.streamed,
        )

    def _index_at(self, value: Any, position: Any) -> Any:
        """Build what an index is where the stream is at a position."""
        if value == self._loop.op.induction_variable:
            return as_value(position)
        if value in self._scalars and not self._moves([self._scalars[value]]):
            return self._scalars[value]
        if isinstance(value, ir.BlockArgument):
            return self._scalar(value)
        op = value.owner
        operands = [self._index_at(operand, position) for operand in op.operands]
        clone = op.clone()
        for number, operand in enumerate(operands):
            clone.operands[number] = operand
        return clone.results[0]

    def _copy_first(self) -> None:
        for number in range(self._stream.stages - 1):
            for ring in self._rings:
                ring.copy(constant_index(number * self._stream.size))
            nvvm.CpAsyncCommitGroupOp()

    def _copy_ahead(self) -> None:
        """Wait for the copies of this block, and begin those of a later one."""
        stream = self._stream
        if not stream.has_async_copies:
            gpu.BarrierOp()
            for ring in self._rings:
                ring.copy(self._at)
            gpu.BarrierOp()
            return
        self._wait()
        ahead = (stream.stages - 1) * stream.size
        end = constant_index(stream.extent - ahead)
        is_there = arith.CmpIOp(arith.CmpIPredicate.slt, self._at, end).result
        conditional = scf.IfOp(is_there)
        with ir.InsertionPoint(conditional.then_block):
            later = applied(ir.AffineExpr.get_dim(0) + ahead, [self._at])
            for ring in self._rings:
                ring.copy(later)
            scf.YieldOp([])
        nvvm.CpAsyncCommitGroupOp()

    def _wait(self) -> None:
        """Wait until the block at this position is there, for all threads."""
        if self._stream.has_async_copies:
            nvvm.CpAsyncWaitGroupOp(self._stream.stages - 2)
            if any(ring.swizzled for ring in self._rings):
                # `wgmma` reads shared memory on another way than threads write it.
                kind, space = (ir.Attribute.parse(text) for text in FENCE)
                nvvm.FenceProxyOp(kind, space=space)
            gpu.BarrierOp()
            return
        if isinstance(self._at, int):
            gpu.BarrierOp()
            for ring in self._rings:
                ring.copy(constant_index(self._at))
            gpu.BarrierOp()

    # ---- results ---------------------------------------------------------------------

    def _store_all(self, op: scf.InParallelOp) -> None:
        for nested in op.region.blocks[0]:
            self._store(nested)

    def _store(self, op: tensor.ParallelInsertSliceOp) -> None:
        held = self._held(op.source, op.source.type.shape)
        whole = self._tile(op.dest)
        assert isinstance(whole, Stored), "destinations are arguments"
        part = self._part(whole, op, op.source.type.shape, self._scalar)
        columns = [n for n, one in enumerate(held.along) if one is Along.COLUMNS]
        width = self.lanes.layout.width
        strides, _ = ir.MemRefType(part.memory.type).get_strides_and_offset()
        together = [part.distance(n) for n in columns] == [1] and all(
            stride % width == 0 for stride in strides if stride != 1
        )
        for key, value in held.values.items():
            number = key[columns[0]].number if columns else 0
            if not together:
                memref.StoreOp(value, part.memory, part.indices(key))
            elif number % width == 0:
                self._store_neighbours(held, key, columns[0], part)

    def _store_neighbours(
        self, held: Held, key: tuple[Place, ...], column: int, part: Stored
    ) -> None:
        width = self.lanes.layout.width
        keys = [
            tuple(
                Place(p.along, p.number + n) if dim == column else p
                for dim, p in enumerate(key)
            )
            for n in range(width)
        ]
        values = vector_of([held.values[one] for one in keys])
        size = width * element_bytes(part.memory.type.element_type)
        vector.StoreOp(values, part.memory, part.indices(key), alignment=size)


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


_BUILDERS: tuple[tuple[Any, Callable[[StreamKernel, Any], None]], ...] = (
    (tensor.EmptyOp, StreamKernel._empty),
    (linalg.FillOp, StreamKernel._fill),
    (tensor.ExtractSliceOp, StreamKernel._slice),
    (scf.ForOp, StreamKernel._walk),
    (scf.InParallelOp, StreamKernel._store_all),
)
