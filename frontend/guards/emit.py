"""Owns the Python source form of guards: fetching and testing, as text."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.state.contents import (
    EXACT_CONTAINERS,
    base_class,
    cell_value,
    slot_value,
)
from magweld.frontend.state.iterators import has_more, part_of, peek
from magweld.frontend.state.mro import ABSENT, find_in_mro
from magweld.frontend.state.natives import base_value, content_of, form_of, referent
from magweld.frontend.state.nodes import ATTRIBUTES, Edge, Kind
from magweld.frontend.state.values import bits_reader, is_scalar, same_scalar

_TEXT: Final = {str}


def same_objects(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Return whether two tuples hold the same objects, or scalars that are equal."""
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if type(left) is tuple and type(right) is tuple:
        return same_objects(left, right)
    return is_scalar(left) and same_scalar(left, right) and left == left


def same_names(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Return whether two tuples hold the same strings, of the type `str` itself."""
    return left == right and {*map(type, left)} <= _TEXT


# Types of which `repr` is source; a longer text or number becomes a constant.
_SIZES: Final[dict[type, Callable[[Any], int]]] = {
    str: len,
    int: int.bit_length,
    bool: int.bit_length,
    type(None): lambda value: 0,
}
_LONGEST_LITERAL: Final = 100


class Names:
    """Constants of a generated function, one global name each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._known: dict[int, str] = {}

    def constant(self, value: Any) -> str:
        """Return an expression for a constant object."""
        name = self._known.get(id(value))
        if name is None:
            name = f"k{len(self.values)}"
            self._known[id(value)] = name
            self.values[name] = value
        return name

    def literal(self, value: Any) -> str:
        """Return a literal where Python has a short one, else a constant."""
        size = _SIZES.get(type(value))
        if size is not None and size(value) <= _LONGEST_LITERAL:
            return repr(value)
        return self.constant(value)


def call(function: str, *args: str) -> str:
    """Return a call."""
    return f"{function}({', '.join(args)})"


def type_is(names: Names, value: str, kind: type) -> str:
    """Return a test of the exact type."""
    return f"{names.constant(type)}({value}) is {names.constant(kind)}"


def scalar_is(names: Names, value: str, expected: Any) -> str:
    """Return a test of type and value of a scalar, bits of floats included."""
    kind = type(expected)
    if expected != expected:
        # Containers find a NaN by identity, so its bits do not say everything.
        return f"{value} is {names.constant(expected)}"
    if kind in (bool, type(None), type(Ellipsis), type(NotImplemented)):
        return f"{value} is {names.literal(expected)}"
    bits = bits_reader(kind)
    if bits is not None:
        same = f"{names.constant(bits)}({value}) == {names.constant(bits(expected))}"
    else:
        same = f"{value} == {names.literal(expected)}"
    # An identical object, which is the usual case, needs no further test.
    identical = f"{value} is {names.constant(expected)}"
    return f"{identical} or {type_is(names, value, kind)} and {same}"


def _equals(names: Names, value: str, expected: Any) -> str:
    return f"{value} == {names.literal(expected)}"


def _same_keys(names: Names, value: str, expected: Any) -> str:
    texts = all(type(key) is str for key in expected)
    same = names.constant(same_names if texts else same_objects)
    return call(same, value, names.constant(expected))


# Tests of reads whose result is compared as a whole.
COMPARED: Final = {
    Kind.LENGTH: _equals,
    Kind.KEYS: _same_keys,
    Kind.MEMBERS: _same_keys,
    Kind.CONTENT: _same_keys,
    Kind.FORM: _same_keys,
}


def _base_method(edge: Edge, method: str, names: Names) -> str:
    return names.constant(getattr(base_class(edge.container.obj), method))


def _is_exact(edge: Edge) -> bool:
    return type(edge.container.obj) in EXACT_CONTAINERS


def _item(edge: Edge, base: str, names: Names) -> str:
    key = names.literal(edge.key)
    if _is_exact(edge) and edge.value is not ABSENT:
        return f"{base}[{key}]"
    return call(names.constant(dict.get), base, key, names.constant(ABSENT))


def _index(edge: Edge, base: str, names: Names) -> str:
    if _is_exact(edge):
        return f"{base}[{names.literal(edge.key)}]"
    return call(_base_method(edge, "__getitem__", names), base, names.literal(edge.key))


def _length(edge: Edge, base: str, names: Names) -> str:
    if _is_exact(edge):
        return call(names.constant(len), base)
    return call(_base_method(edge, "__len__", names), base)


def _nonempty(edge: Edge, base: str, names: Names) -> str:
    return base if _is_exact(edge) else _length(edge, base, names)


def _members(edge: Edge, base: str, names: Names) -> str:
    if _is_exact(edge):
        return call(names.constant(tuple), base)
    return call(
        names.constant(tuple), call(_base_method(edge, "__iter__", names), base)
    )


def _instance_dict(edge: Edge, base: str, names: Names) -> str:
    kind = type(edge.container.obj)
    if find_in_mro(kind, "__getattribute__") is object.__getattribute__:
        return f"{base}.__dict__"
    getter = find_in_mro(kind, "__dict__")
    return call(names.constant(getter.__get__), base)


def _slot(edge: Edge, base: str, names: Names) -> str:
    if edge.value is ABSENT:
        return call(names.constant(slot_value), base, names.constant(edge.key))
    return call(names.constant(edge.key.__get__), base)


def _cell(edge: Edge, base: str, names: Names) -> str:
    if edge.value is ABSENT:
        return call(names.constant(cell_value), base)
    return f"{base}.cell_contents"


def read_context(variable: contextvars.ContextVar[Any]) -> Any:
    """Return the value of a context variable, ABSENT if it is unset."""
    return variable.get(ABSENT)


def _query(edge: Edge, base: str, names: Names) -> str:
    return call(base, *(names.literal(argument) for argument in edge.key))


def _closure(edge: Edge, base: str, names: Names) -> str:
    return f"{base}.__closure__[{names.literal(edge.key)}]"


def _itself(edge: Edge, base: str, names: Names) -> str:
    return base


_NATIVES: Final[dict[Kind, Any]] = {
    Kind.BASE: base_value,
    Kind.CONTENT: content_of,
    Kind.FORM: form_of,
    Kind.CONTEXT: read_context,
    Kind.REFERENT: referent,
}


def _native(edge: Edge, base: str, names: Names) -> str:
    return call(names.constant(_NATIVES[edge.kind]), base)


_ITERATORS: Final[dict[Kind, Any]] = {
    Kind.NEXT: peek,
    Kind.MORE: has_more,
    Kind.PART: part_of,
}


def _iterator(edge: Edge, base: str, names: Names) -> str:
    return call(names.constant(_ITERATORS[edge.kind]), base, names.literal(edge.key))


def _answer(edge: Edge, base: str, names: Names) -> str:
    return call(names.constant(edge.key), base)


def _field(edge: Edge, base: str, names: Names) -> str:
    return f"{base}.{ATTRIBUTES.get(edge.kind, edge.key)}"


_FETCHES: Final = {
    **dict.fromkeys(_ITERATORS, _iterator),
    Kind.ITEM: _item,
    Kind.INDEX: _index,
    Kind.LENGTH: _length,
    Kind.NONEMPTY: _nonempty,
    Kind.KEYS: _members,
    Kind.MEMBERS: _members,
    Kind.INSTANCE_DICT: _instance_dict,
    Kind.SLOT: _slot,
    Kind.CELL: _cell,
    Kind.CLOSURE: _closure,
    Kind.QUERY: _query,
    Kind.SELF: _itself,
    **dict.fromkeys(_NATIVES, _native),
    Kind.ANSWER: _answer,
    Kind.DATA: _answer,
}


def fetch(edge: Edge, base: str, names: Names) -> str:
    """Return an expression that repeats a read on the container `base`."""
    return _FETCHES.get(edge.kind, _field)(edge, base, names)
