"""Owns how the sizes and numbers of the calls of one graph follow from a few sizes."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from magweld.artifact import StandIns

# Primes are at least this: small ones divide many extents.
_LEAST: Final = 37
# What pads add to an extent at most: a constant extent is no nearer to a multiple of a
# prime, so that none becomes one.
_MARGIN: Final = 8
# The primes tried are below this many times the largest size.
_FURTHEST: Final = 64

# The largest constant that is added to a size.
_MOST_ADDED: Final = 64
# A size plus a constant is at most this multiple of a prime.
_MOST_FACTOR: Final = 8
# Sizes that follow from others, of one graph.
_MOST_OFFSETS: Final = 4
# What an extent may be divided by on its way through the windows of a graph.
_DIVISORS: Final = tuple(1 << power for power in range(7))
# Values that were seen of a size before it is another one plus a constant: those of two
# sizes may be as far apart in two calls by chance.
_FEWEST_SEEN: Final = 3

# Graphs are recorded for sizes from two on: see `symbolic`.
LEAST: Final = 2

Shapes = tuple[tuple[int, ...], ...]
Offsets = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SizeRelation:
    """Shapes and numbers as functions of a few sizes.

    Each extent and number is a constant, or a constant times a product of sizes, and
    written with the primes that stand for the sizes. A size plus a constant, as a cache
    has that grows, is a size as well, and what stands for it follows from the prime.

    Attributes:
        shapes: Of the tensors.
        numbers: Beside them.
        stand_ins: What stands for the sizes, those that follow from others at the end.
        places: For each other size a tensor and a dimension that is the size.
        offsets: For each size that follows from another one the number of that one, and
            what is added to it.
        units: For each place what the extent is a multiple of, in which its size is
            counted; ones if there are none.
        least: What each size is at least.
    """

    shapes: Shapes
    numbers: tuple[Any, ...]
    stand_ins: StandIns
    places: tuple[tuple[int, int], ...]
    offsets: Offsets = ()
    units: tuple[int, ...] = ()
    least: int = LEAST

    def sizes_of(
        self, shapes: Sequence[Sequence[int]], numbers: Sequence[Any]
    ) -> tuple[int, ...] | None:
        """Return the sizes that shapes and numbers follow from, None if from none."""
        sizes = self.sizes_at(shapes)
        if sizes is None or len(numbers) != len(self.numbers):
            return None
        same = all(map(_is_same, self.numbers_at(sizes), numbers))
        return sizes if same else None

    def sizes_at(self, shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
        """Return the sizes that shapes follow from, None if from none."""
        if len(shapes) != len(self.shapes):
            return None
        for shape, form in zip(shapes, self.shapes, strict=True):
            if len(shape) != len(form):
                return None
        # What is no multiple of its unit has other shapes.
        told = [
            shapes[tensor][dim] // unit
            for (tensor, dim), unit in zip(self.places, self._units, strict=True)
        ]
        sizes = (*told, *(told[number] + added for number, added in self.offsets))
        if min(sizes) < self.least:
            return None
        same = self.shapes_at(sizes) == tuple(map(tuple, shapes))
        return sizes if same else None

    def shapes_at(self, sizes: Sequence[int]) -> Shapes:
        """Return the shapes for some sizes."""
        return _shapes_at(self, tuple(sizes))

    def numbers_at(self, sizes: Sequence[int]) -> tuple[Any, ...]:
        """Return the numbers for some sizes."""
        at = self.stand_ins.at
        return tuple(at(n, sizes) if type(n) is int else n for n in self.numbers)

    def extents_at(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the extents at the places for some sizes."""
        counted = zip(sizes, self._units, strict=False)
        return tuple(size * unit for size, unit in counted)

    @property
    def _units(self) -> tuple[int, ...]:
        return self.units or (1,) * len(self.places)

    @functools.cached_property
    def runtime_tensors(self) -> tuple[int, ...]:
        """The numbers of the tensors whose shapes depend on the sizes."""
        is_runtime = self.stand_ins.is_runtime
        return tuple(n for n, s in enumerate(self.shapes) if any(map(is_runtime, s)))


