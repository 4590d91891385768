"""Owns the words that the kernels of convolutions of any size are called with."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

from magweld.codegen.shared_ranges import Words


class Word(IntEnum):
    """Addresses, then numbers.

    `BESIDE` is what is added to results, or 0. `IS_FINITE` becomes 0 where a result is
    no finite number. `DEPTH` are channels, `LENGTH` the summands of a product. There
    are `COUNT` tiles in rows of `ACROSS`, `DOWN` of them in an image. `RECTIFIED` is
    whether negative results become zero. `BY_FILTERS` is whether threads share out
    blocks of filters, not blocks of tiles; the totals are what they share out first and
    then. The last ones are distances in floats: between blocks of channels and layers
    of tiles, and between layers of weights.
    """

    IMAGE = 0
    WEIGHT = auto()
    SCALE = auto()
    SHIFT = auto()
    BESIDE = auto()
    RESULT = auto()
    ZEROS = auto()
    TILES = auto()
    WEIGHTS = auto()
    SUMS = auto()
    IS_FINITE = auto()
    HIGH = auto()
    WIDE = auto()
    RESULT_HIGH = auto()
    RESULT_WIDE = auto()
    DEPTH = auto()
    FILTERS = auto()
    WINDOW_HIGH = auto()
    WINDOW_WIDE = auto()
    STEP_HIGH = auto()
    STEP_WIDE = auto()
    PAD_HIGH = auto()
    PAD_WIDE = auto()
    SPREAD_HIGH = auto()
    SPREAD_WIDE = auto()
    DOWN = auto()
    ACROSS = auto()
    COUNT = auto()
    LENGTH = auto()
    BLOCK = auto()
    RECTIFIED = auto()
    THREADS = auto()
    BY_FILTERS = auto()
    FIRST_TOTAL = auto()
    SECOND_TOTAL = auto()
    TILE_PITCH = auto()
    TILE_LAYER = auto()
    WEIGHT_LAYER = auto()


class WindowWords(Words):
    """The words of a call, and where they tell that tiles and points are."""

    def place(self, tile: Any) -> tuple[Any, Any, Any]:
        """Return the image of a tile, its row of tiles, and its number in the row."""
        builder = self.code.builder
        across, down = self[Word.ACROSS], self[Word.DOWN]
        row, column = builder.udiv(tile, across), builder.urem(tile, across)
        return builder.udiv(row, down), builder.urem(row, down), column

    def point(self, image: Any, y: Any, x: Any) -> Any:
        """Return the address of a point of an image, of zeros if it is outside."""
        code, builder = self.code, self.code.builder
        high, wide = self[Word.HIGH], self[Word.WIDE]
        # What is before the image is a large number without a sign.
        is_row = builder.icmp_unsigned("<", y, high)
        is_column = builder.icmp_unsigned("<", x, wide)
        row = code.sum(code.product(image, high), y)
        pixel = code.sum(code.product(row, wide), x)
        place = code.product(pixel, self[Word.DEPTH])
        inside = code.at(self.pointer(Word.IMAGE), place)
        is_inside = builder.and_(is_row, is_column)
        return builder.select(is_inside, inside, self.pointer(Word.ZEROS))
