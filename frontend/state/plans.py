"""Owns how attributes of instances are found, worked out once per state of a class."""

from __future__ import annotations

import operator
from typing import Any

from magweld.frontend.state.lookup import (
    Finder,
    Found,
    is_generic,
    lookup,
    namespace_getter,
)
from magweld.frontend.state.mro import ABSENT, find_in_mro, is_immutable
from magweld.frontend.state.tags import tag_cell, tags_work


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
