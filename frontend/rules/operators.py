"""Owns operators, comparisons and truth tests."""

from __future__ import annotations

import dis
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import adopt_top, expect_operator
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.protocols import (
    ITERATORS,
    is_view,
    iterate,
    read_base,
    read_referent,
    read_value,
    take_elements,
    test_truth,
)
from magweld.frontend.rules.text import read_format_arguments
from magweld.frontend.state.contents import (
    CONTAINERS,
    SETS,
    Extent,
    before_write,
    builtin_base,
    read_all,
    read_length,
)
from magweld.frontend.state.natives import (
    check_buffer_write,
    is_array,
    is_buffer,
    read_form,
    scalar_base,
)
from magweld.frontend.state.python_operators import BINARY, functions
from magweld.frontend.state.set_writes import note_set_operand
from magweld.frontend.state.values import is_identity, is_scalar

# Containers whose native slots do what those of the built-in base do.
PLAIN_OWNERS: Final = frozenset(
    {dict, list, tuple, set, frozenset, deque, OrderedDict, defaultdict, object}
)


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
    binary(observer, stack[-2], stack[-1], operators[row.arg][1])


def binary(observer: Observer, left: Any, right: Any, symbol: str) -> None:
    """Record what a binary operator reads and writes."""
    if is_scalar(left) and is_scalar(right):
        return
    inplace = symbol.endswith("=")
    name = BINARY[symbol.removesuffix("=")]
    candidates = [(left, f"__{name}__"), (right, f"__r{name}__")]
    if inplace:
        candidates.insert(0, (left, f"__i{name}__"))
    if runs_python(observer, symbol, candidates):
        return
    if inplace and (builtin_base(left) in _UPDATED or is_buffer(left)):
        _update(observer, symbol, left, right)
    else:
        _combine(observer, symbol, left, right)


def runs_python(
    observer: Observer, symbol: str, candidates: list[tuple[Any, str]]
) -> bool:
    """Prepare for special methods in Python; False if only native ones can run.

    Tensors have some in Python, which still end in an operator; an operand of
    another class may answer instead of the tensor.
    """
    tensor = has_tensor(observer, *(obj for obj, _ in candidates))
    python = native = False
    for obj, name in candidates:
        scalar = is_scalar(obj)
        if not scalar and is_python(special_method(observer, obj, name)):
            python |= not has_tensor(observer, obj)
        else:
            native = True
    if python and native:
        # The native method may be the one that answers, from what the operands hold.
        for obj, _ in candidates:
            read_held(observer, obj)
    if tensor and not python:
        expect_operator(observer, symbol, _answers(symbol, candidates))
    return tensor or python


def read_held(observer: Observer, obj: Any) -> None:
    """Record what an instance of a subclass of a built-in class holds, if it is one."""
    if is_scalar(obj) or has_tensor(observer, obj):
        return
    if scalar_base(obj) is not None:
        read_base(observer.session.graph, obj)
    elif builtin_base(obj) is not None:
        read_all(observer.session.graph, obj)


def _answers(symbol: str, candidates: list[tuple[Any, str]]) -> tuple[type, ...]:
    # `tensor == None` ends in the default comparison, which is by identity.
    plain = all(
        is_scalar(obj) or is_identity(obj) or type(obj) in CONTAINERS
        for obj, _ in candidates[1::2]
    )
    return (bool,) if symbol in ("==", "!=") and plain else ()


_UPDATED: Final = (list, dict, set, deque)


def has_tensor(observer: Observer, *objects: Any) -> bool:
    """Return whether one of the objects is a tensor."""
    is_tensor = observer.session.operators.is_tensor
    for obj in objects:
        if is_tensor(type(obj)):
            return True
    return False


def _update(observer: Observer, symbol: str, left: Any, right: Any) -> None:
    graph = observer.session.graph
    if builtin_base(left) is dict:
        if type(right) not in (dict, OrderedDict, defaultdict):
            raise StopRecordingError("native-operator", f"|= {type(right).__name__}")
        read_all(graph, right)
    elif is_buffer(right):
        read_value(observer, right)
    elif not is_scalar(right):
        iterate(observer, right)
    if is_buffer(left):
        check_buffer_write(graph, left)
        return
    tail = symbol == "+=" and type(left) is list
    before_write(graph, left, Extent.TAIL if tail else Extent.WHOLE)
    if builtin_base(left) is set and builtin_base(right) in SETS:
        note_set_operand(graph, left, _OF_SETS[symbol], right)


