"""Owns the modes of torch that decide about operators and their results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch.autograd import forward_ad


def _is_not_traced() -> bool:
    return torch._C._get_tracing_state() is None


def has_forward_gradients() -> bool:
    """Return whether tensors may have gradients that go forward with them."""
    return forward_ad._current_level >= 0


# Each mode, and whether a `GlobalStateGuard` knows it: those that a program can switch,
# and the others that decide about operators.
_SWITCHED: Final[tuple[tuple[Callable[[], Any], bool], ...]] = (
    (torch.is_grad_enabled, True),
    (torch.is_inference_mode_enabled, False),
    (torch.get_default_dtype, True),
    (partial(torch.is_autocast_enabled, "cpu"), True),
    (partial(torch.is_autocast_enabled, "cuda"), True),
    (partial(torch.get_autocast_dtype, "cpu"), False),
    (partial(torch.get_autocast_dtype, "cuda"), False),
    (torch.are_deterministic_algorithms_enabled, True),
    (torch.is_anomaly_enabled, False),
)
_AROUND: Final[tuple[tuple[Callable[[], Any], bool], ...]] = (
    (torch._C._len_torch_function_stack, False),
    (torch._C._len_torch_dispatch_stack, False),
    (torch._C._is_torch_function_enabled, True),
    (_is_not_traced, False),
    (has_forward_gradients, False),
)
_UNKNOWN_TO_GUARD: Final = tuple(
    mode for mode, is_known in (*_SWITCHED, *_AROUND) if not is_known
)


def operator_state() -> tuple[Any, ...]:
    """Return the modes of torch that a program can switch."""
    return tuple([mode() for mode, _ in _SWITCHED])


def autocast_of(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what the modes say of autocast: whether and where to, for each device."""
    return state[3:7]


def without_autocast(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the modes without what they say of autocast."""
    return state[:3] + state[7:]


def torch_state() -> tuple[Any, ...]:
    """Return the modes of torch that decide about operators and their results."""
    return (*operator_state(), *[mode() for mode, _ in _AROUND])


def beside_global_state() -> list[Any]:
    """Return the modes of `torch_state` that a `GlobalStateGuard` does not know."""
    return [mode() for mode in _UNKNOWN_TO_GUARD]
