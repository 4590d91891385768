"""Owns what iterating, testing and comparing objects reads of them."""

from __future__ import annotations

import gc
import types
from collections import OrderedDict
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import (
    BOUNDS,
    EXACT_CONTAINERS,
    SETS,
    builtin_base,
    elements,
    read_all,
    read_keys,
    read_truth,
    size_of,
)
from magweld.frontend.state.mro import ABSENT, find_in_mro
from magweld.frontend.state.natives import (
    base_value,
    is_buffer,
    read_content,
    referent,
    scalar_base,
)
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import (
    is_hashed_by_address,
    is_identity,
    is_scalar,
)


def read_value(observer: Observer, argument: Any, within: tuple[int, ...] = ()) -> None:
    """Record that the value of an object was used, iterators made here included.

    Args:
        observer: Of the frame that uses it.
        within: Ids of the containers around it; one may contain itself.
    """
    graph = observer.session.graph
    if is_scalar(argument) or is_identity(argument) or id(argument) in within:
        return
    if builtin_base(argument) is not None:
        note_iteration(observer, argument)
        read_all(graph, argument)
        for value in elements(argument):
            if not observer.session.operators.is_tensor(type(value)):
                read_value(observer, value, (*within, id(argument)))
        return
    if type(argument) in (range, slice):
        read_fields(observer, argument)
    elif is_buffer(argument):
        read_content(graph, argument)
    elif type(argument) is types.MappingProxyType:
        read_value(observer, read_referent(graph, argument))
    elif is_native_iterator(argument):
        iterate(observer, argument)
        read_through(observer, argument)
    elif scalar_base(argument) is not None:
        note_iteration(observer, argument)  # of a text
        read_base(graph, argument)
    else:
        raise StopRecordingError("opaque-value", type(argument).__qualname__)


def read_base(graph: RefGraph, obj: Any) -> None:
    """Record that the value of an instance of a subclass of int, str, ... was used."""
    if is_scalar(obj) or is_identity(obj):
        return
    node = graph.require(obj)
    if not node.constant:
        graph.read(node, Kind.BASE, None, base_value(obj))


def is_number(obj: Any) -> bool:
    """Return whether the object is, by its own value, an index of a sequence."""
    return issubclass(type(obj), int) or (
        is_scalar(obj) and type(obj) is not float and hasattr(type(obj), "__index__")
    )


def read_referent(graph: RefGraph, obj: Any) -> Any:
    """Record what a weak reference or a mapping proxy stands for, and return it."""
    value = referent(obj)
    graph.read(graph.require(obj), Kind.REFERENT, None, value)
    return value


def read_through(observer: Observer, iterator: Any) -> None:
    """Record the whole value of what a native iterator delivers, unobserved.

    Generators hand their values over observed; what a native iterator is made of is
    known to the collector of garbage.
    """
    graph = observer.session.graph
    if type(iterator) is types.GeneratorType:
        return
    if type(iterator) is map and _is_observed(observer, iterator):
        return
    for part in gc.get_referents(iterator):
        known = graph.find(part) is not None
        if known and (builtin_base(part) is not None or is_buffer(part)):
            read_value(observer, part)
        elif type(part) is tuple or is_native_iterator(part):
            read_through(observer, part)


def _is_observed(observer: Observer, mapped: Any) -> bool:
    """Return whether a `map` delivers what Python code returns, under observation."""
    function = mapped.__reduce__()[1][0]
    if type(function) is types.MethodType:
        function = function.__func__
    if type(function) is not types.FunctionType:
        return False
    return observer.session.annotations.is_observed(function)


def is_native_iterator(obj: Any) -> bool:
    """Return whether the object is an iterator or a view that C code implements."""
    return type(obj) in ITERATORS or type(obj).__module__ == "itertools"


def read_fields(observer: Observer, obj: Any) -> None:
    """Record what a range or a slice consists of."""
    graph = observer.session.graph
    node = graph.require(obj)
    for descriptor in BOUNDS[type(obj)]:
        bound = descriptor.__get__(obj)
        graph.read(node, Kind.SLOT, descriptor, bound)
        if not is_scalar(bound):
            note_class(graph, type(bound), "__index__")


class _Sequence:
    """An old-style sequence, which native code iterates over by its items."""

    def __getitem__(self, index: int) -> int:
        raise IndexError(index)


_DICT: Final[dict[int, int]] = {}
_ORDERED: Final = OrderedDict[int, int]()
_VIEWS: Final[tuple[Any, ...]] = (
    *(_DICT.keys(), _DICT.values(), _DICT.items()),
    *(_ORDERED.keys(), _ORDERED.values(), _ORDERED.items()),
)
_ITERABLES: Final[tuple[Any, ...]] = (
    *([], (), set(), "", b"", range(0), range(1 << 70)),
    *_VIEWS,
)

VIEW_TYPES: Final = frozenset(type(view) for view in _VIEWS)