@functools.lru_cache(maxsize=256)
def _shapes_at(relation: SizeRelation, sizes: tuple[int, ...]) -> Shapes:
    at = relation.stand_ins.at
    return tuple(tuple(at(n, sizes) for n in shape) for shape in relation.shapes)


def _is_same(ours: Any, theirs: Any) -> bool:
    return type(ours) is type(theirs) and repr(ours) == repr(theirs)


def relate(
    calls: Sequence[tuple[Shapes, tuple[Any, ...]]],
    avoided: Sequence[int] = (),
    offsets: Offsets = (),
    *,
    is_within: bool = False,
    in_units: bool = False,
) -> SizeRelation | str:
    """Return how the sizes of some calls depend on a few, or why they do not.

    What is found holds for these calls; whether it does for another one is what
    `SizeRelation.sizes_of` tells.

    Args:
        calls: Shapes and numbers of calls that differ in sizes; two at least.
        avoided: The numbers that stand for the same sizes in another relation.
        offsets: Sizes that follow from others, see `SizeRelation.offsets`, beside those
            that are sizes or numbers of the calls.
        is_within: Whether what stands for a size is no larger than those of the calls,
            where they are large enough; else it is no smaller than the largest.
        in_units: Whether sizes are counted in what all that were seen are multiples of:
            a graph may be none for others, as one that halves an image and doubles it.
    """
    shapes = [shapes for shapes, _ in calls]
    if len({tuple(map(len, one)) for one in shapes}) > 1:
        return "the number of dimensions changes"
    dims = {
        (tensor, dim): tuple(one[tensor][dim] for one in shapes)
        for tensor, shape in enumerate(shapes[0])
        for dim in range(len(shape))
    }
    numbers = list(zip(*(found for _, found in calls), strict=True))
    changing = {place: seen for place, seen in dims.items() if len(set(seen)) > 1}
    places: dict[tuple[int, ...], tuple[int, int]] = {}
    for place, seen in changing.items():
        places.setdefault(seen, place)
    # A size that is a multiple of another one may be so by chance.
    symbols = [
        one
        for one in places
        if _product(one, [o for o in places if o != one], least=2) is None
    ]
    constants = [seen[0] for place, seen in dims.items() if place not in changing]
    constants += [seen[0] for seen in numbers if type(seen[0]) is int]
    if not symbols:
        return "no size of a tensor changes"
    symbols, following = _based(symbols, numbers)
    offsets = tuple(dict.fromkeys((*following, *offsets)))
    counted = _counted(symbols, in_units=in_units)
    if in_units and (offsets or max(counted.values()) == 1):
        return "the sizes have no units"
    found = tuple(
        places[tuple(size * unit for size in seen)] for seen, unit in counted.items()
    )
    symbols = list(counted)
    chosen = _stand_ins(symbols, constants, avoided, offsets, is_within=is_within)
    if chosen is None:
        return "no primes are left"
    stand_ins = StandIns(tuple(chosen))
    told = [
        *symbols,
        *(tuple(n + added for n in symbols[number]) for number, added in offsets),
    ]
    extents = {place: _written(seen, told, chosen) for place, seen in dims.items()}
    written = [_written(seen, told, chosen) for seen in numbers]
    if None in extents.values() or None in written:
        return "a size or number is no product of other sizes"
    formed = tuple(
        tuple(extents[tensor, dim] for dim in range(len(shape)))
        for tensor, shape in enumerate(shapes[0])
    )
    units = tuple(counted.values())
    return SizeRelation(formed, tuple(written), stand_ins, found, offsets, units)


def relate_twice(
    calls: Sequence[tuple[Shapes, tuple[Any, ...]]],
    offsets: Offsets = (),
    *,
    is_within: bool = False,
    in_units: bool = False,
) -> tuple[SizeRelation, SizeRelation] | str:
    """Return a relation with two sets of numbers for sizes, or why there is none.

    What differs between graphs for the two sets depends on sizes; see `relate`.
    """
    related = functools.partial(relate, is_within=is_within, in_units=in_units)
    relation = related(calls, offsets=offsets)
    if isinstance(relation, str):
        return relation
    other = related(calls, relation.stand_ins.numbers, offsets)
    return other if isinstance(other, str) else (relation, other)


