"""Passes of shared memory, and the paddings that save them."""

from __future__ import annotations

import pytest

from magweld.passes.gpu.bank_conflicts import ThreadAccess, row_padding

DOWN = ThreadAccess((32,), ((1,), (0,)), 8)
# The same rows, four elements at once.
ROWS = ThreadAccess((32,), ((1,), (0,)), 8, 4)
# Eight pieces of four to a row.
PIECES = ThreadAccess((4, 8), ((1, 0), (0, 4)), 8, 4)
ALONG = ThreadAccess((32,), ((0,), (1,)), 8)


@pytest.mark.parametrize(
    ("access", "strides", "element", "passes"),
    [
        (DOWN, (32, 1), 4, 8 * 32),
        (DOWN, (33, 1), 4, 8),
        (DOWN, (16, 1), 4, 8 * 16),
        (DOWN, (32, 1), 2, 8 * 16),  # 16 words apart
        (ALONG, (32, 1), 4, 8),
        (ALONG, (32, 1), 2, 8),  # two halves of a word are one access
        (ThreadAccess((64,), ((0,), (1,)), 1), (64, 1), 4, 1),
        (ROWS, (32, 1), 4, 2 * 32),  # all in four banks
        (ROWS, (36, 1), 4, 2 * 4),  # eight threads a pass
        (ROWS, (34, 1), 4, 4 * 2),  # aligned to two words: sixteen threads a pass
        (ROWS, (33, 1), 4, 8),  # words
        (ROWS, (32, 1), 2, 2 * 16),  # 8 bytes, rows of 64 bytes: 8 threads in 4 banks
        (PIECES, (32, 1), 4, 2 * 4),
        (PIECES, (36, 1), 4, 2 * 4),
        (PIECES, (33, 1), 4, 8),  # words: a row fills the gaps of another
    ],
)
def test_passes(
    access: ThreadAccess, strides: tuple[int, ...], element: int, passes: int
) -> None:
    assert access.passes(strides, element, 32) == passes


def test_a_wavefront_takes_two_passes() -> None:
    assert ThreadAccess((64,), ((0,), (1,)), 1).passes((64, 1), 4, 64) == 2


@pytest.mark.parametrize(
    ("shape", "element", "accesses", "padding"),
    [
        ((32, 32), 4, [DOWN], 1),
        ((32, 32), 4, [ALONG], 0),
        ((32, 33), 4, [DOWN], 0),
        ((32, 32), 4, [DOWN, ALONG], 1),
        ((32, 64), 2, [DOWN], 2),
        # 16 rows and two columns: 16 words apart, an odd row keeps them apart.
        ((32, 16), 4, [ThreadAccess((16, 2), ((1, 0), (0, 8)), 1)], 1),
        ((32,), 4, [ThreadAccess((32,), ((1,),), 1)], 0),
        ((32, 32), 4, [], 0),
        # Rows stay aligned to what is accessed at once.
        ((32, 32), 4, [ROWS], 4),
        ((32, 32), 4, [ROWS, PIECES], 4),
        # Four warps write words of 16 rows, one reads the rows: who writes decides.
        (
            (16, 8),
            4,
            [
                ThreadAccess((16, 8), ((1, 0), (0, 1)), 1),
                ThreadAccess((16,), ((1,), (0,)), 8, 4),
            ],
            0,
        ),
        # As many passes by words, but more accesses.
        ((32, 33), 4, [ROWS], 1),
    ],
)
def test_the_padding_with_the_fewest_passes(
    shape: tuple[int, ...], element: int, accesses: list[ThreadAccess], padding: int
) -> None:
    assert row_padding(shape, element, accesses, 32) == padding