def is_view(obj: Any) -> bool:
    """Return whether the object is a view of the keys, values or items of a dict."""
    return type(obj) in VIEW_TYPES


# Iterators and views over containers: whoever made them has read the container.
ITERATORS: Final[frozenset[type]] = frozenset(
    {
        *(type(iter(iterable)) for iterable in _ITERABLES),
        type(iter(_Sequence())),
        *(type(reversed(view)) for view in ([], *_VIEWS)),
        *(type(view) for view in _VIEWS),
        types.GeneratorType,
        enumerate,
        zip,
        map,
        filter,
        reversed,
    }
)


def advance(graph: RefGraph, iterator: Any) -> None:
    """Record that a native iterator, or a view of a dict, gives its elements.

    Raises:
        StopRecordingError: It was made before the run.
    """
    node = graph.require(iterator)
    if not node.owned:
        raise StopRecordingError("opaque-iterator", type(iterator).__qualname__)
    if graph.lifting is not None:
        graph.lifting.note_advance(iterator)
    if find_in_mro(type(iterator), "__next__") is not ABSENT:
        graph.changes(node)


def take_elements(observer: Observer, obj: Any) -> None:
    """Record that native code took all elements of a container.

    Raises:
        StopRecordingError: Their order follows from addresses.
    """
    note_iteration(observer, obj)
    check_addresses(observer.session.graph, obj)
    read_all(observer.session.graph, obj)


def note_iteration(observer: Observer, obj: Any) -> None:
    """Record by which methods native code gets at the elements of a container.

    A subclass may have none of its own today: then the content is taken unseen.
    """
    kind = type(obj)
    if kind in EXACT_CONTAINERS:
        return
    entries = ("keys", "__getitem__") if builtin_base(obj) is dict else ()
    for name in ("__iter__", *entries):
        special_method(observer, obj, name)


def check_addresses(graph: RefGraph, obj: Any) -> None:
    """Refuse a set whose order follows from the addresses of its elements.

    On a hit other objects take their places, at other addresses.

    Raises:
        StopRecordingError: It is such a set.
    """
    if builtin_base(obj) not in SETS or size_of(obj) < 2:
        return
    for item in elements(obj):
        node = graph.find(item)
        fixed = is_identity(item) or (node is not None and node.constant)
        if not fixed and is_hashed_by_address(item):
            raise StopRecordingError("opaque-key", "the order of a set of objects")


def iterate(observer: Observer, obj: Any) -> None:
    """Record what iterating over an object reads.

    Raises:
        StopRecordingError: It is an iterator from before the run, or native.
    """
    graph = observer.session.graph
    kind = type(obj)
    observer.calls_native = True
    if is_scalar(obj) or observer.session.operators.is_tensor(kind):
        return
    if kind is range:
        read_fields(observer, obj)
        return
    if is_native_iterator(obj):
        advance(graph, obj)
        return
    if is_buffer(obj):
        read_content(graph, obj)
        return
    if kind is types.MappingProxyType:
        iterate(observer, read_referent(graph, obj))
        return
    if is_python(special_method(observer, obj, "__iter__")):
        return
    check_order(graph, obj)
    if builtin_base(obj) is dict:
        read_keys(graph, obj)
    elif builtin_base(obj) is not None:
        read_all(graph, obj)
    else:
        _iterate_class(observer, obj)


def check_order(graph: RefGraph, obj: Any) -> None:
    """Refuse to use the order of a set that the run has written, or of objects.

    It follows from the table of the set, and guards see no more than its order, or from
    addresses.

    Raises:
        StopRecordingError: It is such a set.
    """
    check_addresses(graph, obj)
    if id(obj) in graph.set_writes:
        raise StopRecordingError("opaque-iterator", "a set that was written")


def _iterate_class(observer: Observer, obj: Any) -> None:
    # A class is iterable through its metaclass, an old-style sequence by __getitem__.
    if not is_python(special_method(observer, obj, "__getitem__")):
        raise StopRecordingError("opaque-iterator", type(obj).__qualname__)


def test_truth(observer: Observer, obj: Any) -> None:
    """Record what the truth of an object depends on."""
    kind = type(obj)
    if is_scalar(obj) or observer.session.operators.is_tensor(kind):
        return
    graph = observer.session.graph
    if kind in EXACT_CONTAINERS:
        read_truth(graph, obj)
        return
    for name in ("__bool__", "__len__"):
        method = special_method(observer, obj, name)
        if method is ABSENT:
            continue
        if is_python(method):
            return
        if builtin_base(obj) is not None:
            read_truth(graph, obj)
        elif kind is types.MappingProxyType:
            test_truth(observer, read_referent(graph, obj))
        elif kind is range or is_buffer(obj) or scalar_base(obj) is not None:
            read_value(observer, obj)
        elif kind not in ITERATORS or not graph.require(obj).owned:
            raise StopRecordingError("native-operator", f"truth of {kind.__name__}")
        return
