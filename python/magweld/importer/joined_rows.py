"""Owns steps that join rows and attend to them: one call of native code for each.

A cache that grows, of which a query sees all, or the attention of an encoder: between
calls of torch for a few rows passes more time than in them.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final

import torch
from torch import Tensor, fx

# A third of the time of `torch.empty`: nothing is dispatched. The stubs lack it.
from torch._C._dynamo.guards import _empty_strided_cpu  # type: ignore[attr-defined]

from magweld.codegen.attention_code import ATTENTION_CODE
from magweld.importer.joined_blocks import (
    Attention,
    Block,
    Numbers,
    Placed,
    by_rows,
    copies,
    spread_mask,
    with_numbers,
)
from magweld.importer.nodes import argument, operand, tensors_of
from magweld.importer.sized_attention import SHARED_PRODUCTS, is_native_attention
from magweld.importer.strides import Strided, viewed

aten = torch.ops.aten

# Floats from which threads share out copies: starting them takes as long.
_SHARED_FLOATS: Final = 1 << 16

# Returns what an argument of an operator is for the sizes of a call.
At = Callable[[Any], Any]
Form = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


@dataclass(frozen=True)
class JoinedRows:
    """Runs such a step for some sizes of the call.

    Attributes:
        copies: Blocks of rows that are copied.
        attentions: What follows.
        forms: Shape, strides and dtype of each result.
        shown: The results that are returned, in order, by number; the last one is that
            of the step.
        is_pair: Whether that is attention, which results in a pair.
        floats: How many are copied.
    """

    copies: tuple[Block, ...]
    attentions: tuple[Attention, ...]
    forms: tuple[Form, ...]
    shown: tuple[int, ...]
    is_pair: bool
    floats: int
    # Threads and numbers of tensors; words for them, and the shape of memory.
    _held: dict[tuple[int, Numbers], tuple[bytes, tuple[int]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __call__(self, *tensors: Tensor) -> tuple[Any, ...]:
        """Return the results of dense operands of f32."""
        made = [_empty_strided_cpu(*self.forms[number]) for number in self._order]
        held = [*tensors, *made]
        addresses = struct.pack(f"{len(held)}q", *map(Tensor.data_ptr, held))
        self._join(addresses, tuple(range(len(held))))
        found: list[Any] = made[: len(self.shown)]
        if self.is_pair:
            found[-1] = (found[-1], None)
        return tuple(found)

    @property
    def shows_all(self) -> bool:
        """Whether each of its results is returned, once."""
        return sorted(self.shown) == list(range(len(self.forms)))

    @cached_property
    def results(self) -> tuple[Form, ...]:
        """What it returns, in order."""
        return tuple(self.forms[number] for number in self.shown)

    def run(self, table: int, ids: tuple[int, ...]) -> None:
        """Run on addresses.

        Args:
            table: Where these are.
            ids: Where in the table those of operands are, then of what it returns.
        """
        self._join(table, ids)

    def _join(self, addresses: int | bytes, ids: Numbers) -> None:
        threads = torch.get_num_threads() if self._is_shared else 1
        held = self._held.get((threads, ids))
        if held is None:
            held = self._held[threads, ids] = self._words(threads, ids)
        words, room = held
        memory = _empty_strided_cpu(room, (1,), torch.float32)
        ATTENTION_CODE.loaded().join(addresses, words, memory.data_ptr())

    @cached_property
    def _is_shared(self) -> bool:
        most = max((one.products for one in self.attentions), default=0)
        return self.floats >= _SHARED_FLOATS or most >= SHARED_PRODUCTS

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The numbers of all results, first of those that are returned."""
        others = set(range(len(self.forms))) - {*self.shown}
        return (*self.shown, *sorted(others))

    def _words(self, threads: int, ids: Numbers) -> tuple[bytes, tuple[int]]:
        """Return what native code reads, and how many floats of memory it needs."""
        operands = len(ids) - len(self.forms)
        places = map(self._order.index, range(len(self.forms)))
        numbers = (*ids[:operands], *(ids[operands + place] for place in places))
        copying = threads if self.floats >= _SHARED_FLOATS else 1
        counts = (len(self.copies), len(self.attentions), copying)
        copied = (with_numbers(block, numbers) for block in self.copies)
        attended = (one.block(threads, numbers) for one in self.attentions)
        words = (*counts, *chain(*copied, *attended))
        floats = max((one.room for one in self.attentions), default=0) * threads
        return struct.pack(f"{len(words)}q", *words), (floats,)


def may_join_rows(run: Sequence[fx.Node]) -> bool:
    """Tell whether operators join rows or attend in f32, and may do nothing else.

    Args:
        run: Operators that run one after another; those of views may be among them.
    """
    tensors = [
        tensor
        for node in run
        for one in (node, *node.all_input_nodes)
        for tensor in tensors_of(one)
    ]
    joins = (n.target is aten.cat.default or is_native_attention(n) for n in run)
    return any(joins) and all(
        one.dtype is torch.float32 and one.device.type == "cpu" for one in tensors
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
    making = _Making(operands, at, shown[-1])
    return making.made(shown) if all(map(making.add, run)) else None


class _Making:
    """A step that is being made."""

    def __init__(
        self, operands: Mapping[fx.Node, Strided], at: At, last: fx.Node
    ) -> None:
        self._at = at
        self._last = last
        self._operands = len(operands)
        self._places = {
            node: Placed(number, strided)
            for number, (node, strided) in enumerate(operands.items())
        }
        self._results: list[Strided] = []
        self._copies: list[Block] = []
        self._attentions: list[Attention] = []
        self._floats = 0

    def add(self, node: fx.Node) -> bool:
        """Add an operator; return False if it is none of these."""
        if node.target is aten.cat.default:
            return self._join(node)
        if is_native_attention(node):
            return self._attend(node)
        if node.target is operator.getitem:
            return self._take(node)
        return self._view(node)

    def made(self, shown: Sequence[fx.Node]) -> JoinedRows | None:
        """Return the step; None if parts of what it makes are returned."""
        numbers: list[int] = []
        forms = [*self._results]
        for node in shown:
            place = self._places[node]
            number = place.number - self._operands
            is_own = number >= 0 and number not in numbers
            if not is_own or not place.strided.is_all_of(self._results[number]):
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
        self._places[node] = Placed(source.number, found)
        return True

    def _join(self, node: fx.Node) -> bool:
        """Add a concatenation of views of operands."""
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

    def _attend(self, node: fx.Node) -> bool:
        """Add attention."""
        query, key, value = (self._place(operand(node, n)) for n in range(3))
        if query is None or key is None or value is None:
            return False
        if not Attention.is_plain(query.strided, key.strided, value.strided):
            return False
        shape = query.strided.shape
        given = argument(node, "attn_mask")
        mask: Placed | None = None
        if given is not None:
            mask = spread_mask(self._place(given), (*shape[:3], key.strided.shape[2]))
            if mask is None:
                return False
        # They run in their order, behind all copies; what ends a step is dense.
        ends = node is self._last
        result = self._result(node, Strided.dense(shape) if ends else by_rows(shape))
        how = bool(argument(node, "is_causal")), argument(node, "scale")
        self._attentions.append(Attention(query, key, value, mask, result, *how))
        return True
