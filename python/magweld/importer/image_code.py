"""Owns how torch computes on images whose sizes a call tells, in few passes over them.

Torch's convolutions with few weights are fastest on images whose channels lie next to
each other, and give such images. Norms by given statistics become a part of such
weights, and what follows element by element writes over what it reads.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import fx
from torch._ops import OpOverload

from magweld.importer.nodes import argument, operand, values_of

aten = torch.ops.aten

# Dimensions of a batch of images, which may have their channels last.
_IMAGE_RANK: Final = 4

# Elements of weights up to which a convolution is faster on channels side by side.
# Torch brings weights into another order in each call, and twice for such images.
# 64 -> 64 channels on 56 x 56 take 2.7 ms and 3.9, 512 -> 512 on 5 x 5 take 4.8 and 3.9
# (Zen 3).
_MOST_TURNED: Final = 1 << 18
# Elements of weights that are multiplied in each call, at most: with more of them it
# takes longer than what it saves, a pass over the image.
_MOST_SCALED: Final = 1 << 14

_NORMS: frozenset[object] = frozenset(
    {
        aten._native_batch_norm_legit_no_training.default,
        aten.native_batch_norm.default,
    }
)
# Operators element by element, and what writes their result over the first operand.
_IN_PLACE: dict[object, OpOverload] = {
    aten.add.Tensor: aten.add_.Tensor,
    aten.hardswish.default: aten.hardswish_.default,
    aten.hardtanh.default: aten.hardtanh_.default,
    aten.leaky_relu.default: aten.leaky_relu_.default,
    aten.relu.default: aten.relu_.default,
    aten.silu.default: aten.silu_.default,
}
# Operators that torch says nothing of, although their result may be their operand.
_MAY_BE_VIEWS: frozenset[object] = frozenset({aten._unsafe_view.default})


def is_image_convolution(node: fx.Node) -> bool:
    """Tell whether a node is a convolution of images, over two dimensions."""
    if node.target is not aten.convolution.default:
        return False
    return bool(values_of(operand(node)).dim() == _IMAGE_RANK)


def has_images(nodes: Iterable[fx.Node]) -> bool:
    """Tell whether some operators compute on images."""
    return any(map(is_image_convolution, nodes))


def in_best_layout(node: fx.Node, body: fx.Graph, image: fx.Node) -> fx.Node:
    """Add what gives the image of a convolution as that is fastest.

    Args:
        node: The convolution.
        body: The graph that is added to.
        image: The image; it is what is given if it lies so.
    """
    is_turned = values_of(operand(node, 1)).numel() <= _MOST_TURNED
    layout = torch.channels_last if is_turned else torch.contiguous_format
    return body.call_method("contiguous", (image,), {"memory_format": layout})


@dataclass(frozen=True)
class NormedConvolution:
    """A convolution and the norm of its result by given statistics.

    Attributes:
        convolution: The convolution.
        norm: Reads nothing but its result, and the statistics.
    """

    convolution: fx.Node
    norm: fx.Node

    @staticmethod
    def of(node: fx.Node, run: Collection[fx.Node]) -> NormedConvolution | None:
        """Return what a node is the result of; None if it is that of something else.

        Args:
            node: A part of the result of a norm.
            run: The operators that run with it, whose results nobody else has.
        """
        if node.target is not operator.getitem or node.args[1] != 0:
            return None
        norm = operand(node)
        if norm.target not in _NORMS or not _is_given_statistics(norm):
            return None
        source = operand(norm)
        are_alone = norm in run and source in run
        if not are_alone or [*norm.users] != [node] or [*source.users] != [norm]:
            return None
        if not is_image_convolution(source) or argument(source, "transposed"):
            return None
        tensors = map(values_of, (*norm.all_input_nodes, *source.all_input_nodes))
        is_single = all(tensor.dtype is torch.float32 for tensor in tensors)
        return NormedConvolution(source, norm) if is_single else None

    @property
    def is_scaled(self) -> bool:
        """Whether the norm is made a part of the weights in each call."""
        weights = values_of(operand(self.convolution, 1))
        return bool(weights.numel() <= _MOST_SCALED)

    def terms(
        self, body: fx.Graph, leaf: Callable[[Any], Any]
    ) -> tuple[fx.Node, fx.Node]:
        """Add factors and terms of the results of windows to a graph.

        Args:
            body: The graph.
            leaf: Returns what stands there for a node or another argument.
        """
        call = body.call_function
        weight, bias, mean, variance, eps = (
            leaf(argument(self.norm, name))
            for name in ("weight", "bias", "running_mean", "running_var", "eps")
        )
        factor = call(aten.rsqrt.default, (call(aten.add.Scalar, (variance, eps)),))
        if weight is not None:
            factor = call(aten.mul.Tensor, (factor, weight))
        own = leaf(argument(self.convolution, "bias"))
        if own is not None:
            mean = call(aten.sub.Tensor, (mean, own))
        if bias is None:
            term = call(aten.neg.default, (call(aten.mul.Tensor, (mean, factor)),))
        else:
            term = call(aten.addcmul.default, (bias, mean, factor), {"value": -1})
        return factor, term

    def statistics(self, leaf: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Return what the norm has of its statistics, factors and terms.

        Args:
            leaf: Returns what stands for a node or another argument.
        """
        names = ("running_mean", "running_var", "weight", "bias", "eps")
        return tuple(leaf(argument(self.norm, name)) for name in names)

    def emit(self, body: fx.Graph, leaf: Callable[[Any], Any]) -> fx.Node:
        """Add one convolution for both to a graph and return its result.

        Args:
            body: The graph.
            leaf: Returns what stands there for a node or another argument.
        """
        call = body.call_function
        factor, term = self.terms(body, leaf)
        image, window, _, *how = map(leaf, self._arguments)
        spread = call(aten.view.default, (factor, [-1, 1, 1, 1]))
        window = call(aten.mul.Tensor, (window, spread))
        image = in_best_layout(self.convolution, body, image)
        return call(aten.convolution.default, (image, window, term, *how))

    @property
    def _arguments(self) -> list[Any]:
        """The arguments of the convolution, in their order."""
        schema = aten.convolution.default._schema
        return [argument(self.convolution, one.name) for one in schema.arguments]


def _is_given_statistics(norm: fx.Node) -> bool:
    """Whether a norm is by statistics that it is given."""
    if norm.target is aten.native_batch_norm.default and argument(norm, "training"):
        return False
    return None not in (argument(norm, "running_mean"), argument(norm, "running_var"))


def in_place(node: fx.Node, run: Collection[fx.Node]) -> OpOverload | None:
    """Return the operator that writes a node's result over its first operand.

    None if it may not: something else has the operand, or it has another form.

    Args:
        node: An operator.
        run: Those that run with it, whose results nobody else has.
    """
    target = _IN_PLACE.get(node.target)
    if target is None:
        return None
    source = operand(node)
    before, after = values_of(source), values_of(node)
    same = before.shape == after.shape and before.dtype == after.dtype
    # A sum of something with itself is one user that reads it twice.
    alone = source in run and len(source.users) == 1 and source not in node.args[1:]
    return target if same and alone and _is_new(source) else None


def _is_new(node: fx.Node) -> bool:
    """Tell whether the result of a node lies in memory that nothing else has."""
    if node.target is operator.getitem:
        node = operand(node)
    target = node.target
    if not isinstance(target, OpOverload) or target in _MAY_BE_VIEWS:
        return False
    return all(one.alias_info is None for one in target._schema.returns)
