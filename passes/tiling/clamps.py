"""Owns offsets that are moved into a range, where a window hangs over an edge."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.passes.tiling.regions import ZERO, Interval, LinearIndex


@dataclass(frozen=True)
class Clamp:
    """An offset that is moved into a range.

    Attributes:
        offset: The offset as it would be.
        highest: The greatest that is allowed; the least is zero.
    """

    offset: LinearIndex
    highest: int


class Clamps:
    """Offsets that are no sums of loops, as further loops with numbers of their own."""

    def __init__(self, first: int, known: tuple[Clamp, ...] = ()) -> None:
        """Number clamps from `first` on, those that are `known` before all others."""
        self._first = first
        self._known = known
        self._numbers = {clamp: first + i for i, clamp in enumerate(known)}

    @property
    def known(self) -> tuple[Clamp, ...]:
        """All clamps in the order of their numbers."""
        return self._known

    def __getitem__(self, number: int) -> Clamp:
        """Return the clamp of a number."""
        return self._known[number - self._first]

    def inside(
        self, box: tuple[Interval, ...], shape: tuple[int, ...]
    ) -> tuple[Interval, ...]:
        """Move a box that is no larger than a tensor to where it lies inside."""
        return tuple(
            self._inside(interval, extent)
            for interval, extent in zip(box, shape, strict=True)
        )

    def _inside(self, interval: Interval, extent: int) -> Interval:
        highest = extent - interval.size
        if highest == 0:
            return Interval(ZERO, extent)
        if not interval.offset.terms:
            constant = min(max(interval.offset.constant, 0), highest)
            return Interval(LinearIndex((), constant), interval.size)
        clamp = Clamp(interval.offset, highest)
        number = self._numbers.setdefault(clamp, self._first + len(self._known))
        if number == self._first + len(self._known):
            self._known += (clamp,)
        return Interval(LinearIndex(((number, 1),)), interval.size)
