"""Owns the memory that a convolution by Winograd's filtering needs beside its tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from magweld.dialects.tile_graph.roles import Role
from magweld.passes.tiling.first_cache import LINE_BYTES
from magweld.passes.tiling.tile_sizes import largest_divisor
from magweld.passes.tiling.winograd_forms import (
    CHANNELS,
    ELEMENT_BYTES,
    ROWS,
    WINDOW,
    WinogradForm,
    choose_block,
)

# Parts that are smaller than a quarter of what fits are not worth a loop.
SMALLEST_PART = 4
# Of the channels whose weights are transformed together those that are brought side by
# side at a time: they stay in a core's first cache.
TURNED = 32

Shape = tuple[int, ...]


@dataclass(frozen=True)
class WinogradBuffers:
    """Shapes of the buffers of one convolution; elements are f32.

    Attributes:
        blocks: How many blocks of the image are transformed one after another.
        transformed: The transformed tiles of a block of the image, in layers.
        products: Their products with sixteen rows of the weights, in layers.
        image: Of an image whose results tiles do not divide a larger one.
        result: Of its result likewise.
        weights: Transformed weights of some channels, in layers, where tiles transform
            them.
        turned: What they are made of, side by side.
    """

    blocks: int
    transformed: Shape
    products: Shape
    image: Shape | None
    result: Shape | None
    weights: Shape
    turned: Shape

    def sizes(self, *, in_tiles: bool) -> dict[Role, int]:
        """Return the bytes of each, and of the sum that tells whether all is finite.

        Args:
            in_tiles: Whether tiles transform the weights.
        """
        plain = {Role.IMAGE: self.image, Role.RESULT: self.result}
        layered = {Role.TRANSFORMED: self.transformed, Role.PRODUCTS: self.products}
        if in_tiles:
            plain[Role.TURNED] = self.turned
            layered[Role.WEIGHTS] = self.weights
        elements = {role: prod(shape) for role, shape in plain.items() if shape}
        elements |= {
            role: shape[0] * layer_distance(shape, ELEMENT_BYTES)
            for role, shape in layered.items()
        }
        elements[Role.SUM] = 1
        return {role: number * ELEMENT_BYTES for role, number in elements.items()}


def winograd_buffers(
    form: WinogradForm, image: Sequence[int], result: Sequence[int]
) -> WinogradBuffers:
    """Return the buffers of a convolution.

    Args:
        form: The arithmetic.
        image: Images, channels, and more of the image that is convolved.
        result: Images, rows, height and width of the result.
    """
    images, rows, high, wide = result
    depth = image[1]
    down, across = ceil(high / form.tile), ceil(wide / form.tile)
    some_images, some_down = choose_block(form, depth, (images, down, across))
    block = (some_images, some_down, across)
    whole = (down * form.tile, across * form.tile)
    border = form.side - form.tile
    around = (images, depth, *(size + border for size in whole))
    channels = some_channels(depth, CHANNELS)
    divided = whole == (high, wide)
    return WinogradBuffers(
        blocks=ceil(images / some_images) * ceil(down / some_down),
        transformed=(form.products, depth, *block),
        products=(form.products, ROWS, *block),
        image=None if divided else around,
        result=None if divided else (images, rows, *whole),
        weights=(form.products, channels, ROWS),
        turned=(some_channels(channels, TURNED), WINDOW, WINDOW, ROWS),
    )


def layer_distance(shape: Sequence[int], element_bytes: int) -> int:
    """Return the elements from one layer of a buffer to the next.

    Layers an even number of cache lines apart would drive each other out where an
    element of each of them is written in turn.
    """
    line = LINE_BYTES // element_bytes
    return (ceil(prod(shape[1:]) / line) | 1) * line


def some_channels(number: int, most: int) -> int:
    """Return the largest divisor of a number up to another one.

    All of it if it has but small ones.
    """
    found = largest_divisor(number, most)
    return found if found * SMALLEST_PART >= min(number, most) else number
