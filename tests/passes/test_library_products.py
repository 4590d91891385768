"""Which loops of a product are the rows, columns and batches of a library's."""

from __future__ import annotations

import pytest
import torch

from magweld.passes.analysis.library_products import Sides, product_sides

# Loops of the operands and of the result, as letters.
CASES = {
    "matmul": ("mk", "kn", "mn"),
    "transposed": ("km", "nk", "mn"),
    "swapped": ("kn", "mk", "mn"),
    "batched": ("bmk", "bkn", "bmn"),
    "two batches": ("bcmk", "bcnk", "bcmn"),
    "rows of a batch": ("bmk", "nk", "bmn"),
    "pixels": ("bkyx", "fk", "bfyx"),
    "steps of two": ("mjk", "jkn", "mn"),
}


def sides(left: str, right: str, result: str) -> Sides | None:
    loops = [tuple(map(ord, dims)) for dims in (left, right, result)]
    return product_sides(*loops)


@pytest.mark.parametrize(("left", "right", "result"), CASES.values(), ids=CASES)
def test_a_call_computes_the_product(left: str, right: str, result: str) -> None:
    found = sides(left, right, result)
    assert found is not None
    extents = {loop: 2 + number for number, loop in enumerate("bcmnkjfyx")}

    def tensor(dims: str) -> torch.Tensor:
        return torch.randn([extents[loop] for loop in dims], dtype=torch.float64)

    operands = [tensor(left), tensor(right)]
    expected = torch.einsum(f"{left},{right}->{result}", *operands)
    factors = operands[::-1] if found.swapped else operands
    first, second, made = found.groups()
    collapsed = []
    for factor, groups, turned in zip(
        factors, (first, second), found.transposed, strict=True
    ):
        shape = [torch.Size([factor.shape[i] for i in g]).numel() for g in groups]
        flat = factor.reshape(shape)
        collapsed.append(flat.mT if turned else flat)
    product = collapsed[0] @ collapsed[1]
    assert product.dim() == len(made)
    torch.testing.assert_close(product.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("mk", "kn", "mnk"),  # nothing is summed up
        ("mk", "k", "m"),
        ("mbk", "bkn", "bmn"),
        ("bmk", "bkn", "mbn"),
        ("mk", "kn", "m"),
    ],
)
def test_other_orders_are_no_call(left: str, right: str, result: str) -> None:
    assert sides(left, right, result) is None
