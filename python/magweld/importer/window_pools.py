"""Owns the largest elements of windows of images that native code finds."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import torch
from torch import fx

from magweld.codegen.window_code import WINDOW_CODE, channel_units
from magweld.codegen.window_sizes import Pair, WindowSizes, written
from magweld.codegen.window_words import Word
from magweld.importer.nodes import argument, operand, values_of

aten = torch.ops.aten

Numbers = list[int] | tuple[int, ...]

_IMAGE_RANK: Final = 4
# Kinds of sizes whose calls are remembered.
_MOST_CALLS: Final = 1024
_PAIRS: Final = ("kernel_size", "stride", "padding", "dilation")


def is_native_pool(node: fx.Node) -> bool:
    """Tell whether a node finds largest elements that native code may find."""
    if node.target is not aten.max_pool2d.default or argument(node, "ceil_mode"):
        return False
    image = values_of(operand(node))
    is_float = image.dtype is torch.float32 and image.device.type == "cpu"
    is_whole = image.dim() == _IMAGE_RANK and image.shape[1] % channel_units()[0] == 0
    return bool(is_float and is_whole)


def pool_arguments(node: fx.Node) -> tuple[Any, ...]:
    """Return what `largest` is called with for a node."""
    return (operand(node), *(argument(node, name) for name in _PAIRS))


def largest(
    image: torch.Tensor,
    window: Numbers,
    steps: Numbers,
    padding: Numbers,
    spread: Numbers,
) -> torch.Tensor:
    """Return what `torch.max_pool2d` does.

    Args:
        image: [images, channels, height, width].
        window: Its height and width, or one number for both, as all others.
        steps: From one window to the next; as large as windows if there are none.
        padding: Rows and columns around the image.
        spread: From one point of a window to the next.
    """
    is_last = image.is_contiguous(memory_format=torch.channels_last)
    if not is_last or image.shape[1] % channel_units()[0]:
        return torch.max_pool2d(image, window, steps, padding, spread)
    images, depth, high, wide = image.shape
    size = _pair(window)
    pairs = (_pair(steps or window), _pair(padding), _pair(spread))
    sizes = WindowSizes(images, (high, wide), depth, depth, size, *pairs)
    if min(sizes.result) < 1 or not images:
        return torch.max_pool2d(image, window, steps, padding, spread)
    result = torch.empty(
        (images, depth, *sizes.result),
        dtype=image.dtype,
        device=image.device,
        memory_format=torch.channels_last,
    )
    words = _words(sizes, torch.get_num_threads())
    addresses = {Word.IMAGE: image.data_ptr(), Word.RESULT: result.data_ptr()}
    WINDOW_CODE.loaded().find_largest(words, addresses)
    return result


def _pair(numbers: Numbers) -> Pair:
    first, second = numbers if len(numbers) > 1 else (numbers[0], numbers[0])
    return first, second


@lru_cache(_MOST_CALLS)
def _words(sizes: WindowSizes, threads: int) -> bytes:
    rows = sizes.images * sizes.result[0]
    return written({**sizes.words, Word.FIRST_TOTAL: rows, Word.THREADS: threads})
