"""Owns operators, comparisons and truth tests."""

from __future__ import annotations

import dis
import types
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.rules.attributes import adopt_top, expect_operator
from magweld.frontend.rules.functions import note_class, register_function
from magweld.frontend.rules.protocols import iterate, read_value, test_truth
from magweld.frontend.state.contents import (
    CONTAINERS,
    Extent,
    before_write,
    builtin_base,
    elements,
    read_all,
    read_item,
)
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.values import is_identity, is_scalar

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer

NAMES: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and",
    "|": "or",
    "^": "xor",
}
COMPARISONS: Final = {
    "==": ("__eq__", "__eq__"),
    "!=": ("__ne__", "__ne__"),
    "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"),
    ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"),
}
# Containers whose native slots do what those of the built-in base do.
PLAIN_OWNERS: Final = frozenset(
    {dict, list, tuple, set, frozenset, deque, OrderedDict, defaultdict, object}
)


def special_method(observer: Observer, obj: Any, name: str) -> Any:
    """Return the special method that an operator will use.

    Returns:
        A Python function, which is then registered; a native method; or ABSENT.
    """
    method = note_class(observer.session.graph, type(obj), name)
    if type(method) is types.FunctionType:
        register_function(observer.session, method)
    return method


def is_python(method: Any) -> bool:
    """Return whether a special method runs as observed Python code."""
    return type(method) is types.FunctionType


def is_plain(method: Any) -> bool:
    """Return whether a native special method is that of a built-in container."""
    if type(method) not in (types.WrapperDescriptorType, types.MethodDescriptorType):
        return False
    owner = method.__objclass__
    # Native subclasses of tuple add names to their elements, not behaviour.
    return owner in PLAIN_OWNERS or issubclass(owner, tuple)


