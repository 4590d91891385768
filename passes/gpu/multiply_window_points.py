"""Owns multiply-window-points: convolutions become products, one a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import affine, arith, ir, linalg, scf, tensor
from magweld.passes.analysis.body_forms import factor_type, starts_at_zero
from magweld.passes.gpu.block_tensors import index_of, temporary
from magweld.passes.gpu.borders import border_of
from magweld.passes.gpu.structure import block_loop_of, element_bytes, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.contractions import build_contraction
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.ir.tensor_reshapes import collapse, expand
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.ir.utils import operations_of
from magweld.passes.tiling.matrix_units import HALVES
from magweld.passes.tiling.window_products import CHANNELS, WindowProduct


@dataclass(frozen=True)
class MultiplyWindowPoints(Pass):
    """Make the tile of a convolution of halves a product for each point of its windows.

        linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x64x6x16xf16>, ...)
                                 outs(%zeros : tensor<1x32x4x14xf32>)
            =>   scf.for %c = 0 to 64 step 16 {
                   %pixels = channels %c of %x, those of a pixel side by side
                   %points = channels %c of %w, point by point
                   scf.for %p = 0 to 9 {
                     %sums += %points[32 * %p] * %pixels[16 * (%p / 3) + %p mod 3]
                   }
                 }

    The image of a step lies in shared memory once; the pixels that a point reads are a
    slice of its rows that begins elsewhere, so that matrix instructions load them from
    there. The columns of the products are pixels in rows as long as those of the image:
    what is behind the end of a row is computed for nothing. The sums leave registers
    through shared memory, where what follows finds the rows of the result in them. With
    strides there are as many images as remainders of rows and columns.

    Convolutions of f32, of channels that are no whole steps or rows of instructions, of
    several images in a tile, of tiles with more sums than registers or more bytes than
    `capacity`, and those that do not begin at zero are left alone.
    """

    name: ClassVar[str] = "multiply-window-points"

    family: Annotated[str, "instructions of the target: mfma, mma or none"] = ""
    capacity: Annotated[int, "bytes of shared memory that a block may use"] = 49152

    def run(self, module: Any) -> None:
        """Replace the convolutions of all kernels."""
        if not self.family:
            return
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            for op in operations_of(loop.operation, linalg.Conv2DNchwFchwOp):
                tile = _tile_of(op)
                if op.operation.parent != loop.operation or tile is None:
                    continue
                if _bytes_of(op, tile) <= self.capacity:
                    with ir.InsertionPoint(op), op.location:
                        made = _Products(op, tile).build()
                    op.results[0].replace_all_uses_with(made)
                    op.operation.erase()


def _tile_of(op: linalg.Conv2DNchwFchwOp) -> WindowProduct | None:
    """Return the products that a convolution is, None for other ones."""
    if not op.results or factor_type(op.operation) not in HALVES:
        return None
    image, weights = (ir.RankedTensorType(value.type) for value in op.inputs)
    images, rows, high, wide = ir.RankedTensorType(op.results[0].type).shape
    if images != 1 or not starts_at_zero(op.operation):
        return None
    down, across = weights.shape[2:]
    strides, dilations = (_pair(op, name) for name in ("strides", "dilations"))
    found = WindowProduct(
        rows, image.shape[1], (high, wide), (down, across), strides, dilations
    )
    return found if found.is_whole else None


def _pair(op: linalg.Conv2DNchwFchwOp, name: str) -> tuple[int, int]:
    """Return an attribute that has a number for rows and one for columns."""
    numbers = op.attributes.get(name)
    high, wide = (1, 1) if numbers is None else ir.DenseIntElementsAttr(numbers)
    return high, wide


def _bytes_of(op: linalg.Conv2DNchwFchwOp, tile: WindowProduct) -> int:
    """Return the bytes of shared memory that products take, of a step and of sums."""
    border, bordered = border_of(op.inputs[0]), 0
    if border is not None:
        type_ = border.bordered
        _, _, high, wide = type_.shape
        bordered = CHANNELS * high * wide * element_bytes(type_.element_type)
    step = tile.image_bytes + tile.weight_bytes + bordered
    return max(step, tile.sum_bytes)


class _Products:
    """Builds the products of one convolution, at the insertion point."""

    def __init__(self, op: linalg.Conv2DNchwFchwOp, tile: WindowProduct) -> None:
        self._image, self._weights = op.inputs
        self._element = ir.RankedTensorType(self._image.type).element_type
        self._tile = tile

    def build(self) -> ir.Value:
        """Return the result of the convolution."""
        tile = self._tile
        f32 = ir.F32Type.get()
        sums = temporary([tile.rows, tile.columns], f32)
        zeros = linalg.fill(arith.ConstantOp(f32, 0.0).result, outs=[sums])
        bounds = (index_of(number) for number in (0, tile.channels, CHANNELS))
        loop = scf.ForOp(*bounds, [zeros])
        with ir.InsertionPoint(loop.body):
            channel, sums = loop.induction_variable, loop.inner_iter_args[0]
            pixels, points = self._pixels(channel), self._points(channel)
            scf.YieldOp([self._multiplied(points, pixels, sums)])
        # A tile of its own: what follows has other shares of it than the products.
        through = temporary([tile.rows, tile.columns], f32)
        return self._result(linalg.copy(loop.results[0], outs=[through]))

    def _pixels(self, channel: ir.Value) -> ir.Value:
        """Return pixels in rows, with the channels of a step side by side."""
        tile, pitch = self._tile, self._tile.pitch
        image = self._image_of_step(channel)
        down, across = tile.strides
        n, c, y, x = (ir.AffineExpr.get_dim(i) for i in range(4))
        maps = [ir.AffineMap.get(4, 0, dims) for dims in ([n, c, y, x], [n, y, x, c])]
        extents = [down * across, tile.part_rows, pitch, CHANNELS]
        whole = temporary(extents, self._element)
        for high, wide in tile.parts:
            rows, columns = tile.part_extents(high, wide)
            part = _strided(image, (high, wide), (rows, columns), (down, across))
            at = [high * across + wide, 0, 0, 0]
            sizes = [1, rows, columns, CHANNELS]
            into = extract_slice(whole, at, sizes, sizes)
            turned = build_generic([part], [into], maps, lambda v: [v[0]]).results[0]
            whole = tensor.insert_slice(turned, whole, [], [], [], at, sizes, [1] * 4)
        return collapse(whole, [[0, 1, 2], [3]])

    def _image_of_step(self, channel: ir.Value) -> ir.Value:
        """Return the channels of a step of the image, with a border around these."""
        sizes = list(ir.RankedTensorType(self._image.type).shape)
        sizes[1] = CHANNELS
        step = extract_slice(self._image, [0, channel, 0, 0], sizes, sizes)
        border = border_of(self._image)
        if border is None or not border.is_whole(1):
            return step
        return border.of_step(step.owner.opview, 1)

    def _points(self, channel: ir.Value) -> ir.Value:
        """Return the weights of a step in rows, those of a point together."""
        tile = self._tile
        sizes = [tile.rows, CHANNELS, *tile.window]
        part = extract_slice(self._weights, [0, channel, 0, 0], sizes, sizes)
        # Rows are copied in wide pieces first.
        row = collapse(part, [[0], [1, 2, 3]])
        copied = linalg.copy(row, outs=[temporary(row.type.shape, self._element)])
        if tile.points == 1:
            return copied
        each = expand(copied, [tile.rows, CHANNELS, tile.points], [[0], [1, 2]])
        f, c, p = (ir.AffineExpr.get_dim(i) for i in range(3))
        maps = [ir.AffineMap.get(3, 0, dims) for dims in ([f, c, p], [p, f, c])]
        into = temporary([tile.points, tile.rows, CHANNELS], self._element)
        turned = build_generic([each], [into], maps, lambda v: [v[0]]).results[0]
        return collapse(turned, [[0, 1], [2]])

    def _multiplied(
        self, points: ir.Value, pixels: ir.Value, sums: ir.Value
    ) -> ir.Value:
        """Add the products of all points to the sums."""
        tile = self._tile
        loop = scf.ForOp(*map(index_of, (0, tile.points, 1)), [sums])
        with ir.InsertionPoint(loop.body):
            point = loop.induction_variable
            first = ir.AffineExpr.get_dim(0) * tile.rows
            factors = [
                _rows_from(points, first, point, tile.rows),
                _rows_from(pixels, self._first_pixel(), point, tile.columns),
            ]
            f, p, c = (ir.AffineExpr.get_dim(i) for i in range(3))
            maps = [ir.AffineMap.get(3, 0, dims) for dims in ([f, c], [p, c], [f, p])]
            total = build_contraction(factors, loop.inner_iter_args[0], maps)
            scf.YieldOp([total])
        made: ir.Value = loop.results[0]
        return made

    def _first_pixel(self) -> ir.AffineExpr:
        """Return where the pixels of a point begin, by its number."""
        tile, point = self._tile, ir.AffineExpr.get_dim(0)
        row = ir.AffineExpr.get_floor_div(point, tile.window[1]) * tile.dilations[0]
        column = point % tile.window[1] * tile.dilations[1]
        down, across = tile.strides
        part = row % down * across + column % across
        whole = ir.AffineExpr.get_floor_div
        inside = whole(row, down) * tile.pitch + whole(column, across)
        return part * (tile.part_rows * tile.pitch) + inside

    def _result(self, sums: ir.Value) -> ir.Value:
        """Return the pixels of the result, without what lies behind their rows."""
        rows, (high, wide), pitch = self._tile.rows, self._tile.pixels, self._tile.pitch
        sizes = [rows, high * pitch]
        whole = extract_slice(sums, [0, 0], sizes, sizes)
        split = expand(whole, [1, rows, high, pitch], [[0, 1], [2, 3]])
        sizes = [1, rows, high, wide]
        made: ir.Value = extract_slice(split, [0] * 4, sizes, sizes)
        return made


def _rows_from(
    tile: ir.Value, first: ir.AffineExpr, number: ir.Value, count: int
) -> ir.Value:
    """Return so many rows of a tile, the first of which follows from a number."""
    map_ = ir.AffineMap.get(1, 0, [first])
    at = affine.AffineApplyOp(map_, [number]).result
    sizes = [count, CHANNELS]
    made: ir.Value = extract_slice(tile, [at, 0], sizes, sizes)
    return made


def _strided(
    image: ir.Value,
    first: tuple[int, int],
    extents: tuple[int, int],
    strides: tuple[int, int],
) -> ir.Value:
    """Return every so many rows and columns of an image."""
    sizes = [1, CHANNELS, *extents]
    type_ = ir.RankedTensorType.get(sizes, image.type.element_type)
    made: ir.Value = tensor.ExtractSliceOp(
        type_, image, [], [], [], [0, 0, *first], sizes, [1, 1, *strides]
    ).result
    return made
