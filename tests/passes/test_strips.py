"""What columns of products cost that fill no strip of vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import device
from welder_groups import CONVOLUTION, convolutions, window

from magweld.passes.tiling.propagation import Tiles, propagate
from magweld.passes.tiling.strips import (
    LOAD_CYCLES,
    step_cycles,
    strip_vectors,
    vectors_in_flight,
)
from magweld.passes.tiling.vectors import vector_waste

# One vector of columns by six rows, over half of what two take.
ODD = 2 * (8 + 7 * LOAD_CYCLES) / (12 + 8 * LOAD_CYCLES)


@pytest.mark.parametrize(("bits", "number"), [(128, 8), (256, 8), (512, 4)])
def test_two_pipes_of_256_bits_and_a_latency_of_four(bits: int, number: int) -> None:
    assert vectors_in_flight(bits) == number


def test_a_step_takes_no_less_than_what_hides_the_latency() -> None:
    assert step_cycles(6, 1, 256) == 8 + 7 * LOAD_CYCLES
    assert step_cycles(6, 1, 512) == 6 + 7 * LOAD_CYCLES
    assert step_cycles(6, 2, 256) == 12 + 8 * LOAD_CYCLES


@pytest.mark.parametrize(
    ("columns", "vectors"),
    [
        (112, 14.0),
        (56, 6 + ODD),
        # A vector of eight and one of four, each a strip of its own.
        (28, 2 + 2 * ODD),
        (196, 24 + ODD),
    ],
)
def test_what_fills_no_strip_takes_longer(columns: int, vectors: float) -> None:
    assert strip_vectors(columns, 64, 8, 256) == pytest.approx(vectors)


def test_few_rows_take_as_long_in_half_a_strip() -> None:
    # Neither has as many multiply-adds as hide the latency of one.
    one, two = (8 + n * LOAD_CYCLES for n in (3, 4))
    assert strip_vectors(8, 2, 8, 256) == pytest.approx(2 * one / two)


@pytest.mark.parametrize("columns", [16, 56, 28, 196, 49])
def test_vectors_of_512_bits_are_priced_by_their_number(columns: int) -> None:
    whole, rest = divmod(columns, 16)
    assert strip_vectors(columns, 64, 16, 512) == whole + rest.bit_count()


@pytest.mark.parametrize(("rows", "odd"), [(1, 1), (2, 0)])
def test_a_tile_whose_pixels_fill_strips_wastes_nothing(rows: int, odd: int) -> None:
    # 64 channels from 64 over rows of 56 pixels, points of which are neighbours.
    group = convolutions(window(CONVOLUTION, (1, 64, 56, 56), (64,), 1))
    tiles = propagate(group, (1, 64, rows, 56))
    assert isinstance(tiles, Tiles)
    narrow = replace(device(tile_bytes=1 << 20), vector_bits=256, threads=1)
    wide = replace(narrow, vector_bits=512)
    assert vector_waste(tiles.parts[0], narrow) == pytest.approx(
        1 + odd * (ODD - 1) / 7
    )
    # Three vectors of 16 and one of 8 are four; seven fill two rows.
    assert vector_waste(tiles.parts[0], wide) == pytest.approx(8 / 7 if odd else 1.0)
