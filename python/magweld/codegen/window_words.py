"""Owns the words that the kernels of convolutions of any size are called with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import Any

from magweld.codegen.emitter import WORD
from magweld.codegen.shared_ranges import Words

# The number of an image, of a row of tiles in it, and of a tile in that.
Place = tuple[Any, Any, Any]


class Word(IntEnum):
    """Addresses, then numbers.

    `BIAS` is that of the filters, `MEAN`, `VARIANCE`, `FACTORS` and `ADDED` are of a
    norm, `BESIDE` is added to its results; each may be 0. `EPSILON` has the bits of a
    float. `SCALE` and `SHIFT` are what is made of them. `IS_FINITE` becomes 0 where a
    result is no finite number. `BORDERED` is a copy of images with the zeros around
    them, in `BORDERED_ROWS` of `BORDERED_WIDE` points, `BORDERED_HIGH` of an image.
    `DEPTH` are channels. The summands of a product come in `BLOCKS` of `USED` ones;
    `PARTS` of these are a row of a window. Distances in an image are those of its
    tensor. There are `COUNT` tiles in rows of `ACROSS`, `DOWN` of them in an image.
    `RECTIFIED` is whether negative results become zero. `BY_FILTERS` is whether threads
    share out blocks of filters, not blocks of tiles; the totals are what they share out
    first and then. The last ones are distances in floats: between blocks of channels
    and layers of tiles, and between layers of weights.
    """

    IMAGE = 0
    WEIGHT = auto()
    BIAS = auto()
    MEAN = auto()
    VARIANCE = auto()
    FACTORS = auto()
    ADDED = auto()
    BESIDE = auto()
    RESULT = auto()
    SCALE = auto()
    SHIFT = auto()
    ZEROS = auto()
    TILES = auto()
    WEIGHTS = auto()
    SUMS = auto()
    BORDERED = auto()
    IS_FINITE = auto()
    EPSILON = auto()
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
    BLOCKS = auto()
    USED = auto()
    PARTS = auto()
    IMAGE_PITCH = auto()
    CHANNEL_PITCH = auto()
    ROW_PITCH = auto()
    POINT_PITCH = auto()
    BORDERED_HIGH = auto()
    BORDERED_WIDE = auto()
    BORDERED_ROWS = auto()
    BLOCK = auto()
    RECTIFIED = auto()
    THREADS = auto()
    BY_FILTERS = auto()
    FIRST_TOTAL = auto()
    SECOND_TOTAL = auto()
    TILE_PITCH = auto()
    TILE_LAYER = auto()
    WEIGHT_LAYER = auto()


@dataclass(frozen=True)
class WindowWords(Words):
    """The words of a call, and where they tell that tiles and points are.

    None of the numbers changes while a kernel runs: each is loaded once in a function.
    """

    _known: dict[int, Any] = field(default_factory=dict, compare=False)

    def __getitem__(self, word: int) -> Any:
        """Return a number."""
        found = self._known.get(word)
        if found is None:
            with self.code.builder.goto_entry_block():
                found = self._known[word] = super().__getitem__(word)
        return found

    def place(self, tile: Any) -> Place:
        """Return where a tile is."""
        builder = self.code.builder
        across, down = self[Word.ACROSS], self[Word.DOWN]
        row, column = builder.udiv(tile, across), builder.urem(tile, across)
        return builder.udiv(row, down), builder.urem(row, down), column

    @contextmanager
    def tiles(self, first: Any, count: Any) -> Iterator[tuple[Any, Place]]:
        """Emit a loop over tiles; given are the number of each from zero on, its place.

        Args:
            first: The number of the first one.
            count: How many there are.
        """
        code = self.code
        held = [code.variable(one) for one in self.place(first)]
        with code.loop(0, count) as number:
            image, row, column = (code.builder.load(one, typ=WORD) for one in held)
            yield number, (image, row, column)
            self._step(held, (image, row, column))

    def _step(self, held: list[Any], place: Place) -> None:
        """Emit the step to the next tile, which takes no division."""
        code, builder = self.code, self.code.builder
        image, row, column = place
        zero, one = code.word(0), code.word(1)
        onward = builder.add(column, one)
        is_end = builder.icmp_unsigned("==", onward, self[Word.ACROSS])
        below = builder.add(row, builder.zext(is_end, WORD))
        is_last = builder.icmp_unsigned("==", below, self[Word.DOWN])
        found = (
            builder.add(image, builder.zext(is_last, WORD)),
            builder.select(is_last, zero, below),
            builder.select(is_end, zero, onward),
        )
        for value, address in zip(found, held, strict=True):
            builder.store(value, address)

    @contextmanager
    def rows(self, first: Any, count: Any) -> Iterator[tuple[Any, Place, Any]]:
        """Emit a loop over the rows of tiles that some tiles lie in.

        Given are the number of the first of them in a row, among all from zero on, its
        place, and how many there are in the row.

        Args:
            first: The number of the first one.
            count: How many there are.
        """
        code, builder = self.code, self.code.builder
        across, down = self[Word.ACROSS], self[Word.DOWN]
        end = code.sum(first, count)
        # Without tiles there are none in the row of the first one.
        last = builder.sdiv(builder.sub(end, code.word(1)), across)
        with code.loop(builder.udiv(first, across), code.sum(last, 1)) as number:
            begin = code.product(number, across)
            start = code.most(builder.sub(first, begin), 0)
            stop = code.least(builder.sub(end, begin), across)
            image, row = builder.udiv(number, down), builder.urem(number, down)
            done = builder.sub(code.sum(begin, start), first)
            yield done, (image, row, start), builder.sub(stop, start)

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
