"""Owns reads and writes of containers: which edges a use of their content needs."""

from __future__ import annotations

from _collections_abc import dict_items, dict_keys, dict_values
from collections import OrderedDict, deque
from enum import Enum, auto
from types import CellType
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import (
    SCALAR_TYPES,
    compares_by_code,
    is_identity,
    is_plain_key,
    is_scalar,
)

SEQUENCES = (list, tuple, deque)
SETS = (set, frozenset)
CONTAINERS = (dict, *SEQUENCES, *SETS)
# Dicts whose methods nobody can change; their truth is the number of their items.
PLAIN_DICTS = (dict, OrderedDict)
# Types whose special methods are known, because nobody can change them.
EXACT_CONTAINERS = frozenset((*CONTAINERS, *PLAIN_DICTS))
DICT_VIEWS = (dict_keys, dict_values, dict_items)
# Member descriptors of start, stop and step.
BOUNDS = {
    kind: tuple(kind.__dict__[name] for name in ("start", "stop", "step"))
    for kind in (slice, range)
}
_HASHED_BY_VALUE = (tuple, frozenset)


class Extent(Enum):
    """How much of a container a write determines."""

    # That of the base class is a function of Python and runs at every look-up.
    __hash__ = object.__hash__

    KEY = auto()  # one key of a dict
    DELETION = auto()  # one key of a dict, which goes
    TAIL = auto()  # elements behind the last one of a list
    WHOLE = auto()  # everything; the old content is guarded first


def builtin_base(obj: Any) -> Any:
    """Return the built-in container type whose layout the object has, or None."""
    kind = type(obj)
    if kind in EXACT_CONTAINERS:
        return dict if kind is OrderedDict else kind
    return next((base for base in CONTAINERS if issubclass(kind, base)), None)


def cell_value(cell: CellType) -> Any:
    """Return the content of a cell, ABSENT if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def slot_value(obj: Any, descriptor: Any) -> Any:
    """Return what a member descriptor holds, ABSENT if it is unset."""
    try:
        return descriptor.__get__(obj)
    except AttributeError:
        return ABSENT


def size_of(obj: Any) -> int:
    """Return the number of elements without running an override."""
    base = builtin_base(obj)
    assert base is not None, "a container is expected"
    length: int = base.__len__(obj)
    return length


def read_length(graph: RefGraph, obj: Any) -> None:
    """Record that the number of elements was used."""
    node = _settled(graph, obj)
    if node.written:
        _restrict_keys(graph, node)
        return
    graph.read(node, Kind.LENGTH, None, size_of(obj))


def read_truth(graph: RefGraph, obj: Any) -> None:
    """Record that it was used whether there are elements."""
    node = _settled(graph, obj)
    if node.written:
        _restrict_keys(graph, node)
    elif (id(obj), Kind.LENGTH, None) not in graph.edges:
        graph.read(node, Kind.NONEMPTY, None, size_of(obj) > 0)


def read_index(graph: RefGraph, obj: Any, index: int) -> None:
    """Record that one element of a sequence was used, or that it is missing."""
    node = graph.require(obj)
    if node.appended and _is_new(graph, node, index):
        graph.adopt(list.__getitem__(obj, index))
        return
    node = _settled(graph, obj)
    length = size_of(obj)
    if not -length <= index < length:
        read_length(graph, obj)
        return
    base = builtin_base(obj)
    assert base is not None, "a sequence is expected"
    graph.read(node, Kind.INDEX, index, base.__getitem__(obj, index))


def _is_new(graph: RefGraph, node: Node, index: int) -> bool:
    """Return whether an index, counted from the end, means what the run appended."""
    if graph.lifting is not None:
        return False  # it follows the elements by their number
    added = size_of(node.obj) - len(graph.snapshots[id(node.obj)])
    return -added <= index < 0


def read_item(graph: RefGraph, obj: Any, key: Any) -> None:
    """Record that the entry of a dict under `key` was used, or its absence."""
    node = graph.require(obj)
    if type(key) is not str:
        _use_key(graph, node, key)
    if id(obj) not in graph.looked_up:
        _check_comparisons(graph, obj)
    graph.read(node, Kind.ITEM, key, dict.get(obj, key, ABSENT))


def _check_comparisons(graph: RefGraph, obj: Any) -> None:
    """Refuse a dict with keys that a look-up might compare by code of the user's."""
    # The dict of a module has thousands of keys, all of them names.
    if not SCALAR_TYPES.issuperset(map(type, dict.keys(obj))):
        for key in dict.keys(obj):
            if type(key) not in SCALAR_TYPES and compares_by_code(key):
                raise StopRecordingError("opaque-key", type(key).__qualname__)
    graph.looked_up.add(id(obj))


