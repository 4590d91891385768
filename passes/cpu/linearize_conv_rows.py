"""Owns linearize-conv-rows: rows of a result get the pitch of the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir, memref
from magweld.passes.cpu.generic_forms import fill_before, has_reduction, maps_of
from magweld.passes.cpu.kernels import generics_of
from magweld.passes.cpu.loop_nest import (
    LoopNest,
    NotALoopNest,
    linear_form,
    read_loop_nest,
)
from magweld.passes.cpu.product_policy import product_cycles
from magweld.passes.cpu.register_tile import VectorUnit, split_extent
from magweld.passes.cpu.vector_unit_pass import VectorUnitPass
from magweld.passes.cpu.window_rows import (
    WindowRows,
    find_rows,
    joined_nest,
    row_length,
)
from magweld.passes.ir.linalg_builder import map_array

# Cycles to move one vector of a result to its place: a load and a store.
COPY_CYCLES = 2.0


@dataclass(frozen=True)
class LinearizeConvRows(VectorUnitPass):
    """Compute the short rows of a window's result as one long row.

    The result gets rows as far apart as those of the image, in scratch memory: then one
    loop walks both from the first row to the last, in whole vectors, and what it makes
    between two rows is never read. The rows are copied from there, or read there by
    what replaces the result element by element. Done where the model of products finds
    fewer cycles, so for rows that fill their vectors badly.

        for c, h < 14, w < 14: y[c, h, w] += x[c, h + i, w + j] * k[c, i, j]
            =>   for c, q < 13 * 20 + 14: p[c, q] += x[c][q + 20 i + j] * k[c, i, j]
                 for c, h, w: y[c, h, w] = p[c, 20 h + w]

    Attributes:
        vector_bits: Width of a vector register.
        vector_registers: Number of vector registers.
        bf16_pairs: Whether one instruction multiplies pairs of bf16.
    """

    name: ClassVar[str] = "linearize-conv-rows"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the products of all kernels of the module."""
        for _, op in generics_of(module):
            _join(op, self.unit)


def _join(op: ir.Operation, unit: VectorUnit) -> None:
    try:
        nest = read_loop_nest(op)
    except NotALoopNest:
        return
    rows = find_rows(op, nest) if nest.product and len(op.operands) == 3 else None
    fill = fill_before(op)
    if rows is None or fill is None or not _pays(nest, rows, unit):
        return
    with op.location:
        _Joiner(op, nest, rows).rewrite(fill)


