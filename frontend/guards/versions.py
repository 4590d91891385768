"""Owns the shortcut of guards: reads of dicts that have not changed since a success.

CPython gives every state of a dict a version of its own. While the versions of all
dicts that a record has read are those of the last full check, what was found in them
is still there, so only the arguments, the modes, and what is no dict must be tested.
Code and defaults of functions are words of memory as well.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from magweld.codegen.words_check import words_check
from magweld.frontend.state.mro import is_immutable
from magweld.frontend.state.nodes import ATTRIBUTES, Edge, Kind, Node
from magweld.short_repr import short_repr

# Reads that follow from the version of a dict; the order of an OrderedDict does not.
_DICT_READS: Final = {
    dict: (Kind.ITEM, Kind.LENGTH, Kind.NONEMPTY, Kind.KEYS),
    OrderedDict: (Kind.ITEM, Kind.LENGTH, Kind.NONEMPTY),
}
_TUPLE_READS: Final = (Kind.INDEX, Kind.LENGTH, Kind.NONEMPTY)


class Stability:
    """Which reads of a run need no repetition while the versions stay.

    Args:
        written: Ids of containers that the record itself writes on every hit.

    Attributes:
        watched: What versions must be taken of; whether by its instance dict.
        typed: Objects behind covered reads whose class could be replaced.
        parts: Functions, and the attribute that was read of them.
    """

    def __init__(self, written: Iterable[int]) -> None:
        self.watched: list[tuple[Node, bool]] = []
        self.typed: list[Node] = []
        self.parts: list[tuple[Node, str]] = []
        self._unwatched = set(written)
        self._stable: set[int] = set()
        self._known: set[int] = set()

    def covers(self, edge: Edge) -> bool:
        """Take note of a read; return whether the versions answer for it."""
        target = edge.target
        if not self.is_stable(edge.container) or not self._answers(edge):
            return False
        if target is None:
            return True
        if edge.first:
            self._stable.add(id(target.obj))
            self.note_class(target)
        return self.is_stable(target)

    def is_stable(self, node: Node) -> bool:
        """Return whether the node is the same object while the versions stay."""
        return node.constant or id(node.obj) in self._stable

    def note_class(self, node: Node) -> None:
        """Watch which class an object is of that stays the same."""
        kind = type(node.obj)
        if not is_immutable(kind):
            self.typed.append(node)

    def _answers(self, edge: Edge) -> bool:
        obj = edge.container.obj
        if edge.kind is Kind.INSTANCE_DICT:
            return self._watch_namespace(edge)
        if type(obj) is tuple:
            return edge.kind in _TUPLE_READS
        if type(obj) is FunctionType:
            return self._watch_part(edge)
        if id(obj) in self._unwatched or edge.kind not in _DICT_READS.get(
            type(obj), ()
        ):
            return False
        if type(obj) is dict and "__builtins__" in obj:
            return False  # globals of a function; scripts write to theirs as well
        if id(obj) not in self._known:
            self._known.add(id(obj))
            self.watched.append((edge.container, False))
        return True

    def _watch_part(self, edge: Edge) -> bool:
        if edge.kind is Kind.CLOSURE:
            return True  # nothing can replace it
        name = ATTRIBUTES.get(edge.kind, "")
        if name in _PLACES:
            self.parts.append((edge.container, name))
        return name in _PLACES

    def _watch_namespace(self, edge: Edge) -> bool:
        kind = type(edge.container.obj)
        if kind is ModuleType and edge.target is not None:
            # Its dict cannot be replaced, but scripts write to theirs all the time.
            self._unwatched.add(id(edge.target.obj))
            return True
        if edge.target is None or not kind.__flags__ & _MANAGED_DICT:
            return False
        if id(edge.target.obj) in self._unwatched:
            return False
        self._known.add(id(edge.target.obj))
        self.watched.append((edge.container, True))
        return True


class Versions:
    """The state of dicts and objects at one moment, as words of memory.

    Args:
        watched: Dicts, and objects whose instance dict is meant.
        typed: Objects of which only the class is watched.
        parts: Functions, and the attribute of each that is watched.

    Attributes:
        unchanged: Whether no dict, no class and no function has changed. It must not
            be asked when this value is gone, which keeps the memory of all of them.
    """

    def __init__(
        self,
        watched: list[tuple[Any, bool]],
        typed: list[Any],
        parts: list[tuple[Any, str]],
    ) -> None:
        # Kept alive, so that their memory stays theirs: a class or a part that comes
        # after the next one could have the address of one that is gone.
        held = _held(watched, typed, parts)
        self._kept: list[Any] = [watched, typed, parts, held]
        addresses = [id(obj) + _CLASS for obj in typed]
        addresses += [id(function) + _PLACES[name] for function, name in parts]
        for obj, by_namespace in watched:
            namespace = obj
            if by_namespace:
                namespace = object.__getattribute__(obj, "__dict__")
                addresses += [id(obj) + _CLASS, id(obj) + _INSTANCE_DICT]
                self._kept.append(namespace)
            addresses.append(id(namespace) + _VERSION)
        lowest = min(addresses)
        places = (np.array(addresses, np.int64) - lowest) // _WORD
        words = _view(lowest, max(addresses) + _WORD).take(places).tolist()
        self.unchanged = words_check(addresses, words)
        if not all(map(operator.is_, held, _held(watched, typed, parts))):
            # Another thread has changed one meanwhile; nothing equals this.
            self.unchanged = _never


def _never() -> bool:
    return False


def _held(
    watched: list[tuple[Any, bool]], typed: list[Any], parts: list[tuple[Any, str]]
) -> list[Any]:
    """Return what words of memory point to: classes of objects, parts of functions."""
    objects = [*typed, *(obj for obj, _ in watched)]
    return [*map(type, objects), *(getattr(*part) for part in parts)]


# Layout of CPython 3.11 and 3.12 (Include/object.h, Include/internal/pycore_object.h,
# Include/cpython/dictobject.h, Include/cpython/funcobject.h); `versions_work` checks it
# before the first use.
_WORD: Final = 8
_CLASS: Final = 8
_VERSION: Final = 24
_INSTANCE_DICT: Final = -24
_MANAGED_DICT: Final = 1 << 4  # flag of a class: its instances have the word above
_PLACES: Final = {"__code__": 48, "__defaults__": 56, "__kwdefaults__": 64}


class _Memory:
    """Gives numpy a stretch of memory without copying it."""

    def __init__(self, begin: int, end: int) -> None:
        self.__array_interface__ = {
            "data": (begin, True),
            "shape": ((end - begin) // _WORD,),
            "typestr": "<u8",
            "version": 3,
        }


def _view(begin: int, end: int) -> Any:
    return np.asarray(_Memory(begin, end))


class _Probe:
    pass


@functools.cache
def versions_work() -> bool:
    """Return whether every kind of change is noticed on this interpreter."""
    if sys.version_info[:2] not in ((3, 11), (3, 12)) or sys.maxsize < 1 << 32:
        return False
    namespace: Any = _Probe()
    plain: dict[str, list[int]] = {"x": [1]}

    def change_class() -> None:
        namespace.__class__ = type("Other", (_Probe,), {})

    def function() -> None:
        pass

    changes: tuple[Callable[[], Any], ...] = (
        lambda: setattr(namespace, "x", 1),
        lambda: plain.update(x=[1]),
        lambda: plain.update(y=[]),
        lambda: plain.clear(),
        lambda: setattr(namespace, "__dict__", dict(namespace.__dict__)),
        lambda: setattr(function, "__code__", function.__code__.replace()),
        lambda: setattr(function, "__defaults__", (1,)),
        lambda: setattr(function, "__kwdefaults__", {"x": 1}),
        lambda: setattr(function, "__defaults__", None),
        change_class,
    )
    parts = [(function, name) for name in _PLACES]
    for change in changes:
        assert namespace.__dict__ is not None, "reading it makes the dict"
        versions = Versions([(namespace, True), (plain, False)], [], parts)
        before = versions.unchanged()
        change()
        if not before or versions.unchanged():
            return False
    return True


# Successes of the full check between two attempts; doubled with each attempt.
_FIRST_WAIT: Final = 1
_LAST_WAIT: Final = 1 << 12

# Variable by which the conditions ask whether the versions have stayed.
UNCHANGED: Final = "unchanged"
# Another one, which no condition reads.
_KEPT: Final = "versions"
Variables = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """Where an object is found again; holds nothing of the run.

    Attributes:
        variable: Variable of the guard function, "" for a constant.
        constant: The constant.
    """

    __repr__ = short_repr

    variable: str
    constant: Any = None

    def value(self, variables: Variables) -> Any:
        """Return the object."""
        return variables[self.variable] if self.variable else self.constant


def _undecided(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    return None


class Shortcut:
    """The part of a guard program that is tested while all versions stay.

    Args:
        watched: What versions are taken of; whether by its instance dict.
        typed: Objects of which the class is watched.
        parts: Functions, and the attribute of each that is watched.
        compile_rest: Compiles the part; takes its global variables.
        collect: Gives the stable variables of a full check of a call.

    Attributes:
        run: As `GuardProgram.run`, or gives None when the full check must decide.
    """

    def __init__(
        self,
        watched: list[tuple[Source, bool]],
        typed: list[Source],
        parts: list[tuple[Source, str]],
        compile_rest: Callable[[Variables], Callable[..., Any]],
        collect: Callable[[Sequence[Any], dict[str, Any]], Variables],
    ) -> None:
        self.run: Callable[[Sequence[Any], dict[str, Any]], Any] = _undecided
        self._watched = watched
        self._typed = typed
        self._parts = parts
        self._compile_rest = compile_rest
        self._collect = collect
        self._wait = self._left = _FIRST_WAIT

    def release(self) -> None:
        """Let go of the objects of the last success; they may be no longer in use."""
        self.run = _undecided

    def renew(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Take the versions of now, after a full check has succeeded."""
        self._left -= 1
        if self._left > 0:
            return
        self._wait = self._left = min(2 * self._wait, _LAST_WAIT)
        variables = self._collect(args, kwargs)
        watched = [(item.value(variables), how) for item, how in self._watched]
        typed = [item.value(variables) for item in self._typed]
        parts = [(item.value(variables), name) for item, name in self._parts]
        versions = Versions(watched, typed, parts)
        # What another thread has written before the versions were taken is in them.
        again = self._collect(args, kwargs)
        if all(again[name] is value for name, value in variables.items()):
            asked = {UNCHANGED: versions.unchanged, _KEPT: versions}
            self.run = self._compile_rest({**variables, **asked})
