"""Convolutions on symbolic sizes have the forms that torch gives them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from magweld.frontend.lifting.ahead import InputForm
from magweld.frontend.lifting.environment import SymbolicEnvironment
from magweld.frontend.lifting.symbolic_calls import ON_SYMBOLS
from magweld.frontend.lifting.symbols import NotSymbolicError

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
