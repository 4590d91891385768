"""Convolutions that are computed with fewer products, against eager and float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from magweld import frontend

# As many times the error of a sum of products as there may be.
FACTOR = 3.0
SHAPES = {
    "one-block-of-rows": ((1, 64, 28, 56), 16, 1),
    "even": ((1, 64, 28, 28), 64, 1),
    "odd": ((1, 64, 27, 29), 96, 1),
    "no-border": ((1, 64, 17, 30), 64, 0),
    "wide-border": ((1, 64, 21, 28), 64, 2),
    "batch": ((3, 96, 19, 19), 64, 1),
    "small-images": ((6, 128, 13, 13), 128, 1),
    "few-rows": ((4, 64, 6, 33), 64, (0, 1)),
    "long": ((1, 64, 14, 70), 64, 1),
    "many-channels": ((2, 160, 14, 14), 128, 1),
    "weights-of-one-tile": ((1, 512, 7, 7), 512, 1),
    "weights-in-parts": ((2, 195, 12, 14), 64, 1),
    "prime-channels": ((1, 131, 14, 14), 96, 1),
    "weights-of-many-tiles": ((1, 64, 56, 56), 64, 1),
}


def floats(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def convolution(padding: int | tuple[int, int]) -> Callable[..., Tensor]:
    return lambda x, w, b: torch.relu(F.conv2d(x, w, b, padding=padding))


def operands(shape: tuple[int, ...], rows: int) -> tuple[Tensor, Tensor, Tensor]:
    depth = shape[1]
    return floats(*shape), floats(rows, depth, 3, 3, seed=1), floats(rows, seed=2)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SHAPES)
def test_is_as_exact_as_sums_of_products(name: str) -> None:
    shape, rows, padding = SHAPES[name]
    eager = convolution(padding)
    compiled = frontend.trace(eager)
    inputs = operands(shape, rows)
    compiled(*inputs)
    got = compiled(*inputs)
    assert compiled.stats()["hits"] == 1
    assert "winograd" in compiled.explain()
    exact = eager(*(value.double() for value in inputs))
    error, usual = (
        float((result - exact).abs().max()) for result in (got, eager(*inputs))
    )
    assert error <= FACTOR * usual + 1e-7 * float(exact.abs().max())


@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1e15])
def test_scale_of_values(scale: float) -> None:
    eager = convolution(1)
    compiled = frontend.trace(eager)
    x, w, b = operands((1, 64, 28, 28), 64)
    inputs = (x * scale, w, b * scale)
    compiled(*inputs)
    exact = eager(*(value.double() for value in inputs))
    error = float((compiled(*inputs) - exact).abs().max())
    assert "winograd" in compiled.explain()
    assert error <= 2e-6 * float(exact.abs().max())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38])
@pytest.mark.parametrize("where", ["image", "weight"])
def test_what_is_no_finite_number_stays_where_it_was(where: str, value: float) -> None:
    """Transforms mix neighbours; such results are computed by the window itself."""
    compiled = frontend.trace(lambda x, w: F.conv2d(x, w, padding=1))
    x, w, _ = operands((2, 64, 28, 30), 64)
    compiled(x, w)
    if where == "image":
        x[1, 3, 4, 5] = value
    else:
        w[7, 3, 0, 2] = value
    got, expected = compiled(x, w), F.conv2d(x, w, padding=1)
    assert compiled.stats()["hits"] == 1
    assert "winograd" in compiled.explain()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_negative_zero_is_no_border(padding: int, value: float) -> None:
    """Zero times what is no finite number is none either, whatever its sign."""
    eager = partial(F.conv2d, padding=padding)
    compiled = frontend.trace(lambda x, w: eager(F.hardswish(x), w))
    x, w, _ = operands((1, 64, 28, 30), 64)
    x[0, 3] = -4.0
    compiled(x, w)
    w[7, 3, 1, 1] = value
    got, expected = compiled(x, w), eager(F.hardswish(x), w)
    assert compiled.stats()["hits"] == 1
    assert "winograd" in compiled.explain()
    assert expected[0, 7].isnan().all()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_zeros_stay_zeros() -> None:
    compiled = frontend.trace(lambda x, w: F.conv2d(x, w, padding=1))
    x, w, _ = operands((1, 64, 28, 28), 64)
    x[:, :, 3:12] = 0
    compiled(x, w)
    got, expected = compiled(x, w), F.conv2d(x, w, padding=1)
    assert "winograd" in compiled.explain()
    assert torch.equal(got == 0, expected == 0)
    assert not torch.signbit(got[got == 0]).any()


def test_weights_that_change_between_calls() -> None:
    model = torch.nn.Conv2d(64, 64, 3, padding=1).eval()
    compiled = frontend.trace(model)
    x = floats(1, 64, 28, 28)
    with torch.no_grad():
        compiled(x)
        model.weight.data.mul_(3.0)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
        model.weight.numpy()[:] = 0.5
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
    assert compiled.stats()["hits"] == 2
    assert "winograd" in compiled.explain()


def test_two_in_one_kernel_or_beside_each_other() -> None:
    first, second = floats(64, 64, 3, 3), floats(128, 64, 3, 3, seed=5)

    def chain(x: Tensor) -> Tensor:
        y = F.relu(F.conv2d(x, first, padding=1))
        return F.max_pool2d(F.conv2d(y, second, padding=1), 2) + F.conv2d(
            F.max_pool2d(x, 2), second, padding=1
        )

    compiled = frontend.trace(chain)
    x = floats(1, 64, 56, 56)
    compiled(x)
    expected = chain(x)
    got = compiled(x)
    assert "winograd" in compiled.explain()
    assert float((got - expected).abs().max() / expected.abs().max()) < 2e-6


def test_the_time_of_a_step_has_that_of_its_weights() -> None:
    shape, rows, padding = SHAPES["weights-of-many-tiles"]
    compiled = frontend.trace(
        lambda *inputs: convolution(padding)(*inputs).sum((2, 3)).softmax(1)
    )
    inputs = operands(shape, rows)
    compiled(*inputs)
    graph = compiled.records[0].compiled
    graph.measure(inputs, 1)
    report = graph.report()
    names = [group["operators"] for group in report["groups"]]
    assert ["winograd_weights"] in names
    steps = [step for one in report["graphs"] for step in one["steps"]]
    assert len(steps) == len(names) - 1
    times = [step["measured_seconds"] for step in steps]
    assert sum(times) == pytest.approx(sum(graph.measured))
