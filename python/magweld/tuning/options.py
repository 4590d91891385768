"""Owns what a caller may ask of tuning."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass


@dataclass(frozen=True)
class TuneOptions:
    """How plans are chosen by measuring.

    Attributes:
        seconds: Time for compiling and measuring plans that the cache has not. What it
            does not suffice for is planned by the model alone.
        candidates: Most plans of one unit that are measured.
        executor: Where plans are compiled and measured, several at a time; its workers
            have to be machines like this one. None: compiled in worker processes,
            measured in another one, alone.
        progress: Whether a bar is shown; None shows one at a terminal.

    Raises:
        ValueError: A number makes no sense.
    """

    seconds: float = 30.0
    candidates: int = 6
    executor: Executor | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"expected a positive time for tuning, got {self.seconds}")
        if self.candidates < 1:
            raise ValueError(f"expected at least one candidate, got {self.candidates}")

    def text(self) -> str:
        """Return as canonical text what results depend on: not who computes them."""
        return f"{self.seconds} s, {self.candidates} candidates"


Tune = bool | float | TuneOptions


def tune_options(tune: Tune) -> TuneOptions | None:
    """Return the options that True, a number of seconds or options stand for.

    Returns:
        None for no tuning.

    Raises:
        ValueError: A number is negative.
    """
    if isinstance(tune, TuneOptions):
        return tune
    if tune is True:
        return TuneOptions()
    return TuneOptions(seconds=float(tune)) if tune else None
