"""Owns the Python source form of guards: fetching and testing, as syntax trees."""

from __future__ import annotations

import ast
import contextvars
import types
from collections import OrderedDict, deque
from typing import Any, Final

from magweld.frontend.state.contents import builtin_base
from magweld.frontend.state.iterators import has_more, part_of, peek
from magweld.frontend.state.mro import ABSENT, find_in_mro
from magweld.frontend.state.natives import base_value, content_of, referent
from magweld.frontend.state.nodes import Edge, Kind
from magweld.frontend.state.values import (
    complex_bits,
    float_bits,
    is_numpy_scalar,
    numpy_bits,
)

_LITERALS: Final = (str, int, bool, type(None))


class Names:
    """Constants of a generated function, one global name each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._known: dict[int, str] = {}

    def constant(self, value: Any) -> ast.expr:
        """Return an expression for a constant object."""
        name = self._known.get(id(value))
        if name is None:
            name = f"k{len(self.values)}"
            self._known[id(value)] = name
            self.values[name] = value
        return ast.Name(name, ast.Load())

    def literal(self, value: Any) -> ast.expr:
        """Return a literal where Python has one, else a constant."""
        if type(value) in _LITERALS:
            return ast.Constant(value)
        return self.constant(value)


def name(text: str) -> ast.Name:
    """Return a variable to be read."""
    return ast.Name(text, ast.Load())


def call(function: ast.expr, *args: ast.expr) -> ast.expr:
    """Return a call."""
    return ast.Call(function, list(args), [])


def assign(target: str, value: ast.expr) -> ast.stmt:
    """Return an assignment to a local variable."""
    return ast.Assign([ast.Name(target, ast.Store())], value)


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """Return a comparison."""
    return ast.Compare(left, [operator], [right])


def either(*conditions: ast.expr) -> ast.expr:
    """Return a disjunction."""
    return ast.BoolOp(ast.Or(), list(conditions))


def both(*conditions: ast.expr) -> ast.expr:
    """Return a conjunction."""
    return ast.BoolOp(ast.And(), list(conditions))


def is_not(left: ast.expr, right: ast.expr) -> ast.expr:
    """Return an identity test."""
    return compare(left, ast.IsNot(), right)


def type_differs(names: Names, value: ast.expr, kind: type) -> ast.expr:
    """Return a test of the exact type."""
    return is_not(call(names.constant(type), value), names.constant(kind))


_BITS: Final[dict[type, Any]] = {float: float_bits, complex: complex_bits}


def scalar_differs(names: Names, value: ast.expr, expected: Any) -> ast.expr:
    """Return a test of type and value of a scalar, bits of floats included."""
    kind = type(expected)
    if expected != expected:
        # Containers find a NaN by identity, so its bits do not say everything.
        return is_not(value, names.constant(expected))
    if kind in (bool, type(None), type(Ellipsis), type(NotImplemented)):
        return is_not(value, names.literal(expected))
    bits = numpy_bits if is_numpy_scalar(expected) else _BITS.get(kind)
    if bits is not None:
        same = compare(
            call(names.constant(bits), value),
            ast.NotEq(),
            names.constant(bits(expected)),
        )
    else:
        same = compare(value, ast.NotEq(), names.literal(expected))
    # An identical object, which is the usual case, needs no further test.
    return both(
        is_not(value, names.constant(expected)),
        either(type_differs(names, value, kind), same),
    )


def _base_method(edge: Edge, method: str, names: Names) -> ast.expr:
    base = builtin_base(edge.container.obj)
    return names.constant(getattr(base, method))


_EXACT: Final = (dict, list, tuple, set, frozenset, deque, OrderedDict)


def _is_exact(edge: Edge) -> bool:
    return type(edge.container.obj) in _EXACT


def _item(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    key = names.literal(edge.key)
    if _is_exact(edge) and edge.value is not ABSENT:
        return ast.Subscript(base, key, ast.Load())
    return call(names.constant(dict.get), base, key, names.constant(ABSENT))


def _index(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    if _is_exact(edge):
        return ast.Subscript(base, ast.Constant(edge.key), ast.Load())
    return call(_base_method(edge, "__getitem__", names), base, ast.Constant(edge.key))


def _length(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    if _is_exact(edge):
        return call(names.constant(len), base)
    return call(_base_method(edge, "__len__", names), base)


def _nonempty(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return base if _is_exact(edge) else _length(edge, base, names)


def _keys(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    if _is_exact(edge):
        return call(names.constant(tuple), base)
    ordered = issubclass(type(edge.container.obj), OrderedDict)
    owner: Any = OrderedDict if ordered else dict
    return call(names.constant(tuple), call(names.constant(owner.keys), base))


def _members(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    if _is_exact(edge):
        return call(names.constant(tuple), base)
    return call(
        names.constant(tuple), call(_base_method(edge, "__iter__", names), base)
    )


def _instance_dict(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    kind = type(edge.container.obj)
    if find_in_mro(kind, "__getattribute__") is object.__getattribute__:
        return ast.Attribute(base, "__dict__", ast.Load())
    getter = find_in_mro(kind, "__dict__")
    return call(names.constant(getter.__get__), base)


def read_slot(getter: Any, obj: Any) -> Any:
    """Return what a member descriptor holds, ABSENT if it is unset."""
    try:
        return getter(obj)
    except AttributeError:
        return ABSENT


def _slot(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    getter = names.constant(edge.key.__get__)
    if edge.value is ABSENT:
        return call(names.constant(read_slot), getter, base)
    return call(getter, base)


def read_cell(cell: types.CellType) -> Any:
    """Return the content of a cell, ABSENT if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _cell(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    if edge.value is ABSENT:
        return call(names.constant(read_cell), base)
    return ast.Attribute(base, "cell_contents", ast.Load())


def read_context(variable: contextvars.ContextVar[Any]) -> Any:
    """Return the value of a context variable, ABSENT if it is unset."""
    return variable.get(ABSENT)


def _context(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return call(names.constant(read_context), base)


def _query(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return call(base, *(names.literal(argument) for argument in edge.key))


def _closure(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    cells = ast.Attribute(base, "__closure__", ast.Load())
    return ast.Subscript(cells, ast.Constant(edge.key), ast.Load())


def _itself(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return base


def _native(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return call(names.constant(_NATIVES[edge.kind]), base)


_NATIVES: Final[dict[Kind, Any]] = {
    Kind.BASE: base_value,
    Kind.CONTENT: content_of,
    Kind.REFERENT: referent,
}


def _answer(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return call(names.constant(edge.key), base)


def _field(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return ast.Attribute(base, _FIELDS.get(edge.kind, edge.key), ast.Load())


_FIELDS: Final = {
    Kind.CODE: "__code__",
    Kind.DEFAULTS: "__defaults__",
    Kind.KWDEFAULTS: "__kwdefaults__",
    Kind.RECEIVER: "__self__",
    Kind.FUNCTION: "__func__",
}


def _next(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return call(names.constant(peek), base, ast.Constant(edge.key))


def _more(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return call(names.constant(has_more), base, ast.Constant(edge.key))


def _part(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    return call(names.constant(part_of), base, ast.Constant(edge.key))


_FETCHES: Final = {
    Kind.NEXT: _next,
    Kind.MORE: _more,
    Kind.PART: _part,
    Kind.ITEM: _item,
    Kind.INDEX: _index,
    Kind.LENGTH: _length,
    Kind.NONEMPTY: _nonempty,
    Kind.KEYS: _keys,
    Kind.MEMBERS: _members,
    Kind.INSTANCE_DICT: _instance_dict,
    Kind.SLOT: _slot,
    Kind.CELL: _cell,
    Kind.CLOSURE: _closure,
    Kind.CONTEXT: _context,
    Kind.QUERY: _query,
    Kind.SELF: _itself,
    **dict.fromkeys(_NATIVES, _native),
    Kind.ANSWER: _answer,
}


def fetch(edge: Edge, base: ast.expr, names: Names) -> ast.expr:
    """Return an expression that repeats a read on the container `base`."""
    return _FETCHES.get(edge.kind, _field)(edge, base, names)
