"""Attention and products whose rows are streamed, against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions

QUERIES, KEYS, SIZE = 96, 1037, 32  # no number of blocks is all of the keys


@pytest.fixture(scope="module")
def device(small_device: Callable[..., str]) -> str:
    return small_device(65536)  # whole rows of scores fit no cache of this one


def tensors(*shapes: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(s, generator=generator, dtype=dtype) for s in shapes]


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
    return torch.softmax(scores, -1) @ v


def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def causal(q: Tensor, k: Tensor, v: Tensor, _: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def bias(dtype: torch.dtype = torch.float32) -> Tensor:
    return tensors((1, 1, QUERIES, KEYS), dtype=dtype)[0]


def hidden() -> Tensor:
    """Rows without a key, without the first and without the last blocks of them."""
    mask = bias() > 0
    mask[..., 3, :] = False
    mask[..., 5:9, :800] = False
    mask[..., 11:40, 60:] = False
    return mask


def minus_infinity() -> Tensor:
    return torch.zeros(hidden().shape).masked_fill(~hidden(), -math.inf)


CASES: dict[str, tuple[Callable[..., Tensor], Callable[[], Tensor]]] = {
    "bias": (softmax_attention, bias),
    "hidden rows are nan": (softmax_attention, minus_infinity),
    "lowest number": (
        softmax_attention,
        lambda: minus_infinity().clamp_min(torch.finfo(torch.float32).min),
    ),
    "mask, hidden rows are zero": (masked, hidden),
    "added mask": (masked, minus_infinity),
    "causal": (causal, bias),
}


def check(
    device: str,
    function: Callable[..., Tensor],
    *arguments: Tensor,
    tolerance: float = 1e-5,
) -> None:
    """Compare a function that has to be streamed with eager; it repeats to the bit."""
    options = CompileOptions(device=device, library="never")
    with torch.no_grad():
        traced = frontend.trace(
            function, backend=partial(compile_graph, options=options)
        )
        traced(*arguments)
        expected, got = function(*arguments), traced(*arguments)
        again = traced(*arguments)
    assert "stream_step" in traced.records[0].mlir("scheduled")
    assert torch.equal(got.isnan(), expected.isnan())
    torch.testing.assert_close(
        got, expected, rtol=tolerance, atol=tolerance, equal_nan=True
    )
    torch.testing.assert_close(got, again, rtol=0, atol=0, equal_nan=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_attention(device: str, name: str) -> None:
    function, mask = CASES[name]
    shapes = (1, 4, QUERIES, SIZE), (1, 4, KEYS, SIZE), (1, 4, KEYS, SIZE)
    check(device, function, *tensors(*shapes, dtype=torch.float32), mask())


def test_attention_in_double(small_device: Callable[..., str]) -> None:
    size = SIZE // 2
    shapes = (1, 4, QUERIES, size), (1, 4, KEYS, size), (1, 4, KEYS, size)
    arguments = tensors(*shapes, dtype=torch.float64)
    check(
        small_device(131072),  # elements take twice the room
        softmax_attention,
        *arguments,
        bias(torch.float64),
        tolerance=1e-12,
    )


def test_infinities_and_large_scores(device: str) -> None:
    q, k, v = tensors(
        (1, 4, QUERIES, SIZE),
        (1, 4, KEYS, SIZE),
        (1, 4, KEYS, SIZE),
        dtype=torch.float32,
    )
    q[0, 0, 7, 3], q[0, 1, 9, 3] = math.inf, math.nan
    q[0, 2] *= 30  # exponentials of all but the largest scores vanish
    # A score of a hundred is as exact as its last bit, which is 1e-5.
    check(device, softmax_attention, q, k, v, bias(), tolerance=1e-4)


def test_heads_that_share_keys(device: str) -> None:
    def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    shapes = (1, 4, QUERIES, SIZE), (1, 2, KEYS, SIZE), (1, 2, KEYS, SIZE)
    check(device, grouped, *tensors(*shapes, dtype=torch.float32))


def test_two_products(device: str) -> None:
    def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor) -> Tensor:
        return F.linear(F.gelu(F.linear(x, w1, b1)), w2)

    shapes = (64, 32), (1037, 32), (1037,), (24, 1037)
    x, w1, b1, w2 = tensors(*shapes, dtype=torch.float32)
    check(device, feed_forward, x, w1, b1, w2 / 32)
