"""How sizes and numbers of calls follow from a few sizes."""

from __future__ import annotations

import pytest

from magweld.artifact import StandIns
from magweld.graphs.size_relation import (
    SizeRelation,
    is_divided,
    offsets_between,
    relate,
)


def relation(
    *calls: tuple[tuple[tuple[int, ...], ...], tuple[object, ...]],
) -> SizeRelation:
    """Return the relation of some calls."""
    found = relate(calls)
    assert isinstance(found, SizeRelation), found
    return found


def test_equal_sizes_are_one() -> None:
    found = relation((((3, 8), (3, 4)), ()), (((5, 8), (5, 4)), ()))
    assert found.stand_ins == StandIns((37,))
    assert found.shapes == ((37, 8), (37, 4))
    assert found.sizes_of([(9, 8), (9, 4)], ()) == (9,)
    assert found.sizes_of([(9, 8), (7, 4)], ()) is None
    assert found.sizes_of([(9, 9), (9, 4)], ()) is None
    assert found.sizes_of([(9, 8)], ()) is None


def test_numbers_are_multiples_and_products() -> None:
    calls = [
        (((b, t, 8),), (b * t, b * 7, t, 0.5)) for b, t in ((2, 9), (3, 7), (5, 4))
    ]
    found = relation(*calls)
    first, second = found.stand_ins.numbers
    assert found.numbers == (first * second, 7 * first, second, 0.5)
    assert found.sizes_of([(4, 6, 8)], (24, 28, 6, 0.5)) == (4, 6)
    assert found.sizes_of([(4, 6, 8)], (25, 28, 6, 0.5)) is None
    assert found.sizes_of([(4, 6, 8)], (24, 28, 6, 1.5)) is None
    assert found.sizes_of([(4, 6, 8)], (24, 28, 6, 1)) is None


def test_an_extent_may_be_a_product() -> None:
    found = relation(
        *(((((b, t), (b * t, 8)), ())) for b, t in ((2, 9), (3, 7), (5, 4)))
    )
    assert len(found.stand_ins.numbers) == 2
    assert found.sizes_of([(4, 6), (24, 8)], ()) == (4, 6)


@pytest.mark.parametrize("size", [0, 1])
def test_sizes_that_no_graph_is_recorded_for(size: int) -> None:
    found = relation((((3, 8),), ()), (((5, 8),), ()))
    assert found.sizes_of([(size, 8)], ()) is None


def test_what_is_no_product_is_refused() -> None:
    calls = [(((n, 8),), (n + 1,)) for n in (3, 5)]
    assert relate(calls) == "a size or number is no product of other sizes"
    assert relate([(((3, 8),), (n,)) for n in (3, 5)]) == "no size of a tensor changes"
    assert relate([(((3, 8),), ()), (((3, 8, 1),), ())]) == (
        "the number of dimensions changes"
    )


def test_primes_are_apart_from_constants() -> None:
    # 37 and what pads may make of 36 or 70; 41 and 43 are near to multiples as well.
    found = relation((((3, 36, 70, 85),), ()), (((5, 36, 70, 85),), ()))
    (prime,) = found.stand_ins.numbers
    for constant in (36, 70, 85):
        rest = constant % prime
        assert constant < prime - 8 or 8 < rest < prime - 8
    other = relate([(((3, 8),), ()), (((5, 8),), ())], avoided=(37,))
    assert isinstance(other, SizeRelation)
    assert other.stand_ins.numbers != (37,)


def test_the_least_of_two_sizes_is_another_one_for_other_primes() -> None:
    calls = [(((b, 8), (t, 8), (b, t)), ()) for b, t in ((2, 90), (30, 7), (5, 4))]
    first = relation(*calls).stand_ins.numbers
    other = relate(calls, avoided=first)
    assert isinstance(other, SizeRelation)
    second = other.stand_ins.numbers
    assert first.index(min(first)) != second.index(min(second))
    assert not {*first} & {*second}


def test_what_stands_for_sizes_may_be_among_them() -> None:
    calls = [(((b, t, 8), (512, 8)), ()) for b, t in ((2, 500), (3, 509), (5, 30))]
    beyond = relate(calls)
    assert isinstance(beyond, SizeRelation)
    assert beyond.stand_ins.numbers[1] > 512
    first = relate(calls, is_within=True)
    assert isinstance(first, SizeRelation)
    second = relate(calls, first.stand_ins.numbers, is_within=True)
    assert isinstance(second, SizeRelation)
    for batch, length in (first.stand_ins.numbers, second.stand_ins.numbers):
        # Batches are too few to have a prime among them.
        assert batch >= 37
        assert 37 <= length <= 509
    orders = [one.stand_ins.numbers for one in (first, second)]
    assert [batch < length for batch, length in orders] == [True, False]
    assert not {*orders[0]} & {*orders[1]}
    few = [(((n, 8), (40, 8)), ()) for n in (3, 38)]
    assert relate(few, is_within=True) == "no primes are left"


def test_what_follows_from_a_size_is_among_the_sizes_too() -> None:
    calls = [(((t, 8),), ()) for t in (30, 100, 110)]
    found = relate(calls, offsets=((0, 1),), is_within=True)
    assert isinstance(found, SizeRelation)
    length, longer = found.stand_ins.numbers
    assert longer == length + 1
    assert longer <= 111


