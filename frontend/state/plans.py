"""Owns how attributes of instances are found, worked out once per state of a class."""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
from typing import Any, Final

from magweld.frontend.state.lookup import (
    Finder,
    Found,
    is_generic,
    lookup,
    namespace_getter,
)
from magweld.frontend.state.mro import ABSENT, find_in_mro, is_immutable

# The tag is unique to a state of a class and its bases: any change resets it, and a tag
# is never given out twice.

# Offset of `tp_version_tag` in PyTypeObject on 64-bit CPython 3.11 and 3.12 (Include/
# cpython/object.h); `tags_work` checks it.
_TAG_OFFSET: Final = 384


def tag_cell(cls: type) -> ctypes.c_uint:
    """Return the memory of the tag of a class, which has to stay alive; 0 is none."""
    return ctypes.c_uint.from_address(id(cls) + _TAG_OFFSET)


@functools.cache
def tags_work() -> bool:
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
        tags.append(tag_cell(Derived).value)
    Base.x = 2
    reset = tag_cell(Derived).value
    assert instance.x == 2, "the lookup gives the class a new tag"
    last = tag_cell(Derived).value
    return tags[0] == tags[1] != 0 and reset == 0 and last not in (0, tags[0])


class ClassState:
    """A class as it is now."""

    __slots__ = ("_cell", "_cls", "_tag")

    def __init__(self, cls: type) -> None:
        self._cls = cls  # kept alive, so that its memory stays its own
        self._cell = tag_cell(cls)
        self._tag = self._cell.value if tags_work() else 0

    def stays(self) -> bool:
        """Return whether the class, and all of its bases, have surely not changed."""
        return self._tag != 0 and self._cell.value == self._tag


class Plans:
    """What is known of the classes that one run has met.

    Attributes:
        noted: Names looked up in classes by id, with what was found and when it holds.
    """

    def __init__(self) -> None:
        self.noted: dict[tuple[int, str], tuple[ClassState, Any]] = {}
        self._attributes: dict[tuple[int, str], tuple[ClassState, Finder]] = {}
        self._found: dict[object, tuple[Any, ...]] = {}
        self._groups: dict[tuple[int, tuple[str, ...]], ClassState] = {}
        self._namespaces: dict[int, tuple[ClassState, Any]] = {}

    def clear(self) -> None:
        """Forget everything."""
        self.noted.clear()
        self._attributes.clear()
        self._found.clear()
        self._groups.clear()
        self._namespaces.clear()

    def note(self, cls: type, names: tuple[str, ...]) -> None:
        """Take note that names were looked up in a class, if `noted` has them all."""
        known = [self.noted.get((id(cls), name)) for name in names]
        if all(one is not None and one[0].stays() for one in known):
            self._groups[id(cls), names] = ClassState(cls)

    def is_noted(self, cls: type, names: tuple[str, ...]) -> bool:
        """Return whether names were looked up in a class that is as it was then."""
        state = self._groups.get((id(cls), names))
        return state is not None and state.stays()

    def note_read(self, rule: object, found: tuple[Any, ...]) -> None:
        """Take note of the objects that a rule has found where it always looks."""
        self._found[rule] = found

    def has_read(self, rule: object, found: tuple[Any, ...]) -> bool:
        """Return whether a rule has found the same objects before in this run."""
        known = self._found.get(rule, ())
        return len(known) == len(found) and all(map(operator.is_, known, found))

    def lookup(self, obj: Any, name: str) -> Found:
        """Return what `lookup` returns."""
        kind = type(obj)
        known = self._attributes.get((id(kind), name))
        if known is not None and known[0].stays():
            return known[1].find(obj)
        if _can_plan(kind, name):
            self._attributes[id(kind), name] = ClassState(kind), Finder(kind, name)
        return lookup(obj, name)

    def instance_dict(self, obj: Any) -> dict[str, Any] | None:
        """Return what `instance_dict` returns."""
        kind = type(obj)
        known = self._namespaces.get(id(kind))
        if known is None or not known[0].stays():
            known = ClassState(kind), namespace_getter(kind)
            self._namespaces[id(kind)] = known
        namespace = None if known[1] is None else known[1](obj)
        return namespace if type(namespace) is dict else None


def _can_plan(kind: type, name: str) -> bool:
    if kind is super or issubclass(kind, type) or type(name) is not str:
        return False
    if not is_generic(find_in_mro(kind, "__getattribute__")):
        return False
    # What has been found decides by its own class whether it binds.
    in_class = find_in_mro(kind, name)
    return in_class is ABSENT or is_immutable(type(in_class))
