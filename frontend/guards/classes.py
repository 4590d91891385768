"""Owns guards on classes: what lookups found, checked by version tag when possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.frontend.state.mro import find_after, find_in_mro, find_own
from magweld.frontend.state.tags import tag_cell, tags_work
from magweld.frontend.state.values import is_scalar, same_scalar


@dataclass(frozen=True)
class ClassLookup:
    """One lookup that must find the same again.

    Attributes:
        cls: Class whose method resolution order is searched.
        key: Name, or (start, name) for a search behind `start`, or (None, name) for
            one in the class alone.
        value: What was found, or ABSENT.
    """

    cls: type
    key: Any
    value: Any

    def holds(self) -> bool:
        """Return whether the lookup finds the same now."""
        if type(self.key) is not tuple:
            found = find_in_mro(self.cls, self.key)
        elif self.key[0] is None:
            found = find_own(self.cls, self.key[1])
        else:
            found = find_after(self.cls, *self.key)
        if found is self.value:
            return True
        return is_scalar(self.value) and same_scalar(self.value, found)


class ClassGuards:
    """All class lookups of a record as one check.

    A class whose version tag is as at the last success needs no second look.
    """

    def __init__(self, lookups: list[ClassLookup]) -> None:
        self.lookups = lookups
        by_class: dict[int, list[int]] = {}
        for index, item in enumerate(lookups):
            by_class.setdefault(id(item.cls), []).append(index)
        self._groups = list(by_class.values())
        self._classes = [lookups[group[0]].cls for group in self._groups]
        self._cells = [tag_cell(cls) for cls in self._classes] if tags_work() else []
        self._tags = [0] * len(self._groups)

    def check(self) -> int:
        """Return -1 when all lookups hold, else the number of one that does not."""
        now = [cell.value for cell in self._cells]
        if now == self._tags and 0 not in now and now:
            return -1
        for position, group in enumerate(self._groups):
            if now and now[position] and now[position] == self._tags[position]:
                continue
            for index in group:
                if not self.lookups[index].holds():
                    return index
            if self._cells:
                self._refresh(position)
        return -1

    def _refresh(self, position: int) -> None:
        # An ordinary lookup makes the interpreter assign a tag if there is none.
        type.__getattribute__(self._classes[position], "__doc__")
        self._tags[position] = self._cells[position].value
