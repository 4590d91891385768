"""Which dimensions of a group can be streamed, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import access, chain, device, elementwise, loops, matmul

from magweld.passes.tiling.cost import cost
from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.policy import schedule
from magweld.passes.tiling.propagation import Refusal, Tiles, propagate
from magweld.passes.tiling.regions import (
    STREAM,
    BodyForm,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.stream import Blocks, Rescaling, Stream
from magweld.passes.tiling.streaming import streams
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets.device import LevelKind

QUERIES, KEYS, SIZE = 64, 1024, 32
SCORES = (QUERIES, KEYS)
WHOLE = loops(0, 1)


def product(name: str, m: int, n: int, k: int) -> OperatorModel:
    return replace(matmul(name, m, n, k), form=BodyForm.SUM)


def pointwise(name: str, reads: int, form: BodyForm = BodyForm.OTHER) -> OperatorModel:
    """An operator on the scores; a second operand has one value for every row."""
    operands = [access(0, SCORES, WHOLE), access(1, (QUERIES,), loops(0))]
    return replace(elementwise(name, SCORES, operands[:reads]), form=form)


def row(name: str, form: BodyForm) -> OperatorModel:
    return OperatorModel(
        name=name,
        kind=OperatorKind.REDUCTION,
        extents=SCORES,
        parallel=(0,),
        reads=(access(0, SCORES, WHOLE),),
        writes=(access(0, (QUERIES,), loops(0)),),
        flops=1,
        form=form,
    )


def softmax(
    *,
    subtracted: BodyForm = BodyForm.MAXIMUM,
    exponential: BodyForm = BodyForm.EXPONENTIAL,
    of: int = 0,
) -> Group:
    """Scores, maximum, difference, exponential, and the product with the values.

    Args:
        subtracted: What is taken of the rows.
        exponential: What is done to the difference.
        of: The node whose rows these are.
    """
    nodes = (
        product("scores", QUERIES, KEYS, SIZE),
        pointwise("other", 1),
        row("rows", subtracted),
        pointwise("difference", 2, BodyForm.DIFFERENCE),
        pointwise("weights", 1, exponential),
        product("values", QUERIES, SIZE, KEYS),
    )
    sources = (
        (Source(None, 0), Source(None, 1)),
        (Source(0, 2),),
        (Source(of, 2 + of),),
        (Source(0, 2), Source(2, 4)),
        (Source(3, 5),),
        (Source(4, 6), Source(None, 7)),
    )
    return Group(nodes, sources)


def only(group: Group) -> Stream | Refusal:
    (found,) = streams(group)
    return found


def test_a_product_is_streamed_along_the_next_ones_reduction() -> None:
    first = product("first", 64, 1024, 32)
    found = only(chain(first, product("second", 64, 32, 1024)))
    assert found == Stream(extent=1024, loops=(1, 2))


def test_either_operand_of_a_product_is_streamed() -> None:
    first = product("first", 1024, 32, 64)
    second = replace(
        product("second", 64, 32, 1024),
        reads=(
            access(0, (1024, 32), loops(2, 1)),
            access(1, (64, 1024), loops(0, 2)),
        ),
    )
    assert only(chain(first, second)) == Stream(extent=1024, loops=(0, 2))


def test_what_is_stored_whole_is_not_streamed() -> None:
    first = product("first", 64, 1024, 32)
    group = chain(first, product("second", 64, 32, 1024))
    assert streams(replace(group, outputs=((0, 0),))) == ()


def test_values_in_registers_need_no_stream() -> None:
    assert streams(chain(pointwise("square", 1), row("sum", BodyForm.SUM))) == ()


def test_a_dimension_that_one_operator_knows_twice() -> None:
    twice = replace(
        elementwise("twice", (64, 64), [access(0, (64, 64), loops(0, 1))]),
        reads=(access(0, (64, 64), loops(0, 1)), access(1, (64, 64), loops(1, 0))),
    )
    reads = (access(0, (64, 64), loops(0, 1)),)
    total = OperatorModel(
        name="total",
        kind=OperatorKind.REDUCTION,
        extents=(64, 64),
        parallel=(),
        reads=reads,
        writes=(access(0, (), ()),),
        flops=1,
        form=BodyForm.SUM,
    )
    first = product("first", 64, 64, 8)
    sources = (
        (Source(None, 0), Source(None, 1)),
        (Source(0, 2), Source(0, 2)),
        (Source(1, 3),),
    )
    assert streams(Group((first, twice, total), sources)) == ()


def test_exponentials_are_rescaled() -> None:
    group = softmax()
    group = Group(
        tuple(n for n in group.nodes if n.name != "other"),
        (
            group.sources[0],
            (Source(0, 2),),
            (Source(0, 2), Source(1, 4)),
            (Source(2, 5),),
            (Source(3, 6), Source(None, 7)),
        ),
    )
    found = only(group)
    assert isinstance(found, Stream)
    assert found.loops == (1, 1, 1, 1, 2)
    assert found.differences == ((2, 1),)
    assert found.rescaled == ((4, Rescaling(maximum=1, reference=1, rows=(0,))),)
    assert found.accumulators(group) == (1, 4)


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (softmax(subtracted=BodyForm.SUM), "difference needs rows whole"),
        (softmax(exponential=BodyForm.OTHER), "weights needs an exponential whole"),
        (softmax(of=1), "difference needs rows whole"),
    ],
)
def test_anything_else_is_needed_whole(group: Group, text: str) -> None:
    assert only(group) == Refusal("needs-whole", text)


def test_blocks_move_along_the_stream() -> None:
    group = chain(product("first", 64, 1000, 32), product("second", 64, 32, 1000))
    stream = only(group)
    assert isinstance(stream, Stream)
    tiles = propagate(group, (16, 32), Blocks(stream, 128))
    assert isinstance(tiles, Tiles)
    rows, block, inner = tiles.boxes[0]
    assert (rows.size, block.size, inner.size) == (16, 128, 32)
    assert block.offset == LinearIndex(((STREAM, 1),))
    assert (tiles.times(0), tiles.parts[0].points) == (8, 16 * 1000 * 32)
    assert tiles.recompute == 1.0


def test_a_stream_needs_less_memory_and_reads_its_operands_again() -> None:
    group = chain(product("first", 64, 1024, 32), product("second", 64, 32, 1024))
    stream, toy = only(group), device()
    assert isinstance(stream, Stream)
    level = toy.levels[1]
    prices = {}
    for size in (64, 1024):
        tiles = propagate(group, (16, 32), Blocks(stream, size))
        assert isinstance(tiles, Tiles)
        prices[size] = cost(group, tiles, toy, level, 32)
    assert prices[64].footprint < prices[1024].footprint
    # The rows of the first operand stay; both others are read once for every tile.
    reads = 64 * 32 + 4 * (32 * 1024 + 1024 * 32)
    assert prices[64].traffic == prices[1024].traffic == (reads + 64 * 32) * 4


def test_tiles_in_explicit_memory_are_not_streamed() -> None:
    group = chain(product("first", 64, 65536, 32), product("second", 64, 32, 65536))
    plan = schedule(group, device())
    assert isinstance(plan, Plan)
    assert plan.tiles.blocks is not None
    staged = schedule(group, device(kind=LevelKind.EXPLICIT))
    assert isinstance(staged, Refusal) or staged.tiles.blocks is None
