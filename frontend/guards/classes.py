"""Owns guards on classes: what lookups found, checked by version tag when possible."""

from __future__ import annotations

import ctypes
import functools
import sys
from dataclasses import dataclass
from typing import Any, Final

from magweld.frontend.state.mro import find_after, find_in_mro, find_own
from magweld.frontend.state.values import is_scalar, same_scalar

# Offset of `tp_version_tag` in PyTypeObject on 64-bit CPython 3.11 and 3.12 (Include/
# cpython/object.h). The tag is unique to a state of a class and its bases: any change
# resets it, and a tag is never given out twice. `_tags_work` checks this.
_TAG_OFFSET: Final = 384


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


def _tag_cell(cls: type) -> ctypes.c_uint:
    return ctypes.c_uint.from_address(id(cls) + _TAG_OFFSET)


@functools.cache
def _tags_work() -> bool:
    """Return whether version tags behave as they must on this interpreter."""
    if sys.version_info[:2] not in ((3, 11), (3, 12)) or sys.maxsize < 1 << 32:
        return False

    class Base:
        x = 1

    class Derived(Base):
        pass

    instance = Derived()
    tags = []
    for _ in range(2):
        for _ in range(3):
            assert instance.x, "the lookup gives the class a tag"
        tags.append(_tag_cell(Derived).value)
    Base.x = 2
    reset = _tag_cell(Derived).value
    assert instance.x == 2, "the lookup gives the class a new tag"
    last = _tag_cell(Derived).value
    return tags[0] == tags[1] != 0 and reset == 0 and last not in (0, tags[0])


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
        self._cells = [_tag_cell(cls) for cls in self._classes] if _tags_work() else []
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
