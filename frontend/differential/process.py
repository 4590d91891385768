"""Owns state of the process that is no object: generators and the gradient mode."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from typing import Any

import torch

Restore = Callable[[], None]


def grad_mode() -> Restore:
    """Return what puts the gradient mode back."""
    return functools.partial(torch._C._set_grad_enabled, torch.is_grad_enabled())


def generator_states() -> list[tuple[str, Any]]:
    """Return the states of all random generators as roots of a description."""
    # As one value: 625 numbers would be described one by one.
    chosen = repr(random.getstate())
    result: list[tuple[str, Any]] = [
        ("torch.get_rng_state()", torch.get_rng_state()),
        ("random.getstate()", chosen),
    ]
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        _, keys, position, gauss, cached = numpy.random.get_state()
        numbers = (keys.tobytes(), int(position), int(gauss), float(cached))
        result.append(("numpy.random.get_state()", numbers))
    return result
