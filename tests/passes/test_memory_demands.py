"""The parts of operands that parts of results need, against counting elements."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from magweld.passes.memory.boxes import Box, grid, hull, relative, volume, whole
from magweld.passes.memory.demands import (
    Concat,
    Demand,
    Nest,
    Pad,
    Part,
    Regroup,
    Slice,
    Window,
    padding,
    paddings,
)
from magweld.passes.tiling.regions import LinearIndex


def positions(box: Box) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(low, high) for low, high in box)))


def bounds(found: list[tuple[int, ...]]) -> Box:
    """Return the least box around positions."""
    columns = list(zip(*found, strict=True))
    return tuple((min(column), max(column) + 1) for column in columns)


def some_box(shape: tuple[int, ...], chance: random.Random) -> Box:
    spans = []
    for extent in shape:
        low = chance.randrange(extent)
        spans.append((low, chance.randrange(low, extent) + 1))
    return tuple(spans)


def window(
    stride: int, dilation: int, taps: int, extent: int, pad: int
) -> tuple[Nest, int]:
    """Return a convolution along one dimension, and the extent of its result."""
    out = (extent + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
    index = LinearIndex(((0, stride), (1, dilation)), -pad)
    operand = Window(0, (extent,), (index,))
    return Nest((out, taps), (0,), (operand,), 1), out


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pad", [0, 1, 2])
def test_a_window_needs_what_its_taps_touch(
    stride: int, dilation: int, pad: int
) -> None:
    extent, taps = 13, 3
    nest, out = window(stride, dilation, taps, extent, pad)
    for low, high in itertools.combinations(range(out + 1), 2):
        touched = [
            stride * at + dilation * tap - pad
            for at in range(low, high)
            for tap in range(taps)
        ]
        inside = (max(0, min(touched)), min(extent, max(touched) + 1))
        demand = nest.demand(((low, high),))
        assert demand is not None
        assert demand.needs == ((inside,),)
        (sides, _) = paddings(nest, ((low, high),), demand)
        assert sides == ((max(0, -min(touched)),), (max(0, max(touched) + 1 - extent),))


def test_a_part_that_is_padding_alone_has_no_rule() -> None:
    nest, _ = window(1, 1, 1, extent=4, pad=3)
    assert nest.demand(((0, 2),)) is None
    assert Pad((4,), (3,)).demand(((0, 2),)) is None


def test_operands_that_values_select_are_needed_whole() -> None:
    nest = Nest((8,), (0,), (), 1, whole_shapes=((0, (5, 7)),))
    demand = nest.demand(((2, 3),))
    assert demand is not None
    assert demand.needs == (((0, 5), (0, 7)),)


def test_one_operand_read_twice_is_needed_once_around_both() -> None:
    at = LinearIndex(((0, 1),))
    later = LinearIndex(((0, 1),), 3)
    windows = tuple(Window(0, (12,), (index,)) for index in (at, later))
    demand = Nest((8,), (0,), windows, 1).demand(((2, 4),))
    assert demand is not None
    assert demand.needs == (((2, 7),),)


@pytest.mark.parametrize("seed", range(20))
def test_pads(seed: int) -> None:
    chance = random.Random(seed)
    shape = (chance.randrange(1, 5), chance.randrange(1, 5))
    low, high = ([chance.randrange(3) for _ in shape] for _ in range(2))
    padded = np.pad(np.ones(shape), list(zip(low, high, strict=True)))
    box = some_box(padded.shape, chance)
    rule = Pad(shape, tuple(low))
    demand = rule.demand(box)
    part = padded[tuple(slice(*span) for span in box)]
    if demand is None:
        assert not part.any()
        return
    (need,) = demand.needs
    assert need is not None
    front, behind = padding(box, rule.low, rule.shape)
    inner = np.ones([end - start for start, end in need])
    again = np.pad(inner, list(zip(front, behind, strict=True)))
    np.testing.assert_array_equal(part, again)


def _check_slices_of_one(whole: np.ndarray, dim: int, chance: random.Random) -> None:
    """Slices of one operand behind one another: a box around what each takes."""
    places = [chance.randrange(whole.shape[dim] - 1) for _ in range(2)]
    slices = [np.take(whole, [place, place + 1], dim) for place in places]
    offsets = [tuple(p if d == dim else 0 for d in range(2)) for p in places]
    parts = tuple(Part(0, 2, Slice(begin, (1, 1), (0, 1))) for begin in offsets)
    rule = Concat(dim, parts, 1)
    joined = np.concatenate(slices, dim)
    box = some_box(joined.shape, chance)
    demand = rule.demand(box)
    assert demand is not None
    (need,) = demand.needs
    regions = [part.box(inside) for part, inside in rule.inside(box)]
    assert need is not None
    for (low, high), *spans in zip(need, *regions, strict=True):
        assert low == min(first for first, _ in spans)
        assert high == max(last for _, last in spans)
    taken = [whole[tuple(slice(*span) for span in region)] for region in regions]
    expected = joined[tuple(slice(*span) for span in box)]
    np.testing.assert_array_equal(np.concatenate(taken, dim), expected)


@pytest.mark.parametrize("seed", range(20))
def test_joins_and_slices(seed: int) -> None:
    chance = random.Random(seed)
    shape, dim = (4, 5), chance.randrange(2)
    parts = [np.arange(20).reshape(shape) + 100 * i for i in range(3)]
    joined = np.concatenate(parts, dim)
    box = some_box(joined.shape, chance)
    each = tuple(Part(number, shape[dim]) for number in range(3))
    demand = Concat(dim, each, 3).demand(box)
    assert demand is not None
    taken = [
        part[tuple(slice(*span) for span in need)]
        for part, need in zip(parts, demand.needs, strict=True)
        if need is not None
    ]
    expected = joined[tuple(slice(*span) for span in box)]
    np.testing.assert_array_equal(np.concatenate(taken, dim), expected)
    _check_slices_of_one(parts[0], dim, chance)
    # A row of a slice that drops a dimension.
    rule = Slice((1, 2), (1, 1), (1,))
    sliced = rule.demand(((1, 3),))
    assert sliced is not None
    assert sliced.needs == (((1, 2), (3, 5)),)


@pytest.mark.parametrize("expands", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_reshapes(seed: int, expands: bool) -> None:
    """What is made holds what is asked for, of the elements that are needed."""
    chance = random.Random(seed)
    larger = tuple(chance.randrange(1, 4) for _ in range(4))
    groups = ((0,), (1, 2, 3)) if seed % 2 else ((0, 1), (2, 3))
    smaller = tuple(int(np.prod([larger[d] for d in group])) for group in groups)
    rule = Regroup(groups, larger, expands)
    source, result = (smaller, larger) if expands else (larger, smaller)
    numbers = np.arange(np.prod(larger))
    box = some_box(result, chance)
    demand = rule.demand(box)
    assert demand is not None
    (need,) = demand.needs
    assert need is not None
    assert hull(box, demand.made) == demand.made
    part = numbers.reshape(source)[tuple(slice(*span) for span in need)]
    made = numbers.reshape(result)[tuple(slice(*span) for span in demand.made)]
    np.testing.assert_array_equal(part.reshape(made.shape), made)
    again = rule.demand(demand.made)
    assert again == demand


def test_reshapes_of_one_element() -> None:
    """A tensor without dimensions has one element, which no group speaks of."""
    one = ((0, 1), (0, 1))
    assert Regroup((), (1, 1), expands=True).demand(one) == Demand(one, ((),))
    assert Regroup((), (1, 1), expands=False).demand(()) == Demand((), (one,))


def test_tiles_of_a_grid_make_up_the_tensor() -> None:
    boxes = grid((5, 7), (2, 3))
    assert len(boxes) == 9
    assert sorted(p for box in boxes for p in positions(box)) == positions(
        whole((5, 7))
    )
    assert boxes[-1] == ((4, 5), (6, 7))
    assert volume(boxes[-1]) == 1
    assert relative(boxes[-1], ((3, 5), (5, 7))) == ((1, 2), (1, 2))
    assert bounds(positions(boxes[4])) == boxes[4]
