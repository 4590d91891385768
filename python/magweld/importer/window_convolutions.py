"""Owns convolutions of images of any size that are computed by native code.

What follows a convolution is part of it: a norm by given statistics, a sum with another
tensor, and the choice of what is not negative.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import torch
from torch import fx

from magweld.codegen.window_code import WINDOW_CODE, channel_units
from magweld.codegen.window_products import MOST_POINTS
from magweld.codegen.window_sizes import Pair, WindowCall, WindowSizes
from magweld.codegen.window_words import Word
from magweld.importer.image_code import NormedConvolution, is_image_convolution
from magweld.importer.nodes import argument, operand, tensors_of, values_of

aten = torch.ops.aten

# What a convolution has for height and width.
_PAIRS: Final = ("stride", "padding", "dilation")
# Weights of a filter, at most, where an image has channels that are no whole vectors.
_MOST_WEIGHTS: Final = 64
# Tiles for which the transform of the weights takes longer than what it saves: torch is
# called for fewer.
_FEWEST_TILES: Final = 4
# Distances in the image.
_PITCHES: Final = (
    Word.IMAGE_PITCH,
    Word.CHANNEL_PITCH,
    Word.ROW_PITCH,
    Word.POINT_PITCH,
)
# Tensors beside the image; the last ones are a norm's.
_TENSORS: Final = (
    Word.BESIDE,
    Word.RESULT,
    Word.WEIGHT,
    Word.BIAS,
    Word.MEAN,
    Word.VARIANCE,
    Word.FACTORS,
    Word.ADDED,
)
# What there is without a norm.
_NO_NORM: Final = (None, None, None, None, 0.0)
# Kinds of sizes whose calls are remembered.
_MOST_CALLS: Final = 1024

Leaf = Callable[[Any], Any]
How = tuple[Pair, Pair, Pair]
Norm = tuple[
    torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None, float
]


@dataclass(frozen=True)
class WindowConvolution:
    """A convolution and what follows it.

    Attributes:
        convolution: The convolution.
        norm: Of its result alone.
        beside: What is added to the result; None for nothing.
        inner: All operators but the last one, whose results nobody else has.
        is_rectified: Whether what is negative becomes zero.
    """

    convolution: fx.Node
    norm: NormedConvolution | None = None
    beside: fx.Node | None = None
    inner: tuple[fx.Node, ...] = ()
    is_rectified: bool = False

    @staticmethod
    def ends_of(run: Iterable[fx.Node]) -> dict[fx.Node, WindowConvolution]:
        """Return the convolutions among some operators, by the last one of each.

        Args:
            run: Operators that run one after another.
        """
        order = tuple(run)
        members = {*order}
        alone = {node for node in order[:-1] if members >= {*node.users}}
        found: dict[fx.Node, WindowConvolution] = {}
        taken: set[fx.Node] = set()
        for node in reversed(order):
            one = None if node in taken else _rectified(node, alone)
            if one is not None:
                found[node] = one
                taken |= {*one.inner}
        return found

    def emit(self, body: fx.Graph, leaf: Leaf) -> fx.Node:
        """Add the convolution to a graph and return its result.

        Args:
            body: The graph.
            leaf: Returns what stands there for a node or another argument.
        """
        bias = leaf(argument(self.convolution, "bias"))
        norm = None if self.norm is None else self.norm.statistics(leaf)
        image, weight = (leaf(operand(self.convolution, n)) for n in range(2))
        pairs = (argument(self.convolution, name) for name in _PAIRS)
        # They may be sizes of the call.
        how = tuple(tuple(map(leaf, pair)) for pair in pairs)
        arguments = (image, weight, bias, norm, leaf(self.beside), how)
        return body.call_function(convolve, (*arguments, self.is_rectified))


def _rectified(node: fx.Node, alone: Collection[fx.Node]) -> WindowConvolution | None:
    if node.target is not aten.relu.default:
        return _summed(node, alone)
    source = operand(node)
    found = _summed(source, alone) if _is_read_once(source, alone) else None
    if found is None:
        return None
    return _followed(found, source, beside=found.beside, is_rectified=True)


def _summed(node: fx.Node, alone: Collection[fx.Node]) -> WindowConvolution | None:
    if node.target is not aten.add.Tensor:
        return _normed(node, alone)
    sources = [one for one in node.args[:2] if isinstance(one, fx.Node)]
    if len({*sources}) < 2 or argument(node, "alpha") != 1:
        return None
    one, other = sources
    for source, beside in ((one, other), (other, one)):
        if not _are_alike(source, beside) or not _is_read_once(source, alone):
            continue
        found = _normed(source, alone)
        if found is not None:
            return _followed(found, source, beside=beside, is_rectified=False)
    return None


def _followed(
    found: WindowConvolution,
    source: fx.Node,
    *,
    beside: fx.Node | None,
    is_rectified: bool,
) -> WindowConvolution:
    """Return a convolution with an operator more.

    Args:
        found: The convolution.
        source: What results of it, which the operator reads.
        beside: What is added.
        is_rectified: Whether negative results become zero.
    """
    inner = (*found.inner, source)
    return WindowConvolution(found.convolution, found.norm, beside, inner, is_rectified)


def _normed(node: fx.Node, alone: Collection[fx.Node]) -> WindowConvolution | None:
    norm = NormedConvolution.of(node, alone)
    if norm is not None and _has_windows(norm.convolution):
        inner = (norm.convolution, norm.norm)
        return WindowConvolution(norm.convolution, norm, None, inner)
    return WindowConvolution(node) if _has_windows(node) else None


def _is_read_once(node: fx.Node, alone: Collection[fx.Node]) -> bool:
    return node in alone and len(node.users) == 1


def _are_alike(one: fx.Node, other: fx.Node) -> bool:
    first, second = values_of(one), values_of(other)
    return bool(first.shape == second.shape and first.dtype is second.dtype)


def _has_windows(node: fx.Node) -> bool:
    """Whether a node is a convolution that native code computes."""
    if not is_image_convolution(node) or argument(node, "transposed"):
        return False
    tensors = [t for one in (node, *node.all_input_nodes) for t in tensors_of(one)]
    if any(t.dtype is not torch.float32 or t.device.type != "cpu" for t in tensors):
        return False
    filters, depth, *window = values_of(operand(node, 1)).shape
    pairs = all(len(argument(node, name)) == len(window) for name in _PAIRS)
    if not pairs or argument(node, "groups") != 1:
        return False
    spread = argument(node, "dilation")
    return _may_be_native(filters, depth, tuple(window), tuple(spread))


def _may_be_native(filters: int, depth: int, window: Pair, spread: Pair) -> bool:
    """Whether there is native code for some channels and windows."""
    depth_unit, filter_unit = channel_units()
    points = math.prod(window)
    if filters % filter_unit:
        return False
    if depth % depth_unit == 0:
        return points <= MOST_POINTS
    return points * depth <= _MOST_WEIGHTS and spread[1] == 1


def convolve(
    image: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    norm: Norm | None,
    beside: torch.Tensor | None,
    how: How,
    is_rectified: bool,
) -> torch.Tensor:
    """Return a convolution with what follows it, channels side by side.

    Args:
        image: [images, channels, height, width].
        weight: [filters, channels, height, width].
        bias: [filters], what is added to results; None for zeros.
        norm: Mean, variance, factors and terms of a norm behind it, [filters] each, and
            what is added to the variance.
        beside: What is added after that, of the shape of the result.
        how: Steps, zeros around the image, and the spread of windows.
        is_rectified: Whether negative results become zero.
    """
    # The graph has them of the sizes that stood for those of the call.
    planned = _planned(image.shape, weight.shape, how, torch.get_num_threads())
    if planned is None:
        return _through_torch(image, weight, bias, norm, beside, how, is_rectified)
    source = image
    if beside is not None:
        beside = beside.contiguous(memory_format=torch.channels_last)
    if planned.sizes.is_deep:
        source = image.contiguous(memory_format=torch.channels_last)
    result = torch.empty(
        planned.shape,
        dtype=image.dtype,
        device=image.device,
        memory_format=torch.channels_last,
    )
    *statistics, epsilon = norm or _NO_NORM
    vectors = [_dense(one) for one in (weight, bias, *statistics)]
    words = _words(source, [beside, result, *vectors])
    words[Word.EPSILON] = _bits(epsilon)
    words[Word.RECTIFIED] = int(is_rectified)
    room = image.new_empty(planned.call.floats)
    code = WINDOW_CODE.loaded()
    if code.run(planned.sizes, planned.call, words, room.data_ptr()):
        return result
    return _through_torch(image, weight, bias, norm, beside, how, is_rectified)


def _dense(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _words(
    image: torch.Tensor, tensors: Iterable[torch.Tensor | None]
) -> dict[Word, int]:
    """Return the words that tell where tensors are, and how the image lies.

    Args:
        image: The image.
        tensors: The others, as `_TENSORS` has them, without gaps; images have their
            channels side by side.
    """
    words = {Word.IMAGE: image.data_ptr()}
    words.update(zip(_PITCHES, image.stride(), strict=True))
    for word, one in zip(_TENSORS, tensors, strict=True):
        if one is not None:
            words[word] = one.data_ptr()
    return words


@dataclass(frozen=True)
class _Planned:
    """A convolution of some shapes.

    Attributes:
        sizes: Its sizes.
        call: What native code is told of them.
        shape: Of the result.
    """

    sizes: WindowSizes
    call: WindowCall
    shape: tuple[int, ...]


@lru_cache(_MOST_CALLS)
def _planned(
    image: Sequence[int], weight: Sequence[int], how: How, threads: int
) -> _Planned | None:
    """Return the convolution of some shapes, None if torch computes it."""
    images, depth, high, wide = image
    filters, summed, *window = weight
    size = (window[0], window[1])
    if summed != depth or not _may_be_native(filters, depth, size, how[2]):
        return None
    is_deep = depth % channel_units()[0] == 0
    sizes = WindowSizes(images, (high, wide), depth, filters, size, *how, is_deep)
    if min(sizes.result) < 1 or sizes.tiles < _FEWEST_TILES:
        return None
    call = WINDOW_CODE.loaded().plan(sizes, threads)
    return _Planned(sizes, call, (images, filters, *sizes.result))


@lru_cache(_MOST_CALLS)
def _bits(number: float) -> int:
    """Return the bits of a number as a float."""
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return int(bits)


def _through_torch(
    image: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    norm: Norm | None,
    beside: torch.Tensor | None,
    how: How,
    is_rectified: bool,
) -> torch.Tensor:
    """Return what `convolve` does, by a sum of products."""
    result = torch.conv2d(image, weight, bias, *how)
    if norm is not None:
        mean, variance, factors, terms, epsilon = norm
        given = (mean, variance, factors, terms)
        result = torch.nn.functional.batch_norm(result, *given, eps=epsilon)
    if beside is not None:
        result = result + beside
    if is_rectified:
        result = torch.relu(result)
    return result.contiguous(memory_format=torch.channels_last)
