"""Results have eager's strides, also where a run without data gives others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from magweld.frontend import trace

CALLS = 3


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    memory = torch.linspace(-1.0, 1.0, 200)
    return memory.as_strided(shape, strides).detach()


INPUTS = {
    "column": strided((3, 1), (1, 3)),
    "row": strided((1, 2), (1, 1)),
    "images": strided((1, 1, 3, 3), (3, 1, 3, 1)),
    "last": strided((1, 3, 1, 1), (9, 1, 3, 1)),
    "gaps": strided((2, 3, 1, 2), (12, 2, 6, 1)),
    "turned": strided((2, 3, 3), (3, 6, 1)),
    "plain": strided((1, 2, 3), (6, 3, 1)),
}
PROGRAMS: dict[str, Callable[[Tensor], Any]] = {
    "view": lambda x: (x * 1.0).view(1, *x.shape, 1),
    "add": lambda x: x + 1,
    "two": lambda x: x * x.flip(0),
    "relu": torch.relu,
    "gelu": F.gelu,
    "clamp": lambda x: x.clamp(0, 1),
    "masked": lambda x: x.masked_fill(x > 0, 0.0),
    "log_softmax": lambda x: x.log_softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(1), torch.ones(1)),
    "norm": lambda x: x.norm(dim=-1),
    "einsum": lambda x: torch.einsum("...i,...i->...", x, x),
    "products": lambda x: torch.einsum("...ij,...kj->...ik", x, x),
    "shared": lambda x: [y := x * 2, y.transpose(0, -1), y.unsqueeze(0)],
    "turned back": lambda x: (x * 2).transpose_(0, -1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_hits_have_the_strides_of_eager(name: str) -> None:
    program = PROGRAMS[name]
    for label, x in INPUTS.items():
        try:
            expected = program(x)
        except (IndexError, RuntimeError):
            continue  # not for this shape
        fast = trace(program)
        for _ in range(CALLS):
            found = fast(x)
            fast.wait()
        assert layouts(found) == layouts(expected), label
        torch.testing.assert_close(found, expected)


def test_strides_are_those_of_the_inputs_of_the_call() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.relu(x)

    fast = trace(program, dynamic={"x": [0]})
    for shape, strides in [((3, 1), (1, 3)), ((3, 1), (1, 1)), ((5, 1), (1, 5))] * 2:
        x = strided(shape, strides)
        assert fast(x).stride() == program(x).stride()
        fast.wait()


def test_inputs_of_one_name_are_told_apart() -> None:
    def closure(weight: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda x: torch.relu(x @ weight)

    first, second = closure(torch.randn(3, 3)), closure(torch.randn(3, 3))

    def program(x: Tensor) -> Tensor:
        return second(first(x))

    fast, x = trace(program), torch.randn(2, 3)
    for _ in range(CALLS):
        torch.testing.assert_close(fast(x), program(x))
        fast.wait()
    assert fast.stats()["records"] == 1, fast.explain()


def layouts(result: Any) -> list[Any]:
    tensors = [result] if isinstance(result, Tensor) else result
    return [(t.shape, t.stride(), t.storage_offset()) for t in tensors]