def _use_key(graph: RefGraph, node: Node, key: Any) -> None:
    if not is_plain_key(key):
        raise StopRecordingError("opaque-key", type(key).__qualname__)
    if is_identity(key):
        graph.constant(key)
    read_key(graph, key)
    if type(key) not in SCALAR_TYPES and graph.find(key) is not None:
        _compare_key(graph, node, key)


def _compare_key(graph: RefGraph, node: Node, key: Any) -> None:
    # An object as key is found by identity: in a dict of the program, the key must be
    # this object; in one that the run has made, another object than the keys in it.
    if node.external:
        for part in (key, *parts_of_key(key)):
            if graph.find(part) is not None:
                graph.hold(part)
    else:
        keys = (*dict.keys(node.obj), key)
        parts = [part for known in keys for part in parts_of_key(known)]
        graph.distinct_members(node.obj, parts)


def parts_of_key(key: Any) -> list[Any]:
    """Return what a key is made of that may lie in nested tuples and frozensets."""
    if type(key) not in _HASHED_BY_VALUE:
        return [key]
    return [part for item in key for part in parts_of_key(item)]


def read_key(graph: RefGraph, key: Any) -> None:
    """Record that a key was hashed: a tuple lies where its value puts it."""
    lifting = graph.lifting
    count = 0 if lifting is None else len(lifting.reads)
    _read_parts(graph, key)
    if lifting is not None:
        lifting.pin_reads(count)


def _read_parts(graph: RefGraph, key: Any) -> None:
    if not is_scalar(key):
        # Its class may get others later on.
        for name in ("__hash__", "__eq__"):
            note_class(graph, type(key), name)
    if type(key) in _HASHED_BY_VALUE and graph.find(key) is not None:
        read_all(graph, key)
        for item in elements(key):
            _read_parts(graph, item)


def read_keys(graph: RefGraph, obj: Any) -> None:
    """Record that the keys of a dict and their order were used."""
    node = graph.require(obj)
    if node.owned:
        return
    keys = tuple(keys_of(obj))
    if not all(is_plain_key(key) for key in keys):
        raise StopRecordingError("opaque-key", "iteration over a dict")
    if node.written:
        _restrict_keys(graph, node)
    else:
        graph.read(node, Kind.KEYS, None, keys)
    for key in keys:
        for part in () if type(key) is str else parts_of_key(key):
            graph.keep(part)


def _restrict_keys(graph: RefGraph, node: Node) -> None:
    # The keys of now follow from the keys before the first write and the writes.
    before = tuple(graph.snapshots[id(node.obj)])
    slot = (id(node.obj), Kind.KEYS, None)
    if slot not in graph.edges:
        graph.read(node, Kind.KEYS, None, before)


def read_all(graph: RefGraph, obj: Any) -> None:
    """Record that every element of a container was used."""
    node = _settled(graph, obj)
    if node.owned:
        for value in elements(obj):
            graph.adopt(value)
        if graph.lifting is not None:
            graph.lifting.note_content(node)
    elif isinstance_exactly(obj, dict):
        read_keys(graph, obj)
        for key in keys_of(obj):
            read_item(graph, obj, key)
    elif isinstance_exactly(obj, *SETS):
        _read_set(graph, node)
    else:
        read_length(graph, obj)
        for index in range(size_of(obj)):
            read_index(graph, obj, index)


def isinstance_exactly(obj: Any, *bases: type) -> bool:
    """Return `isinstance` by the real type, without asking `__class__`."""
    return issubclass(type(obj), bases)


def base_class(obj: Any) -> Any:
    """Return the built-in class whose methods treat a container as it is."""
    # It keeps an order that the dict below does not know.
    return OrderedDict if isinstance_exactly(obj, OrderedDict) else builtin_base(obj)


def keys_of(obj: Any) -> list[Any]:
    """Return the keys of a dict in its own order without running an override.

    Raises:
        StopRecordingError: Only by their hashes can the keys be put in order.
    """
    keys = list(dict.keys(obj))
    if not isinstance_exactly(obj, OrderedDict):
        return keys
    if not all(map(is_plain_key, keys)):
        raise StopRecordingError("opaque-key", "an OrderedDict")
    return list(OrderedDict.keys(obj))


def elements(obj: Any) -> list[Any]:
    """Return the values in a container without running an override."""
    base = builtin_base(obj)
    if base is dict and isinstance_exactly(obj, OrderedDict):
        # Its own order; looking keys up would run their hashes and comparisons.
        values = {id(key): value for key, value in dict.items(obj)}
        return [values[id(key)] for key in keys_of(obj)]
    if base is dict:
        return list(dict.values(obj))
    assert base is not None, "a container is expected"
    return list(base.__iter__(obj))


