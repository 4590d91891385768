"""Owns the code of a lane for the tile of a kernel whose tiles lie in registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from magweld.bindings import ir, linalg, scf, tensor
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    is_structured,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.product_loops import ProductLoops
from magweld.passes.gpu.register_tiles import (
    Lanes,
    Splat,
    Stored,
    Tile,
    constant_index,
)
from magweld.passes.gpu.rotated_stream import RotatedStream
from magweld.passes.gpu.stream_blocks import StreamBlocks
from magweld.passes.gpu.stream_bodies import Bodies
from magweld.passes.gpu.stream_products import StreamProduct
from magweld.passes.gpu.stream_rings import Stream
from magweld.passes.gpu.stream_rotation import Rotation
from magweld.passes.gpu.stream_stores import store, stored_before
from magweld.passes.gpu.stream_values import StreamValues
from magweld.passes.gpu.streamed_operands import StreamLoop


class StreamKernel:
    """Builds it, operation by operation of the loop over tiles.

    Attributes:
        lanes: Who computes.
        values: What stands for values of the kernel.
        blocks: How blocks come to rings.
    """

    def __init__(
        self,
        forall: scf.ForallOp,
        arguments: Mapping[Any, Any],
        lanes: Lanes,
        number: Any,
        stages: int,
        *,
        subgroups: int,
        has_async_copies: bool,
        has_warpgroups: bool,
        barriers_at: int | None = None,
    ) -> None:
        """Say what is built.

        Args:
            forall: The loop over tiles.
            arguments: The buffer of each argument of the kernel.
            lanes: Who computes.
            number: Of the tile.
            stages: Slots of a ring.
            subgroups: How many share the rows of a tile.
            has_async_copies: Whether threads go on while they copy.
            has_warpgroups: Whether four subgroups compute products together.
            barriers_at: Where in shared memory mbarriers may be, None for nowhere.
        """
        self._forall = forall
        self.lanes = lanes
        self._loop = StreamLoop.of(forall)
        self.values = StreamValues(
            forall, self._loop, arguments, lanes, number, self.build
        )
        self._lefts: dict[Any, Any] = {}
        self._bodies = Bodies(lanes, self.values.scalar)
        stream = Stream(
            self._loop.extent,
            self._loop.step,
            stages,
            subgroups * lanes.layout.subgroup,
            lanes.thread,
            has_async_copies,
            has_warpgroups,
            barriers_at,
        )
        self.blocks = StreamBlocks(self._loop, stream, self.values)

    def build_all(self) -> None:
        """Build the kernel at the insertion point."""
        for op in self._forall.body:
            self.build(op)

    def build(self, op: Any) -> None:
        """Build an operation."""
        with op.location:
            for kind, build in _BUILDERS:
                if isinstance(op, kind):
                    build(self, op)
                    return
            if is_structured(op):
                self.values.tiles[op.results[0]] = self._computed(op)
            elif not isinstance(op, scf.YieldOp):
                self.values.clone(op)

    def _empty(self, op: tensor.EmptyOp) -> None:
        self.values.tiles[op.result] = Splat(None)

    def _fill(self, op: linalg.FillOp) -> None:
        self.values.tiles[op.results[0]] = Splat(self.values.scalar(op.operands[0]))

    def _slice(self, op: tensor.ExtractSliceOp) -> None:
        self.values.take_part(op)

    def _computed(self, op: Any) -> Tile:
        nest = loop_nest_of(op)
        if any(nest.extents[loop] > 1 for loop in nest.reduction):
            inputs = [self.values.tile(value) for value in inputs_of(op)]
            if len(inputs) == 2:
                product = self.product(op)
                ring, at = self.blocks.ring_for(op)
                left, start = self.factors(product)
                return product.build(left, ring, at, start)
            start = self.values.tile(outputs_of(op)[0])
            return self._bodies.reduction(op, nest, inputs, start)
        tiles = [self.values.tile(value) for value in op.operands]
        return self._bodies.elementwise(op, nest, tiles)

    def product(self, op: Any) -> StreamProduct:
        """Return a product."""
        nest = loop_nest_of(op)
        return StreamProduct(op, nest, ProductLoops.of(op, nest), self.lanes)

    def factors(self, product: StreamProduct) -> tuple[Any, Tile]:
        """Build the operands of the left factor; return them and what is added to."""
        left = self.values.tile(inputs_of(product.op)[product.loops.left])
        start = self.values.tile(outputs_of(product.op)[0])
        return self._left(product, left), start

    def _left(self, product: StreamProduct, tile: Tile) -> Any:
        """The operands of the left factor, loaded once if they do not move."""
        if not isinstance(tile, Stored) or self.values.moves(
            [offset for offset in tile.offsets if not isinstance(offset, int)]
        ):
            return product.operands(tile)
        key = (tile.memory, tile.offsets)
        if key not in self._lefts:
            with self.lanes.start():
                self._lefts[key] = product.operands(tile)
        return self._lefts[key]

    def _walk(self, op: scf.ForOp) -> None:
        """Build the loop over blocks; what it carries are elements of lanes."""
        values, blocks = self.values, self.blocks
        blocks.make_rings()
        rotation = Rotation.of(self._loop) if blocks.can_rotate else None
        if rotation is not None:
            RotatedStream(self, rotation).build()
            return
        carried = [values.held(v, v.type.shape) for v in op.initArgs]
        flat = [value for tile in carried for value in tile.values.values()]
        bounds = (0, self._loop.upper, self._loop.step)
        blocks.copy_first()
        loop = scf.ForOp(*map(constant_index, bounds), flat)
        with ir.InsertionPoint(loop.body):
            values.scalars[op.induction_variable] = loop.induction_variable
            blocks.enter(loop.induction_variable)
            arguments = list(op.inner_iter_args)
            values.unflatten(arguments, carried, list(loop.inner_iter_args))
            for nested in op.body:
                self.build(nested)
            *_, terminator = op.body
            made = [
                values.held(v, v.type.shape, like)
                for v, like in zip(terminator.operands, carried, strict=True)
            ]
            scf.YieldOp(
                [
                    tile.values[k]
                    for tile, old in zip(made, carried, strict=True)
                    for k in old.values
                ]
            )
        values.unflatten(list(op.results), carried, list(loop.results))
        blocks.leave()

    def _store_all(self, op: scf.InParallelOp) -> None:
        for nested in op.region.blocks[0]:
            self._store(nested)

    def _store(self, op: tensor.ParallelInsertSliceOp) -> None:
        values = self.values
        held = values.held(op.source, op.source.type.shape)
        whole = values.tile(op.dest)
        assert isinstance(whole, Stored), "destinations are arguments"
        part = values.part(whole, op, op.source.type.shape, values.scalar)
        before = stored_before(op)
        if before is not None:
            before = before[0], values.scalar(before[1])
        store(held, part, before)


_BUILDERS: tuple[tuple[Any, Callable[[StreamKernel, Any], None]], ...] = (
    (tensor.EmptyOp, StreamKernel._empty),
    (linalg.FillOp, StreamKernel._fill),
    (tensor.ExtractSliceOp, StreamKernel._slice),
    (scf.ForOp, StreamKernel._walk),
    (scf.InParallelOp, StreamKernel._store_all),
)
