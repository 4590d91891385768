"""Views of inputs that require gradients, made while none are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "slice": lambda x: x[1:],
    "all": lambda x: x[:],
    "transpose": lambda x: x.t(),
    "view": lambda x: x.view(-1),
    "expand": lambda x: x.unsqueeze(0).expand(2, -1, -1),
    "parts": lambda x: x.split(2),
    "written": lambda x: (x.mul_(2)[:1], x),
    "detached": lambda x: x.detach(),
    "all of detached": lambda x: x.detach()[:],
    "view of detached": lambda x: x.detach()[:2],
    "data": lambda x: x.data[1:],
    "both": lambda x: (x[1:], x.detach()[1:], x[:0]),
    "itself": lambda x: x,
    "view of a view": lambda x: x[1:].t()[1:],
    "copy": lambda x: x[1:].clone(),
}


def told(x: Tensor, found: Tensor) -> tuple[Any, ...]:
    """Return what eager and compiled code must agree in."""
    base = None if found._base is None else found._base is x
    return (
        found.requires_grad,
        found.is_leaf,
        found is x,
        base,
        found.stride(),
        found.storage_offset(),
        found.tolist(),
    )


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_what_a_view_requires(name: str, requires_grad: bool) -> None:
    def program(x: Tensor) -> tuple[Tensor, Any]:
        return x * 2 + 1, VIEWS[name](x)

    traced = trace(program, backend="magweld", compile="now")
    for number in range(3):
        x = torch.arange(24.0).view(6, 4).add(number).requires_grad_(requires_grad)
        y = x.detach().clone().requires_grad_(requires_grad)
        with torch.no_grad():
            expected = torch.utils._pytree.tree_leaves(program(x))
            found = torch.utils._pytree.tree_leaves(traced(y))
        assert [told(x, t) for t in expected] == [told(y, t) for t in found]
    stats = traced.stats()
    assert stats["hits"] > stats["torch_hits"], traced.explain()
