"""Owns what native code reads of rows that are copied and of attention to them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import torch

from magweld.codegen.attention_kernels import MOST_ROWS, room_floats
from magweld.codegen.attention_words import DISTANCES, Word
from magweld.codegen.joined_words import ADDRESSED, Copy
from magweld.codegen.shared_code import float_lanes
from magweld.importer.sized_attention import SHARED_PRODUCTS, scale_bits
from magweld.importer.strides import Strided, viewed

aten = torch.ops.aten

_FLOAT_BYTES: Final = 4
# Blocks of rows of one copy, at most.
_MOST_BLOCKS: Final = 64

Block = tuple[int, ...]
# Where among addresses those of tensors are, by the numbers of these.
Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Placed:
    """A tensor in the memory of another one.

    Attributes:
        number: Of that, among operands and then results.
        strided: Which elements it has.
        size: Bytes of an element.
    """

    number: int
    strided: Strided
    size: int = _FLOAT_BYTES

    @property
    def bytes_before(self) -> int:
        """Bytes before the first element."""
        return self.size * self.strided.offset


def copies(source: Placed, target: Placed, dim: int, before: int) -> list[Block] | None:
    """Return the blocks that copy a tensor to its place in a concatenation.

    Args:
        source: The tensor.
        target: The concatenation, which is dense.
        dim: The dimension along which tensors are joined.
        before: Floats before its place, of each row from that dimension on.

    Returns:
        None if the elements of the tensor are not few blocks of rows.
    """
    shape, strides = source.strided.shape, source.strided.strides
    floats, rows = math.prod(shape[dim:]), math.prod(shape[:dim])
    if not floats * rows:
        return []
    if Strided(shape[dim:], strides[dim:]).runs not in ([], [(floats, 1)]):
        return None
    *slow, (last, distance) = Strided(shape[:dim], strides[:dim]).runs or [(1, 0)]
    if rows // last > _MOST_BLOCKS:
        return None
    pitch = math.prod(target.strided.shape[dim:])
    steps = ([stride * n for n in range(extent)] for extent, stride in slow)
    found: list[Block] = []
    for number, at in enumerate(itertools.product(*steps)):
        here = source.bytes_before + _FLOAT_BYTES * sum(at)
        there = _FLOAT_BYTES * (number * last * pitch + before)
        taken = (source.number, here, distance)
        first = number * last
        found.append((*taken, target.number, there, pitch, last, floats, first))
    return found


def with_numbers(block: Block, numbers: Numbers) -> Block:
    """Return a block of rows that are copied, with other numbers of its tensors."""
    found = list(block)
    for word in (Copy.SOURCE, Copy.TARGET):
        found[word] = numbers[block[word]]
    return tuple(found)


def spread_mask(mask: Placed | None, scores: tuple[int, ...]) -> Placed | None:
    """Return a mask with an element for each score; None if its rows have gaps.

    Args:
        mask: Where it lies, if that is known.
        scores: Shape of the scores.
    """
    if mask is None:
        return None
    spread = viewed(aten.expand.default, mask.strided, scores)
    if spread is None or spread.strides[-1] != 1:
        return None
    return replace(mask, strided=spread)


def by_rows(shape: Sequence[int]) -> Strided:
    """Return a tensor of heads that lies row by row, those of all heads side by side.

    Args:
        shape: [batches, heads, rows, size].
    """
    batches, heads, rows, size = shape
    strides = (rows * heads * size, size, heads * size, 1)
    return Strided((batches, heads, rows, size), strides)


@dataclass(frozen=True)
class Attention:
    """Attention between tensors that `is_plain` has let pass.

    Attributes:
        query: [batches, heads, rows, size].
        key: [batches, heads, keys, size].
        value: The same.
        mask: [batches, heads, rows, keys], what is added to scores; None for nothing.
        choice: Of two floats, the one that is added where the mask is true, and that
            where it is false; none if the mask is of floats.
        result: Of the shape of the query.
        is_causal: Row i sees the keys 0..i.
        scale: Factor of the scores; 1/sqrt(size) where None.
    """

    query: Placed
    key: Placed
    value: Placed
    mask: Placed | None
    choice: tuple[Placed, ...]
    result: Placed
    is_causal: bool
    scale: float | None

    @staticmethod
    def is_plain(query: Strided, key: Strided, value: Strided) -> bool:
        """Whether each key has a value, and rows have their elements side by side."""
        keys = (*query.shape[:2], key.shape[2], query.shape[3])
        inner = {one.strides[3] for one in (query, key, value)}
        are_any = math.prod(query.shape) * keys[2] > 0
        return key.shape == value.shape == keys and inner == {1} and are_any

    @property
    def products(self) -> int:
        """How many products the scores are sums of."""
        return math.prod(self.query.strided.shape) * self.key.strided.shape[2]

    @property
    def room(self) -> int:
        """Floats of memory that a thread needs."""
        size = self.query.strided.shape[3]
        return room_floats(self._part, size, float_lanes())

    def block(self, threads: int, numbers: Numbers, *, copies: bool = False) -> Block:
        """Return the words.

        Args:
            threads: How many there are.
            numbers: Of tensors.
            copies: Whether the threads copy so much that they share that out.
        """
        used = min(threads, self._words[Word.ITEMS])
        is_shared = copies or self.products >= SHARED_PRODUCTS
        words = {**self._words, Word.THREADS: used if is_shared else 1}
        which = (-1 if one is None else numbers[one.number] for one in self._tensors)
        return (*which, *(words.get(word, 0) for word in Word))

    def has_heads(self, blocks: Sequence[Block]) -> bool:
        """Whether rows of copies may be copied with the heads of their numbers.

        No head, which is one item of the work, reads a row that is copied for another.

        Args:
            blocks: The copies.
        """
        if self._words[Word.PARTS] > 1:
            return False
        items = self._words[Word.ITEMS]
        if any(block[Copy.FIRST] + block[Copy.ROWS] > items for block in blocks):
            return False
        made = {block[Copy.TARGET] for block in blocks}
        for one in self._tensors:
            if one is None or one.number not in made:
                continue
            # In whole rows of copies, which lie one behind another.
            pitch = math.prod(one.strided.shape[2:])
            own = (block for block in blocks if block[Copy.TARGET] == one.number)
            is_whole = one.strided == Strided.dense(one.strided.shape)
            if not is_whole or any(block[Copy.TARGET_PITCH] != pitch for block in own):
                return False
        return True

    @property
    def _tensors(self) -> tuple[Placed | None, ...]:
        """The tensors whose addresses the words have, in their order."""
        seen, unseen = self.choice or (None, None)
        read = (self.query, self.key, self.value, self.mask, seen, unseen)
        return (*read, self.result)

    @property
    def _part(self) -> int:
        """Rows of a head that walk the keys together."""
        rows = self.query.strided.shape[2]
        return -(-rows // -(-rows // MOST_ROWS))

    @cached_property
    def _words(self) -> dict[Word, int]:
        """The words but for addresses and threads."""
        batches, heads, rows, size = self.query.strided.shape
        parts = -(-rows // self._part)
        words = {
            Word.HEADS: heads,
            Word.ROWS: rows,
            Word.KEYS: self.key.strided.shape[2],
            Word.SIZE: size,
            Word.PART: self._part,
            Word.PARTS: parts,
            Word.ITEMS: batches * heads * parts,
            Word.SHARE: self.room,
            Word.SCALE: scale_bits(self.scale, size),
            Word.IS_CAUSAL: int(self.is_causal),
        }
        for word, one in zip(ADDRESSED, self._tensors, strict=True):
            if one is None:
                continue
            words[word] = one.bytes_before
            if word in DISTANCES:
                first = DISTANCES[word]
                for dim in range(3):
                    words[Word(first + dim)] = one.strided.strides[dim]
        return words
