"""Views that torch does not let be written to with gradients, as results of hits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from halves import Halves
from torch import Tensor

from magweld.frontend.traced import trace


def one_part(x: Tensor) -> Tensor:
    return (x * 2).chunk(2)[1]


def all_parts(x: Tensor) -> Any:
    return (x * 2).split(1)


def part_of_an_input(x: Tensor) -> Tensor:
    return x.unbind()[0]


def made_without_gradients(x: Tensor) -> Tensor:
    y = x * 2
    with torch.no_grad():
        return y[:1]


def plain(x: Tensor) -> Any:
    y = x * 2
    return y[:1], y[1:], x[0]


FUNCTIONS = [one_part, all_parts, part_of_an_input, made_without_gradients, plain]


def written(call: Callable[..., Any], x: Tensor) -> list[str]:
    """Return what torch says when results are written to with gradients."""
    found = []
    results = call(x)
    for result in results if isinstance(results, tuple) else (results,):
        try:
            result.add_(torch.ones(3, requires_grad=True))
        except RuntimeError as error:
            found.append(str(error))
        else:
            found.append("written")
        found.append(str(result._is_view()))
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_writes_raise_as_in_eager(function: Callable[..., Any]) -> None:
    traced = trace(function, compile="now")
    for _ in range(3):
        x = torch.randn(2, 3)
        assert written(traced, x.clone()) == written(function, x.clone())
    assert traced.stats()["hits"] == 2, traced.explain()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_results_beside_others_that_need_gradients(function: Any) -> None:
    def both(x: Tensor, w: Tensor) -> Any:
        results = function(x)
        results = results if isinstance(results, tuple) else (results,)
        return (*results, w * 2) if len(results) == 1 else (results[0], w * 2)

    traced = trace(both, backend=Halves())
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        x = torch.randn(2, 3)
        found = [
            written(lambda x, call=call: call(x, w)[0], x.clone())[0]
            for call in (traced, both)
        ]
        assert found[0] == found[1]


def test_a_view_of_an_input_has_the_restrictions_of_that_input() -> None:
    traced = trace(lambda x: x[1:], compile="now")
    for _ in range(2):
        for make in (lambda: torch.randn(4, 3), lambda: torch.randn(8, 3).chunk(2)[0]):
            x, y = make(), make()
            assert written(traced, x) == written(lambda x: x[1:], y)
