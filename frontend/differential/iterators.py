"""Owns iterators whose position can be looked at and put back."""

from __future__ import annotations

from typing import Any, Final

POSITIONED: Final[frozenset[type]] = frozenset(
    type(iterator) for iterator in (iter([]), iter(()), iter(range(0)))
)


def position(iterator: Any) -> tuple[Any, int] | None:
    """Return what one of these iterates over, and how far it is; None at its end."""
    sequence, index = (*iterator.__reduce__()[1:], None)[:2]
    return None if index is None else (sequence[0], index)


class Positions:
    """Where some iterators were."""

    def __init__(self) -> None:
        self._items: list[tuple[Any, int]] = []

    def keep(self, iterator: Any) -> None:
        """Take note of where an iterator is."""
        there = position(iterator)
        if there is not None:
            self._items.append((iterator, there[1]))

    @property
    def are_lost(self) -> bool:
        """Whether one of them has come to its end."""
        return any(position(iterator) is None for iterator, _ in self._items)

    def restore(self) -> None:
        """Put them back."""
        for iterator, index in self._items:
            iterator.__setstate__(index)
