"""Layers of attention in inference, where torch takes another way than with modes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace

CALLS = 3
PADDING = torch.tensor([[False, False, True, True], [False, False, False, False]])
CAUSAL = torch.ones(4, 4).triu(1).bool()

WAYS: dict[str, dict[str, Any]] = {
    "weights": {},
    "no weights": {"need_weights": False},
    "weights of each head": {"average_attn_weights": False},
    "padding": {"key_padding_mask": PADDING},
    "padding, no weights": {"key_padding_mask": PADDING, "need_weights": False},
    "all is padding": {"key_padding_mask": torch.ones(2, 4).bool()},
    "causal": {"attn_mask": CAUSAL},
    "causal and padding": {"attn_mask": CAUSAL, "key_padding_mask": PADDING},
    "added": {"attn_mask": torch.randn(4, 4)},
}


def form(result: Any) -> list[Any]:
    return [None if t is None else (t.shape, t.stride()) for t in result]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("infers", [True, False])
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_results_lie_as_those_of_eager(
    name: str, batch_first: bool, infers: bool, backend: str
) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=batch_first).eval()

    def program(x: Tensor) -> Any:
        return layer(x, x, x, **WAYS[name])

    fast = trace(program, backend=backend, compile="now")
    for _ in range(CALLS):
        x = torch.randn(2, 4, 8) if batch_first else torch.randn(4, 2, 8)
        with torch.set_grad_enabled(not infers):
            found, expected = fast(x), program(x)
        torch.testing.assert_close(found, expected, equal_nan=True)
        if infers:
            assert form(found) == form(expected)
    assert fast.stats()["hits"] == CALLS - 1, fast.explain()
    assert not torch.overrides._get_current_function_mode_stack()
    assert torch._C._is_torch_function_enabled()


def test_a_program_may_rely_on_how_they_lie() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def program(x: Tensor) -> Tensor:
        result: Tensor = layer(x, x, x)[0]
        return result.view(2, -1) * 2

    fast = trace(program, compile="now")
    for _ in range(CALLS):
        x = torch.randn(2, 4, 8)
        with torch.no_grad():
            torch.testing.assert_close(fast(x), program(x))
    assert fast.stats()["hits"] == CALLS - 1, fast.explain()