def _pays(nest: LoopNest, rows: WindowRows, unit: VectorUnit) -> bool:
    apart, joined = (product_cycles(n, unit) for n in (nest, joined_nest(nest, rows)))
    if apart is None or joined is None:
        return False
    others = nest.points // nest.extents[rows.down] // nest.extents[rows.across]
    for loop in nest.reductions:
        others //= nest.extents[loop]
    across = nest.extents[rows.across]
    pieces = split_extent(across, 1, unit.bits // 32, masked=unit.has_masks)
    vectors = sum(-(-(p.stop - p.start) // p.step) for p in pieces)
    copied = others * nest.extents[rows.down] * vectors * COPY_CYCLES
    return joined + copied < apart


class _Joiner:
    """Rewrites one product and what is around it."""

    def __init__(self, op: ir.Operation, nest: LoopNest, rows: WindowRows) -> None:
        self._op = op
        self._rows = rows
        self._length = row_length(nest, rows)
        self._rank = len(nest.extents)
        self._result = op.operands[len(op.operands) - 1]
        self._outer = list(self._result.type.shape)[:-2]

    def rewrite(self, fill: ir.Operation) -> None:
        with ir.InsertionPoint(fill):
            element = self._result.type.element_type
            kind = ir.MemRefType.get([*self._outer, self._length], element)
            alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
            row = memref.AllocOp(kind, [], [], alignment=alignment).result
            identity = ir.AffineMap.get_identity(len(self._outer) + 1)
            _clone_generic(fill, [row], [identity])
        with ir.InsertionPoint(self._op):
            operands = list(self._op.operands)
            operands[self._rows.image] = self._flat(operands[self._rows.image])
            operands[-1] = row
            maps = [self._map(n, m) for n, m in enumerate(maps_of(self._op))]
            _clone_generic(self._op, operands, maps, without=self._rows.across)
            self._deliver(self._view(row))
        fill.erase()
        self._op.erase()

    def _flat(self, image: ir.Value) -> ir.Value:
        """The image with its last two dimensions as one, up to the last element."""
        metadata = memref.ExtractStridedMetadataOp(image)
        base, offset = metadata.results[0], metadata.results[1]
        *outer, high, wide = image.type.shape
        steps, _ = image.type.get_strides_and_offset()
        length = (high - 1) * self._rows.pitch + wide
        return _cast(image, base, offset, [*outer, length], [*steps[:-2], 1])

    def _view(self, row: ir.Value) -> ir.Value:
        """The rows of the result in the long row."""
        shape = list(self._result.type.shape)
        steps, _ = row.type.get_strides_and_offset()
        return _cast(row, row, None, shape, [*steps[:-1], self._rows.pitch, 1])

    def _map(self, number: int, map_: ir.AffineMap) -> ir.AffineMap:
        """A map over the loops without `across`, for an operand of the new product."""
        exprs, down = list(map_.results), ir.AffineExpr.get_dim(self._rows.down)
        if number == self._rows.image:
            high, wide = exprs[-2:]
            # The loop moves by elements, not by rows.
            exprs[-2:] = [(high - down) * self._rows.pitch + wide + down]
        elif number == len(self._op.operands) - 1:
            exprs[-2:] = [down]
        across = self._rows.across
        dims = [
            ir.AffineExpr.get_constant(0)
            if d == across
            else ir.AffineExpr.get_dim(d - (d > across))
            for d in range(self._rank)
        ]
        renumbered = [_linear(expr, self._rank, dims) for expr in exprs]
        return ir.AffineMap.get(self._rank - 1, 0, renumbered)

    def _deliver(self, view: ir.Value) -> None:
        """Let the next reader read the rows there, or copy them to their place."""
        reader = self._reader()
        if reader is not None:
            reader.operands[list(reader.operands).index(self._result)] = view
        else:
            memref.CopyOp(view, self._result)

    def _reader(self) -> ir.Operation | None:
        """What reads the result element by element and nobody does behind it."""
        block = list(self._op.block.operations)
        behind = block[block.index(self._op.opview) + 1 :]
        uses = {use.owner.operation for use in self._result.uses}
        users = [other.operation for other in behind if other.operation in uses]
        found = users[0] if users else None
        inside = any(user.block != self._op.block for user in uses)
        if found is None or inside or found.name != "linalg.generic":
            return None
        *inputs, output = found.operands
        replaced = output == self._result and _ignores_output(found)
        # A part of what the kernel is given is a result, read here or not.
        local = isinstance(self._result.owner, memref.AllocOp) and len(users) == 1
        if inputs.count(self._result) != 1 or not (replaced or local):
            return None
        maps = maps_of(found)
        same = maps[inputs.index(self._result)] == maps[-1]
        return found if same and not has_reduction(found) else None


def _ignores_output(op: ir.Operation) -> bool:
    *_, output = op.regions[0].blocks[0].arguments
    return not list(output.uses)


def _linear(expr: ir.AffineExpr, rank: int, dims: list[ir.AffineExpr]) -> ir.AffineExpr:
    """An expression over other loops."""
    coefficients, constant = linear_form(expr, rank)
    total = ir.AffineExpr.get_constant(constant)
    for dim, coefficient in zip(dims, coefficients, strict=True):
        if coefficient:
            total = total + dim * coefficient
    return total


def _cast(
    value: ir.Value,
    base: ir.Value,
    offset: ir.Value | None,
    shape: list[int],
    strides: list[int],
) -> ir.Value:
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    static = 0 if offset is None else dynamic
    layout = ir.StridedLayoutAttr.get(static, strides)
    kind = ir.MemRefType.get(shape, value.type.element_type, layout)
    offsets = [] if offset is None else [offset]
    return memref.ReinterpretCastOp(
        kind, base, offsets, [], [], [static], shape, strides
    ).result


def _clone_generic(
    op: ir.Operation,
    operands: list[ir.Value],
    maps: list[ir.AffineMap],
    without: int | None = None,
) -> None:
    """Clone a generic operation onto other operands, without one of its loops."""
    iterators = list(op.attributes["iterator_types"])
    if without is not None:
        del iterators[without]
    clone = op.clone().operation
    for position, value in enumerate(operands):
        clone.operands[position] = value
    clone.attributes["indexing_maps"] = map_array(maps)
    count = maps[0].n_dims
    clone.attributes["iterator_types"] = ir.ArrayAttr.get(iterators[:count])
    if "linalg.memoized_indexing_maps" in clone.attributes:
        del clone.attributes["linalg.memoized_indexing_maps"]
