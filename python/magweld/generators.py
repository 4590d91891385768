"""Owns the states of the random generators that torch's operators draw from."""

from __future__ import annotations

from collections.abc import Callable

import torch

PutBack = Callable[[], None]


def save_generator() -> PutBack:
    """Save the state of the CPU's generator; the result makes it what it was."""
    state = torch.default_generator.get_state()

    def restore() -> None:
        torch.default_generator.set_state(state)

    return restore


def save_generators() -> PutBack:
    """Save the states of the generators of all devices, as `save_generator` does."""
    of_cpu, of_gpus = save_generator(), None
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        of_gpus = torch.cuda.get_rng_state_all()

    def restore() -> None:
        of_cpu()
        if of_gpus is not None:
            torch.cuda.set_rng_state_all(of_gpus)

    return restore
