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
    "scattered": lambda x: torch.as_strided_scatter(x, x.new_ones(2), (2,), (1,), 0),
    "taken": lambda x: torch.as_strided_copy(x, (2,), (1,), 0) * 2,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_hits_have_the_strides_of_eager(name: str, whole: bool) -> None:
    program = PROGRAMS[name]
    inputs = [*INPUTS.items()]
    if not whole:  # every second one, and the others for the next program
        inputs = inputs[[*PROGRAMS].index(name) % 2 :: 2]
    for label, x in inputs:
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


@pytest.mark.parametrize(
    "program",
    [lambda x: x.t() + 1, lambda x: torch.copysign(x.t(), x.t().contiguous())],
    ids=["turned", "two orders"],
)
@pytest.mark.parametrize("columns", [1, 3])
def test_strides_at_other_sizes_than_those_of_the_captured_run(
    program: Callable[[Tensor], Tensor], columns: int
) -> None:
    fast = trace(program, compile="now")
    for rows in (5, 6, 7, 7, 7, 6):
        x = torch.randn(rows, columns)
        assert layouts(fast(x)) == layouts(program(x)), fast.explain()


def test_strides_of_what_a_branch_leaves() -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.sin(x)
        return y.t() + 1 if y.sum() * 2 > 0 else y.t().contiguous() * 3

    fast = trace(program, compile="now")
    for sign in (1, -1, 1, -1, 1):
        x = sign * torch.ones(3, 1)
        assert layouts(fast(x)) == layouts(program(x)), fast.explain()
    assert fast.stats()["hits"] > 2


def test_strides_of_what_needs_gradients() -> None:
    def program(x: Tensor) -> list[Tensor]:
        return [torch.relu(x), x * 2, x.transpose(0, 1) + 1]

    for label in ("column", "row", "images"):
        leaf = INPUTS[label].detach().requires_grad_()
        fast = trace(program, compile="now")
        expected = layouts(program(leaf))
        assert [layouts(fast(leaf)) for _ in range(CALLS)] == [expected] * CALLS, label


def test_empty_results_begin_where_those_of_eager_do() -> None:
    def program(x: Tensor) -> list[Tensor]:
        y = x.t() + 1
        return [y, y[:, 1:]]

    fast, x = trace(program, compile="now"), torch.randn(1, 4)
    expected = layouts(program(x))
    assert [layouts(fast(x)) for _ in range(CALLS)] == [expected] * CALLS


def test_results_that_are_no_views_in_eager_are_none() -> None:
    def program(x: Tensor) -> list[Tensor]:
        y, z = x.t() * 2, x[:, ::2] + 1
        return [y, z, y.t(), z[0], x.t().exp(), (x > 0).to(torch.uint8)]

    fast, x = trace(program, compile="now"), torch.randn(3, 4)
    for _ in range(CALLS):
        expected, found = program(x), fast(x)
        assert [t._is_view() for t in found] == [t._is_view() for t in expected]
        assert layouts(found) == layouts(expected)
        found[0].detach_()  # not for views
        before = found[2]._version
        found[0].add_(1)
        assert found[2]._version > before
        torch.testing.assert_close(found[2], found[0].t())


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


COPIES = {
    "clone": lambda x: x.clone(),
    "times one": lambda x: x * 1,
    "added": lambda x: x + 1,
    "none": lambda x: x,
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("offset", [None, 0, 1])
def test_a_copy_begins_where_its_own_memory_does(name: str, offset: int | None) -> None:
    def program(x: Tensor) -> Tensor:
        return COPIES[name](x).as_strided((2, 2), (1, 2), offset) * 2

    fast = trace(program, compile="now")
    for first in (5, 5, 0, 3):
        x = torch.arange(20.0)[first : first + 10]
        assert torch.equal(fast(x), program(x))
