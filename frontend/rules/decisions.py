"""Owns comparisons that are the only use of a random number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def note_decision(observer: Observer, symbol: str, stack: list[Any]) -> None:
    """Record that all that is ever done with a random number is this comparison."""
    assert observer.drawn is not None, "a number was drawn"
    draw, place = observer.drawn
    if place < len(stack) - 2:
        return
    observer.drawn = None
    reflected = place == len(stack) - 1
    other = stack[-2] if reflected else stack[-1]
    if type(other) in (int, float):
        draw.decide(symbol, other, reflected)
