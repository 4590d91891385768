"""Owns the search for iterations in a straight line of operations, without IR."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# Distances between equal operations that are tried as the length of an iteration.
_PERIODS = 12
# How many of the next equal operations of an operation propose such a distance.
_NEXT = 8
# Lengths that differ by less are about equal.
_ABOUT = 0.9


@dataclass(frozen=True)
class Operand:
    """What an operation reads.

    Attributes:
        maker: Position of the operation that makes it; -1 if it comes from outside.
        number: Which result of the maker; from outside which value.
        since: Position of the last operation that a value from outside follows from.
    """

    maker: int
    number: int
    since: int = -1


@dataclass(frozen=True)
class Inner:
    """A result of the same iteration: of its operation `at`, result `number`."""

    at: int
    number: int


@dataclass(frozen=True)
class Carried:
    """A result of the iteration before.

    Attributes:
        at: Its operation, counted from the begin of that iteration.
        number: Which result.
        first: What the first iteration reads instead.
    """

    at: int
    number: int
    first: Operand


@dataclass(frozen=True)
class Outer:
    """Values from before the loop, one for each iteration."""

    values: tuple[Operand, ...]


Source = Inner | Carried | Outer


@dataclass(frozen=True)
class Iterations:
    """Consecutive operations that do the same several times.

    Attributes:
        start: Position of the first operation.
        period: Operations of an iteration.
        count: How many iterations.
        sources: For each operation of an iteration what it reads.
    """

    start: int
    period: int
    count: int
    sources: tuple[tuple[Source, ...], ...]

    @property
    def stop(self) -> int:
        """Position behind the last operation."""
        return self.start + self.period * self.count


@dataclass(frozen=True)
class Obstacle:
    """Why operations that repeat are no iterations of one loop.

    Attributes:
        start: Position of the first operation.
        period: Operations after which they repeat.
        count: How often they are there.
        reader: Position of the operation that reads otherwise.
        from_before: Whether it reads other values from before all iterations, and not
            results of other iterations than the one before.
    """

    start: int
    period: int
    count: int
    reader: int
    from_before: bool


Prefix = Callable[[Sequence[Operand]], int]


@dataclass(frozen=True)
class Line:
    """Operations one after another.

    Attributes:
        kinds: A number for each operation; equal numbers are equal operations.
        operands: For each operation what it reads.
        prefix: Returns of how many values from before a loop, from the first on, the
            iterations can find theirs by the number of the iteration.
    """

    kinds: Sequence[int]
    operands: Sequence[Sequence[Operand]]
    prefix: Prefix

    def iterations(self, least: int) -> Iterations | None:
        """Return iterations that cover much of the line, at least so many."""
        for start, period, length in _runs(self.kinds, least):
            for begin in self._begins(start, period, length, least):
                count = (start + length - begin) // period
                # Most begins are none for the first iterations already.
                if isinstance(self.match(begin, period, least, least), Obstacle):
                    continue
                found = self.match(begin, period, count, least)
                if isinstance(found, Iterations):
                    return found
        return None

    def obstacle(self, least: int) -> Obstacle | None:
        """Return why the longest repeating range has no iterations; None for none."""
        for start, period, length in _runs(self.kinds, least):
            begin = self._begins(start, period, length, least)[0]
            count = (start + length - begin) // period
            found = self.match(begin, period, count, least)
            if isinstance(found, Obstacle):
                return found
        return None

    def _begins(self, start: int, period: int, length: int, least: int) -> list[int]:
        """Return where iterations may begin, first where the fewest values cross."""
        begins = range(start, min(start + period, start + length - period * least + 1))
        return sorted(begins, key=lambda at: (self._crossing(at, period), at))

    def _crossing(self, begin: int, period: int) -> int:
        """How many values the second iteration takes from the first."""
        middle = begin + period
        return len(
            {
                operand
                for position in range(middle, middle + period)
                for operand in self.operands[position]
                if begin <= operand.maker < middle
            }
        )

    def match(
        self, start: int, period: int, count: int, least: int = 2
    ) -> Iterations | Obstacle:
        """Return the iterations of a length from a position on, at most `count`.

        If there are less than `least`, which is two or more, return why.
        """
        repeated = count
        sources = []
        for at in range(period):
            row = []
            for number in range(len(self.operands[start + at])):
                read = [
                    self.operands[start + k * period + at][number] for k in range(count)
                ]
                found, alike = self._source(read, start, period)
                count = min(count, alike)
                if found is None or count < least:
                    before = all(max(o.maker, o.since) < start for o in read)
                    return Obstacle(start, period, repeated, start + at, before)
                row.append(found)
            sources.append(tuple(row))
        return Iterations(start, period, count, _cut(sources, count))

    def _source(
        self, read: Sequence[Operand], start: int, period: int
    ) -> tuple[Source | None, int]:
        """Return where an operand is from, and of how many iterations that is true."""
        first, second = read[0], read[1]
        if first.since >= start:
            return None, 0
        if first.maker >= start:
            inner = Inner(first.maker - start, first.number)
            return inner, _agreeing(read, start, period, inner.at, inner.number)
        if second.maker >= start + period:
            return None, 0
        if second.maker >= start:
            at = second.maker - start
            carried = Carried(at, second.number, first)
            shifted = start - period
            alike = _agreeing(read[1:], shifted + period, period, at, second.number)
            return carried, 1 + alike
        late = (k for k, o in enumerate(read) if max(o.maker, o.since) >= start)
        outside = next(late, len(read))
        alike = self.prefix(read[:outside])
        return Outer(tuple(read)), alike


def _agreeing(
    read: Sequence[Operand], start: int, period: int, at: int, number: int
) -> int:
    """How many operands, from the first on, are a result at a place of an iteration."""
    for k, operand in enumerate(read):
        if operand != Operand(start + k * period + at, number):
            return k
    return len(read)


def _cut(
    sources: Sequence[tuple[Source, ...]], count: int
) -> tuple[tuple[Source, ...], ...]:
    return tuple(
        tuple(
            Outer(one.values[:count]) if isinstance(one, Outer) else one for one in row
        )
        for row in sources
    )


def _runs(kinds: Sequence[int], least: int) -> list[tuple[int, int, int]]:
    """Return start, period and length of ranges where kinds repeat so often.

    The longest come first, of about equal length those with the shorter period.
    """
    periods = _periods(kinds)
    found = [
        run for p in periods for run in _repeating(kinds, p) if run[2] >= least * p
    ]
    longest = max((length for *_, length in found), default=0)
    return sorted(
        found, key=lambda run: (run[2] < _ABOUT * longest, run[1], -run[2], run[0])
    )


def _periods(kinds: Sequence[int]) -> list[int]:
    places: defaultdict[int, list[int]] = defaultdict(list)
    for position, kind in enumerate(kinds):
        places[kind].append(position)
    votes: Counter[int] = Counter()
    for line in places.values():
        for index, position in enumerate(line):
            later = line[index + 1 : index + 1 + _NEXT]
            votes.update(other - position for other in later)
    return [period for period, _ in votes.most_common(_PERIODS)]


def _repeating(kinds: Sequence[int], period: int) -> Iterator[tuple[int, int, int]]:
    """Yield the longest ranges in which each kind comes again a period later."""
    begin = 0
    for position in range(period, len(kinds) + 1):
        if position == len(kinds) or kinds[position] != kinds[position - period]:
            if position - begin > period:
                yield begin, period, position - begin
            begin = position - period + 1
