"""Owns the components of a graph of numbers: those that pairs connect."""

from __future__ import annotations

from collections.abc import Iterable


def components(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the numbers below a count, those together that pairs connect.

    Those of a component rise, and components come in the order of their first.
    """
    root = list(range(count))

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for one, other in pairs:
        root[find(other)] = find(one)
    found: dict[int, list[int]] = {}
    for number in range(count):
        found.setdefault(find(number), []).append(number)
    return list(found.values())
