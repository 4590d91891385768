"""Owns convolutions as products of matrices, one for each point of their windows.

Channels of the result are rows. Columns are pixels, in rows as long as those of the
image that the windows read: the pixels of a point are then neighbours in the image,
whatever the point. What lies behind the end of a row of the result is computed and
left. With strides the image is sorted by the remainders of its rows and columns first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from magweld.passes.tiling.matrix_units import (
    BLOCK_THREADS,
    HALVES,
    MOST_SUMS,
    STEP,
    MatrixWork,
    instruction_for,
    share_among_subgroups,
)
from magweld.passes.tiling.needs import OperatorTile
from magweld.passes.tiling.regions import Interval, OperatorKind, OperatorModel
from magweld.targets.device import Device

# Channels that are summed up at a time: the steps of an instruction.
CHANNELS = STEP
# Rows of an instruction, and columns of whole ones on all devices.
_ROWS = _COLUMNS = 16
# Columns of one instruction, and the threads of a subgroup, of each kind of device.
_SUBGROUPS = ((8, 32), (16, 64))
# Bytes of an element of the factors, and of a sum.
_HALF, _SUM = 2, 4


@dataclass(frozen=True)
class WindowProduct:
    """A tile of a convolution of one image, dimensions of it as (high, wide).

    Attributes:
        rows: Channels of the result.
        channels: Channels that are summed over.
        pixels: Pixels of the result.
        window: Points of a window.
        strides: From a window to the next one.
        dilations: From a point to the next one.
    """

    rows: int
    channels: int
    pixels: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]

    @cached_property
    def reach(self) -> tuple[int, int]:
        """Pixels of the image that the windows read."""
        high, wide = (
            (pixels - 1) * stride + (points - 1) * dilation + 1
            for pixels, stride, points, dilation in zip(
                self.pixels, self.strides, self.window, self.dilations, strict=True
            )
        )
        return high, wide

    @cached_property
    def pitch(self) -> int:
        """Columns from a row of pixels to the next one."""
        return -(-self.reach[1] // self.strides[1])

    @cached_property
    def columns(self) -> int:
        """Columns of the products, whole fragments that subgroups share."""
        unit = 4 * _COLUMNS // math.gcd(4, self.rows // _ROWS)
        return -(-self.pixels[0] * self.pitch // unit) * unit

    @property
    def points(self) -> int:
        """Points of a window."""
        return math.prod(self.window)

    def remainders(self, row: int, column: int) -> tuple[int, int]:
        """Return the remainders of the pixels that a point reads."""
        high, wide = self.dilations
        return row * high % self.strides[0], column * wide % self.strides[1]

    def part_extents(self, high: int, wide: int) -> tuple[int, int]:
        """Return how many rows and columns of the image have some remainders."""
        rows, columns = self.reach
        return -(-(rows - high) // self.strides[0]), -(
            -(columns - wide) // self.strides[1]
        )

    @cached_property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """The remainders of the pixels that windows read, in order."""
        points = (
            self.remainders(row, column)
            for row in range(self.window[0])
            for column in range(self.window[1])
        )
        return tuple(sorted(set(points)))

    @cached_property
    def part_rows(self) -> int:
        """Rows of a part of the image: behind its end columns are left."""
        last = [
            (points - 1) * dilation // stride
            for points, dilation, stride in zip(
                self.window, self.dilations, self.strides, strict=True
            )
        ]
        read = last[0] * self.pitch + last[1] + self.columns
        return max(-(-read // self.pitch), self.part_extents(0, 0)[0])

    @property
    def image_bytes(self) -> int:
        """Bytes of the image, of the channels of a step, sorted by pixels."""
        parts = math.prod(self.strides)
        return parts * self.part_rows * self.pitch * CHANNELS * _HALF

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights of a step, as they are and sorted by points."""
        return 2 * self.points * self.rows * CHANNELS * _HALF

    @property
    def sum_bytes(self) -> int:
        """Bytes of the sums, which threads hand to those of what follows."""
        return self.rows * self.columns * _SUM

    @property
    def has_registers(self) -> bool:
        """Whether the sums lie in registers, on all devices."""
        return all(
            self.rows * self.columns
            <= MOST_SUMS * lanes * math.prod(self.shared_by(wide, lanes))
            for wide, lanes in _SUBGROUPS
        )

    def shared_by(self, wide: int, lanes: int) -> tuple[int, int]:
        """Return how many subgroups work along the rows and the columns.

        Args:
            wide: Columns of an instruction.
            lanes: Threads of a subgroup.
        """
        tiles = self.rows // _ROWS, self.columns // wide
        return share_among_subgroups(tiles, BLOCK_THREADS // lanes, (_ROWS, wide))

    @property
    def is_whole(self) -> bool:
        """Whether channels are whole steps and rows, of sums that fit."""
        whole = not (self.rows % _ROWS or self.channels % CHANNELS)
        return whole and self.has_registers


def window_product(
    node: OperatorModel, box: Sequence[Interval]
) -> WindowProduct | None:
    """Return the products that a tile of an operator is, None for other tiles."""
    if node.kind is not OperatorKind.CONVOLUTION or node.factors not in HALVES:
        return None
    if len(node.reads) != 2 or len(node.extents) != 7:
        return None
    image, weights, result = (
        [dict(index.terms) if index else {} for index in access.index]
        for access in (*node.reads, node.writes[0])
    )
    single = [[*terms] if len(terms) == 1 else [-1] for terms in (*result, *weights)]
    loops = [loop for (loop,) in single]
    number, row, high, wide, own, channel, down, across = loops
    known = own == row and min(loops) >= 0 and len(set(loops)) == len(node.extents)
    if not known or (image[0], image[1]) != ({number: 1}, {channel: 1}):
        return None
    if set(image[2]) != {high, down} or set(image[3]) != {wide, across}:
        return None
    sizes = [math.ceil(interval.size) for interval in box]
    found = WindowProduct(
        sizes[row],
        sizes[channel],
        (sizes[high], sizes[wide]),
        (sizes[down], sizes[across]),
        (image[2][high], image[3][wide]),
        (image[2][down], image[3][across]),
    )
    return found if sizes[number] == 1 and found.is_whole else None


def window_work(part: OperatorTile, device: Device) -> MatrixWork | None:
    """Return what matrix instructions do of a convolution, None if they cannot."""
    instruction = instruction_for(part.model, device)
    found = None if instruction is None else window_product(part.model, part.box)
    if instruction is None or found is None:
        return None
    along_rows, along_columns = found.shared_by(instruction.shape[1], device.warp)
    steps = found.points * found.channels
    operations = 2 * found.rows * found.columns * steps
    lines = along_columns * found.rows + along_rows * found.columns
    # Both factors are sorted in shared memory, and sums go through it.
    sorted_ = (found.image_bytes + found.weight_bytes) * found.channels // CHANNELS
    loaded = lines * steps * _HALF + 2 * (sorted_ + found.sum_bytes)
    return MatrixWork(
        operations * part.times,
        operations * part.times / (instruction.gflops * 1e9),
        loaded * part.times,
    )
