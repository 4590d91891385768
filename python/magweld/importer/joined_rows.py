"""Owns steps that join rows and attend to them: one call of native code for each.

A cache that grows, of which a query sees all, or the attention of an encoder: between
calls of torch for a few rows passes more time than in them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final

import torch
from torch import Tensor

# A third of the time of `torch.empty`: nothing is dispatched. The stubs lack it.
from torch._C._dynamo.guards import _empty_strided_cpu  # type: ignore[attr-defined]

from magweld.codegen.attention_code import ATTENTION_CODE
from magweld.codegen.call_words import BoundCode
from magweld.importer.joined_blocks import (
    Attention,
    Block,
    Numbers,
    with_numbers,
)
from magweld.importer.sized_attention import SHARED_PRODUCTS

# Floats from which threads share out copies: starting them takes as long.
_SHARED_FLOATS: Final = 1 << 16

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

    def bound(self, ids: tuple[int, ...], threads: int) -> BoundCode:
        """Return the code that `run` runs.

        Args:
            ids: As of `run`.
            threads: Those that torch has.
        """
        words, (floats,) = self._bound(threads, ids)
        return BoundCode(ATTENTION_CODE.loaded().join_address, words, floats)

    def _join(self, addresses: int | bytes, ids: Numbers) -> None:
        words, room = self._bound(torch.get_num_threads(), ids)
        memory = _empty_strided_cpu(room, (1,), torch.float32)
        ATTENTION_CODE.loaded().join(addresses, words, memory.data_ptr())

    def _bound(self, threads: int, ids: Numbers) -> tuple[bytes, tuple[int]]:
        used = threads if self._is_shared else 1
        held = self._held.get((used, ids))
        if held is None:
            held = self._held[used, ids] = self._words(used, ids)
        return held

    @cached_property
    def _is_shared(self) -> bool:
        most = max((one.products for one in self.attentions), default=0)
        return self.floats >= _SHARED_FLOATS or most >= SHARED_PRODUCTS

    @cached_property
    def _by_heads(self) -> bool:
        """Whether rows are copied as the heads that read them are computed."""
        is_one = bool(self.copies) and len(self.attentions) == 1
        return is_one and self.attentions[0].has_heads(self.copies)

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
        is_much = self.floats >= _SHARED_FLOATS
        counts = (len(self.copies), len(self.attentions), threads if is_much else 1)
        copied = (with_numbers(block, numbers) for block in self.copies)
        by_heads = self._by_heads
        copies = by_heads and is_much
        attended = (
            one.block(threads, numbers, copies=copies) for one in self.attentions
        )
        words = (*counts, int(by_heads), *chain(*copied, *attended))
        floats = max((one.room for one in self.attentions), default=0) * threads
        return struct.pack(f"{len(words)}q", *words), (floats,)
