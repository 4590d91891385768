"""Owns the sizes of a convolution, and what its native code is called with."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, prod
from typing import Final

from magweld.codegen.minimal_filtering import TILE, WINDOW
from magweld.codegen.window_kernels import ROUND, WindowKernels
from magweld.codegen.window_words import Word

WORDS: Final = ctypes.c_int64 * len(Word)
_FLOAT_BYTES: Final = 4
# Floats of the transformed tiles of a block, which stay in the second cache, and its
# least number of tiles: for each of them all weights are read again. Few channels have
# few weights.
_BLOCK_FLOATS: Final = 1 << 18
_LEAST_BLOCK: Final = 96
# The same on CPUs that hold 16 vectors. Each block of filters reads all tiles of a
# block again, and weights come from the third cache in the meantime: 64 -> 64 channels
# on 56 x 56 take 1.60 ms, 1.76 in blocks of 96, 64 -> 128 in steps of two 1.68, 2.28 in
# blocks of 216 (Zen 3).
_FEW_BLOCK_FLOATS: Final = 3 << 13
_FEW_LEAST_BLOCK: Final = 24
_FEW_REGISTERS: Final = 16

Pair = tuple[int, int]


@dataclass(frozen=True)
class WindowSizes:
    """The sizes of a convolution of images; pairs are for height and width.

    Attributes:
        images: How many images there are.
        size: Of each image.
        depth: Channels of an image.
        filters: Channels of the results.
        window: Size of the windows.
        steps: From one window to the next.
        padding: Zeros around the image.
        spread: From one point of a window to the next.
        is_deep: Whether channels of an image are whole vectors.
    """

    images: int
    size: Pair
    depth: int
    filters: int
    window: Pair = (WINDOW, WINDOW)
    steps: Pair = (1, 1)
    padding: Pair = (0, 0)
    spread: Pair = (1, 1)
    is_deep: bool = True

    @property
    def is_filtered(self) -> bool:
        """Whether fewer products do."""
        is_every = self.steps == (1, 1) and self.spread == (1, 1)
        return self.is_deep and is_every and self.window == (WINDOW, WINDOW)

    @property
    def result(self) -> Pair:
        """Size of the results."""
        high, wide = (
            (self.size[n] + 2 * self.padding[n] - self._reach(n)) // self.steps[n] + 1
            for n in range(2)
        )
        return high, wide

    def _reach(self, number: int) -> int:
        return self.spread[number] * (self.window[number] - 1) + 1

    @property
    def grid(self) -> Pair:
        """Rows of tiles in an image, and tiles in a row."""
        tile = TILE if self.is_filtered else 1
        down, across = (ceil(extent / tile) for extent in self.result)
        return down, across

    @property
    def tiles(self) -> int:
        """Tiles of all images."""
        return self.images * prod(self.grid)

    @property
    def length(self) -> int:
        """Summands of a product."""
        return self.depth * (1 if self.is_filtered else prod(self.window))

    @property
    def bordered(self) -> Pair:
        """Size of what windows reach of an image and the zeros around it."""
        high, wide = (
            (self.result[n] - 1) * self.steps[n] + self._reach(n) for n in range(2)
        )
        return high, wide

    @property
    def bordered_floats(self) -> int:
        """Floats of all images with what windows reach around them."""
        return self.images * prod(self.bordered) * self.depth

    def parts(self, lanes: int) -> tuple[int, int, int]:
        """Return blocks of summands, how many of each are used, and blocks of a row.

        Args:
            lanes: Of a vector, which has a block.
        """
        if self.is_deep:
            return self.length // lanes, lanes, self.depth // lanes
        row = self.window[1] * self.depth
        parts = ceil(row / lanes)
        return self.window[0] * parts, ceil(row / parts), parts

    @property
    def words(self) -> dict[Word, int]:
        """What kernels are told of them."""
        pairs = {
            (Word.HIGH, Word.WIDE): self.size,
            (Word.RESULT_HIGH, Word.RESULT_WIDE): self.result,
            (Word.WINDOW_HIGH, Word.WINDOW_WIDE): self.window,
            (Word.STEP_HIGH, Word.STEP_WIDE): self.steps,
            (Word.PAD_HIGH, Word.PAD_WIDE): self.padding,
            (Word.SPREAD_HIGH, Word.SPREAD_WIDE): self.spread,
            (Word.DOWN, Word.ACROSS): self.grid,
            (Word.BORDERED_HIGH, Word.BORDERED_WIDE): self.bordered,
        }
        found = {
            w: pair[n] for words, pair in pairs.items() for n, w in enumerate(words)
        }
        found[Word.DEPTH], found[Word.FILTERS] = self.depth, self.filters
        found[Word.COUNT] = self.tiles
        found[Word.BORDERED_ROWS] = self.images * self.bordered[0]
        return found


def written(numbers: Mapping[Word, int]) -> bytes:
    """Return the words of a call with some numbers, zeros for others."""
    words = WORDS()
    for word, value in numbers.items():
        words[word] = value
    return bytes(words)


@dataclass(frozen=True)
class WindowCall:
    """A convolution, and the memory that it needs while it runs.

    Attributes:
        words: Those of the call, without addresses.
        rooms: For words that are addresses of such memory, at which byte each begins.
        floats: How many floats it has.
    """

    words: bytes
    rooms: Mapping[Word, int]
    floats: int

    @staticmethod
    def plan(sizes: WindowSizes, kernels: WindowKernels, threads: int) -> WindowCall:
        """Return the call of a convolution.

        Threads share out blocks of filters where there are fewer tiles than filters, so
        that the larger operand is transformed part by part, in a cache.

        Args:
            sizes: Its sizes.
            kernels: What computes it.
            threads: At most so many run it.
        """
        count, layers, lanes = sizes.tiles, kernels.layers, kernels.lanes
        summands, used, parts = sizes.parts(lanes)
        blocks = sizes.filters // kernels.filters
        length = summands * lanes
        by_filters = sizes.is_deep and count <= sizes.filters
        size = _block(kernels.registers, layers * length if sizes.is_deep else 0)
        size = count if by_filters else _even(count, size, threads)
        tile_layer = size * length + lanes
        weight_layer = summands * used * kernels.filters + lanes
        tile_rooms, weight_rooms = (1, threads) if by_filters else (threads, blocks)
        rooms = {
            Word.SCALE: sizes.filters,
            Word.SHIFT: sizes.filters,
            Word.ZEROS: sizes.depth,
            Word.TILES: tile_rooms * layers * tile_layer,
            Word.WEIGHTS: weight_rooms * layers * weight_layer,
            Word.SUMS: threads * layers * kernels.sum_layer,
            Word.BORDERED: 0 if sizes.is_deep else sizes.bordered_floats + lanes,
        }
        totals = (count, blocks) if by_filters else (blocks, ceil(count / size))
        numbers = {
            **sizes.words,
            Word.BLOCKS: summands,
            Word.USED: used,
            Word.PARTS: parts,
            Word.BLOCK: size,
            Word.THREADS: threads,
            Word.BY_FILTERS: int(by_filters),
            Word.FIRST_TOTAL: totals[0],
            Word.SECOND_TOTAL: totals[1],
            Word.TILE_PITCH: size * lanes,
            Word.TILE_LAYER: tile_layer,
            Word.WEIGHT_LAYER: weight_layer,
        }
        return WindowCall._of(numbers, rooms)

    @staticmethod
    def _of(numbers: Mapping[Word, int], rooms: Mapping[Word, int]) -> WindowCall:
        """Return a call.

        Args:
            numbers: WindowWords that are no addresses.
            rooms: For words that are addresses of memory, how many floats it has.
        """
        words = written({**numbers, Word.IS_FINITE: 1})
        ends = [*accumulate(rooms.values(), initial=0)]
        begins = {word: _FLOAT_BYTES * n for word, n in zip(rooms, ends, strict=False)}
        return WindowCall(words, begins, ends[-1])


def _block(registers: int, floats: int) -> int:
    """Return of how many tiles a block is, about.

    Args:
        registers: How many vectors the CPU holds.
        floats: Of a transformed tile; 0 if images have few channels.
    """
    if not floats:
        return _LEAST_BLOCK
    if registers <= _FEW_REGISTERS:
        return max(_FEW_LEAST_BLOCK, _FEW_BLOCK_FLOATS // floats)
    return max(_LEAST_BLOCK, _BLOCK_FLOATS // floats)


def _even(count: int, size: int, threads: int) -> int:
    """Return a size of blocks of which each thread has about as many.

    Args:
        count: What is divided.
        size: That of a block, about.
        threads: How many threads there are.
    """
    blocks = threads * ceil(count / (threads * size))
    return ROUND * ceil(count / (blocks * ROUND))
