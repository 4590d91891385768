"""Owns the form of an annotation: what a native callable does with its arguments."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.observer import After, Observer
from magweld.frontend.state.mro import ABSENT, class_dict, is_class, mro
from magweld.frontend.state.values import is_static_builtin


class Use(Enum):
    """What a native callable does with one argument."""

    # That of the base class is a function of Python and runs at every look-up.
    __hash__ = object.__hash__

    KEEP = auto()  # moves or stores it, looks at most at its type or identity
    VALUE = auto()  # reads the whole value, nested containers included
    BASE = auto()  # reads what an instance of a subclass of int, str, ... holds
    CONTENT = auto()  # reads all elements of a container, not what is in them
    LENGTH = auto()  # reads the number of elements
    ITERATE = auto()  # iterates over it
    CALL = auto()  # calls it


class Result(Enum):
    """What a native callable returns."""

    VALUE = auto()  # a scalar or identity that follows from what was read
    FRESH = auto()  # a new object, or one that a read has made known
    NEW = auto()  # an object that nobody else has
    ADDRESS = auto()  # a number made of the address of an argument


class Write(Enum):
    """What a native callable changes; always its first argument."""

    NOTHING = auto()
    TAIL = auto()  # appends to a list
    WHOLE = auto()


@dataclass(frozen=True)
class Annotation:
    """What a native callable reads, writes and returns.

    Attributes:
        uses: Use of each positional argument, the receiver first.
        rest: Use of all other arguments.
        result: What comes back.
        write: What happens to the first argument.
    """

    uses: tuple[Use, ...] = ()
    rest: Use = Use.VALUE
    result: Result = Result.VALUE
    write: Write = Write.NOTHING


class NativeCall(NamedTuple):
    """A call of a native callable, receiver included.

    Attributes:
        name: Readable name of the callable.
        args: Positional arguments.
        kwargs: Keyword arguments.
        function: The callable, if it is a function of Python.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: Any = None


Rule = Callable[["Observer", NativeCall], None]


def refused(refusal: str, name: str = "") -> Rule:
    """Return the rule of a callable that no run may call.

    Args:
        refusal: Id in the catalogue.
        name: What is called, if it is not what the program calls it.
    """

    def rule(observer: Observer, call: NativeCall) -> None:
        raise StopRecordingError(refusal, name or call.name)

    return rule


@dataclass(frozen=True)
class _KnownRule:
    """A rule of which more is known than what a call reads.

    Attributes:
        rule: What a call reads.
    """

    rule: Rule

    def __call__(self, observer: Observer, call: NativeCall) -> None:
        self.rule(observer, call)


class PureRule(_KnownRule):
    """A rule for a callable that only reads values, so it may serve as a callback."""


class ForwardingRule(_KnownRule):
    """A rule for a Python function that mostly hands its call on to another one.

    Its frames are observed, or passed by: the rule decides.
    """


Entry = Annotation | PureRule | ForwardingRule | Rule
# Callables with what is known of them.
Entries = tuple[tuple[Any, Entry], ...]


def members(kind: type, entries: Mapping[Entry, str]) -> Entries:
    """Return entries for members of a class, given by name; it need not have all."""
    own = vars(kind)
    return tuple(
        (own[name], entry)
        for entry, names in entries.items()
        for name in names.split()
        if name in own
    )


def on_arguments(record: Callable[..., object], count: int, **fixed: Any) -> Rule:
    """Return the rule of a callable that does to its arguments what is recorded so.

    Args:
        record: Takes the observer, then arguments of the call.
        count: How many of them, the receiver included.
        **fixed: What it takes beside them.
    """

    def rule(observer: Observer, call: NativeCall) -> None:
        record(observer, *call.args[:count], **fixed)

    return rule


def on_graph(
    record: Callable[..., object], count: int, after: After | None = None, **fixed: Any
) -> Rule:
    """Return the same for what takes the RefGraph in place of the observer.

    Args:
        after: What to do with the result.
    """

    def rule(observer: Observer, call: NativeCall) -> None:
        record(observer.session.graph, *call.args[:count], **fixed)
        if after is not None:
            observer.after = after

    return rule


class AnnotationTable:
    """Annotations by callable; callables are told apart by identity.

    An annotation of a Python function makes its body opaque: it runs unobserved. One of
    a code object is for all functions that have it.
    """

    def __init__(self, *parts: Iterable[tuple[Any, Entry]]) -> None:
        self._entries: dict[int, tuple[Any, Entry]] = {}
        for part in parts:
            for key, entry in part:
                # Holding the callable keeps its id its own.
                self._entries[id(key)] = (key, entry)

    def find(self, function: Any) -> Entry | None:
        """Return the entry of a callable, None if it has none."""
        held = self._entries.get(id(function))
        if held is None and type(function) is types.FunctionType:
            held = self._entries.get(id(function.__code__))
        return None if held is None else held[1]

    def is_observed(self, function: Any) -> bool:
        """Return whether a Python function runs observed, as far as entries tell."""
        entry = self.find(function)
        return entry is None or isinstance(entry, ForwardingRule)

    def extended(self, entries: Iterable[tuple[Any, Entry]]) -> AnnotationTable:
        """Return a table with more entries, which take the place of known ones."""
        table = AnnotationTable(entries)
        table._entries = {**self._entries, **table._entries}
        return table


_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)


def unbind(native: Any) -> tuple[Any, tuple[Any, ...]]:
    """Split a bound native method into its descriptor and receiver.

    Returns:
        The descriptor and a tuple with the receiver; for anything else the callable
        itself and an empty tuple.
    """
    if type(native) not in _BOUND:
        return native, ()
    receiver = native.__self__
    if is_static_builtin(native):
        if not is_class(receiver):
            return native, ()
        descriptor = _native_in_mro(
            receiver, native.__name__, types.ClassMethodDescriptorType
        )
        if descriptor is not ABSENT:
            return descriptor, (receiver,)
        descriptor = _native_in_mro(type(receiver), native.__name__)
        return (native, ()) if descriptor is ABSENT else (descriptor, (receiver,))
    if type(native) is types.MethodWrapperType:
        return class_dict(native.__objclass__)[native.__name__], (receiver,)
    return _native_in_mro(type(receiver), native.__name__), (receiver,)


def _native_in_mro(
    cls: type, name: str, kind: type = types.MethodDescriptorType
) -> Any:
    # `super().append` is native although a Python method of that name comes first.
    for base in mro(cls):
        found = class_dict(base).get(name)
        if type(found) is kind:
            return found
    return ABSENT
