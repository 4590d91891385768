"""Owns how operators that join rows and attend become one call of native code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import torch
from torch import fx

from magweld.importer.joined_blocks import (
    Attention,
    Block,
    Placed,
    by_rows,
    copies,
    spread_mask,
)
from magweld.importer.joined_rows import JoinedRows
from magweld.importer.nodes import argument, operand, tensors_of, values_of
from magweld.importer.sized_attention import is_native_attention
from magweld.importer.strides import Strided, viewed

aten = torch.ops.aten

# Returns what an argument of an operator is for the sizes of a call.
At = Callable[[Any], Any]
# Types of what is joined and attended to, and of masks.
_TYPES = frozenset({torch.float32, torch.bool})
# Operators that copy rows.
_COPIES: Final[frozenset[object]] = frozenset({aten.cat.default, aten.repeat.default})


def may_join_rows(run: Sequence[fx.Node]) -> bool:
    """Tell whether operators join rows or attend in f32, and may do nothing else.

    Masks may be of truths.

    Args:
        run: Operators that run one after another; those of views may be among them.
    """
    tensors = [
        tensor
        for node in run
        for one in (node, *node.all_input_nodes)
        for tensor in tensors_of(one)
    ]
    joins = (n.target in _COPIES or is_native_attention(n) for n in run)
    return any(joins) and all(
        one.dtype in _TYPES and one.device.type == "cpu" for one in tensors
    )


def joined_rows(
    run: Sequence[fx.Node],
    shown: Sequence[fx.Node],
    operands: Mapping[fx.Node, Strided],
    at: At,
) -> JoinedRows | None:
    """Return what runs operators for some sizes; None if they do something else.

    Args:
        run: Operators that run one after another, for which `may_join_rows` holds.
        shown: Those whose results are returned; the last one is the last that runs.
        operands: Dense tensors that they read.
        at: Returns what arguments of operators are for these sizes.
    """
    making = Making(operands, at, shown[-1])
    return making.made(shown) if all(map(making.add, run)) else None


class Making:
    """A step that is being made."""

    def __init__(
        self, operands: Mapping[fx.Node, Strided], at: At, last: fx.Node
    ) -> None:
        self._at = at
        self._last = last
        self._operands = len(operands)
        self._places = {
            node: Placed(number, strided, values_of(node).dtype.itemsize)
            for number, (node, strided) in enumerate(operands.items())
        }
        # Masks that choose from two floats, with these.
        self._choices: dict[fx.Node, tuple[Placed, Placed, Placed]] = {}
        self._results: list[Strided] = []
        self._copies: list[Block] = []
        self._attentions: list[Attention] = []
        self._floats = 0

    def add(self, node: fx.Node) -> bool:
        """Add an operator; return False if it is none of these."""
        if node.target is aten.cat.default:
            return self._join(node)
        if node.target is aten.repeat.default:
            return self._repeat(node)
        if is_native_attention(node):
            return self._attend(node)
        if node.target is aten.where.self:
            return self._choose(node)
        if node.target is operator.getitem:
            return self._take(node)
        return self._view(node)

    def made(self, shown: Sequence[fx.Node]) -> JoinedRows | None:
        """Return the step; None if parts of what it makes are returned."""
        numbers: list[int] = []
        forms = [*self._results]
        for node in shown:
            place = self._places.get(node)
            number = -1 if place is None else place.number - self._operands
            if place is None or number < 0 or number in numbers:
                return None
            if not place.strided.is_all_of(self._results[number]):
                return None
            forms[number] = Strided.dense(place.strided.shape)
            numbers.append(number)
        return JoinedRows(
            tuple(self._copies),
            tuple(self._attentions),
            tuple((one.shape, one.strides, torch.float32) for one in forms),
            tuple(numbers),
            is_native_attention(shown[-1]),
            self._floats,
        )

    def _place(self, node: Any) -> Placed | None:
        """Return where the tensor lies that a node means, if that is known.

        Views that nothing else reads are not among the operators that run.
        """
        if not isinstance(node, fx.Node):
            return None
        if node not in self._places:
            self._view(node)
        return self._places.get(node)

    def _result(self, node: fx.Node, form: Strided) -> Placed:
        """Return the place of what a node makes."""
        number = self._operands + len(self._results)
        self._results.append(form)
        self._places[node] = placed = Placed(number, form)
        return placed

    def _take(self, node: fx.Node) -> bool:
        """Add the first part of attention."""
        whole = operand(node)
        if not is_native_attention(whole) or node.args[1] != 0:
            return False
        self._places[node] = self._places[whole]
        return True

    def _view(self, node: fx.Node) -> bool:
        args: Any = fx.node.map_aggregate(node.args, self._at)
        source = self._place(args[0]) if args and not node.kwargs else None
        if source is None or is_native_attention(args[0]):
            return False
        found = viewed(node.target, source.strided, *args[1:])
        if found is None:
            return False
        self._places[node] = replace(source, strided=found)
        return True

    def _choose(self, node: fx.Node) -> bool:
        """Add a mask that is one of two floats for each truth."""
        mask, *floats = (self._place(operand(node, n)) for n in range(3))
        seen, unseen = floats
        if mask is None or seen is None or unseen is None:
            return False
        truths, *others = (values_of(operand(node, n)) for n in range(3))
        if truths.dtype is not torch.bool or values_of(node).shape != truths.shape:
            return False
        if any(one.numel() != 1 or one.dtype is torch.bool for one in others):
            return False
        self._choices[node] = (mask, seen, unseen)
        return True

    def _join(self, node: fx.Node) -> bool:
        """Add a concatenation of views of operands."""
        if values_of(node).dtype is torch.bool:
            return False
        parts: Any = node.args[0]
        shape = tuple(map(self._at, tensors_of(node)[0].shape))
        dim = argument(node, "dim") % len(shape)
        target, before = self._result(node, Strided.dense(shape)), 0
        for source in map(self._place, parts):
            # Nothing is computed before all copies.
            if source is None or source.number >= self._operands:
                return False
            own = source.strided.shape
            if len(own) != len(shape) or own[:dim] != shape[:dim]:
                return False
            blocks = copies(source, target, dim, before)
            if blocks is None:
                return False
            self._copies += blocks
            before += math.prod(own[dim:])
        self._floats += math.prod(shape)
        return bool(before == math.prod(shape[dim:]))

    def _repeat(self, node: fx.Node) -> bool:
        """Add a tensor whose rows all parts of another one are."""
        source = self._place(operand(node))
        # Nothing is computed before all copies.
        if source is None or source.number >= self._operands:
            return False
        shape = tuple(map(self._at, values_of(node).shape))
        # Several elements that are repeated follow each other and are no view.
        own = source.strided.shape
        pairs = zip(own, shape[len(shape) - len(own) :], strict=True)
        if any(some not in (1, every) for some, every in pairs):
            return False
        spread = viewed(aten.expand.default, source.strided, shape)
        if spread is None or values_of(node).dtype is torch.bool:
            return False
        target = self._result(node, Strided.dense(shape))
        ways = (
            copies(replace(source, strided=spread), target, dim, 0)
            for dim in range(len(shape))
        )
        blocks = next((way for way in ways if way is not None), None)
        self._copies += blocks or []
        self._floats += math.prod(shape)
        return blocks is not None

    def _attend(self, node: fx.Node) -> bool:
        """Add attention."""
        query, key, value = (self._place(operand(node, n)) for n in range(3))
        if query is None or key is None or value is None:
            return False
        if not Attention.is_plain(query.strided, key.strided, value.strided):
            return False
        shape = query.strided.shape
        given, mask = argument(node, "attn_mask"), None
        choice: tuple[Placed, ...] = ()
        if given is not None:
            read, *floats = self._choices.get(given, (self._place(given),))
            mask, choice = (
                spread_mask(read, (*shape[:3], key.strided.shape[2])),
                (*floats,),
            )
            if mask is None:
                return False
        # What it reads is there: attentions run in their order, behind all copies.
        # Torch has the rows of all heads side by side; what ends a step is dense.
        ends = node is self._last
        result = self._result(node, Strided.dense(shape) if ends else by_rows(shape))
        how = bool(argument(node, "is_causal")), argument(node, "scale")
        self._attentions.append(
            Attention(query, key, value, mask, choice, result, *how)
        )
        return True