def test_a_size_may_be_another_one_and_a_constant() -> None:
    calls = [(((b, t, 8),), (t + 1,)) for b, t in ((2, 9), (3, 7), (5, 4))]
    plain = [(shapes, ()) for shapes, _ in calls]
    first = relation(*plain)
    second = relate(plain, avoided=first.stand_ins.numbers)
    assert isinstance(second, SizeRelation)
    pairs = [
        ([(b, t + 1, 8), (b, t * 8)], b, t)
        for b, t in (first.stand_ins.numbers, second.stand_ins.numbers)
    ]
    shapes = zip(pairs[0][0], pairs[1][0], strict=True)
    offsets = offsets_between(first, second, shapes)
    assert offsets == ((1, 1),)
    found = relate(calls, offsets=offsets)
    assert isinstance(found, SizeRelation)
    batch, length, longer = found.stand_ins.numbers
    assert (longer, found.numbers) == (length + 1, (length + 1,))
    assert found.sizes_of([(4, 6, 8)], (7,)) == (4, 6, 7)
    assert found.sizes_of([(4, 6, 8)], (6,)) is None
    at = found.stand_ins.at
    assert at(3 * longer * batch, (4, 6, 7)) == 84
    other = relate(calls, avoided=found.stand_ins.numbers, offsets=offsets)
    assert isinstance(other, SizeRelation)
    assert not {*other.stand_ins.numbers} & {*found.stand_ins.numbers}


def test_a_mask_is_longer_than_the_cache_by_a_token() -> None:
    calls = [(((b, t, 8), (b, t + 1)), (t + 3, b)) for b, t in ((2, 9), (3, 7), (5, 4))]
    found = relation(*calls)
    batch, length, longer, longest = found.stand_ins.numbers
    assert (longer, longest) == (length + 1, length + 3)
    assert found.shapes == ((batch, length, 8), (batch, longer))
    assert found.sizes_of([(4, 6, 8), (4, 7)], (9, 4)) == (4, 6, 7, 9)
    assert found.sizes_of([(4, 6, 8), (4, 6)], (9, 4)) is None
    other = relate(calls, avoided=found.stand_ins.numbers)
    assert isinstance(other, SizeRelation)
    # What the graph has of these is no further offset.
    shapes = zip(found.shapes, other.shapes, strict=True)
    assert offsets_between(found, other, shapes) == ()
    assert found.offsets == other.offsets == ((1, 1), (1, 3))


def test_two_calls_tell_of_no_offset() -> None:
    calls = [(((b, 8), (t, 8)), ()) for b, t in ((2, 9), (3, 10))]
    assert relation(*calls).offsets == ()
    assert relation(*calls, (((7, 8), (5, 8)), ())).offsets == ()
    assert relation(*calls, (((7, 8), (14, 8)), ())).offsets == ((0, 7),)


def test_a_chance_sum_is_no_offset() -> None:
    first = relation((((3, 8),), ()), (((5, 8),), ()))
    second = relate([(((3, 8),), ()), (((5, 8),), ())], avoided=first.stand_ins.numbers)
    assert isinstance(second, SizeRelation)
    (ours,), (theirs,) = first.stand_ins.numbers, second.stand_ins.numbers
    halves = [((ours // 2,), (theirs // 2,)), ((8, ours), (8, theirs))]
    assert offsets_between(first, second, halves) == ()
    far = [((ours + 500,), (theirs + 500,))]
    assert offsets_between(first, second, far) == ()


def test_sizes_may_be_counted_in_what_all_are_multiples_of() -> None:
    calls = [(((1, 3, n, n), (n // 4, 8)), (2 * n,)) for n in (64, 96, 112, 80)]
    found = relate(calls, in_units=True)
    assert isinstance(found, SizeRelation)
    (prime,) = found.stand_ins.numbers
    unit = 16 * prime
    assert found.shapes == ((1, 3, unit, unit), (4 * prime, 8))
    assert found.numbers == (2 * unit,)
    assert found.sizes_of([(1, 3, 48, 48), (12, 8)], (96,)) == (3,)
    assert found.sizes_of([(1, 3, 40, 40), (10, 8)], (80,)) is None
    assert found.extents_at((5,)) == (80,)
    assert relation(*calls).extents_at((5,)) == (5,)
    odd = [(((n, 8),), ()) for n in (3, 5)]
    assert relate(odd, in_units=True) == "the sizes have no units"
    longer = relate(calls, offsets=((0, 1),), in_units=True)
    assert longer == "the sizes have no units"


def test_what_windows_make_of_an_image_is_divided() -> None:
    sizes = (160, 200, 225, 317, 61, 37)

    def halved(size: int) -> int:
        return (size - 1) // 2 + 1

    assert is_divided(sizes, [n - 4 for n in sizes])
    assert is_divided(sizes, [halved(n) for n in sizes])
    assert is_divided(sizes, [halved(halved(n) - 2) for n in sizes])
    assert not is_divided(sizes, [3 * n for n in sizes])
    assert not is_divided(sizes, [min(n, 150) for n in sizes])
    assert not is_divided(sizes, [halved(n) + n % 5 for n in sizes])


def test_extents_follow_from_sizes() -> None:
    stand_ins = StandIns((37, 41))
    assert stand_ins.at(37 * 41 * 3, (5, 7)) == 105
    assert stand_ins.at(37 * 37, (5, 7)) == 25
    assert stand_ins.at(64, (5, 7)) == 64
    assert stand_ins.at(37, (37 * 2, 7)) == 74
    assert stand_ins.at(0, (5, 7)) == 0
    assert not stand_ins.is_runtime(0)
    assert not stand_ins.is_runtime(64)


def test_inner_extents_depend_on_sizes_as_no_product() -> None:
    stand_ins = StandIns((37, 41), inner=(19,))
    assert [stand_ins.depends(n) for n in (37, 82, 19, 38, 64)] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert not stand_ins.is_runtime(19)
    assert (stand_ins.told(74), stand_ins.told(19), stand_ins.told(64)) == (37, 19, 1)
