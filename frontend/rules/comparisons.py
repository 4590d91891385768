"""Owns comparisons, identity tests and membership tests."""

from __future__ import annotations

import types
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.addresses import AddressHolding, compared
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import RESULT, Observer
from magweld.frontend.rules.attributes import adopt_top, expect_operator
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.operators import (
    has_tensor,
    is_plain,
    read_held,
    runs_python,
)
from magweld.frontend.rules.protocols import (
    is_view,
    iterate,
    read_referent,
    read_through,
    read_value,
)
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import builtin_base, elements, read_all, read_item
from magweld.frontend.state.draws import Holding
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.natives import is_buffer, scalar_base
from magweld.frontend.state.python_operators import methods_of
from magweld.frontend.state.values import is_identity, is_scalar


def note_decision(observer: Observer, symbol: str, stack: list[Any]) -> None:
    """Record a comparison as a use of the random numbers and addresses in it."""
    held = observer.drawn
    addresses = [one for one in held if isinstance(one, AddressHolding)]
    observer.drawn = compared(addresses, observer.frame, symbol, stack)
    drawn = [one for one in held if isinstance(one, Holding)]
    places = {holding.place for holding in drawn}
    for holding in drawn:
        observer.drawn += _after(observer, holding, places, symbol, stack)


def _after(
    observer: Observer,
    holding: Holding,
    places: set[int | None],
    symbol: str,
    stack: list[Any],
) -> tuple[Holding, ...]:
    place, last = holding.place, len(stack) - 1
    if place is None or place < last - 1:
        return (holding,)
    other = 2 * last - 1 - place
    if other in places:
        # Another number is drawn there on each call: then both are to be the same.
        return ()
    # What is to be compared with is another number in each call if it is lifted.
    shadow = observer.shadow
    lifted = shadow is not None and shadow.operand(other) is not None
    if lifted or type(stack[other]) not in (int, float):
        return ()
    holding.draw.decide(symbol, stack[other], reflected=place == last)
    return holding.at(None, holding.slot)


def compare_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """COMPARE_OP."""
    if observer.drawn:
        note_decision(observer, row.argval, stack)
    compare(observer, stack[-2], stack[-1], row.argval)
    if row.tests_result and observer.awaits_operator:
        observer.testing = RESULT


def compare(observer: Observer, left: Any, right: Any, symbol: str) -> None:
    """Record what a comparison reads."""
    if is_scalar(left) and is_scalar(right):
        return
    forward, reflected = methods_of(symbol)
    candidates = [(left, forward), (right, reflected)]
    if symbol == "!=":
        # `object.__ne__` asks `__eq__`.
        candidates += [(left, "__eq__"), (right, "__eq__")]
    if not runs_python(observer, symbol, candidates):
        _compare_native(observer, symbol, left, right)
    elif left is not right and not has_tensor(observer, left, right):
        # Where no method has an answer, identity decides.
        observer.session.graph.distinct(left, right)


def _compare_native(observer: Observer, symbol: str, left: Any, right: Any) -> None:
    graph = observer.session.graph
    bases = (builtin_base(left), builtin_base(right))
    if all(base is not None for base in bases):
        if left is not right or symbol not in ("==", "!="):
            read_value(observer, left)
            read_value(observer, right)
        return
    if range in (type(left), type(right)):
        for side in (left, right):
            read_value(observer, side)
        return
    if any(map(is_buffer, (left, right))) or all(map(_is_number, (left, right))):
        for side in (left, right):
            read_value(observer, side)
        observer.after = adopt_top
        return
    if symbol not in ("==", "!="):
        name = type(left).__qualname__
        raise StopRecordingError("native-operator", f"{symbol} on {name}")
    for side in (left, right):
        _check_identity_equality(observer, side)
    graph.distinct(left, right)


def _is_number(obj: Any) -> bool:
    return is_scalar(obj) or scalar_base(obj) is not None


def _check_identity_equality(observer: Observer, obj: Any) -> None:
    if is_scalar(obj) or is_identity(obj) or builtin_base(obj) is not None:
        return
    equality = note_class(observer.session.graph, type(obj), "__eq__")
    if equality is not object.__eq__:
        name = type(obj).__qualname__
        raise StopRecordingError("native-operator", f"== on {name}")


def is_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """IS_OP."""
    left, right = stack[-2], stack[-1]
    observer.session.graph.choices.check_identity(left, right)
    if left is right:
        observer.session.graph.pin(left, right)
    else:
        observer.session.graph.distinct(left, right)


def contains_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CONTAINS_OP."""
    contains(observer, stack[-1], stack[-2])


def contains(observer: Observer, container: Any, item: Any) -> None:
    """Record what `item in container` reads."""
    if type(container) is dict:
        read_item(observer.session.graph, container, item)
        return
    if is_scalar(container) and is_scalar(item):
        return
    if type(container) is types.MappingProxyType:
        contains(observer, read_referent(observer.session.graph, container), item)
        return
    method = special_method(observer, container, "__contains__")
    if has_tensor(observer, container):
        expect_operator(observer, "in")
        return
    if is_python(method):
        return
    if is_buffer(container) or scalar_base(container) is not None:
        read_value(observer, container)
        read_held(observer, item)
        return
    if method is ABSENT:
        _check_sought(item)
        iterate(observer, container)
        return
    if builtin_base(container) is dict and is_plain(method):
        read_item(observer.session.graph, container, item)
    else:
        _search(observer, container, item)


def _search(observer: Observer, container: Any, item: Any) -> None:
    """Record what native code reads that compares an object with all elements."""
    if builtin_base(container) is None:
        if not is_view(container):
            _check_sought(item)
        iterate(observer, container)
        read_through(observer, container)
    else:
        read_all(observer.session.graph, container)
        members = (*elements(container), item)
        observer.session.graph.distinct_members(container, members)
    _check_comparable(observer, container, item)


def _check_sought(item: Any) -> None:
    """Refuse to look for an object among those that an iterator gives, unseen.

    Which of them it is, or what lists of them hold, would decide.
    """
    if not is_scalar(item) and not is_identity(item):
        kind = type(item).__qualname__
        raise StopRecordingError("native-operator", f"{kind} in an iterator")


def _check_comparable(observer: Observer, container: Any, item: Any) -> None:
    # A membership test compares with each element: none may have its own equality.
    candidates = [item]
    if builtin_base(container) is not None:
        candidates += elements(container)
    known: set[type] = set()
    for candidate in candidates:
        if type(candidate) in known:
            continue
        if builtin_base(candidate) is not None:
            read_value(observer, candidate)
        elif not has_tensor(observer, candidate) and _check_membership(
            observer, candidate
        ):
            known.add(type(candidate))


def _check_membership(observer: Observer, candidate: Any) -> bool:
    """Record how an object compares; return whether its class has decided."""
    if is_scalar(candidate) or is_identity(candidate):
        return False
    equality = special_method(observer, candidate, "__eq__")
    if equality is not object.__eq__ and not is_python(equality):
        name = type(candidate).__qualname__
        raise StopRecordingError("native-operator", f"in with {name}")
    return True
