"""Owns which operators a library can compute and how it is called."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from magweld.bindings import ir, linalg
from magweld.dialects.integers import i64, i64s
from magweld.dialects.tile_graph import root_operation
from magweld.passes.analysis.body_forms import starts_at_zero
from magweld.passes.analysis.operator_model import root_accesses
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.constants import constant_number
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.regions import Access


@dataclass(frozen=True)
class Reshape:
    """A reshape on the way to a library.

    Attributes:
        groups: Which dimensions of the larger rank make one of the smaller.
        expand: The library's tensor has the larger rank.
    """

    groups: tuple[tuple[int, ...], ...]
    expand: bool

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the library's shape of a tensor; new dimensions have extent one."""
        if not self.expand:
            return tuple(math.prod(shape[i] for i in group) for group in self.groups)
        inner = (
            (extent, *(1 for _ in group[1:]))
            for extent, group in zip(shape, self.groups, strict=True)
        )
        return tuple(itertools.chain.from_iterable(inner))


@dataclass(frozen=True)
class LibraryCall:
    """A call that the runtime can carry out with torch.

    Attributes:
        op: Name in the runtime's library table.
        operands: Operand numbers of the operator, in the order of the call.
        attributes: Integers, booleans and lists of integers.
        reshapes: For each operand, then the result, the dimensions of the library's
            tensor that belong to each dimension of ours, or the other way round;
            None where the shapes agree.
        adopts: The library brings its own result tensor instead of filling one.
    """

    op: str
    operands: tuple[int, ...]
    attributes: dict[str, bool | int | list[int]] = field(default_factory=dict)
    reshapes: tuple[Reshape | None, ...] = ()
    adopts: bool = False

    def attribute(self) -> Any:
        """Return the call as a dictionary attribute, `op` among its entries."""
        entries = {key: _attribute(value) for key, value in self.attributes.items()}
        return ir.DictAttr.get({"op": ir.StringAttr.get(self.op), **entries})


def _attribute(value: bool | int | list[int]) -> Any:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return i64(value)
    return i64s(value)


def library_call(operator: Any) -> LibraryCall | Refusal:
    """Return how a library computes `operator`, or why none does."""
    root = root_operation(operator)
    make = _TABLE.get(root.name)
    if make is None:
        return Refusal("no-library", "no library call computes this operation")
    if not starts_at_zero(root):
        return Refusal("library-init", "the accumulator does not start at zero")
    return make(root)


def _matmul(op: str, batch: int) -> Callable[[Any], LibraryCall | Refusal]:
    """Calls of mm and bmm, whose operands may be transposed in their last two dims."""

    def make(root: Any) -> LibraryCall | Refusal:
        left, right, result = root_accesses(root)
        order = (left.argument, right.argument)
        if min(order) < 0 or any(a.padded or a.part for a in (left, right)):
            return Refusal("library-operand", "an operand is made by the operator")
        if len({a.element_bytes for a in (left, right, result)}) > 1:
            return Refusal("library-types", "the operands are narrower than the result")
        rows, columns = _loops(result)[batch:]
        transposed = (_loops(left)[batch] != rows, _loops(right)[-1] != columns)
        return LibraryCall(
            op, order, {"transpose_a": transposed[0], "transpose_b": transposed[1]}
        )

    return make


def _loops(access: Access) -> list[int]:
    return [expr.terms[0][0] for expr in access.index if expr is not None]


def _convolution(
    grouped: bool, reshapes: tuple[Reshape | None, ...]
) -> Callable[[Any], LibraryCall | Refusal]:
    """Calls of conv2d; the first dimension of a grouped weight counts the groups."""

    def make(root: Any) -> LibraryCall | Refusal:
        image, weight, result = root_accesses(root)
        if len({a.element_bytes for a in (image, weight, result)}) > 1:
            return Refusal("library-types", "the operands are narrower than the result")
        amounts = _padding(root.operands[0]) if image.padded else ([0, 0], [0, 0])
        made = min(image.argument, weight.argument) < 0 or weight.padded
        if made or amounts is None:
            return Refusal("library-operand", "the padding is not of zeros in space")
        # Both sides get the lesser one of the library; the rest is padded before.
        padding = [min(pair) for pair in zip(*amounts, strict=True)]
        rest = [
            [amount - least for amount, least in zip(side, padding, strict=True)]
            for side in amounts
        ]
        border = {"front": rest[0], "behind": rest[1]} if rest[0] != rest[1] else {}
        return LibraryCall(
            "convolution",
            (image.argument, weight.argument),
            {
                "strides": _pair(root, "strides"),
                "padding": padding,
                "dilation": _pair(root, "dilations"),
                "groups": weight.shape[0] if grouped else 1,
                **border,
            },
            reshapes,
            adopts=True,
        )

    return make


def _pair(root: Any, name: str) -> list[int]:
    if name not in root.attributes:
        return [1, 1]
    return [int(v) for v in ir.DenseIntElementsAttr(root.attributes[name])]


def _padding(value: Any) -> tuple[list[int], list[int]] | None:
    """Spatial padding in front and behind that a tensor.pad does.

    None when a library cannot do it: other values than zeros, or other dimensions.
    """
    pad = value.owner.operation
    source = defining_op(pad.operands[0])
    if source is not None and source.operation.name == "tensor.pad":
        return None  # a pad of a pad
    low = list(ir.DenseI64ArrayAttr(pad.attributes["static_low"]))
    high = list(ir.DenseI64ArrayAttr(pad.attributes["static_high"]))
    yielded = list(pad.regions[0].blocks[0].operations)[-1].operands[0]
    if any(low[:-2]) or any(high[:-2]) or min(*low, *high) < 0:
        return None
    if constant_number(yielded) != 0:
        return None
    return [int(v) for v in low[-2:]], [int(v) for v in high[-2:]]


_TABLE: dict[str, Callable[[Any], LibraryCall | Refusal]] = {
    "linalg.matmul": _matmul("matmul", 0),
    "linalg.batch_matmul": _matmul("batch_matmul", 1),
    "linalg.conv_2d_nchw_fchw": _convolution(grouped=False, reshapes=()),
    # [c, h, w] is [c, 1, h, w] to the library.
    "linalg.depthwise_conv_2d_nchw_chw": _convolution(
        grouped=True, reshapes=(None, Reshape(((0, 1), (2,), (3,)), expand=True), None)
    ),
    # [n, g, c, h, w], [g, f, c, h, w] and [n, g, f, h, w] without their group dim.
    "linalg.conv_2d_ngchw_gfchw": _convolution(
        grouped=True,
        reshapes=(
            Reshape(((0,), (1, 2), (3,), (4,)), expand=False),
            Reshape(((0, 1), (2,), (3,), (4,)), expand=False),
            Reshape(((0,), (1, 2), (3,), (4,)), expand=False),
        ),
    ),
}


def is_contraction(operator: Any) -> bool:
    """Whether the root of an operator is a contraction or a convolution."""
    root = root_operation(operator)
    return bool(linalg.isa_contraction_op(root) or linalg.isa_convolution_op(root))
