"""Annotations of dict methods, as rules: they read and write single keys."""

from __future__ import annotations

import collections
from types import MappingProxyType
from typing import Any, Final

from magweld.frontend.monitor.annotation import (
    Entries,
    Entry,
    NativeCall,
    Rule,
    members,
    on_arguments,
    on_graph,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import attributes, containers
from magweld.frontend.rules.hashing import take_pairs
from magweld.frontend.rules.protocols import iterate
from magweld.frontend.state.contents import (
    Extent,
    before_write,
    builtin_base,
    elements,
    read_all,
    read_item,
    read_keys,
    read_length,
)
from magweld.frontend.state.mro import ABSENT


def _entry(extent: Extent, *present: bool) -> Rule:
    """Return the rule of a method that writes one entry, if there is one or if not."""

    def rule(observer: Observer, call: NativeCall) -> None:
        graph, (target, key) = observer.session.graph, call.args[:2]
        read_item(graph, target, key)
        if (dict.get(target, key, ABSENT) is not ABSENT) in present:
            before_write(graph, target, extent, key)

    return rule


def _dict_set(observer: Observer, call: NativeCall) -> None:
    before_write(observer.session.graph, call.args[0], Extent.KEY, call.args[1])


def _dict_update(observer: Observer, call: NativeCall) -> None:
    target, sources = call.args[0], call.args[1:]
    for source in (*sources, call.kwargs):
        _read_pairs(observer, source, target)
        keys = list(source) if builtin_base(source) is dict else None
        if keys is None:
            before_write(observer.session.graph, target, Extent.WHOLE)
        for key in keys or ():
            before_write(observer.session.graph, target, Extent.KEY, key)


def _read_pairs(observer: Observer, source: Any, target: Any = None) -> None:
    if builtin_base(source) is dict or type(source) is MappingProxyType:
        observer.session.graph.adopt(source)
        containers.read_mapping(observer, source)
        return
    iterate(observer, source)
    if builtin_base(source) is not None:
        for pair in elements(source):
            iterate(observer, pair)
    take_pairs(observer, source, target)


def _make_dict(observer: Observer, call: NativeCall) -> None:
    observer.after = attributes.bear_top
    for source in call.args:
        _read_pairs(observer, source)


def _start_dict(observer: Observer, call: NativeCall) -> None:
    target, *sources = call.args
    for source in sources:
        _read_pairs(observer, source, target)
    if target is not None:
        before_write(observer.session.graph, target, Extent.WHOLE)


_ADOPT: Final = attributes.adopt_top
_METHODS: Final[dict[Entry, str]] = {
    on_graph(read_item, 2): "get __contains__",
    # Whatever a subclass makes of a subscript: this is the method of the dict.
    on_arguments(containers.read_entry, 2): "__getitem__",
    _entry(Extent.DELETION, True): "pop",
    _entry(Extent.KEY, False): "setdefault",
    _dict_set: "__setitem__",
    _entry(Extent.DELETION, True, False): "__delitem__",
    on_graph(read_keys, 1, _ADOPT): "keys __iter__ __reversed__",
    on_graph(read_all, 1, _ADOPT): "values items copy",
    on_graph(read_length, 1): "__len__",
    on_graph(before_write, 1, _ADOPT, extent=Extent.WHOLE): "clear popitem move_to_end",
    _dict_update: "update",
    _start_dict: "__init__",
}


DICTS: Final[Entries] = (
    (dict, _make_dict),
    (collections.OrderedDict, _make_dict),
    *members(dict, _METHODS),
    *members(collections.OrderedDict, _METHODS),
)
