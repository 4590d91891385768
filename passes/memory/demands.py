"""Owns what parts of its operands an operation needs for a part of its result.

Unlike the regions of `analysis.propagation`, which hold for every tile, these are
exact for one tile: at the border of an image less is read and more is padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from magweld.passes.memory.boxes import (
    Box,
    Span,
    hull,
    is_empty,
    relative,
    whole,
)
from magweld.passes.tiling.regions import LinearIndex

Padding = tuple[tuple[int, ...], tuple[int, ...]]
"""Elements in front of each dimension, and behind it."""


@dataclass(frozen=True)
class Demand:
    """What one part of a result takes.

    Attributes:
        made: What is computed; it holds the part that was asked for.
        needs: For each operand of the operation the part, None for nothing of it.
    """

    made: Box
    needs: tuple[Box | None, ...]


class Rule(Protocol):
    """How the parts of operands follow from a part of the result."""

    def demand(self, box: Box) -> Demand | None:
        """Return what a part of the result takes; None where no rule says."""
        ...


@dataclass(frozen=True)
class Window:
    """An operand of a loop nest.

    Attributes:
        operand: Number of the operand.
        shape: Its extents.
        index: For each dimension a sum of loops; before and behind the tensor is its
            padding.
    """

    operand: int
    shape: tuple[int, ...]
    index: tuple[LinearIndex, ...]

    def padded_box(self, loops: Box) -> Box:
        """Return what iterations read of the operand with its padding."""
        return tuple(span(expr, loops) for expr in self.index)

    def padding(self, loops: Box) -> Padding:
        """Return how much padding iterations read in front and behind."""
        return padding(self.padded_box(loops), (0,) * len(self.shape), self.shape)

    def box(self, loops: Box) -> Box:
        """Return what iterations read of the operand itself."""
        return unpadded(self.padded_box(loops), (0,) * len(self.shape), self.shape)


@dataclass(frozen=True)
class Nest:
    """A loop nest whose operands are indexed by sums of loops.

    Attributes:
        extents: Extents of the loops.
        result: For each dimension of the result its loop, None for extent one.
        windows: The operands, some of them more than once.
        operands: How many there are.
        whole_shapes: Operands that are needed whole, with their extents.
    """

    extents: tuple[int, ...]
    result: tuple[int | None, ...]
    windows: tuple[Window, ...]
    operands: int
    whole_shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def loops(self, box: Box) -> Box:
        """Return the iterations that compute a part of the result."""
        spans = list(whole(self.extents))
        for loop, part in zip(self.result, box, strict=True):
            if loop is not None:
                spans[loop] = part
        return tuple(spans)

    def demand(self, box: Box) -> Demand | None:
        """Return what a part of the result takes."""
        loops = self.loops(box)
        needs: list[Box | None] = [None] * self.operands
        for window in self.windows:
            part = window.box(loops)
            if is_empty(part):
                return None  # nothing but padding
            needs[window.operand] = joined(needs[window.operand], part)
        for operand, shape in self.whole_shapes:
            needs[operand] = whole(shape)
        return Demand(box, tuple(needs))


@dataclass(frozen=True)
class Pad:
    """A tensor with a border of a constant.

    Attributes:
        shape: Extents of the operand.
        low: Elements in front of each dimension.
    """

    shape: tuple[int, ...]
    low: tuple[int, ...]

    def demand(self, box: Box) -> Demand | None:
        """Return what a part of the result takes."""
        part = unpadded(box, self.low, self.shape)
        return None if is_empty(part) else Demand(box, (part,))


@dataclass(frozen=True)
class Slice:
    """A regular part of a tensor.

    Attributes:
        offsets: Where it begins in each dimension of the operand.
        strides: Steps, likewise.
        kept: Dimension of the operand for each one of the result; the others have
            extent one.
    """

    offsets: tuple[int, ...]
    strides: tuple[int, ...]
    kept: tuple[int, ...]

    def demand(self, box: Box) -> Demand:
        """Return what a part of the result takes."""
        spans = dict(zip(self.kept, box, strict=True))
        part = []
        for dim, (offset, stride) in enumerate(
            zip(self.offsets, self.strides, strict=True)
        ):
            low, high = spans.get(dim, (0, 1))
            part.append((offset + low * stride, offset + (high - 1) * stride + 1))
        return Demand(box, (tuple(part),))


@dataclass(frozen=True)
class Part:
    """One of the tensors behind one another: an operand or a slice of it.

    Attributes:
        operand: Number of the operand.
        length: Extent along the dimension in which they follow each other.
        slice: What it is of the operand, None for all of it.
    """

    operand: int
    length: int
    slice: Slice | None = None

    def box(self, inside: Box) -> Box | None:
        """Return where a part of it lies in the operand."""
        if self.slice is None:
            return inside
        return self.slice.demand(inside).needs[0]


@dataclass(frozen=True)
class Concat:
    """Tensors behind one another.

    Attributes:
        dim: Along which dimension.
        parts: The tensors, in order.
        operands: How many operands there are.
    """

    dim: int
    parts: tuple[Part, ...]
    operands: int

    def inside(self, box: Box) -> list[tuple[Part, Box]]:
        """Return the parts that a part of the result takes, and what of each."""
        found = []
        start = 0
        for part in self.parts:
            low, high = box[self.dim]
            span = (max(low - start, 0), min(high - start, part.length))
            if span[0] < span[1]:
                found.append((part, (*box[: self.dim], span, *box[self.dim + 1 :])))
            start += part.length
        return found

    def demand(self, box: Box) -> Demand | None:
        """Return what a part of the result takes."""
        needs: list[Box | None] = [None] * self.operands
        for part, inside in self.inside(box):
            region = part.box(inside)
            assert region is not None, "slices take something of their operand"
            needs[part.operand] = joined(needs[part.operand], region)
        return Demand(box, tuple(needs))


@dataclass(frozen=True)
class Regroup:
    """A reshape that merges or splits dimensions.

    Attributes:
        groups: For each dimension of the smaller rank those of the larger; none where
            the smaller rank is zero.
        extents: Extents of the larger rank.
        expands: The result has the larger rank.
    """

    groups: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    expands: bool

    def demand(self, box: Box) -> Demand | None:
        """Return what a part of the result takes; more than it may be made."""
        if not self.groups:
            one = whole(self.extents)
            return Demand(one, ((),)) if self.expands else Demand((), (one,))
        made: list[Span] = []
        part: list[Span] = []
        for number, group in enumerate(self.groups):
            shape = tuple(self.extents[dim] for dim in group)
            if self.expands:
                inner = _rows(tuple(box[dim] for dim in group), shape)
                made += inner
                part.append(_flat(inner, shape))
            else:
                inner = _split(box[number], shape)
                made.append(_flat(inner, shape))
                part += inner
        return Demand(tuple(made), (tuple(part),))


def joined(known: Box | None, new: Box) -> Box:
    """Return the least box around what is known so far and a new one."""
    return new if known is None else hull(known, new)


def span(index: LinearIndex, loops: Box) -> Span:
    """Return the positions that a sum of loops runs over; no factor is negative."""
    low = high = index.constant
    for loop, factor in index.terms:
        low += factor * loops[loop][0]
        high += factor * (loops[loop][1] - 1)
    return low, high + 1


def unpadded(box: Box, low: tuple[int, ...], shape: tuple[int, ...]) -> Box:
    """Return the part of a tensor that a part of it with padding shows."""
    return tuple(
        (min(max(first - pad, 0), extent), min(max(last - pad, 0), extent))
        for (first, last), pad, extent in zip(box, low, shape, strict=True)
    )


def padding(box: Box, low: tuple[int, ...], shape: tuple[int, ...]) -> Padding:
    """Return how much padding a part of a padded tensor has in front and behind."""
    front, behind = [], []
    for (first, last), pad, extent in zip(box, low, shape, strict=True):
        front.append(max(0, min(last, pad) - first))
        behind.append(max(0, last - max(first, pad + extent)))
    return tuple(front), tuple(behind)


def paddings(rule: Rule | None, box: Box, demand: Demand) -> tuple[object, ...]:
    """Return how the parts of operands are padded, and lie in what is read of them."""
    if isinstance(rule, Pad):
        return padding(box, rule.low, rule.shape)
    if not isinstance(rule, Nest):
        return ()
    loops = rule.loops(box)
    found: list[object] = []
    for window in rule.windows:
        found.append(window.padding(loops))
        need = demand.needs[window.operand]
        assert need is not None, "a window reads its operand"
        found.append(relative(window.box(loops), need))
    return tuple(found)


def _split(part: Span, shape: tuple[int, ...]) -> tuple[Span, ...]:
    """The least box of several dimensions that holds an interval of them merged."""
    if len(shape) == 1:
        return (part,)
    inner = 1
    for extent in shape[1:]:
        inner *= extent
    low, high = part[0] // inner, -(-part[1] // inner)
    if high - low > 1:
        return ((low, high), *whole(shape[1:]))
    rest = _split((part[0] - low * inner, part[1] - low * inner), shape[1:])
    return ((low, high), *rest)


def _rows(box: Box, shape: tuple[int, ...]) -> tuple[Span, ...]:
    """The least box around one whose elements follow one another."""
    for position, (low, high) in enumerate(box):
        if high - low > 1:
            return (*box[: position + 1], *whole(shape[position + 1 :]))
    return box


def _flat(box: Box, shape: tuple[int, ...]) -> Span:
    """The interval of the merged dimension that such a box is."""
    low = high = 0
    for (first, last), extent in zip(box, shape, strict=True):
        low, high = low * extent + first, high * extent + last - 1
    return low, high + 1
