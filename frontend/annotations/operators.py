"""Annotations of the module `operator`: functions that stand for instructions."""

from __future__ import annotations

import builtins
import operator
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    PureRule,
    Result,
    Rule,
    Use,
    on_arguments,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import (
    attributes,
    comparisons,
    containers,
    natives,
    operators,
    protocols,
)
from magweld.frontend.rules.functions import register_function
from magweld.frontend.state.lookup import Lookup
from magweld.frontend.state.natives import read_content
from magweld.frontend.state.python_operators import BINARY, COMPARISONS, functions


def _identity(observer: Observer, call: NativeCall) -> None:
    left, right = call.args
    if left is not right:
        observer.session.graph.distinct(left, right)


def _get_item(observer: Observer, call: NativeCall) -> None:
    """A call of an `itemgetter`: one key, or several for a tuple."""
    getter, obj = call.args
    read_content(observer.session.graph, getter)
    keys = getter.__reduce__()[1]
    for key in keys:
        containers.subscript(observer, obj, key)
    if len(keys) > 1:
        observer.after = attributes.adopt_top


def _get_attribute(observer: Observer, call: NativeCall) -> None:
    """A call of an `attrgetter`; behind a dot nothing is known before the call."""
    getter, obj = call.args
    read_content(observer.session.graph, getter)
    names = getter.__reduce__()[1]
    if any("." in name for name in names):
        raise StopRecordingError("native-call", "attrgetter of a dotted name")
    for name in names:
        attributes.read_attribute(observer, obj, name)
    if len(names) > 1:
        observer.after = attributes.adopt_top


def _call_method(observer: Observer, call: NativeCall) -> None:
    """A call of a `methodcaller`: a method written in Python, or an annotated one."""
    caller, obj = call.args
    read_content(observer.session.graph, caller)
    name, *args = caller.__reduce__()[1]
    found = attributes.read_attribute(observer, obj, name)
    observer.after = None
    if found.how is Lookup.METHOD:
        register_function(observer.session, found.value)
    elif found.how is Lookup.NATIVE_METHOD:
        natives.call_native(observer, found.value, (obj, *args), {})
    else:
        raise StopRecordingError("native-call", f"methodcaller of {name}")


_BINARY: Final = (*functions(BINARY).items(), ("+", operator.concat))
_IN_PLACE: Final = (*functions(BINARY, "i").items(), ("+", operator.iconcat))
_UNARIES: Final = {
    operator.neg: "__neg__",
    operator.pos: "__pos__",
    operator.invert: "__invert__",
    operator.inv: "__invert__",
    operator.abs: "__abs__",
    builtins.abs: "__abs__",
}
_PURE: Final[dict[Any, Rule]] = {
    **{
        function: on_arguments(comparisons.compare, 2, symbol=symbol)
        for symbol, function in functions(COMPARISONS).items()
    },
    **{f: on_arguments(operators.binary, 2, symbol=s) for s, f in _BINARY},
    **{f: on_arguments(operators.unary, 1, name=name) for f, name in _UNARIES.items()},
    operator.getitem: on_arguments(containers.subscript, 2),
    operator.contains: on_arguments(comparisons.contains, 2),
    operator.truth: on_arguments(protocols.test_truth, 1),
    operator.not_: on_arguments(protocols.test_truth, 1),
    operator.is_: _identity,
    operator.is_not: _identity,
    operator.itemgetter.__call__: _get_item,
}
_WRITE: Final = containers.write_subscript
_MAKE: Final = Annotation(rest=Use.KEEP, result=Result.FRESH)

OPERATORS: Final[Entries] = (
    *((function, PureRule(rule)) for function, rule in _PURE.items()),
    *((f, on_arguments(operators.binary, 2, symbol=f"{s}=")) for s, f in _IN_PLACE),
    (list.__setitem__, on_arguments(containers.write_element, 3)),
    (list.__delitem__, on_arguments(containers.write_element, 2, value=None)),
    (operator.setitem, on_arguments(_WRITE, 3, name="__setitem__")),
    (operator.delitem, on_arguments(_WRITE, 2, value=None, name="__delitem__")),
    (operator.attrgetter.__call__, _get_attribute),
    (operator.methodcaller.__call__, _call_method),
    (operator.itemgetter, _MAKE),
    (operator.attrgetter, _MAKE),
    (operator.methodcaller, _MAKE),
    (operator.countOf, Annotation(rest=Use.VALUE)),
    (operator.indexOf, Annotation(rest=Use.VALUE)),
    (operator.length_hint, Annotation(rest=Use.VALUE)),
)
