"""Which operators of a group run as one loop nest, and what they overwrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from operator_models import access, elementwise, loops, matmul, row_reduction

from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.regions import Access, LinearIndex, OperatorModel

ROWS, COLUMNS = 64, 32
SHAPE = (ROWS, COLUMNS)
WHOLE = access(0, SHAPE, loops(0, 1))
TURNED = access(0, (COLUMNS, ROWS), loops(1, 0))
ROW = access(1, (ROWS,), loops(0))


def node(*reads: Access, cheap: tuple[int, ...] = ()) -> OperatorModel:
    return replace(elementwise("node", SHAPE, reads), cheap=cheap)


def square_sum() -> OperatorModel:
    return replace(row_reduction("sum", ROWS, COLUMNS), reads=(WHOLE, WHOLE))


def group_of(
    nodes: Sequence[OperatorModel],
    makers: Sequence[Sequence[int | str]],
    outputs: tuple[tuple[int, int], ...] = (),
) -> Group:
    """Return a group; of each read the node that makes it, or a tensor's name."""
    names = [name for row in makers for name in row if isinstance(name, str)]
    numbers = {name: len(nodes) + i for i, name in enumerate(dict.fromkeys(names))}
    sources = tuple(
        tuple(
            Source(None, numbers[maker])
            if isinstance(maker, str)
            else Source(maker, maker)
            for maker in row
        )
        for row in makers
    )
    return Group(tuple(nodes), sources, outputs)


def fused(group: Group) -> list[int]:
    return [i for i in range(len(group.nodes)) if group.stays_in_registers(i)]


def test_a_diamond_is_one_nest() -> None:
    group = group_of(
        [node(WHOLE), node(WHOLE), node(WHOLE, WHOLE)], [["x"], [0], [0, 1]]
    )
    assert fused(group) == [0, 1]
    assert group.nests().members == {2: (0, 1, 2)}


def test_an_element_that_is_wanted_at_two_places_is_a_tile() -> None:
    square = replace(elementwise("sum", (ROWS, ROWS), []), reads=())
    square = replace(
        square,
        reads=(
            access(0, (ROWS, ROWS), loops(0, 1)),
            access(0, (ROWS, ROWS), loops(1, 0)),
        ),
    )
    maker = elementwise("exp", (ROWS, ROWS), [access(0, (ROWS, ROWS), loops(0, 1))])
    assert fused(group_of([maker, square], [["x"], [0, 0]])) == []


def test_a_transposed_reader_computes_what_it_reads() -> None:
    maker = elementwise(
        "exp", (COLUMNS, ROWS), [access(0, (COLUMNS, ROWS), loops(0, 1))]
    )
    group = group_of([maker, node(TURNED)], [["x"], [0]])
    assert fused(group) == [0]
    assert group.nests().loops[0] == {1: loops(1, 0)}


@pytest.mark.parametrize(
    ("outputs", "reader"),
    [
        (((0, 0),), node(WHOLE)),
        ((), replace(node(WHOLE), reads=(replace(WHOLE, gathered=True),))),
        ((), replace(node(WHOLE), reads=(replace(WHOLE, border=((1, 1), (1, 1))),))),
        ((), replace(node(WHOLE), reads=(replace(WHOLE, part=(8, 8)),))),
        ((), matmul("product", ROWS, ROWS, COLUMNS)),
    ],
)
def test_what_others_want_as_a_tile_is_one(
    outputs: tuple[tuple[int, int], ...], reader: OperatorModel
) -> None:
    makers: list[int | str] = [0, "y"]
    group = group_of(
        [node(WHOLE), reader], [["x"], makers[: len(reader.reads)]], outputs
    )
    assert fused(group) == []


def test_what_reads_its_own_result_is_a_tile() -> None:
    maker = replace(node(WHOLE), reads_results=True)
    assert fused(group_of([maker, node(WHOLE)], [["x"], [0]])) == []


def norm(centred: OperatorModel) -> Group:
    """x - mean, the sum of its squares, and a product of both."""
    return group_of(
        [centred, square_sum(), node(WHOLE, ROW)], [["x", "mean"], [0, 0], [0, 1]]
    )


def test_a_subtraction_is_made_again_for_each_nest() -> None:
    group = norm(node(WHOLE, ROW, cheap=(1, 1)))
    assert fused(group) == [0]
    assert group.nests().members == {1: (0, 1), 2: (0, 2)}