def offsets_between(
    first: SizeRelation,
    second: SizeRelation,
    shapes: Iterable[tuple[Sequence[int], Sequence[int]]],
) -> Offsets:
    """Return which extents of a graph are a size and a constant.

    Args:
        first: A relation.
        second: The same sizes with other numbers that stand for them.
        shapes: Those of each tensor of the graph, for the numbers of both.
    """
    ours, theirs = first.stand_ins, second.stand_ins
    found: dict[tuple[int, int], None] = {}
    for one, other in shapes:
        for extent, twin in zip(one, other, strict=False):
            if extent == twin or ours.at(extent, theirs.numbers) == twin:
                continue
            pairs = zip(ours.numbers, theirs.numbers, strict=True)
            bases = itertools.islice(pairs, len(first.places))
            for number, (prime, second_prime) in enumerate(bases):
                added = extent - prime
                if added == twin - second_prime and abs(added) <= _MOST_ADDED:
                    found.setdefault((number, added))
    return tuple(found) if len(found) <= _MOST_OFFSETS else ()


def _counted(
    symbols: Sequence[tuple[int, ...]], *, in_units: bool
) -> dict[tuple[int, ...], int]:
    """Return sizes counted in units, one of each call, with their units."""
    found: dict[tuple[int, ...], int] = {}
    for seen in symbols:
        unit = math.gcd(*seen) if in_units else 1
        found.setdefault(tuple(size // unit for size in seen), unit)
    return found


def is_divided(sizes: Sequence[int], extents: Sequence[int]) -> bool:
    """Return whether extents may be sizes and a constant, divided and rounded down.

    What windows with steps make of an image is of this form, however many follow each
    other.

    Args:
        sizes: Some sizes.
        extents: What was made for each.
    """
    for divisor in _DIVISORS:
        pairs = [e * divisor - s for s, e in zip(sizes, extents, strict=True)]
        # Each is at most the constant, which is less than a divisor more.
        if max(pairs) < min(pairs) + divisor:
            return True
    return False


def _based(
    symbols: Sequence[tuple[int, ...]], numbers: Sequence[tuple[Any, ...]]
) -> tuple[list[tuple[int, ...]], Offsets]:
    """Return the sizes that follow from no other one, and those that do.

    These are a size and a constant, as the mask of a cache and a token more is.

    Args:
        symbols: Sizes of tensors, one of each call.
        numbers: Beside them.
    """
    bases: list[tuple[int, ...]] = []
    for symbol in symbols:
        if _offset(symbol, bases) is None:
            bases.append(symbol)
    others = [
        seen
        for seen in numbers
        if all(type(n) is int for n in seen) and _product(seen, bases) is None
    ]
    found = (_offset(seen, bases) for seen in (*symbols, *others))
    return bases, tuple(offset for offset in found if offset is not None)


def _offset(
    seen: tuple[int, ...], bases: Sequence[tuple[int, ...]]
) -> tuple[int, int] | None:
    """Return the number of the size, and the constant, that seen numbers are."""
    if len(set(seen)) < _FEWEST_SEEN:
        return None
    for number, base in enumerate(bases):
        added = {n - size for n, size in zip(seen, base, strict=True)}
        if len(added) == 1 and 0 < abs(min(added)) <= _MOST_ADDED:
            return number, added.pop()
    return None


def _written(
    seen: Sequence[Any], symbols: Sequence[tuple[int, ...]], primes: Sequence[int]
) -> Any:
    """Return a number with primes for sizes, None if it is no product of these."""
    if all(_is_same(seen[0], other) for other in seen):
        return seen[0]
    if any(type(number) is not int for number in seen):
        return None
    found = _product(seen, symbols)
    if found is None:
        return None
    factor, used = found
    return factor * math.prod(primes[symbols.index(symbol)] for symbol in used)


def _product(
    seen: Sequence[int], symbols: Sequence[tuple[int, ...]], least: int = 1
) -> tuple[int, tuple[tuple[int, ...], ...]] | None:
    """Return a factor and the symbols that seen numbers are products of, if they are.

    Args:
        seen: One number a call.
        symbols: Sizes that it may be a product of, two at most.
        least: How many of these at least.
    """
    for count in range(least, 3):
        for used in itertools.combinations_with_replacement(symbols, count):
            products = [math.prod(sizes) for sizes in zip(*used, strict=True)]
            factors = {
                number // product if product and number % product == 0 else 0
                for number, product in zip(seen, products, strict=True)
            }
            if len(factors) == 1 and 0 not in factors:
                return factors.pop(), used
    return None


def _stand_ins(
    symbols: Sequence[tuple[int, ...]],
    constants: Sequence[int],
    avoided: Sequence[int],
    offsets: Offsets,
    *,
    is_within: bool,
) -> list[int] | None:
    """Return a prime for each symbol, none near to a divisor of a constant.

    They rise with the numbers of the symbols; beside `avoided` ones in the order that
    is the reverse of theirs. What is the least of two sizes is another one then. What
    stands for a size that follows from another one comes behind them.
    """
    order = list(range(len(symbols)))
    if avoided:
        order.sort(key=lambda number: -avoided[number])
    if is_within:
        order.reverse()
    found: dict[int, int] = {}
    taken: list[int] = []
    for number in order:
        added = [0, *(more for base, more in offsets if base == number)]
        tried = _candidates(symbols, number, taken, added, is_within=is_within)
        prime = next(
            (
                p
                for p in filter(_is_prime, tried)
                if _may_stand([p + more for more in added], taken, constants, avoided)
            ),
            None,
        )
        if prime is None:
            return None
        found[number] = prime
        taken += [prime + more for more in added]
    primes = [found[number] for number in range(len(symbols))]
    return [*primes, *(primes[number] + more for number, more in offsets)]


def _candidates(
    symbols: Sequence[tuple[int, ...]],
    number: int,
    taken: Sequence[int],
    added: Sequence[int],
    *,
    is_within: bool,
) -> range:
    """Return the numbers to try for a symbol, from the best one on.

    Args:
        symbols: The sizes that were seen of each.
        number: Of the symbol.
        taken: What stands for others: less than this one, or more if `is_within`.
        added: What is added to the size in others that follow from it, and 0.
        is_within: Whether no size may be larger than those that were seen. Where these
            are too small for that, any number will do.
    """
    seen = symbols[number]
    if not is_within:
        least = max(_LEAST, *seen, *(n + 1 for n in taken)) - min(added)
        return range(least, _FURTHEST * least)
    below = [n - 1 - max(added) for n in taken]
    if max(seen) >= _LEAST:
        return range(min([max(seen), *below]), _LEAST - 1, -1)
    if below:
        return range(_LEAST, min(below) + 1)
    least = max(_LEAST, *(max(sizes) + 1 for sizes in symbols))
    return range(least, _FURTHEST * least)


def _may_stand(
    numbers: Sequence[int],
    taken: Sequence[int],
    constants: Sequence[int],
    avoided: Sequence[int],
) -> bool:
    """Whether numbers may stand for sizes: each has a large prime of its own."""
    primes = [_large_factor(number) for number in numbers]
    others = [_large_factor(number) for number in taken]
    if not all(primes) or len({*primes, *others}) < len(primes) + len(others):
        return False
    is_free = not any(number in avoided for number in numbers)
    return is_free and not any(_is_near(n, p) for n in constants for p in primes)


def _large_factor(number: int) -> int:
    """Return the prime that a number is a few times, 0 if that is small or none."""
    for factor in range(1, _MOST_FACTOR + 1):
        prime, rest = divmod(number, factor)
        if not rest and prime >= _LEAST and _is_prime(prime):
            return prime
    return 0


def _is_near(constant: int, prime: int) -> bool:
    rest = constant % prime
    return constant >= prime - _MARGIN and min(rest, prime - rest) <= _MARGIN


def _is_prime(number: int) -> bool:
    return all(number % d for d in range(2, math.isqrt(number) + 1))