def _read_set(graph: RefGraph, node: Node) -> None:
    _check_members(node.obj)
    graph.read(node, Kind.MEMBERS, None, tuple(elements(node.obj)))


def _check_members(obj: Any) -> None:
    members = elements(obj) if builtin_base(obj) in SETS else ()
    if not all(is_scalar(m) or is_identity(m) for m in members):
        raise StopRecordingError("opaque-key", "a set of objects")


def before_write(graph: RefGraph, obj: Any, extent: Extent, key: Any = None) -> None:
    """Prepare a write to a container: snapshot it, guard what must be known.

    Raises:
        StopRecordingError: The container is unknown or its keys are opaque.
    """
    node = graph.require(obj)
    read_key(graph, key)
    graph.looked_up.discard(id(obj))
    if graph.lifting is not None:
        graph.lifting.note_write(node, extent, key)
    graph.changes(node)
    if not node.external:
        return
    if extent is Extent.WHOLE:
        _check_elements_dropped(graph, obj)
    _keep_content(graph, obj)
    if node.owned:
        return
    if isinstance_exactly(obj, deque):
        graph.read(node, Kind.FIELD, "maxlen", obj.maxlen)
    if extent in (Extent.KEY, Extent.DELETION):
        if not is_plain_key(key):
            raise StopRecordingError("opaque-key", type(key).__qualname__)
        graph.check_dropped(dict.get(obj, key))
        _note_key(node, key, extent is Extent.DELETION)
    elif extent is Extent.TAIL:
        node.appended = True
    else:
        own(graph, node)


def _keep_content(graph: RefGraph, obj: Any) -> None:
    if id(obj) not in graph.snapshots:
        # What is planned later compares members: no code of theirs may do so.
        _check_members(obj)
        graph.snapshots[id(obj)] = copy_content(obj)


def _check_elements_dropped(graph: RefGraph, obj: Any) -> None:
    if id(obj) not in graph.emptied:
        graph.emptied.add(id(obj))
        for value in elements(obj):
            graph.check_dropped(value)


def _note_key(node: Node, key: Any, deletes: bool) -> None:
    # A key that was deleted comes in again behind all others.
    if deletes:
        node.written.pop(key, None)
    elif key in node.written and not dict.__contains__(node.obj, key):
        node.written[key] = node.written.pop(key)
    node.written[key] = deletes or node.written.get(key, False)


def note_last_key(graph: RefGraph, obj: Any) -> None:
    """Take note that the last key of a dict has come in just now."""
    written = graph.require(obj).written
    key = next(dict.__reversed__(obj))
    if key in written:
        written[key] = written.pop(key)


def own(graph: RefGraph, node: Node) -> None:
    """Guard the content before the first write, so that all later reads follow."""
    lifting, content = graph.lifting, graph.snapshots.get(id(node.obj))
    first = 0 if lifting is None else len(lifting.reads)
    if node.appended and content is not None:
        graph.read(node, Kind.LENGTH, None, len(content))
        for index, value in enumerate(content):
            graph.read(node, Kind.INDEX, index, value)
        node.appended = False
        if lifting is not None:
            lifting.keep_content(node.obj, first)
    elif node.written:
        _restrict_keys(graph, node)
        for key in graph.snapshots[id(node.obj)]:
            graph.read(node, Kind.ITEM, key, graph.snapshots[id(node.obj)][key])
    else:
        read_all(graph, node.obj)
    node.owned = True


def _settled(graph: RefGraph, obj: Any) -> Node:
    """Return the node of a container that is about to be read.

    A list to which the run has appended is owned before. That reads what was in it, but
    the instruction does not: an equal number in another place is not what it reads.
    """
    node, lifting = graph.require(obj), graph.lifting
    if node.appended:
        first = 0 if lifting is None else len(lifting.reads)
        own(graph, node)
        if lifting is not None:
            del lifting.reads[first:]
    return node


def copy_content(obj: Any) -> Any:
    """Return a shallow copy of a container as dict, list or set."""
    base = builtin_base(obj)
    if base is dict and isinstance_exactly(obj, OrderedDict):
        return dict(zip(keys_of(obj), elements(obj), strict=True))
    if base is dict:
        return dict.copy(obj)
    assert base is not None, "a container is expected"
    # A copy of a set takes the hashes along.
    return base.copy(obj) if base in SETS else list(base.__iter__(obj))
