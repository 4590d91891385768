"""Annotations of built-in functions and types, as data."""

from __future__ import annotations

import abc
import builtins
import collections
import dataclasses
import enum
import math
import operator
import typing
from typing import Final

from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    Entry,
    Result,
    Use,
    Write,
    members,
)
from magweld.frontend.rules import class_checks

PURE: Final = Annotation()  # reads values, returns a value
_MAKE: Final = Annotation(rest=Use.KEEP, result=Result.NEW)
_CONTENT: Final = Annotation((Use.CONTENT,), result=Result.FRESH)
_COPY: Final = Annotation((Use.CONTENT,), result=Result.NEW)
_CHANGE: Final = Annotation(
    (Use.KEEP,), rest=Use.KEEP, result=Result.FRESH, write=Write.WHOLE
)
_PLACE: Final = Annotation(
    (Use.KEEP, Use.VALUE), rest=Use.KEEP, result=Result.FRESH, write=Write.WHOLE
)
_TAKE: Final = Annotation((Use.KEEP,), rest=Use.ITERATE, write=Write.WHOLE)
_SORT: Final = Annotation((Use.VALUE,), rest=Use.CALL, write=Write.WHOLE)
_APPEND: Final = Annotation((Use.KEEP,), rest=Use.KEEP, write=Write.TAIL)
_EXTEND: Final = Annotation((Use.KEEP,), rest=Use.ITERATE, write=Write.TAIL)
_SEARCH: Final = Annotation((Use.VALUE,), rest=Use.VALUE)
_REMOVE: Final = Annotation((Use.VALUE,), rest=Use.VALUE, write=Write.WHOLE)

FUNCTIONS: Final[Entries] = (
    (builtins.bin, PURE),
    (builtins.chr, PURE),
    (builtins.divmod, Annotation(result=Result.FRESH)),
    (builtins.hex, PURE),
    (builtins.oct, PURE),
    (builtins.ord, PURE),
    (builtins.round, PURE),
)

TYPES: Final[Entries] = (
    (int, PURE),
    (bytes, PURE),
    (complex, PURE),
    (slice, Annotation(result=Result.FRESH)),
    (range, Annotation(result=Result.FRESH)),
    (list, _COPY),
    (tuple, _CONTENT),
    (set, Annotation((Use.VALUE,), result=Result.NEW)),
    (frozenset, Annotation((Use.VALUE,), result=Result.FRESH)),
    (reversed, _COPY),
    (super, Annotation(rest=Use.KEEP, result=Result.FRESH)),
    (object, _MAKE),
    (property, _MAKE),
    (staticmethod, _MAKE),
    (classmethod, _MAKE),
    (collections.deque, _COPY),
)

# Constructors that store their arguments or ignore them.
MAKERS: Final[Entries] = (
    (object.__new__, _MAKE),
    (property.__new__, _MAKE),
    (property.__init__, Annotation(rest=Use.KEEP)),
    (object.__init__, Annotation(rest=Use.KEEP)),
    (dict.__new__, _MAKE),
    (list.__new__, _MAKE),
    (set.__new__, _MAKE),
    (tuple.__new__, Annotation((Use.KEEP, Use.CONTENT), result=Result.FRESH)),
    (list.__init__, Annotation((Use.KEEP, Use.CONTENT), write=Write.WHOLE)),
    (BaseException.__new__, _MAKE),
    (BaseException.__init__, Annotation(rest=Use.KEEP)),
    *(
        (vars(error)[name], _MAKE)
        for error in vars(builtins).values()
        if isinstance(error, type) and issubclass(error, BaseException)
        for name in ("__new__", "__init__")
        if name in vars(error)
    ),
)


_LIST: Final[dict[Entry, str]] = {
    _APPEND: "append",
    _EXTEND: "extend",
    _CHANGE: "reverse clear",
    _PLACE: "insert pop",
    _SORT: "sort",
    _SEARCH: "index count",
    _REMOVE: "remove",
    _CONTENT: "__getitem__",
    _COPY: "copy __iter__",
    Annotation((Use.LENGTH,)): "__len__",
}
_SET: Final[dict[Entry, str]] = {
    Annotation((Use.VALUE,), result=Result.FRESH): (
        "copy union intersection difference symmetric_difference issubset issuperset"
        " isdisjoint __iter__"
    ),
}
_DEQUE: Final[dict[Entry, str]] = {
    _CHANGE: "append appendleft pop popleft clear reverse",
    _PLACE: "rotate insert",
    _TAKE: "extend extendleft",
    _CONTENT: "copy __getitem__ __iter__",
    _SEARCH: "count index __contains__",
}
# Called by name, or by `super()`, they ask no method that a subclass overrides.
_TEXT: Final = Annotation((Use.BASE,), result=Result.FRESH)

METHODS: Final[Entries] = (
    *members(list, _LIST),
    *members(set, _SET),
    *members(frozenset, _SET),
    *members(collections.deque, _DEQUE),
    *members(tuple, {_SEARCH: "index count", _CONTENT: "__getitem__ __iter__"}),
    *(
        (method, _TEXT)
        for kind in (str, bytes, int, float, complex, bool)
        for name, method in vars(kind).items()
        if callable(method) and name != "__new__"
    ),
)

LIBRARY: Final[Entries] = (
    *((f, PURE) for f in vars(math).values() if callable(f)),
    # Classes answer by their own structure; what they return follows from identity.
    (type.mro, Annotation(result=Result.FRESH)),
    (type.__instancecheck__, Annotation(rest=Use.KEEP)),
    (type.__subclasscheck__, Annotation(rest=Use.KEEP)),
    (abc.ABCMeta.__instancecheck__, class_checks.abstract_instance_check),
    (abc.ABCMeta.__subclasscheck__, class_checks.abstract_subclass_check),
    (typing.cast, Annotation(rest=Use.KEEP)),
    (dataclasses.is_dataclass, Annotation(rest=Use.KEEP)),
    (enum.EnumType.__call__, Annotation(result=Result.FRESH)),
    (enum.EnumType.__contains__, Annotation()),
    (operator.index, PURE),
)
