"""Owns expand-winograd: a window of 3 x 3 becomes transforms around products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from magweld.bindings import arith, func, ir, linalg, memref
from magweld.dialects.tile_graph import (
    BESIDE,
    INTERIOR,
    REDUCTION_BLOCK,
    PlaceAttr,
    Role,
)
from magweld.passes.analysis.winograd import (
    TILE,
    WEIGHTS,
    emit_transform,
)
from magweld.passes.cpu.emit_index import index_constant
from magweld.passes.cpu.emit_views import (
    Offset,
    aligned_buffer,
    at_most,
    emit_loops,
    layer,
    layer_at,
    layers,
    times,
    view,
    with_long_rows,
)
from magweld.passes.cpu.emit_weights import emit_in_parts
from magweld.passes.cpu.emit_window_check import border_of, emit_check
from magweld.passes.cpu.generic_forms import fill_before, fill_value
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.constants import constant_number
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.utils import add_remark, operations_of
from magweld.passes.tiling.steps import chosen_block
from magweld.passes.tiling.winograd_buffers import winograd_buffers
from magweld.passes.tiling.winograd_forms import FORMS, ROWS, WinogradForm


@dataclass(frozen=True)
class ExpandWinograd(Pass):
    """Compute convolutions by Winograd's minimal filtering where that is decided.

    A block of tiles of the image is transformed, for each element of a transformed
    tile there is one product of matrices with the transformed weights, and these
    products are transformed to results: sixteen products of numbers for four results
    of a window of nine. Sums of sums round as often as those of the window do.

    Where a result is no finite number, the window itself is computed instead: tiles
    mix an infinity with its neighbours, and sums may exceed what the results do not.

        conv {magweld.winograd = 2} ins(%x, %w) outs(%y)
            =>  v[p, c, t] = transform(x)
                m[p, f, t] = u[p, f, c] * v[p, c, t]
                y[f, t] = transform(m)
                if not all finite: conv ins(%x, %w) outs(%y)
    """

    name: ClassVar[str] = "expand-winograd"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the convolutions of all kernels of the module."""
        for function in kernels_of(module):
            for op in operations_of(function, linalg.Conv2DNchwFchwOp):
                if TILE in op.attributes:
                    _expand(function, op.operation)


def _expand(function: func.FuncOp, op: ir.Operation) -> None:
    form = FORMS[ir.IntegerAttr(op.attributes[TILE]).value]
    shared = op.attributes[WEIGHTS] if WEIGHTS in op.attributes else None
    with ir.InsertionPoint(op), op.location:
        border = border_of(op)
    places = _places_beside(op)
    for name in {TILE, WEIGHTS, INTERIOR, BESIDE} & set(op.attributes):
        del op.attributes[name]
    fill = _zeros_before(op)
    if fill is None:
        add_remark(function, "no Winograd: the result does not start at zero")
        return
    if border is None:
        add_remark(function, "no Winograd: the image is no part of a known tile")
        return
    with ir.InsertionPoint(op), op.location:
        transformed = None
        if shared is not None:
            argument = function.arguments[ir.IntegerAttr(shared).value]
            transformed = _rows_of(argument, op.operands[1])
        _Expander(form, op, transformed, places).expand()
        emit_check(op, fill, border, places.get(Role.SUM))
    fill.erase()
    op.erase()


def _places_beside(op: ir.Operation) -> dict[Role, PlaceAttr]:
    """The places that the plan has for what the convolution has beside its tiles."""
    if BESIDE not in op.attributes:
        return {}
    return {Role(e.name): e.attr for e in ir.DictAttr(op.attributes[BESIDE])}


def _zeros_before(op: ir.Operation) -> ir.Operation | None:
    fill = fill_before(op)
    value = None if fill is None else fill_value(fill)
    return fill if value is not None and constant_number(value) == 0 else None


