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


def generators() -> Restore:
    """Return what puts the random generators back."""
    drawn, chosen = torch.get_rng_state(), random.getstate()
    numpy: Any = sys.modules.get("numpy")
    state = None if numpy is None else numpy.random.get_state()

    def restore() -> None:
        torch.set_rng_state(drawn)
        random.setstate(chosen)
        if numpy is not None:
            numpy.random.set_state(state)

    return restore


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