_OF_SETS: Final = {
    "|=": set.update,
    "&=": set.intersection_update,
    "-=": set.difference_update,
    "^=": set.symmetric_difference_update,
}


_ELEMENTWISE: Final = functions({s: name for s, name in BINARY.items() if s != "@"})
_NUMBERS: Final = (bool, int, float)


def record_on_arrays(
    observer: Observer, function: Any, args: tuple[Any, ...], kwargs: Any
) -> bool:
    """Record a pure function of arrays of tensors; return whether it is one of these.

    Its result follows from the tensors, and is an array again.
    """
    layer = observer.session.operators
    shown = [is_array(arg) and layer.twin(arg) is not None for arg in args]
    pairs = zip(args, shown, strict=True)
    if not any(shown) or not all(s or type(arg) in _NUMBERS for arg, s in pairs):
        return False
    observer.session.opaque_caller = observer

    def close(observer: Observer, stack: list[Any]) -> None:
        layer.take_array(function, args, kwargs, stack[-1])

    observer.after = close
    return True


def _combine(observer: Observer, symbol: str, left: Any, right: Any) -> None:
    if type(left) is str and symbol == "%":
        read_format_arguments(observer, right)
        return
    function = _ELEMENTWISE.get(symbol)
    if function is not None and record_on_arrays(observer, function, (left, right), {}):
        return
    for operand in (left, right):
        _read_number(observer, operand, symbol)
    observer.after = adopt_top


_UNARIES: Final = {
    "UNARY_NEGATIVE": "__neg__",
    "UNARY_INVERT": "__invert__",
    "UNARY_POSITIVE": "__pos__",
}


def unary_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """UNARY_NEGATIVE, UNARY_INVERT, UNARY_POSITIVE."""
    unary(observer, stack[-1], _UNARIES[row.opname])


def unary(observer: Observer, obj: Any, name: str) -> None:
    """Record what a unary operator reads; `name` is its special method."""
    if is_scalar(obj):
        return
    method = special_method(observer, obj, name)
    if has_tensor(observer, obj):
        expect_operator(observer, name)
        return
    if is_python(method):
        return
    _read_number(observer, obj, name)
    observer.after = adopt_top


def _read_number(observer: Observer, obj: Any, symbol: str) -> None:
    """Record the value of an operand of native arithmetic."""
    if is_scalar(obj) or is_identity(obj):
        return
    if builtin_base(obj) is not None:
        take_elements(observer, obj)
    elif is_buffer(obj) or scalar_base(obj) is not None or is_view(obj):
        read_value(observer, obj)
    else:
        name = type(obj).__qualname__
        raise StopRecordingError("native-operator", f"{symbol} on {name}")


def read_length_of(observer: Observer, obj: Any) -> None:
    """Record what `len(obj)` reads."""
    if is_scalar(obj):
        return
    graph = observer.session.graph
    method = special_method(observer, obj, "__len__")
    if has_tensor(observer, obj):
        expect_operator(observer, "len")
    elif is_python(method):
        return
    elif builtin_base(obj) is not None:
        read_length(graph, obj)
    elif type(obj) is types.MappingProxyType:
        read_length_of(observer, read_referent(graph, obj))
    elif is_array(obj):
        read_form(graph, obj)
    elif type(obj) is range or is_buffer(obj) or scalar_base(obj) is not None:
        read_value(observer, obj)
    elif type(obj) not in ITERATORS or not graph.require(obj).owned:
        raise StopRecordingError("native-operator", f"len of {type(obj).__name__}")


def truth_op(observer: Observer, row: Row, stack: list[Any]) -> None:
    """Conditional jumps, UNARY_NOT, and TO_BOOL of 3.13 in front of both."""
    obj = stack[-1]
    if type(obj) is bool:
        return
    if has_tensor(observer, obj):
        decides = row.opname == "TO_BOOL" or row.opname.startswith("POP_JUMP")
        observer.testing = obj if decides else None
        expect_operator(observer, "bool")
        return
    test_truth(observer, obj)
