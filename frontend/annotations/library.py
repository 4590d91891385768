"""Annotations of the standard library, as rules."""

from __future__ import annotations

import builtins
import contextvars
import gc
import inspect
import re
import sys
import weakref
from types import FunctionType, MethodType
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Result,
    Use,
    members,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import attributes, operators
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.attributes import before_slot_write, namespace_of
from magweld.frontend.state.contents import read_item
from magweld.frontend.state.ends import WATCHED
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_scalar


def _signature(observer: Observer, call: NativeCall) -> None:
    """`inspect.signature`: what it reads of a function and of those it wraps."""
    graph = observer.session.graph
    function = call.args[0]
    while True:
        if type(function) is MethodType:
            function = function.__func__
            graph.constant(function)
        if type(function) is not FunctionType:
            raise StopRecordingError("native-call", call.name)
        register_function(observer.session, function)
        namespace = namespace_of(graph, function)
        assert namespace is not None, "a function has a namespace"
        read_item(graph, namespace.obj, "__signature__")
        read_item(graph, namespace.obj, "__wrapped__")
        if "__wrapped__" not in namespace.obj:
            break
        function = namespace.obj["__wrapped__"]
    observer.after = attributes.adopt_top


# The node, the variable `value` and the argument of `getrefcount`.
_OWN_REFERENCES: Final = 3


def _refer(observer: Observer, call: NativeCall) -> None:
    """`weakref.ref`; what the recording keeps has no callback until it is over."""
    _check_callback(call.args[1:])
    observer.after = attributes.adopt_top


def _make_reference(observer: Observer, call: NativeCall) -> None:
    """`weakref.ref.__new__`, which gets the class first."""
    _check_callback(call.args[2:])
    observer.after = attributes.adopt_top


def _proxy(observer: Observer, call: NativeCall) -> None:
    _check_callback(call.args[1:])
    raise StopRecordingError("native-call", call.name)


def _check_callback(callbacks: tuple[Any, ...]) -> None:
    if any(callback is not None for callback in callbacks):
        raise StopRecordingError("unknown-function", WATCHED)


def _dereference(observer: Observer, call: NativeCall) -> None:
    graph = observer.session.graph
    reference = call.args[0]
    value = weakref.ref.__call__(reference)
    node = graph.find(value)
    if node is not None and not node.external:
        # What else keeps tensors and lifted values is not counted.
        counted = graph.lifting is None
        counted &= not observer.session.operators.is_tensor(type(value))
        held = counted and sys.getrefcount(value) > _OWN_REFERENCES
    else:
        held = value is None or not graph.goes_on or _is_held(node)
        held &= not _drops_objects(graph)
    if not held:
        # The recording itself may be what keeps the object alive.
        raise StopRecordingError("read-after-write", "a weak reference")
    graph.read(graph.require(reference), Kind.REFERENT, None, value)


def _is_held(node: Node | None) -> bool:
    """Return whether an object is reached from what no program lets go of."""
    while node is not None and node.edge is not None:
        node = node.edge.container
    return node is not None and node.constant


def _drops_objects(graph: RefGraph) -> bool:
    """Tell whether a write of the run took more than numbers and the like away."""
    taken = [before for before in graph.slot_snapshots.values() if before is not ABSENT]
    for key, before in graph.snapshots.items():
        left = {id(item) for item in gc.get_referents(graph.nodes[key].obj)}
        taken += [item for item in gc.get_referents(before) if id(item) not in left]
    return not all(map(is_scalar, taken))


def _context_get(observer: Observer, call: NativeCall) -> None:
    graph = observer.session.graph
    variable = call.args[0]
    value = variable.get(ABSENT)
    graph.read(graph.require(variable), Kind.CONTEXT, None, value)
    if value is ABSENT and len(call.args) == 1:
        # The default of the variable, fixed when it was made.
        observer.after = _hold_top


def _hold_top(observer: Observer, stack: list[Any]) -> None:
    if not is_scalar(stack[-1]):
        observer.session.graph.constant(stack[-1])


def _context_set(observer: Observer, call: NativeCall) -> None:
    graph = observer.session.graph
    node = graph.require(call.args[0])
    before = node.obj.get(ABSENT)
    if node.external:
        graph.read(node, Kind.CONTEXT, None, before)
    before_slot_write(graph, node, Kind.CONTEXT, None, before)
    observer.after = attributes.adopt_top


def _power(observer: Observer, call: NativeCall) -> None:
    if len(call.args) == 3:
        if not all(map(is_scalar, call.args)):
            raise StopRecordingError("native-call", "pow of three arguments")
        return
    left, right = call.args
    operators.binary(observer, left, right, "**")


LIBRARY_RULES: Final[Entries] = (
    (contextvars.ContextVar.get, _context_get),
    (contextvars.ContextVar.reset, _context_set),
    (contextvars.ContextVar.set, _context_set),
    (weakref.ref, _refer),
    (weakref.ref.__new__, _make_reference),
    (weakref.ref.__init__, Annotation(rest=Use.KEEP)),
    (weakref.proxy, _proxy),
    (vars(weakref.ref)["__call__"], _dereference),
    (builtins.pow, _power),
    (inspect.signature, _signature),
)


_OF_PATTERN: Final = "match search fullmatch findall split"
_REPLACING: Final = "sub subn"
_OF_MATCH: Final = "group groups groupdict start end span"
_READ: Final = Annotation((Use.KEEP,), rest=Use.VALUE, result=Result.FRESH)


def _apply(observer: Observer, call: NativeCall) -> None:
    """What a pattern finds follows from the pattern itself and from the text."""
    pattern, *values = call.args
    if pattern.flags & re.LOCALE:
        raise StopRecordingError("native-call", f"{call.name} by locale")
    if not all(map(is_scalar, (*values, *call.kwargs.values()))):
        # Arrays and subclasses of strings hold text as well.
        raise StopRecordingError("native-call", call.name)
    graph = observer.session.graph
    if graph.require(pattern).external:
        graph.hold(pattern)
    for value in (*values, *call.kwargs.values()):
        read_value(observer, value)
    observer.after = attributes.adopt_top


def _replace(observer: Observer, call: NativeCall) -> None:
    """Replacing text; a template with groups is worked out by Python code of `re`."""
    template = call.args[1] if len(call.args) > 1 else call.kwargs.get("repl")
    if type(template) is not str or "\\" in template:
        raise StopRecordingError("native-call", call.name)
    _apply(observer, call)


REGULAR: Final[Entries] = (
    *members(re.Pattern, {_apply: _OF_PATTERN, _replace: _REPLACING}),
    *members(re.Match, {_READ: _OF_MATCH}),
)