def _rows_of(transformed: ir.Value, weights: ir.Value) -> ir.Value:
    """The part of the transformed weights for a slice of the weights."""
    owner, start = weights.owner, 0
    if not isinstance(owner, ir.Block) and owner.operation.name == "memref.subview":
        first = owner.opview.offsets
        offsets = owner.operation.attributes["static_offsets"]
        start = next(iter(ir.DenseI64ArrayAttr(offsets))) // ROWS
        if len(first):
            start = arith.divui(first[0], index_constant(ROWS))
    rows, depth, *_ = weights.type.shape
    points = transformed.type.shape[1]
    return view(transformed, (start, 0, 0, 0), (rows // ROWS, points, depth, ROWS))


class _Expander:
    """Emits the blocks of one convolution."""

    def __init__(
        self,
        form: WinogradForm,
        op: ir.Operation,
        shared: ir.Value | None,
        places: Mapping[Role, PlaceAttr],
    ) -> None:
        self._form, self._shared, self._places = form, shared, places
        self._image, self._weights, self._result = op.operands
        self._element = self._result.type.element_type
        image, result = self._image.type.shape, self._result.type.shape
        self._buffers = winograd_buffers(form, image, result)
        self._images, self._rows, high, _ = result
        self._down = ceil(high / form.tile)

    def expand(self) -> None:
        """Emit what gives the result of the convolution."""
        image, result = self._whole_tiles()
        buffers, element, places = self._buffers, self._element, self._places
        _, _, images, down, _ = buffers.transformed
        transformed = layers(buffers.transformed, element, places.get(Role.TRANSFORMED))
        products = layers(buffers.products, element, places.get(Role.PRODUCTS))

        def emit(at: Sequence[Offset]) -> None:
            # The last block may begin early: what it writes again is the same.
            start = (at[0], at_most(at[1], self._down - down))
            self._emit_block(image, result, transformed, products, start)

        emit_loops([(0, self._images, images), (0, self._down, down)], emit)
        if result is not self._result:
            part = view(result, (0,) * 4, tuple(self._result.type.shape))
            memref.CopyOp(part, self._result)

    def _whole_tiles(self) -> tuple[ir.Value, ir.Value]:
        """The image and the result, or larger ones that tiles divide."""
        buffers, places = self._buffers, self._places
        if buffers.image is None or buffers.result is None:
            return self._image, self._result
        image = aligned_buffer(buffers.image, self._element, places.get(Role.IMAGE))
        self._emit_zeros(image)
        inner = view(image, (0,) * 4, tuple(self._image.type.shape))
        memref.CopyOp(self._image, inner)
        place = places.get(Role.RESULT)
        return image, aligned_buffer(buffers.result, self._element, place)

    def _emit_block(
        self,
        image: ir.Value,
        result: ir.Value,
        transformed: ir.Value,
        products: ir.Value,
        at: Sequence[Offset],
    ) -> None:
        form = self._form
        count, depth, images, down, across = transformed.type.shape
        top = times(at[1], form.tile)
        height, width = (form.tile * n for n in (down, across))
        border = form.side - form.tile
        window = view(
            image, (at[0], 0, top, 0), (images, depth, height + border, width + border)
        )
        self._emit_input(window, transformed)

        def multiply(channel: Offset, weights: ir.Value) -> None:
            sizes = (count, weights.type.shape[1], images, down, across)
            some = view(transformed, (0, channel, 0, 0, 0), sizes)
            self._emit_products(weights, some, products)

        def emit(at_rows: Sequence[Offset]) -> None:
            row = times(at_rows[0], ROWS)
            self._emit_zeros(with_long_rows(products))
            if self._shared is not None:
                multiply(0, layer_at(self._shared, at_rows[0]))
            else:
                emit_in_parts(
                    form, self._weights, row, self._buffers, self._places, multiply
                )
            part = view(result, (at[0], row, top, 0), (images, ROWS, height, width))
            self._emit_result(products, part)

        emit_loops([(0, self._rows // ROWS, 1)], emit)

    def _emit_input(self, window: ir.Value, transformed: ir.Value) -> None:
        """Emit v[p, c, n, h, w] = transform of x[n, c, 2h + i, 2w + j]."""
        form = self._form
        c, n, h, w = (ir.AffineExpr.get_dim(d) for d in range(4))
        places = [(i, j) for i in range(form.side) for j in range(form.side)]
        maps = [
            ir.AffineMap.get(4, 0, [n, c, h * form.tile + i, w * form.tile + j])
            for i, j in places
        ]
        outs = [layer(transformed, p) for p in range(form.products)]
        maps += [ir.AffineMap.get_identity(4)] * len(outs)
        build_generic(
            [window] * len(places),
            outs,
            maps,
            lambda values: emit_transform(form.input, values[: len(places)]),
        )

    def _emit_zeros(self, buffer: ir.Value) -> None:
        zero = arith.constant(self._element, ir.FloatAttr.get(self._element, 0.0))
        maps = [ir.AffineMap.get_identity(buffer.type.rank)]
        build_generic([], [buffer], maps, lambda _: [zero])

    def _emit_products(
        self, weights: ir.Value, transformed: ir.Value, products: ir.Value
    ) -> None:
        """Emit m[p, f, t] = the sum over c of u[p, c, f] v[p, c, t]."""
        flat = [with_long_rows(value) for value in (transformed, products)]
        p, f, t, c = (ir.AffineExpr.get_dim(d) for d in range(4))
        product = build_generic(
            [weights, flat[0]],
            [flat[1]],
            [
                ir.AffineMap.get(4, 0, dims)
                for dims in ([p, c, f], [p, c, t], [p, f, t])
            ],
            lambda v: [arith.addf(v[2], arith.mulf(v[0], v[1]))],
            reduced=[3],
        )
        _, depth, columns = flat[0].type.shape
        block = chosen_block(depth, min(ROWS, columns))
        if block is not None:
            number = ir.IntegerType.get_signless(64)
            product.attributes[REDUCTION_BLOCK] = ir.IntegerAttr.get(number, block)

    def _emit_result(self, products: ir.Value, part: ir.Value) -> None:
        """Emit y[n, f, 2h + a, 2w + b] = transform of m[p, f, n, h, w]."""
        form = self._form
        f, n, h, w = (ir.AffineExpr.get_dim(d) for d in range(4))
        places = [(a, b) for a in range(form.tile) for b in range(form.tile)]
        maps = [ir.AffineMap.get_identity(4)] * form.products
        maps += [
            ir.AffineMap.get(4, 0, [n, f, h * form.tile + a, w * form.tile + b])
            for a, b in places
        ]
        build_generic(
            [layer(products, p) for p in range(form.products)],
            [part] * len(places),
            maps,
            lambda values: emit_transform(form.result, values[: form.products]),
        )