def binary_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BINARY_OP, in-place forms included."""
    operators: Any = dis._nb_ops  # type: ignore[attr-defined]
    binary(observer, operators[row.arg][1], stack[-2], stack[-1])


def binary(observer: Observer, symbol: str, left: Any, right: Any) -> None:
    """Record what a binary operator reads and writes."""
    if is_scalar(left) and is_scalar(right):
        return
    inplace = symbol.endswith("=")
    name = NAMES[symbol.removesuffix("=")]
    candidates = [(left, f"__{name}__"), (right, f"__r{name}__")]
    if inplace:
        candidates.insert(0, (left, f"__i{name}__"))
    if _runs_python(observer, symbol, candidates):
        return
    if inplace and builtin_base(left) in (list, dict, set, deque):
        _update(observer, symbol, left, right)
    else:
        _combine(observer, symbol, left, right)


def _runs_python(
    observer: Observer, symbol: str, candidates: list[tuple[Any, str]]
) -> bool:
    """Prepare for special methods in Python; False if only native ones can run.

    Tensors have some in Python, which still end in an operator; an operand of
    another class may answer instead of the tensor.
    """
    tensor = _has_tensor(observer, *(obj for obj, _ in candidates))
    python = False
    for obj, name in candidates:
        if not is_scalar(obj):
            method = special_method(observer, obj, name)
            python |= is_python(method) and not _has_tensor(observer, obj)
    if tensor and not python:
        expect_operator(observer, symbol, _answers(symbol, candidates))
    return tensor or python


def _answers(symbol: str, candidates: list[tuple[Any, str]]) -> tuple[type, ...]:
    # `tensor == None` ends in the default comparison, which is by identity.
    plain = all(
        is_scalar(obj) or is_identity(obj) or type(obj) in CONTAINERS
        for obj, _ in candidates[1::2]
    )
    return (bool,) if symbol in ("==", "!=") and plain else ()


def _has_tensor(observer: Observer, *objects: Any) -> bool:
    operators = observer.session.operators
    return any(operators.is_tensor(type(obj)) for obj in objects)


def _update(observer: Observer, symbol: str, left: Any, right: Any) -> None:
    graph = observer.session.graph
    if builtin_base(left) is dict:
        if type(right) not in (dict, OrderedDict, defaultdict):
            raise StopRecordingError("native-operator", f"|= {type(right).__name__}")
        read_all(graph, right)
    elif not is_scalar(right):
        iterate(observer, right)
    tail = symbol == "+=" and type(left) is list
    before_write(graph, left, Extent.TAIL if tail else Extent.WHOLE)


def _combine(observer: Observer, symbol: str, left: Any, right: Any) -> None:
    if type(left) is str and symbol == "%":
        read_value(observer, right)
        return
    graph = observer.session.graph
    for operand in (left, right):
        if builtin_base(operand) is not None:
            read_all(graph, operand)
        elif not is_scalar(operand) and not is_identity(operand):
            name = type(operand).__qualname__
            raise StopRecordingError("native-operator", f"{symbol} on {name}")
    observer.after = adopt_top


def unary_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """UNARY_NEGATIVE, UNARY_INVERT, UNARY_POSITIVE."""
    name = {"NEGATIVE": "neg", "INVERT": "invert", "POSITIVE": "pos"}
    unary(observer, name[row.opname.split("_")[-1]], stack[-1])


def unary(observer: Observer, name: str, obj: Any) -> None:
    """Record what a unary operator reads, e.g. "neg"."""
    if is_scalar(obj):
        return
    method = special_method(observer, obj, f"__{name}__")
    if _has_tensor(observer, obj):
        expect_operator(observer, name)
    elif not is_python(method):
        raise StopRecordingError("native-operator", type(obj).__qualname__)


def compare_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """COMPARE_OP."""
    compare(observer, row.argval, stack[-2], stack[-1])


def compare(observer: Observer, symbol: str, left: Any, right: Any) -> None:
    """Record what a comparison reads."""
    if is_scalar(left) and is_scalar(right):
        return
    forward, reflected = COMPARISONS[symbol]
    candidates = [(left, forward), (right, reflected)]
    if symbol == "!=":
        # `object.__ne__` asks `__eq__`.
        candidates += [(left, "__eq__"), (right, "__eq__")]
    if not _runs_python(observer, symbol, candidates):
        _compare_native(observer, symbol, left, right)


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
    if symbol not in ("==", "!="):
        name = type(left).__qualname__
        raise StopRecordingError("native-operator", f"{symbol} on {name}")
    for side in (left, right):
        _check_identity_equality(observer, side)
    graph.distinct(left, right)


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
    if left is right:
        observer.session.graph.pin(left, right)
    else:
        observer.session.graph.distinct(left, right)


def contains_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CONTAINS_OP."""
    contains(observer, stack[-1], stack[-2])


def contains(observer: Observer, container: Any, item: Any) -> None:
    """Record what `item in container` reads."""
    if is_scalar(container) and is_scalar(item):
        return
    method = special_method(observer, container, "__contains__")
    if _has_tensor(observer, container):
        expect_operator(observer, "in")
        return
    if is_python(method):
        return
    if method is ABSENT:
        iterate(observer, container)
        return
    base = builtin_base(container)
    if base is dict and is_plain(method):
        read_item(observer.session.graph, container, item)
        return
    if base is None:
        iterate(observer, container)
    else:
        read_all(observer.session.graph, container)
    _check_comparable(observer, container, item)


def _check_comparable(observer: Observer, container: Any, item: Any) -> None:
    # A membership test compares with each element: none may have its own equality.
    candidates = [item]
    if builtin_base(container) is not None:
        candidates += elements(container)
    for candidate in candidates:
        if builtin_base(candidate) is not None:
            read_value(observer, candidate)
        elif not _has_tensor(observer, candidate):
            _check_membership(observer, candidate)


def _check_membership(observer: Observer, candidate: Any) -> None:
    if is_scalar(candidate) or is_identity(candidate):
        return
    equality = special_method(observer, candidate, "__eq__")
    if equality is not object.__eq__ and not is_python(equality):
        name = type(candidate).__qualname__
        raise StopRecordingError("native-operator", f"in with {name}")


def truth_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """Conditional jumps and UNARY_NOT."""
    obj = stack[-1]
    if type(obj) is bool:
        return
    if _has_tensor(observer, obj):
        expect_operator(observer, "bool")
        return
    test_truth(observer, obj)
