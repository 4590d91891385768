"""Owns comparisons of random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magweld.frontend.state.draws import Holding

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def note_decision(observer: Observer, symbol: str, stack: list[Any]) -> None:
    """Record a comparison as a use of the random numbers in it."""
    held = observer.drawn
    observer.drawn = ()
    for holding in held:
        observer.drawn += _after(observer, holding, symbol, stack)


def _after(
    observer: Observer, holding: Holding, symbol: str, stack: list[Any]
) -> tuple[Holding, ...]:
    place, last = holding.place, len(stack) - 1
    if place is None or place < last - 1:
        return (holding,)
    other = 2 * last - 1 - place
    # What is to be compared with is another number in each call if it is lifted.
    shadow = observer.shadow
    lifted = shadow is not None and shadow.operand(other) is not None
    if lifted or type(stack[other]) not in (int, float):
        return ()
    holding.draw.decide(symbol, stack[other], reflected=place == last)
    return holding.at(None, holding.slot)
