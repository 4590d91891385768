"""Owns the arithmetic of Winograd's minimal filtering: matrices, blocks, times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod

from magweld.codegen import minimal_filtering

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]

# Points of a window along each dimension.
WINDOW = minimal_filtering.WINDOW
# Rows of the transformed weights that lie side by side: u[f / ROWS, p, c, f % ROWS].
ROWS = 16
# Weights that tiles transform at most so often are not transformed by a kernel before:
# writing them to memory and reading them again takes as long as four more transforms.
IN_TILES = 4
# Channels whose weights are transformed before they are multiplied with.
CHANNELS = 128

ELEMENT_BYTES = 4
# Bytes that the transformed tiles of a block may take: they stay in a core's cache.
BLOCK_BYTES = 1024 * 1024
# Vectors of columns whose products take as long as reading their weights anew.
WEIGHT_VECTORS = 0.2
LANES = 16
# Blocks that differ less in their time are equally good: the smallest is taken.
BLOCK_ACCURACY = 0.05
# Products that take as long as one element on its way through a transform, and the
# tiles that take as long as what a row of tiles costs beside them: least squares of
# 2.6, 3.3 and 4.5 ns a tile in rows of 28, 14 and 7, beside 59 products a ns.
TRANSFORM_PRODUCTS = 7.0
ROW_TILES = 8.0


@dataclass(frozen=True)
class WinogradForm:
    """Tiles of `tile` x `tile` results of a window of 3 x 3, of `side` x `side` inputs.

    For tiles x and windows w, `result (weight w weightT * input x inputT) resultT` is
    the convolution, `*` element by element: so many products instead of nine for every
    result.

    Attributes:
        input: Transforms a tile of the image.
        weight: Transforms the window's weights.
        result: Transforms products to results.
    """

    input: Matrix
    weight: Matrix
    result: Matrix

    @property
    def tile(self) -> int:
        """Results of a tile along each dimension."""
        return len(self.result)

    @property
    def side(self) -> int:
        """Elements of the image that a tile reads along each dimension."""
        return len(self.input)

    @property
    def products(self) -> int:
        """Products of a tile for each channel."""
        return self.side**2


def _matrix(rows: Sequence[Sequence[float]]) -> Matrix:
    return tuple(tuple(map(Fraction, row)) for row in rows)


FORMS = {
    minimal_filtering.TILE: WinogradForm(
        _matrix(minimal_filtering.INPUT),
        _matrix(minimal_filtering.WEIGHT),
        _matrix(minimal_filtering.RESULT),
    )
}


def padded_depth(depth: int) -> int:
    """Return how many channels each layer of transformed weights has room for.

    An odd number of cache lines: layers that begin in the same set of a cache would
    drive each other out while they are written.
    """
    return depth | 1


def choose_block(
    form: WinogradForm, depth: int, counts: tuple[int, int, int]
) -> tuple[int, int]:
    """Return how many images and how many rows of tiles are transformed together.

    Args:
        form: The arithmetic.
        depth: Channels of the image.
        counts: Images, rows of tiles in each, tiles in a row.
    """
    images, down, across = counts
    blocks = [(1, rows) for rows in range(1, down + 1)]
    blocks += [(n, down) for n in range(2, images + 1) if images % n == 0]
    column_bytes = form.products * depth * ELEMENT_BYTES

    def columns(block: tuple[int, int]) -> int:
        return block[0] * block[1] * across

    def cost(block: tuple[int, int]) -> float:
        number = ceil(images / block[0]) * ceil(down / block[1])
        return number * (_vectors(columns(block)) + WEIGHT_VECTORS)

    fitting = [b for b in blocks if columns(b) * column_bytes <= BLOCK_BYTES]
    limit = min(map(cost, fitting), default=0.0) * (1 + BLOCK_ACCURACY)
    good = (block for block in fitting if cost(block) <= limit)
    return min(good, key=columns, default=(1, 1))


def block_count(form: WinogradForm, depth: int, sizes: tuple[int, int, int]) -> int:
    """Return into how many blocks `choose_block` divides results.

    Args:
        form: The arithmetic.
        depth: Channels of the image.
        sizes: Images, height and width of the results.
    """
    images, high, wide = sizes
    down, across = ceil(high / form.tile), ceil(wide / form.tile)
    some_images, some_rows = choose_block(form, depth, (images, down, across))
    return ceil(images / some_images) * ceil(down / some_rows)


def _vectors(columns: int) -> float:
    """Return the time of a row of columns in that of whole vectors."""
    return columns // LANES + (columns % LANES).bit_count() / 2


def product_share(
    form: WinogradForm, rows: int, depth: int, sizes: tuple[int, int]
) -> float:
    """Return the time of a tile's arithmetic over that of the whole window.

    Args:
        form: The arithmetic.
        rows: Channels of the result.
        depth: Channels of the image.
        sizes: Height and width of the result.
    """
    down, across = (ceil(size / form.tile) for size in sizes)
    tiles = down * across
    columns = _vectors(tiles) * LANES / tiles
    row = 1 + ROW_TILES / across
    transforms = TRANSFORM_PRODUCTS * row * (1 / rows + 1 / depth)
    share = tiles * form.products / (WINDOW**2 * prod(sizes))
    return share * (columns + transforms)
