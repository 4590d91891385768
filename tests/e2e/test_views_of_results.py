"""Results that are a part of memory lie in it where eager's do."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

CALLS = 3


def place(tensor: Tensor) -> tuple[Any, ...]:
    """Return how a tensor lies in its memory, and how large that is."""
    memory = tensor.untyped_storage().nbytes()
    return (tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), memory)


def places(result: Any) -> list[tuple[Any, ...]]:
    return [place(t) for t in torch.utils._pytree.tree_leaves(result)]


PROGRAMS: dict[str, Callable[[Tensor], Any]] = {
    "first": lambda x: (x * 2)[0],
    "last": lambda x: (x * 2)[-1],
    "rows": lambda x: (x + 1)[1:3],
    "all rows": lambda x: (x + 1)[0:],
    "column": lambda x: (x @ x.t())[:, -1],
    "steps": lambda x: x.exp()[::2, 1:],
    "second part": lambda x: (x * 3).chunk(2)[1],
    "turned part": lambda x: (x * 3)[1:].t(),
    "diagonal": lambda x: (x @ x.t()).diagonal(1),
    "expanded part": lambda x: (x - 1)[2].expand(3, -1),
    "element": lambda x: (x * 2)[1, 2],
    "nothing": lambda x: (x * 2)[4:],
    "two parts": lambda x: (lambda y: (y[1], y[:, 1]))(x * 2),
    "part of two": lambda x: ((x * 2)[1:], (x * 3)[:2]),
    "sorted": lambda x: x.sort(1)[0][1],
    "largest": lambda x: x.topk(2)[0][-1],
}


@pytest.mark.sample(11)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("trains", [False, True])
def test_parts_lie_where_those_of_eager_do(name: str, trains: bool) -> None:
    program = PROGRAMS[name]
    fast = trace(program, compile="now")
    for _ in range(CALLS):
        x = torch.randn(4, 6, requires_grad=trains)
        y = x.detach().clone().requires_grad_(trains)
        found, expected = fast(x), program(y)
        torch.testing.assert_close(found, expected)
        assert places(found) == places(expected)
        if trains:
            for result in (found, expected):
                torch.utils._pytree.tree_leaves(result)[0].pow(2).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)
    assert fast.stats()["hits"] == CALLS - 1, fast.explain()


def test_memory_of_a_part_can_be_read_and_saved_as_that_of_eager() -> None:
    fast = trace(lambda x: (x * 2)[1:], compile="now")
    x = torch.randn(4, 6)
    for _ in range(CALLS):
        found, expected = fast(x), (x * 2)[1:]
        moved = [t.as_strided((2, 3), (6, 1), 13) for t in (found, expected)]
        assert torch.equal(*moved)
        files = [io.BytesIO(), io.BytesIO()]
        for tensor, file in zip((found, expected), files, strict=True):
            torch.save(tensor, file)
        assert len({len(file.getvalue()) for file in files}) == 1


SIZED: dict[str, Callable[[Tensor], Any]] = {
    "first": lambda x: (x * 2).relu()[0],
    "last": lambda x: (x * 2).relu()[-1],
    "first of each": lambda x: (x * 2).relu()[:, 0],
    "last of each": lambda x: (x * 2).relu()[:, -1],
    "behind the first": lambda x: (x * 2).relu()[1:],
    "turned": lambda x: (x * 2).relu().transpose(0, 1),
}


@pytest.mark.parametrize("name", SIZED)
def test_parts_lie_where_sizes_say(name: str) -> None:
    program = SIZED[name]
    fast = trace(program, compile="now")
    for size in (5, 6, 7, 9, 7, 11, 13, 9):
        x = torch.randn(3, size, 8)
        found, expected = fast(x), program(x)
        torch.testing.assert_close(found, expected)
        assert places(found) == places(expected)


def test_what_is_kept_of_a_part_for_gradients_is_dense() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        part = (x * x)[:, 1]
        return part, part.exp()

    fast = trace(program, compile="now")
    for _ in range(CALLS):
        x = torch.randn(4, 3, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        for function, given in ((fast, x), (program, y)):
            part, after = function(given)
            (part.sum() + after.sum()).backward()
        torch.testing.assert_close(x.grad, y.grad)
