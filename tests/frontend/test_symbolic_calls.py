"""Operators on symbolic sizes have the forms that torch gives them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from magweld.frontend.lifting.ahead import InputForm
from magweld.frontend.lifting.environment import SymbolicEnvironment
from magweld.frontend.lifting.symbolic_calls import ON_SYMBOLS
from magweld.frontend.lifting.symbols import NotSymbolicError
from magweld.frontend.traced import trace

SIZES = (9, 12, 40, 101)

CALLS: dict[str, tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = {
    "as it is": ("conv2d", (6, 4, 3, 3), (), {}),
    "steps": ("conv2d", (6, 4, 3, 3), (None, 2, 1), {}),
    "uneven": ("conv2d", (6, 4, 3, 2), (None, (2, 1), (0, 2), (1, 3)), {}),
    "groups": ("conv2d", (6, 2, 3, 3), (), {"padding": 1, "groups": 2}),
    "words": ("conv2d", (6, 4, 3, 3), (), {"padding": "same"}),
    "one dimension": ("conv1d", (6, 4, 5), (None, 2, [1]), {}),
    "three dimensions": ("conv3d", (6, 4, 1, 3, 3), (None, 1, (0, 1, 1)), {}),
    "transposed": ("conv_transpose2d", (4, 6, 2, 2), (None, 2), {}),
    "transposed with more": (
        "conv_transpose2d",
        (4, 3, 3, 3),
        (None, 2, 1, 1, 2, 2),
        {},
    ),
}


def image(size: int, rank: int) -> Tensor:
    """Return images of four channels, of heights other than widths."""
    return torch.zeros(2, 4, *[size + n for n in range(rank - 2)])


@pytest.mark.parametrize("name", CALLS)
def test_a_convolution_has_the_form_that_torch_gives_it(name: str) -> None:
    called, shape, args, kwargs = CALLS[name]
    weight = torch.zeros(shape)
    for size in SIZES:
        x = image(size, len(shape))
        ours = ON_SYMBOLS[called](x, weight, *args, **kwargs)
        theirs = getattr(torch, called)(x, weight, *args, **kwargs)
        assert (ours.shape, ours.stride()) == (theirs.shape, theirs.stride())
        assert ours.dtype == theirs.dtype


LAYOUTS = {
    "images": lambda x, w: (x.to(memory_format=torch.channels_last), w),
    "weights": lambda x, w: (x, w.to(memory_format=torch.channels_last)),
    "autocast": lambda x, w: (x, w),
    "one image": lambda x, w: (x[0], w),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_torch_tells_where_it_would_give_another_layout_or_type(name: str) -> None:
    x, weight = LAYOUTS[name](image(9, 4), torch.zeros(6, 4, 3, 3))
    with torch.autocast("cpu", torch.bfloat16, enabled=name == "autocast"):
        ours = ON_SYMBOLS["conv2d"](x, weight)
        theirs = torch.conv2d(x, weight)
    assert (ours.shape, ours.stride()) == (theirs.shape, theirs.stride())
    assert ours.dtype == theirs.dtype


def test_how_many_elements_an_image_has_is_no_guard() -> None:
    environment = SymbolicEnvironment()
    shape, strides = (1, 4, 64, 64), (4 * 64 * 64, 64 * 64, 64, 1)
    form = InputForm(
        "x", "x", frozenset({2, 3}), shape, strides, torch.float32, torch.device("cpu")
    )
    x = environment.input(form).fake
    weight = environment.mode.from_tensor(torch.zeros(4, 4, 3, 3), static_shapes=True)
    with environment.mode:
        y = ON_SYMBOLS["conv2d"](x, weight, None, 1, 1)
        ON_SYMBOLS["conv_transpose2d"](y, weight, None, 2)
    numbers = {
        abs(int(number))
        for guard in environment.env.guards
        for number in guard.expr.atoms(*[type(n) for n in guard.expr.args])
        if number.is_Integer
    }
    assert max(numbers, default=0) < 64


@pytest.mark.parametrize("called", ["conv2d", "conv_transpose2d"])
def test_what_torch_refuses_has_no_form(called: str) -> None:
    with FakeTensorMode():
        x = torch.zeros(1, 4, 2, 2)
        with pytest.raises(NotSymbolicError):
            ON_SYMBOLS[called](x, torch.zeros(5, 5, 3, 3))
        with pytest.raises(NotSymbolicError):
            ON_SYMBOLS["conv2d"](x, torch.zeros(4, 4, 3, 3))


SCALES = (2, 1.5, 0.5, 0.3, 1 / 3, 2.7, (2, 0.75))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_a_scaled_image_has_the_form_that_torch_gives_it(scale: Any, mode: str) -> None:
    scale = (scale, scale) if isinstance(scale, float | int) else scale
    exact = all(float(one).as_integer_ratio()[1] < 1 << 20 for one in scale)
    for size in (*SIZES, *range(20, 60)):
        x = image(size, 4)
        if exact:
            ours = ON_SYMBOLS["interpolate"](x, None, scale, mode)
            theirs = torch.nn.functional.interpolate(x, None, scale, mode)
            assert (ours.shape, ours.stride()) == (theirs.shape, theirs.stride())
            assert ours.dtype == theirs.dtype
        else:
            with pytest.raises(NotSymbolicError):
                ON_SYMBOLS["interpolate"](x, scale_factor=scale, mode=mode)


WINDOWS: tuple[tuple[Any, ...], ...] = (
    *((3,), (2, 1, 0, 2), ((3, 2), (1, 2), (2, 0), 1)),
)


@pytest.mark.parametrize("windows", WINDOWS)
def test_windows_have_the_form_that_torch_gives_them(windows: tuple[Any, ...]) -> None:
    for size in SIZES:
        x = image(size, 4)
        ours = ON_SYMBOLS["unfold"](x, *windows)
        theirs = torch.nn.functional.unfold(x, *windows)
        assert (ours.shape, ours.stride()) == (theirs.shape, theirs.stride())


F = torch.nn.functional
RESIZED: dict[str, Any] = {
    "scaled": lambda x: F.interpolate(x[None], scale_factor=2).sum(-1),
    "given": lambda x: F.interpolate(x[None], size=(x.shape[1] // 2, 8), mode="area"),
    "like": lambda x: F.interpolate(x[None], x.shape[1:], mode="bilinear"),
    "one": lambda x: F.interpolate(x, int(x.shape[1] * 0.4)) + 1,
    "layer": lambda x: torch.nn.Upsample(scale_factor=1.5, mode="bilinear")(x[None]),
    "grid": lambda x: F.affine_grid(torch.eye(2, 3)[None], (1, 1, *x.shape[1:])),
    "steps": lambda x: torch.linspace(-1, 1, steps=x.shape[1]) + x.sum(),
    "few": lambda x: torch.logspace(0, 1, x.shape[1], dtype=torch.float64),
    "window": lambda x: torch.hann_window(x.shape[1], False) * x[0, :, 0],
    "columns": lambda x: F.unfold(x[None], 3, padding=1).transpose(1, 2),
    "rounded": lambda x: x.new_zeros(math.ceil(x.shape[1] / 2), int(x.shape[1] * 1.3)),
    "of a pool": lambda x: x.new_ones(round(F.max_pool2d(x, 2).shape[1] ** 1.5)),
    "padded": lambda x: F.pad(x, (0, math.ceil(x.shape[1] / 4) * 4 - x.shape[1])),
}


@pytest.mark.filterwarnings("ignore:Default grid_sample")
@pytest.mark.parametrize("name", RESIZED)
def test_one_record_is_for_all_extents(name: str) -> None:
    fast = trace(RESIZED[name], backend="eager")
    for extent in (6, 7, 8, 9, 10, 13, 14, 17, 30):
        x = torch.arange(3.0 * extent * 12).reshape(3, extent, 12)
        assert torch.equal(fast(x), RESIZED[name](x))
    assert fast.stats()["records"] <= 3, fast.explain()
