"""The arithmetic of Winograd's minimal filtering, in rationals, and its blocks."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from magweld.passes.tiling.winograd_forms import (
    BLOCK_BYTES,
    ELEMENT_BYTES,
    FORMS,
    WINDOW,
    Matrix,
    WinogradForm,
    choose_block,
    product_share,
)


def product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return tuple(
        tuple(
            sum((x * y for x, y in zip(row, column, strict=True)), Fraction())
            for column in columns
        )
        for row in a
    )


def transformed(matrix: Matrix, values: Matrix) -> Matrix:
    return product(product(matrix, values), tuple(zip(*matrix, strict=True)))


def numbers(size: int, seed: int) -> Matrix:
    make = random.Random(seed)
    return tuple(
        tuple(Fraction(make.randint(-9, 9)) for _ in range(size)) for _ in range(size)
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=str)
def test_form_is_the_window(form: WinogradForm) -> None:
    assert form.side == form.tile + WINDOW - 1
    image, weight = numbers(form.side, 0), numbers(WINDOW, 1)
    left, right = transformed(form.weight, weight), transformed(form.input, image)
    products = tuple(
        tuple(a * b for a, b in zip(*rows, strict=True))
        for rows in zip(left, right, strict=True)
    )
    expected = tuple(
        tuple(
            sum(
                (
                    image[y + i][x + j] * weight[i][j]
                    for i in range(WINDOW)
                    for j in range(WINDOW)
                ),
                Fraction(),
            )
            for x in range(form.tile)
        )
        for y in range(form.tile)
    )
    assert transformed(form.result, products) == expected


@pytest.mark.parametrize(
    ("depth", "counts", "block"),
    [
        # Rows of 28 tiles: two of them fill three vectors and a half.
        (64, (1, 14, 28), (1, 2)),
        # Images of 16 tiles: one alone has a whole vector, four are as good.
        (64, (8, 4, 4), (4, 4)),
        # A single row of tiles of many channels exceeds the cache: there is no less.
        (4096, (1, 4, 16), (1, 1)),
    ],
)
def test_blocks(
    depth: int, counts: tuple[int, int, int], block: tuple[int, int]
) -> None:
    form = FORMS[2]
    chosen = choose_block(form, depth, counts)
    images, rows = chosen
    columns = images * rows * counts[2]
    assert counts[0] % images == 0
    assert rows <= counts[1]
    size = form.products * depth * columns * ELEMENT_BYTES
    assert size <= BLOCK_BYTES or chosen == (1, 1)
    assert chosen == block


def test_share_of_the_arithmetic() -> None:
    form = FORMS[2]
    whole = product_share(form, 512, 512, (32, 32))
    assert 16 / 36 < whole < 0.47
    # Tiles that lie half outside, and transforms for few channels.
    assert product_share(form, 512, 512, (31, 33)) > whole
    assert product_share(form, 16, 3, (32, 32)) > 0.9
