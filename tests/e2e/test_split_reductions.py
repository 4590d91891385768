"""Reductions in two phases, against torch and against sums in double."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions


@pytest.fixture(scope="module")
def device(small_device: Callable[..., str]) -> str:
    # A unit of this one has a small cache, and one alone is slow.
    return small_device(16384, bandwidth=2.0, peak=10.0)


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=dtype)
    return torch.randint(-99, 99, shape, generator=generator, dtype=dtype)


def traced(
    function: Callable[..., Tensor], device: str
) -> frontend.Traced[..., Tensor]:
    options = CompileOptions(device=device, library="never")
    return frontend.trace(function, backend=partial(compile_graph, options=options))


def split_result(
    device: str, function: Callable[..., Tensor], *arguments: Tensor
) -> Tensor:
    """Return what a function gives that has to be split; it repeats to the bit."""
    compiled = traced(function, device)
    with torch.no_grad():
        compiled(*arguments)
        got = compiled(*arguments)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            alone = compiled(*arguments)
        finally:
            torch.set_num_threads(threads)
    assert "magweld.parts" in compiled.records[0].mlir("scheduled")
    torch.testing.assert_close(alone, got, rtol=0, atol=0, equal_nan=True)
    return got


LONG = 30000
CASES: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "mean": (lambda x: x.mean(), (numbers(60, 500),)),
    "sum of rows": (lambda x: x.sum(1), (numbers(3, LONG),)),
    "sum of columns": (lambda x: x.sum(0), (numbers(LONG, 8),)),
    "norm": (torch.linalg.vector_norm, (numbers(60, 500),)),
    "variance": (torch.var, (numbers(LONG),)),
    "image": (lambda x: x.mean((0, 2, 3)), (numbers(4, 2, 50, 60),)),
    "smooth loss": (
        lambda x, y: torch.nn.functional.huber_loss(x, y),
        (numbers(LONG), numbers(LONG, seed=1)),
    ),
    "rows times columns": (
        lambda a, b: a @ b,
        (numbers(8, LONG), numbers(LONG, 8, seed=1)),
    ),
    "rows times rows": (
        lambda a, b: a @ b.T,
        (numbers(3, LONG), numbers(5, LONG, seed=1)),
    ),
    "columns times columns": (
        lambda a, b: a.T @ b,
        (numbers(LONG, 8), numbers(LONG, 8, seed=1)),
    ),
    "normalised rows": (
        lambda a, b: (a / a.norm()) @ b,
        (numbers(8, LONG), numbers(LONG, 8, seed=1)),
    ),
    "dot": (torch.dot, (numbers(LONG), numbers(LONG, seed=1))),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_no_further_from_double_than_eager(device: str, name: str) -> None:
    function, arguments = CASES[name]
    exact = function(*(argument.double() for argument in arguments))
    got = split_result(device, function, *arguments)
    eager = function(*arguments)
    assert (got.dtype, got.shape, got.stride()) == (
        eager.dtype,
        eager.shape,
        eager.stride(),
    )
    scale = float(exact.abs().max())
    allowed = 2 * float((eager - exact).abs().max()) + 4e-7 * scale
    assert float((got - exact).abs().max()) <= allowed


def test_double(device: str) -> None:
    a, b = numbers(8, LONG, dtype=torch.float64), numbers(LONG, 8, dtype=torch.float64)
    got = split_result(device, torch.mm, a, b)
    torch.testing.assert_close(got, a @ b, rtol=1e-12, atol=1e-9)


EXACT: dict[str, tuple[Callable[[Tensor], Tensor], torch.dtype]] = {
    "integers": (lambda x: x.sum(), torch.int64),
    "integers that overflow": (lambda x: (x * 2**60).sum(1), torch.int64),
    "largest": (lambda x: x.amax(), torch.float32),
    "smallest of rows": (lambda x: x.amin(1), torch.float32),
    "largest integer": (lambda x: x.amax(), torch.int64),
    "any": (lambda x: (x > 90).any(), torch.int64),
    "all": (lambda x: (x < 90).all(), torch.int64),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", EXACT)
def test_equal_to_eager(device: str, name: str) -> None:
    function, dtype = EXACT[name]
    x = numbers(2, LONG, dtype=dtype)
    torch.testing.assert_close(
        split_result(device, function, x), function(x), rtol=0, atol=0
    )


@pytest.mark.parametrize("name", ["mean", "sum of rows", "norm", "dot"])
@pytest.mark.parametrize(
    "special", [(math.nan,), (math.inf,), (math.inf, -math.inf), (math.inf, math.nan)]
)
def test_special_numbers(device: str, name: str, special: tuple[float, ...]) -> None:
    function, (first, *rest) = CASES[name]
    first = first.clone()
    for number, value in enumerate(special):
        first.view(-1)[29000 - 15000 * number] = value
    got = split_result(device, function, first, *rest)
    torch.testing.assert_close(
        got, function(first, *rest), rtol=1e-4, atol=1e-4, equal_nan=True
    )


def test_largest_keeps_nan(device: str) -> None:
    x = numbers(2, LONG)
    x[1, 17] = math.nan
    got = split_result(device, lambda x: x.amax(1), x)
    torch.testing.assert_close(got, x.amax(1), rtol=0, atol=0, equal_nan=True)


def test_positions_and_primes_stay_whole(device: str) -> None:
    """Two results are not merged, and 29989 has no parts."""
    for function, x in (
        (lambda x: x.argmax(), numbers(LONG)),
        (lambda x: x.sum(), numbers(29989)),
    ):
        compiled = traced(function, device)
        with torch.no_grad():
            compiled(x)
            got = compiled(x)
        assert "magweld.parts" not in compiled.records[0].mlir("scheduled")
        torch.testing.assert_close(got, function(x))


def test_nothing_to_reduce(device: str) -> None:
    for x in (numbers(3, 0), numbers(0, 3)):
        compiled = traced(lambda x: x.sum(1), device)
        with torch.no_grad():
            compiled(x)
            torch.testing.assert_close(compiled(x), x.sum(1), rtol=0, atol=0)
