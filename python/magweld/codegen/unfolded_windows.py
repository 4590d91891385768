"""Owns which convolutions are products of matrices whose windows lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

# Channels on both sides from which a library's convolution is as fast on a CPU as
# generated code: it computes blocks of them, which fewer do not fill. Measured with
# windows of 3x3: 48 -> 3 takes 0.8 and 0.2 ms, 24 -> 24 takes 1.3 and 0.5 ms,
# 64 -> 64 as long either way.
LIBRARY_CHANNELS: Final = 32
# Most bytes of all windows of an image side by side: they are written and read once,
# which costs more than a library's own copies where no cache holds them. With windows
# of 3 x 3 and stride two over 28 x 28 pixels of 256 channels, one image (1.7 MiB) takes
# 14 % less than by the library, two (3.5 MiB) 5 % less and four 6 % more, with weights
# that come from memory (one core of Zen 4).
MOST_BYTES: Final = 4 << 20
# Channels of bf16 up to which windows at every point take fewer products (Winograd)
# instead, which takes as long as in a library: 1.27 and 1.25 ms for 64 of 56 x 56
# pixels, 1.62 and 1.35 for 256 of 14 x 14.
FILTERED_CHANNELS: Final = 64
_PAIR_BITS: Final = 16


@dataclass(frozen=True)
class UnfoldedWindows:
    """A convolution with sums of f32.

    Attributes:
        bits: Of an element that it reads.
        weights: Channels of the result, of the image, rows and columns of the window.
        result: Images, channels, rows, columns.
        strides: Pixels from a window to the next one, down and across.
    """

    bits: int
    weights: Sequence[int]
    result: Sequence[int]
    strides: Sequence[int]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Images, channels, points down and across, rows and columns of the result."""
        images, _, *pixels = self.result
        return (images, *self.weights[1:], *pixels)

    @property
    def pays(self) -> bool:
        """Whether a library computes it otherwise, and copies more.

        Windows of f32 at every point take fewer products.
        """
        rows, channels, *points = self.weights
        fewest = min(rows, channels)
        at_every_point = max(self.strides) == 1
        least = FILTERED_CHANNELS + 1 if at_every_point else LIBRARY_CHANNELS
        if prod(points) == 1 or (at_every_point and self.bits != _PAIR_BITS):
            return False
        return fewest >= least and 0 < self.bits // 8 * prod(self.sizes) <= MOST_BYTES