@pytest.mark.parametrize(
    "centred",
    [
        node(WHOLE, ROW, cheap=(0, 1)),  # a function of the tensor
        node(WHOLE, ROW, cheap=(3, 1)),  # three operations
        node(WHOLE, access(1, SHAPE, loops(0, 1)), cheap=(1, 1)),  # two tensors
        node(WHOLE, ROW),  # of unknown operations
    ],
)
def test_what_is_dear_is_made_once(centred: OperatorModel) -> None:
    assert fused(norm(centred)) == []


@pytest.mark.parametrize(("other", "repeated"), [(loops(1, 2), []), (loops(1), [0])])
def test_a_dimension_of_one_makes_no_tensor_smaller(
    other: tuple[LinearIndex, ...], repeated: list[int]
) -> None:
    shape = (1, ROWS, COLUMNS)
    whole, row = access(0, shape, loops(0, 1, 2)), access(1, (1, ROWS), loops(0, 1))
    added = access(1, shape[1 : 1 + len(other)], other)
    total = replace(row_reduction("sum", ROWS, COLUMNS), extents=shape, parallel=(0, 1))
    total = replace(total, reads=(whole,), writes=(access(0, (1, ROWS), loops(0, 1)),))
    group = group_of(
        [
            replace(elementwise("node", shape, [whole, added]), cheap=(1, 1)),
            total,
            elementwise("node", shape, [whole, row]),
        ],
        [["x", "other"], [0], [0, 1]],
    )
    assert fused(group) == repeated


def test_a_fused_producer_is_made_again_with_its_reader() -> None:
    nodes = [
        node(WHOLE, cheap=(1,)),
        node(WHOLE, ROW, cheap=(1, 1)),
        square_sum(),
        node(WHOLE, ROW),
    ]
    group = group_of(nodes, [["x"], [0, "mean"], [1, 1], [1, 2]])
    assert fused(group) == [0, 1]
    assert group.nests().members == {2: (0, 1, 2), 3: (0, 1, 3)}
    dear = replace(nodes[0], cheap=(2,))
    assert fused(group_of([dear, *nodes[1:]], group_sources(group))) == [0]


def group_sources(group: Group) -> list[list[int | str]]:
    return [
        [str(s.tensor) if s.producer is None else s.producer for s in row]
        for row in group.sources
    ]


def test_a_reduction_needs_an_operand_with_its_loop() -> None:
    """What is broadcast along it tells no extent, what is beside it may."""
    wide = node(ROW)
    alone = row_reduction("sum", ROWS, COLUMNS)
    assert fused(group_of([wide, alone], [["row"], [0]])) == []
    group = group_of([wide, square_sum()], [["row"], [0, "x"]])
    assert fused(group) == [0]


def test_equal_reads_of_a_nest_are_one() -> None:
    group = group_of([node(WHOLE), node(WHOLE, WHOLE)], [["x"], [0, "x"]])
    nests = group.nests()
    assert nests.members == {1: (0, 1)}
    assert nests.first_read(1, 1, 1) == (0, 0)
    turned = group_of([node(WHOLE), node(WHOLE, TURNED)], [["x"], [0, "x"]])
    assert turned.nests().first_read(1, 1, 1) == (1, 1)


def test_a_nest_overwrites_what_it_reads_last() -> None:
    total = row_reduction("sum", ROWS, COLUMNS)
    nodes = [node(WHOLE), total, node(WHOLE, ROW), total, node(WHOLE, ROW)]
    group = group_of(nodes, [["x"], [0], [0, 1], [2], [2, 3]])
    assert fused(group) == []
    nests = group.nests()
    assert nests.ending_at(2) == (0, 1)
    assert nests.overwritten(2) == (0,)
    # What is stored goes elsewhere.
    assert nests.overwritten(4) == ()


@pytest.mark.parametrize(
    "nodes",
    [
        [node(WHOLE), row_reduction("sum", ROWS, COLUMNS), node(WHOLE, ROW)],
        [node(WHOLE), row_reduction("sum", ROWS, COLUMNS), node(TURNED, ROW)],
    ],
)
def test_what_is_read_later_or_elsewhere_is_not_overwritten(
    nodes: list[OperatorModel],
) -> None:
    last = node(WHOLE, WHOLE)
    total = row_reduction("sum", ROWS, COLUMNS)
    makers: list[list[int | str]] = [["x"], [0], [0, 1], [2], [2, 0]]
    group = group_of([*nodes, total, last], makers)
    assert group.nests().overwritten(2) == ()


def test_nodes_that_are_kept_are_tiles() -> None:
    group = group_of([node(WHOLE), node(WHOLE)], [["x"], [0]])
    assert fused(group) == [0]
    assert not group.nests(frozenset({0})).is_fused(0)
