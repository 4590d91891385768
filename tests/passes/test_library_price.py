"""What a library of a GPU takes by the model, beside what it took on an H100."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import access, loops, matmul

from magweld.passes.tiling.library_price import UNALIGNED, library_seconds
from magweld.passes.tiling.regions import LinearIndex, OperatorKind, OperatorModel
from magweld.targets import device
from magweld.targets.device import CONVOLUTION, PRODUCT

H100 = device("h100")


def halves(node: OperatorModel) -> OperatorModel:
    """The same product of factors of 16 bits."""
    reads = tuple(replace(read, element_bytes=2) for read in node.reads)
    return replace(node, reads=reads)


def convolution(channels: int = 64) -> OperatorModel:
    """Windows of 3 x 3 of 112 x 112 pixels, 64 channels of the result."""
    windows = tuple(LinearIndex(((loop, 1), (loop + 3, 1))) for loop in (2, 3))
    return OperatorModel(
        name="convolution",
        kind=OperatorKind.CONVOLUTION,
        extents=(1, 64, 112, 112, channels, 3, 3),
        parallel=(0, 1, 2, 3),
        reads=(
            access(0, (1, channels, 114, 114), (*loops(0, 4), *windows)),
            access(1, (64, channels, 3, 3), loops(1, 4, 5, 6)),
        ),
        writes=(access(0, (1, 64, 112, 112), loops(0, 1, 2, 3)),),
        flops=2,
    )


@pytest.mark.parametrize(
    ("sizes", "dtype", "measured"),
    [
        ((4096, 4096, 4096), "f32", 2657e-6),
        ((512, 3072, 768), "f32", 66e-6),
        ((512, 768, 3072), "f32", 124e-6),
        ((512, 768, 768), "f32", 32e-6),
        ((12544, 96, 384), "f32", 34e-6),
        ((4096, 4096, 4096), "bf16", 171e-6),
        ((1576, 384, 1536), "bf16", 7.0e-6),
        ((512, 768, 768), "f16", 5.5e-6),
        ((65536, 64, 64), "f16", 5.9e-6),
    ],
)
def test_products_take_about_what_they_took(
    sizes: tuple[int, int, int], dtype: str, measured: float
) -> None:
    node = matmul("product", *sizes)
    node = node if dtype == "f32" else halves(node)
    seconds = library_seconds(node, PRODUCT, dtype, H100)
    assert seconds is not None
    assert 0.7 < seconds / measured < 1.5


def test_rows_of_halves_that_begin_anywhere_are_slower() -> None:
    whole = library_seconds(halves(matmul("p", 4096, 256, 320)), PRODUCT, "bf16", H100)
    odd = library_seconds(halves(matmul("p", 4096, 256, 319)), PRODUCT, "bf16", H100)
    assert whole is not None
    assert odd is not None
    assert whole < odd < UNALIGNED * whole


def test_windows_change_their_layout_first() -> None:
    node = convolution()
    seconds = library_seconds(node, CONVOLUTION, "f32", H100)
    assert seconds is not None
    # Three kernels of 11.0, 4.2 and 2.5 us.
    assert 0.8 < seconds / (17.7e-6 + 3 * H100.launch_seconds) < 1.2


@pytest.mark.parametrize(
    ("dtype", "name"), [("f64", "h100"), ("f32", "v100"), ("f32", "cpu")]
)
def test_what_no_rate_is_stated_for_has_no_price(dtype: str, name: str) -> None:
    node = matmul("product", 64, 64, 64)
    assert library_seconds(node, PRODUCT, dtype, device(name)) is None


def test_windows_of_each_channel_by_itself_have_no_price() -> None:
    node = convolution()
    image, weights = node.reads
    alone = replace(
        node,
        extents=(1, 64, 112, 112, 3, 3),
        reads=(
            replace(
                image,
                index=(
                    *loops(0, 1),
                    *(LinearIndex(((n, 1), (n + 2, 1))) for n in (2, 3)),
                ),
            ),
            replace(weights, shape=(64, 3, 3), index=loops(1, 4, 5)),
        ),
    )
    assert library_seconds(alone, CONVOLUTION, "f32", H100) is None
