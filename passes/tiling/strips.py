"""Owns the blocks of registers in which a product is walked, as far as sizes tell them.

A block is a few vectors of columns, a strip of them, by a few rows. Its cycles decide
which columns are left to narrower strips, and what these take in their place.
"""

from __future__ import annotations

from functools import cache

from magweld.targets.catalog import HOST, tables

# Cycles that a load costs a step although it runs beside the multiply-adds: 6x4
# blocks of vectors reach 100 GFLOP/s where 12x2 reach 90 (Zen 4).
LOAD_CYCLES = 0.5
# Bits of a pipe of multiply-adds, of which a core has two (devices.toml).
PIPE_BITS = 256
# Rows and vectors of columns of a block of 16 registers.
STRIP_ROWS, STRIP_VECTORS = 6, 2


@cache
def vectors_in_flight(vector_bits: int) -> int:
    """Return how many multiply-adds hide the latency of one.

    Those of 512 bits take both pipes.

    Args:
        vector_bits: Width of a vector.
    """
    host = tables()[HOST]
    pipes = max(1, host["fma_bits_per_clock"] // max(vector_bits, PIPE_BITS))
    return int(host["fma_latency"] * pipes)


def step_cycles(rows: int, vectors: int, vector_bits: int, slots: float = 1.0) -> float:
    """Return what one step of the reduction takes for a block, in multiply-adds.

    As many as it has, at least as many as one of them takes, and something for loads.

    Args:
        rows: Of the block.
        vectors: Of columns.
        vector_bits: Width of a register.
        slots: What a multiply-add takes of the time of one of whole registers.
    """
    products = max(rows * vectors * slots, vectors_in_flight(vector_bits))
    return products + LOAD_CYCLES * (rows + vectors)


def strip_vectors(columns: int, rows: int, lanes: int, vector_bits: int) -> float:
    """Return the vectors of whole strips that take as long as some columns.

    Narrow strips have fewer multiply-adds than hide the latency of one, and load as
    many rows: 64 rows of 256 by 56 pixels, three strips and a half, take a fifth longer
    than half of what those by 112 take (Zen 3). Those of wider vectors are priced by
    their number.

    Args:
        columns: Of a tile.
        rows: Likewise.
        lanes: Elements of a vector.
        vector_bits: Width of a vector.
    """
    vectors, rest = divmod(columns, lanes)
    if vector_bits > PIPE_BITS:
        return vectors + rest.bit_count()
    high = max(1, min(rows, STRIP_ROWS))
    whole = step_cycles(high, STRIP_VECTORS, vector_bits) / STRIP_VECTORS
    narrow = step_cycles(high, 1, vector_bits) / whole
    strips, odd = divmod(vectors, STRIP_VECTORS)
    return strips * STRIP_VECTORS + (odd + rest.bit_count()) * narrow
