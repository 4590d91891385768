"""Checks the cutting of loops and the choice of register tiles without any IR."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magweld.bindings import ir
from magweld.passes.cpu.loop_nest import Access, LoopNest, collapsible_dims
from magweld.passes.cpu.panel_products import panel_candidates
from magweld.passes.cpu.product_policy import product_cycles
from magweld.passes.cpu.register_policy import choose_register_tile
from magweld.passes.cpu.register_tile import (
    NONE,
    RegisterTile,
    VectorUnit,
    split_extent,
)

AVX512 = VectorUnit(512, 32)
AVX2 = VectorUnit(256, 16)


@given(st.integers(0, 5000), st.integers(1, 16), st.sampled_from([1, 2, 4, 8, 16]))
def test_pieces_cover_a_loop_exactly(extent: int, unroll: int, lanes: int) -> None:
    pieces = split_extent(extent, unroll, lanes)
    assert sum(p.stop - p.start for p in pieces) == extent
    assert all(a.stop == b.start for a, b in pairwise(pieces))
    assert all((p.stop - p.start) % p.step == 0 for p in pieces)
    assert all(p.lanes <= lanes and p.count <= unroll for p in pieces)
    assert sum(p.is_loop for p in pieces) <= 1


@given(st.integers(0, 500), st.integers(1, 5), st.sampled_from([1, 2, 4, 8, 16]))
def test_lanes_of_masked_pieces_are_the_iterations(
    extent: int, unroll: int, lanes: int
) -> None:
    covered: list[int] = []
    for piece in split_extent(extent, unroll, lanes, masked=True):
        assert piece.lanes == lanes
        assert piece.count <= unroll
        for start in range(piece.start, piece.stop, piece.step):
            for number in range(piece.count):
                first = start + number * lanes
                assert piece.filled(number) > 0
                covered += range(first, first + piece.filled(number))
    assert covered == list(range(extent))


def nest(
    extents: tuple[int, ...],
    reductions: set[int],
    inputs: list[tuple[int, ...]],
    output: tuple[int, ...],
    *,
    product: bool = False,
    scalar_reason: str = "",
    bits: int = 32,
    is_float: bool = False,
) -> LoopNest:
    return LoopNest(
        extents=extents,
        parallel=tuple(d not in reductions for d in range(len(extents))),
        inputs=tuple(Access(strides, 0, bits, True) for strides in inputs),
        outputs=(Access(output, 0, bits, bool(reductions)),),
        combiners=("arith.addf" if reductions else "",),
        scalar_reason=scalar_reason,
        uses_index=False,
        uses_math=False,
        product=product,
        is_float=is_float or product,
    )


def matmul(m: int, n: int, k: int, *, transposed: bool = False) -> LoopNest:
    right = (0, k, 1) if transposed else (0, 1, n)
    return nest((m, n, k), {2}, [(k, 0, 1), right], (n, 1, 0), product=True)


def test_contiguous_loops_become_one() -> None:
    both = nest((16, 384), set(), [(384, 1)], (384, 1))
    assert collapsible_dims(both) == ((0, 1),)
    assert both.collapse(((0, 1),)).extents == (6144,)
    assert collapsible_dims(both, keep=1) == ((0,), (1,))


def test_a_broadcast_keeps_loops_apart() -> None:
    rows = nest((16, 384), set(), [(384, 1), (1, 0)], (384, 1))
    assert collapsible_dims(rows) == ((0,), (1,))


def test_unit_loops_vanish() -> None:
    unit = nest((1, 64, 1, 64), set(), [(4096, 64, 64, 1)], (4096, 64, 64, 1))
    assert collapsible_dims(unit) == ((1, 3),)


@pytest.mark.parametrize("unit", [AVX512, AVX2])
@pytest.mark.parametrize("rows", [1, 2, 7, 12, 16, 49, 64, 197])
@pytest.mark.parametrize("columns", [1, 3, 16, 32, 48, 197])
def test_accumulators_of_a_product_fit_the_registers(
    rows: int, columns: int, unit: VectorUnit
) -> None:
    tile = choose_register_tile(matmul(rows, columns, 64), unit)
    vectors = 1
    for count in tile.unroll:
        vectors *= count
    assert vectors < unit.registers


@pytest.mark.parametrize(("unit", "block"), [(AVX512, (6, 4)), (AVX2, (6, 2))])
def test_blocks_of_a_product_have_an_eighth_of_the_registers_as_columns(
    unit: VectorUnit, block: tuple[int, int]
) -> None:
    assert choose_register_tile(matmul(96, 768, 256), unit).unroll[:2] == block


def test_a_panel_whose_rows_meet_in_few_sets_is_packed() -> None:
    # 768 columns are 48 lines: their rows share 4 of the 64 sets of the first cache.
    assert choose_register_tile(matmul(96, 768, 256), AVX2).packed_input == 1
    assert choose_register_tile(matmul(96, 784, 256), AVX2).packed_input == NONE
    assert choose_register_tile(matmul(96, 768, 24), AVX2).packed_input == NONE
    # One row of blocks reads the panel once.
    assert choose_register_tile(matmul(6, 768, 256), AVX2).packed_input == NONE


def rows_apart(pitch: int, rows: int, columns: int) -> LoopNest:
    """A product of rows that lie `pitch` elements apart with packed columns."""
    inputs = [(pitch, 0, 1), (0, pitch, 1)]
    output = (columns, 1, 0)
    return nest((rows, columns, 192), {2}, inputs, output, product=True)


def test_rows_that_meet_in_few_sets_are_copied() -> None:
    # Rows of a block, six, share one or two of 64 sets.
    for pitch in (512, 1024, 1536, 3072):
        tile = choose_register_tile(rows_apart(pitch, 128, 96), AVX2)
        assert (tile.copied_input, tile.packed_input) == (0, 1), pitch
        wide = choose_register_tile(rows_apart(pitch, 128, 96), AVX512)
        assert wide.copied_input == NONE
    # In four or more, or anywhere in a line, they do not evict each other.
    for pitch in (768, 1040, 1027):
        tile = choose_register_tile(rows_apart(pitch, 128, 96), AVX2)
        assert tile.copied_input == NONE, pitch


def test_rows_are_copied_only_where_that_pays() -> None:
    # Read for two strips of columns, two rows, and more than the second cache holds.
    for rows, columns in ((128, 32), (2, 96), (512, 96)):
        tile = choose_register_tile(rows_apart(1024, rows, columns), AVX2)
        assert tile.copied_input == NONE, (rows, columns)


def test_every_second_element_is_turned_in_registers() -> None:
    # out[w, c] = x[c, 2 w]
    even = nest((32, 96), set(), [(2, 4096)], (96, 1))
    tile = choose_register_tile(even, AVX2)
    assert (tile.vector_dim, tile.lanes, tile.unroll) == (1, 8, (8, 1))


def test_transposed_operand_is_packed_when_rows_repay_it() -> None:
    many = choose_register_tile(matmul(64, 64, 512, transposed=True), AVX512)
    assert (many.packed_input, many.vector_dim) == (1, 1)


@pytest.mark.parametrize("unit", [AVX512, AVX2])
def test_columns_that_fill_no_vector_are_dot_products(unit: VectorUnit) -> None:
    tile = choose_register_tile(matmul(64, 49, 192), unit)
    assert (tile.packed_input, tile.vector_dim) == (1, 1)
    assert tile.rest is not None
    assert (tile.rest.vector_dim, tile.rest.lanes) == (2, tile.lanes)
    assert tile.rest.unroll[0] > 1


def test_columns_are_no_dot_products_without_something_to_gain() -> None:
    whole = choose_register_tile(matmul(64, 48, 192), AVX2)
    assert whole.rest is None
    # A tree over the lanes of each result takes as long as the products.
    short = choose_register_tile(matmul(64, 49, 12), AVX2)
    assert short.rest is None
    # The elements of a row lie apart along the reduction.
    apart = nest(
        (64, 49, 192), {2}, [(2, 0, 128), (0, 1, 49)], (49, 1, 0), product=True
    )
    assert choose_register_tile(apart, AVX2).rest is None


@pytest.mark.parametrize(
    ("unit", "columns"), [(AVX512, 49), (AVX512, 81), (AVX2, 81), (AVX2, 97)]
)
def test_columns_that_fill_no_vector_are_vectors_of_rows(
    unit: VectorUnit, columns: int
) -> None:
    # m[p, f, t] = the sum over c of u[p, c, f] v[p, c, t]
    inputs = [(16 * 256, 1, 0, 16), (256 * columns, 0, 1, columns)]
    output = (16 * columns, columns, 1, 0)
    extents = (16, 16, columns, 256)
    tile = choose_register_tile(nest(extents, {3}, inputs, output, product=True), unit)
    assert (tile.packed_input, tile.vector_dim) == (NONE, 2)
    assert tile.rest is not None
    assert (tile.rest.vector_dim, tile.rest.lanes) == (1, tile.lanes)


def test_whole_vectors_of_columns_leave_no_rows() -> None:
    inputs = [(16 * 64, 1, 0, 16), (64 * 48, 0, 1, 48)]
    whole = nest((16, 16, 48, 64), {3}, inputs, (16 * 48, 48, 1, 0), product=True)
    assert choose_register_tile(whole, AVX512).rest is None
    # Four columns are one narrow vector, and their rows are stored one by one.
    inputs = [(16 * 64, 1, 0, 16), (64 * 52, 0, 1, 52)]
    four = nest((16, 16, 52, 64), {3}, inputs, (16 * 52, 52, 1, 0), product=True)
    assert choose_register_tile(four, AVX512).rest is None


@pytest.mark.parametrize("unit", [AVX512, AVX2])
def test_a_panel_is_not_copied_for_a_few_columns_beside_many(unit: VectorUnit) -> None:
    # Rows of 14 x 14 pixels begin anywhere in a line.
    tile = choose_register_tile(matmul(64, 196, 192), unit)
    assert (tile.packed_input, tile.rest) == (NONE, None)


@pytest.mark.parametrize("unit", [AVX512, AVX2])
def test_rows_that_are_pages_apart_are_packed_where_there_are_many(
    unit: VectorUnit,
) -> None:
    assert choose_register_tile(pixels(64), unit).packed_input == NONE
    assert choose_register_tile(pixels(256), unit).packed_input == 1


def pixels(channels: int, bits: int = 32) -> LoopNest:
    """Return the product of 64 filters with some of the pixels of an image."""
    reads = [(channels, 0, 1), (0, 1, 56 * 56)]
    loops = (64, 448, channels)
    return nest(loops, {2}, reads, (56 * 56, 1, 0), product=True, bits=bits)


@pytest.mark.parametrize("unit", [AVX512, AVX2])
def test_few_rows_of_halves_that_are_pages_apart_are_packed(unit: VectorUnit) -> None:
    # They are widened wherever they are read: in their place, once for each block.
    assert choose_register_tile(pixels(64, 16), unit).packed_input == 1


@pytest.mark.parametrize("unit", [AVX512, AVX2])
def test_copies_of_uneven_rows_have_a_price_of_their_own_in_words(
    unit: VectorUnit,
) -> None:
    """Of rows that begin anywhere in a line; for halves that was not measured."""

    def copied(pitch: int, bits: int) -> float:
        reads = [(192, 0, 1), (0, 1, pitch)]
        loops = (64, 196, 192)
        product = nest(loops, {2}, reads, (pitch, 1, 0), product=True, bits=bits)
        found = panel_candidates(product, unit, unit.bits // 32)
        return min(one.cycles for one in found if one.tile.packed_input == 1)

    assert copied(196, 32) > copied(256, 32)
    assert copied(196, 16) == copied(256, 16)


def test_few_rows_make_blocks_of_dot_products() -> None:
    few = choose_register_tile(matmul(4, 64, 512, transposed=True), AVX512)
    assert (few.packed_input, few.vector_dim) == (NONE, 2)
    assert few.unroll[0] > 1
    assert few.unroll[1] > 1


def test_short_rows_of_an_image_vectorise_the_channels_of_a_convolution() -> None:
    # out[c, h, w] += x[k, 2h, 2w] * weight[c, k]
    image, weight = (0, 28, 2, 196), (256, 0, 0, 1)
    small = nest((64, 7, 7, 256), {3}, [image, weight], (49, 7, 1, 0), product=True)
    tile = choose_register_tile(small, AVX512)
    assert (tile.vector_dim, tile.lanes, tile.packed_input) == (0, 16, 1)


def test_rows_of_an_image_share_what_a_window_reads() -> None:
    # out[c, h, w] += x[c, h + i, w + j] * weight[c, i, j]
    image, weight = (3364, 58, 1, 58, 1), (9, 0, 0, 3, 1)
    window = nest(
        (32, 56, 56, 3, 3), {3, 4}, [image, weight], (3136, 56, 1, 0, 0), product=True
    )
    tile = choose_register_tile(window, AVX512)
    assert (tile.vector_dim, tile.lanes, tile.packed_input) == (2, 16, NONE)
    assert tile.unroll[1] > 1
    assert tile.unroll[3:] == (3, 3)
    assert tile.unroll[1] * tile.unroll[2] <= 24


def test_half_as_wide_vectors_take_half_the_time_of_whole_ones() -> None:
    # Rows of 28 are vectors of 16, 8 and 4 elements; a row of 838 is nearly full of 16.
    image, weight = (900, 30, 1, 30, 1), (9, 0, 0, 3, 1)
    rows = nest(
        (8, 28, 28, 3, 3), {3, 4}, [image, weight], (784, 28, 1, 0, 0), product=True
    )
    image, weight = (900, 1, 0, 30, 1), (9, 0, 0, 3, 1)
    long = nest(
        (8, 838, 1, 3, 3), {3, 4}, [image, weight], (838, 1, 0, 0, 0), product=True
    )
    cycles = [product_cycles(one, AVX512) for one in (rows, long)]
    assert cycles[0] is not None
    assert cycles[1] is not None
    assert cycles[0] < cycles[1]


@pytest.mark.parametrize(("row", "lanes"), [(28, 16), (14, 16), (7, 8), (3, 4)])
def test_short_rows_of_an_image_are_vectors_that_are_not_full(
    row: int, lanes: int
) -> None:
    pitch = row + 2
    image, weight = (pitch * pitch, pitch, 1, pitch, 1), (9, 0, 0, 3, 1)
    extents, output = (8, row, row, 3, 3), (row * row, row, 1, 0, 0)
    window = nest(extents, {3, 4}, [image, weight], output, product=True)
    tile = choose_register_tile(window, AVX512)
    assert (tile.vector_dim, tile.lanes, tile.masked) == (2, lanes, True)
    assert not choose_register_tile(window, AVX2).masked
    # What only floats do without traps may be done of lanes without an element.
    whole = replace(window, is_float=False)
    assert not choose_register_tile(whole, AVX512).masked


def test_short_rows_are_copied_in_vectors_that_are_not_full() -> None:
    copy = nest((8, 14, 14), set(), [(196, 14, 1)], (256, 16, 1), is_float=True)
    tile = choose_register_tile(copy, AVX512)
    assert (tile.vector_dim, tile.lanes, tile.masked) == (2, 16, True)
    assert not choose_register_tile(copy, AVX2).masked
    narrow = nest((8, 14, 14), set(), [(196, 14, 1)], (256, 16, 1), bits=16)
    assert not choose_register_tile(narrow, AVX512).masked
    # Rows without gaps are one, rows of whole vectors need no masks.
    dense = nest((8, 14, 14), set(), [(196, 14, 1)], (196, 14, 1), is_float=True)
    assert not choose_register_tile(dense, AVX512).masked
    full = nest((8, 14, 16), set(), [(224, 16, 1)], (288, 18, 1), is_float=True)
    assert not choose_register_tile(full, AVX512).masked


def test_every_second_element_of_an_image_is_read_in_place() -> None:
    # out[h, w] += x[2 h + i, 2 w + j] * weight[i, j]
    image, weight = (114, 2, 57, 1), (0, 0, 3, 1)
    window = nest((28, 28, 3, 3), {2, 3}, [image, weight], (28, 1, 0, 0), product=True)
    tile = choose_register_tile(window, AVX512)
    assert (tile.vector_dim, tile.packed_input) == (1, NONE)


def test_windows_that_share_nothing_and_long_ones_are_loops() -> None:
    apart = nest((64, 2), {1}, [(2, 1), (0, 1)], (1, 0), product=True)
    assert choose_register_tile(apart, AVX512).unroll[1] == 1
    long = nest((64, 65), {1}, [(1, 1), (0, 1)], (1, 0), product=True)
    assert choose_register_tile(long, AVX512).unroll[1] == 1


def test_doubles_take_half_the_lanes() -> None:
    wide = nest((1024,), set(), [(1,)], (1,), bits=64)
    assert choose_register_tile(wide, AVX512).lanes == 8


def test_body_without_vector_form_is_scalar() -> None:
    gather = nest((1024,), set(), [(1,)], (1,), scalar_reason="it gathers")
    tile = choose_register_tile(gather, AVX512)
    assert (tile.vector_dim, tile.lanes) == (NONE, 1)


@pytest.mark.parametrize("extents", [(0,), (1,), (0, 7), (5, 0)])
def test_empty_and_single_points_are_scalar(extents: tuple[int, ...]) -> None:
    strides = tuple(1 for _ in extents)
    tile = choose_register_tile(nest(extents, set(), [strides], strides), AVX512)
    assert tile.vector_dim == NONE


def test_attribute_round_trip() -> None:
    rest = RegisterTile((), (1, 0), (12, 1), 0, 16)
    tile = RegisterTile(((0, 1), (3,)), (1, 0), (12, 2), 1, 16, 0)
    for written in (tile, replace(tile, rest=rest), replace(tile, masked=True)):
        with ir.Context():
            attribute = ir.Attribute.parse(str(written.to_attribute()))
            assert RegisterTile.from_attribute(attribute) == written
