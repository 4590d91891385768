"""Strict comparison of results: structure, classes, values, strides and aliases."""

from __future__ import annotations

from typing import Any

import torch


def _slots(obj: Any) -> dict[str, Any]:
    state: dict[str, Any] = dict(getattr(obj, "__dict__", {}))
    for cls in type(obj).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(obj, name):
                state[name] = getattr(obj, name)
    return state


class Comparison:
    """Compares two results; the pairs seen so far hold identities.

    Attributes:
        difference: Where the results differ first, "" when they agree.
        largest: Largest difference of two elements that count as equal.
    """

    def __init__(self) -> None:
        self.difference = ""
        self.largest = 0.0
        self._pairs: dict[int, int] = {}
        self._partners: dict[int, int] = {}
        self._kept: list[Any] = []

    def compare(self, left: Any, right: Any, path: str) -> None:
        """Compare two values and what they hold; keeps the first difference."""
        if self.difference:
            return
        if type(left) is not type(right):
            self.difference = (
                f"{path}: {type(right).__name__} for {type(left).__name__}"
            )
            return
        if isinstance(left, (torch.Tensor, list, dict, set)) or hasattr(
            left, "__dict__"
        ):
            if self._pairs.get(id(left)) == id(right):
                return
            if id(left) in self._pairs or id(right) in self._partners:
                self.difference = f"{path}: another identity"
                return
            self._pairs[id(left)], self._partners[id(right)] = id(right), id(left)
            self._kept += [left, right]
        self._content(left, right, path)

    def _content(self, left: Any, right: Any, path: str) -> None:
        if isinstance(left, torch.Tensor):
            self._tensor(left, right, path)
        elif isinstance(left, (dict, list, tuple)):
            self._items(left, right, path)
            self._attributes(left, right, path)
        elif isinstance(left, (type, torch.nn.Module)) or callable(left):
            return
        elif type(left).__eq__ is object.__eq__:
            self._attributes(left, right, path)
        elif not bool(left == right) and left == left:
            self.difference = f"{path}: {right!r} for {left!r}"

    def _items(self, left: Any, right: Any, path: str) -> None:
        named = isinstance(left, dict)
        keys = [list(x) if named else list(range(len(x))) for x in (left, right)]
        if keys[0] != keys[1]:
            self.difference = f"{path}: keys {keys[1]}"
            return
        for key in keys[0]:
            self.compare(left[key], right[key], f"{path}[{key!r}]")

    def _attributes(self, left: Any, right: Any, path: str) -> None:
        ours, theirs = _slots(left), _slots(right)
        if list(ours) != list(theirs) and not self.difference:
            self.difference = f"{path}: attributes {list(theirs)} for {list(ours)}"
        for name in ours if not self.difference else ():
            self.compare(ours[name], theirs[name], f"{path}.{name}")

    def _tensor(self, left: torch.Tensor, right: torch.Tensor, path: str) -> None:
        for name in ("shape", "dtype", "device", "layout", "requires_grad"):
            mine, other = getattr(left, name), getattr(right, name)
            if mine != other:
                self.difference = f"{path}: {name} {other} for {mine}"
                return
        if left.layout is torch.strided and left.stride() != right.stride():
            self.difference = f"{path}: stride {right.stride()} for {left.stride()}"
        elif not torch.equal(left, right):
            self._values(left.detach(), right.detach(), path)

    def _values(self, left: torch.Tensor, right: torch.Tensor, path: str) -> None:
        numeric = left.is_floating_point() or left.is_complex()
        if numeric and torch.allclose(left, right, 1e-3, 1e-4, equal_nan=True):
            gap = (left - right).abs().nan_to_num(0.0, 0.0, 0.0)
            self.largest = max(self.largest, float(gap.max()))
        else:
            self.difference = f"{path}: values"


def compare(left: Any, right: Any) -> Comparison:
    """Return how `right` differs from `left`, which is taken to be right."""
    comparison = Comparison()
    comparison.compare(left, right, "result")
    return comparison
