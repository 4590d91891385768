"""Owns how products of warpgroups become `wgmma`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from magweld.bindings import affine, arith, gpu, ir, llvm, memref, nvvm, scf
from magweld.dialects.tile_graph import IN_FLIGHT
from magweld.passes.gpu.accumulator import Accumulator
from magweld.passes.gpu.fragment_product import FragmentProduct
from magweld.passes.gpu.swizzled_tiles import as_index, in_units, shared_address
from magweld.passes.gpu.warpgroup_product import WarpgroupFactor, WarpgroupProduct
from magweld.passes.ir.utils import located_error, users_of
from magweld.passes.tiling.warpgroups import ROWS, WARPS

_ONE_OUT = "#nvvm.wgmma_scale_out<one>"
_ONE_IN = "#nvvm.wgmma_scale_in<one>"


class WarpgroupLowering:
    """Lowers one product.

    All steps are one group of `wgmma`, and are waited for: behind the next barrier,
    slots that they have read are filled again. Of a product that may be in flight
    (`tile_graph.in_flight`) the group of the iteration before is waited for: sums are
    values that its loop carries, and are there behind the loop.

    Raises:
        PassError: Warpgroups cannot compute the product; located there.
    """

    def __init__(self, op: Any) -> None:
        self._product = FragmentProduct(op)
        found = WarpgroupProduct.of(self._product)
        if found is None:
            raise located_error(
                op, "expected factors in slots of swizzled rings, for whole warpgroups"
            )
        self._whole = found
        self._element = ir.MemRefType(found.rows.ring.type).element_type

    def build(self) -> None:
        """Build the instructions in front of the product."""
        loop = _loop_of_sums(self._product)
        if loop is None:
            sums = self._multiplied(self._load())
            nvvm.WgmmaWaitGroupSyncOp(0)
            self._store(sums)
            return
        self._build_in_flight(loop)

    def _build_in_flight(self, loop: scf.ForOp) -> None:
        """Build the instructions, of which a loop carries the sums."""
        op = self._product.op
        with ir.InsertionPoint(loop):
            first = self._load()
        carrying = _carrying(loop, first)
        with ir.InsertionPoint(op):
            sums = self._multiplied(list(carrying.inner_iter_args)[-len(first) :])
            nvvm.WgmmaWaitGroupSyncOp(1)
        *_, end = carrying.body.operations
        with ir.InsertionPoint(end):
            scf.YieldOp([*end.operands, *sums])
        end.operation.erase()
        with ir.InsertionPoint.after(carrying):
            nvvm.WgmmaWaitGroupSyncOp(0)
            self._store(list(carrying.results)[-len(first) :])

    def _load(self) -> list[ir.Value]:
        """Load the sums, those of each row of results as one value."""
        rows, columns = self._product.tiles
        accumulator = Accumulator(self._product)
        return [
            _structure(
                [v for column in range(columns) for v in accumulator.load(row, column)]
            )
            for row in range(rows)
        ]

    def _multiplied(self, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """Build the products of all steps as a group, and return what the sums are."""
        found = list(sums)
        left, _ = self._product.factors()
        size = left.tile.type.shape[left.step]
        starts = self._left_start(), self._start(self._whole.columns)
        nvvm.WgmmaFenceAlignedOp()
        reduction = self._product.instruction.reduction
        for step, row in itertools.product(
            range(0, size, reduction), range(len(found))
        ):
            places = self._left_place(row, step), _step(self._whole.columns, step)
            factors = _moved(starts[0], places[0]), _moved(starts[1], places[1])
            found[row] = self._multiply(*factors, found[row])
        nvvm.WgmmaGroupSyncAlignedOp()
        return found

    def _store(self, sums: Sequence[ir.Value]) -> None:
        """Store the sums."""
        _, columns = self._product.tiles
        accumulator = Accumulator(self._product)
        for row, column in itertools.product(range(len(sums)), range(columns)):
            width = len(self._product.instruction.left)
            own = range(column * width, (column + 1) * width)
            accumulator.store(row, column, [_extracted(sums[row], n) for n in own])

    # ---- factors ---------------------------------------------------------------------

    def _start(self, factor: WarpgroupFactor, moved: Sequence[Any] = ()) -> ir.Value:
        """Build the descriptor of the first step of a factor.

        Args:
            factor: The factor.
            moved: Bytes that a warpgroup begins at in its slot, as an expression of the
                number of a thread.
        """
        slot = ir.AffineExpr.get_dim(0) * factor.tile.line_bytes(1, across=False)
        place = [as_index(factor.first), gpu.thread_id(gpu.Dimension.x)]
        map_ = ir.AffineMap.get(2, 0, [sum(moved, slot)])
        inside = affine.AffineApplyOp(map_, place).result
        address = arith.AddIOp(shared_address(factor.ring.owner.opview), inside).result
        i64 = ir.IntegerType.get_signless(64)
        bits = arith.IndexCastOp(i64, address).result
        units = arith.ShRUIOp(bits, arith.ConstantOp(i64, _UNIT_BITS).result).result
        return _moved(units, factor.tile.descriptor_bits(across=factor.across))

    def _left_start(self) -> ir.Value:
        factor = self._whole.rows
        thread = ir.AffineExpr.get_dim(1)
        lanes = self._product.instruction.subgroup * WARPS
        number = ir.AffineExpr.get_floor_div(thread, lanes)
        lines = factor.tile.line_bytes(ROWS, across=factor.across)
        return self._start(factor, [number * lines])

    def _left_place(self, row: int, step: int) -> int:
        """Return where a step of a result of a warpgroup begins, in units."""
        factor = self._whole.rows
        line = row * self._whole.warpgroups * ROWS
        lines = factor.tile.line_bytes(line, across=factor.across)
        return in_units(lines) + _step(factor, step)

    # ---- the instruction -------------------------------------------------------------

    def _multiply(self, left: ir.Value, right: ir.Value, sums: ir.Value) -> ir.Value:
        one = self._product.instruction
        wide = self._product.tiles[1] * one.columns.size
        shape = f"#nvvm.shape<m = {ROWS}, n = {wide}, k = {one.reduction}>"
        kind = f"#nvvm.wgmma_type<{self._element}>"
        rows = "col" if self._whole.rows.across else "row"
        columns = "row" if self._whole.columns.across else "col"
        layouts = (f"#nvvm.mma_layout<{layout}>" for layout in (rows, columns))
        attributes = [
            ir.Attribute.parse(text)
            for text in (
                *(shape, kind, kind, "#nvvm.wgmma_type<f32>"),
                *(_ONE_OUT, _ONE_IN, _ONE_IN, *layouts),
            )
        ]
        made: ir.Value = nvvm.WgmmaMmaAsyncOp(
            sums.type, sums, left, right, *attributes
        ).results_
        return made


_UNIT_BITS = 4


def _loop_of_sums(product: FragmentProduct) -> scf.ForOp | None:
    """Return the loop that can carry the sums of a product, None without one.

    They are in flight in it, and nothing else in it touches the registers for them.
    """
    loop = product.op.operation.parent.opview
    if IN_FLIGHT not in product.op.operation.attributes:
        return None
    owner = product.accumulator.owner
    if not isinstance(loop, scf.ForOp) or isinstance(owner, ir.Block):
        return None
    is_registers = isinstance(owner.opview, memref.AllocaOp)
    others = [op for op in users_of(product.accumulator) if op != product.op]
    if not is_registers or any(_is_inside(op, loop) for op in (owner, *others)):
        return None
    return loop


def _is_inside(op: Any, loop: scf.ForOp) -> bool:
    parent = op.operation.parent
    while parent is not None and parent != loop.operation:
        parent = parent.parent
    return parent is not None


def _carrying(loop: scf.ForOp, first: Sequence[ir.Value]) -> scf.ForOp:
    """Replace a loop by one that carries some more values, which it is to yield."""
    bounds = (loop.lowerBound, loop.upperBound, loop.step)
    with ir.InsertionPoint(loop), loop.location:
        made = scf.ForOp(*bounds, [*loop.initArgs, *first])
    for op in list(loop.body.operations):
        made.body.append(op)
    arguments = zip(loop.body.arguments, made.body.arguments, strict=False)
    for old, new in (*arguments, *zip(loop.results, made.results, strict=False)):
        old.replace_all_uses_with(new)
    loop.operation.erase()
    return made


def _step(factor: WarpgroupFactor, step: int) -> int:
    """Return how far from the first step another one begins, in units."""
    return in_units(factor.tile.step_bytes(step, across=factor.across))


def _moved(descriptor: ir.Value, units: int) -> ir.Value:
    """Build a descriptor of a place further on; no sum reaches the bits behind."""
    if not units:
        return descriptor
    number = arith.ConstantOp(ir.IntegerType.get_signless(64), units).result
    made: ir.Value = arith.AddIOp(descriptor, number).result
    return made


def _structure(values: Sequence[ir.Value]) -> ir.Value:
    fields = ", ".join(str(value.type) for value in values)
    made: ir.Value = llvm.UndefOp(ir.Type.parse(f"!llvm.struct<({fields})>")).result
    for number, value in enumerate(values):
        place = ir.DenseI64ArrayAttr.get([number])
        made = llvm.InsertValueOp(made, value, place).result
    return made


def _extracted(structure: ir.Value, number: int) -> ir.Value:
    place = ir.DenseI64ArrayAttr.get([number])
    f32 = ir.F32Type.get()
    made: ir.Value = llvm.ExtractValueOp(f32, structure, place).result
    return made
