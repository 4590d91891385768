"""Annotations of the module `operator`: functions that stand for instructions."""

from __future__ import annotations

import builtins
import operator
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entry,
    NativeCall,
    PureRule,
    Result,
    Rule,
    Use,
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


def _binary(symbol: str) -> Rule:
    def rule(observer: Observer, call: NativeCall) -> None:
        operators.binary(observer, symbol, call.args[0], call.args[1])

    return rule


def _comparison(symbol: str) -> Rule:
    def rule(observer: Observer, call: NativeCall) -> None:
        comparisons.compare(observer, symbol, call.args[0], call.args[1])

    return rule


def _unary(name: str) -> Rule:
    def rule(observer: Observer, call: NativeCall) -> None:
        operators.unary(observer, name, call.args[0])

    return rule


def _subscript(observer: Observer, call: NativeCall) -> None:
    containers.subscript(observer, call.args[0], call.args[1])


def _contains(observer: Observer, call: NativeCall) -> None:
    comparisons.contains(observer, call.args[0], call.args[1])


def _truth(observer: Observer, call: NativeCall) -> None:
    protocols.test_truth(observer, call.args[0])


def _identity(observer: Observer, call: NativeCall) -> None:
    left, right = call.args
    if left is not right:
        observer.session.graph.distinct(left, right)


def _set_item(observer: Observer, call: NativeCall) -> None:
    container, key, value = call.args
    containers.write_subscript(observer, container, key, "__setitem__", value)


def _delete_item(observer: Observer, call: NativeCall) -> None:
    container, key = call.args
    containers.write_subscript(observer, container, key, "__delitem__", None)


def _set_element(observer: Observer, call: NativeCall) -> None:
    container, key, value = call.args
    containers.write_element(observer, container, key, value)


def _delete_element(observer: Observer, call: NativeCall) -> None:
    container, key = call.args
    containers.write_element(observer, container, key, None)


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


_COMPARISONS: Final = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
_BINARIES: Final = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.matmul: "@",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.concat: "+",
}
_IN_PLACE: Final = {
    operator.iadd: "+=",
    operator.isub: "-=",
    operator.imul: "*=",
    operator.imatmul: "@=",
    operator.itruediv: "/=",
    operator.ifloordiv: "//=",
    operator.imod: "%=",
    operator.ipow: "**=",
    operator.iand: "&=",
    operator.ior: "|=",
    operator.ixor: "^=",
    operator.ilshift: "<<=",
    operator.irshift: ">>=",
    operator.iconcat: "+=",
}
_UNARIES: Final = {
    operator.neg: "__neg__",
    operator.pos: "__pos__",
    operator.invert: "__invert__",
    operator.inv: "__invert__",
    operator.abs: "__abs__",
    builtins.abs: "__abs__",
}
_PURE: Final[dict[Any, Rule]] = {
    **{function: _comparison(symbol) for function, symbol in _COMPARISONS.items()},
    **{function: _binary(symbol) for function, symbol in _BINARIES.items()},
    **{function: _unary(name) for function, name in _UNARIES.items()},
    operator.getitem: _subscript,
    operator.contains: _contains,
    operator.truth: _truth,
    operator.not_: _truth,
    operator.is_: _identity,
    operator.is_not: _identity,
    operator.itemgetter.__call__: _get_item,
}
_MAKE: Final = Annotation(rest=Use.KEEP, result=Result.FRESH)

OPERATORS: Final[tuple[tuple[Any, Entry], ...]] = (
    *((function, PureRule(rule)) for function, rule in _PURE.items()),
    *((function, _binary(symbol)) for function, symbol in _IN_PLACE.items()),
    (list.__setitem__, _set_element),
    (list.__delitem__, _delete_element),
    (operator.setitem, _set_item),
    (operator.delitem, _delete_item),
    (operator.attrgetter.__call__, _get_attribute),
    (operator.methodcaller.__call__, _call_method),
    (operator.itemgetter, _MAKE),
    (operator.attrgetter, _MAKE),
    (operator.methodcaller, _MAKE),
    (operator.countOf, Annotation(rest=Use.VALUE)),
    (operator.indexOf, Annotation(rest=Use.VALUE)),
    (operator.length_hint, Annotation(rest=Use.VALUE)),
    (operator.index, Annotation()),
)
