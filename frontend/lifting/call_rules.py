"""Owns calls with lifted arguments: Python functions, pure native code, containers."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from inspect import CO_GENERATOR
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any, Final

from magweld.frontend.expressions.expressions import Expression, Literal
from magweld.frontend.lifting.moves import Moves, frame_of, is_move
from magweld.frontend.lifting.shadow import Link, Shadow, Step, hold
from magweld.frontend.lifting.stack_rules import (
    claim_part,
    place_fields,
    store,
)
from magweld.frontend.lifting.value_rules import evaluate
from magweld.frontend.monitor.annotation import unbind
from magweld.frontend.monitor.code_table import Row, spread_arguments
from magweld.frontend.rules.calls import called_at
from magweld.frontend.state.contents import builtin_base
from magweld.frontend.state.lookup import Lookup
from magweld.frontend.state.mro import find_in_mro, is_class, target_slot
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.python_operators import PURE

# Conversions of a tensor; they return what a method of the tensor has given.
CONVERSIONS: Final = frozenset({id(int), id(float)})


def begin_call(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """CALL: the callable and perhaps a receiver, the arguments."""
    _begin(shadow, step, stack, len(stack), shadow.observer.keyword_names)


def begin_call_kw(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """CALL_KW of 3.13: as CALL, on top the names of the last arguments."""
    _begin(shadow, step, stack, len(stack) - 1, stack[-1])


def _begin(
    shadow: Shadow, step: Step, stack: list[Any], end: int, names: tuple[str, ...]
) -> None:
    null = shadow.observer.session.reader.null
    function, first = called_at(end - step.row.arg - 2, stack, null)
    split = end - len(names)
    lifted = tuple(step.operands.get(place) for place in range(first, split))
    kwargs = dict(zip(names, stack[split:end], strict=True))
    lifted_kwargs = {
        name: step.operands[place]
        for name, place in zip(names, range(split, end), strict=True)
        if place in step.operands
    }
    args = tuple(stack[first:split])
    step.link = _link(shadow, step, function, args, kwargs, lifted, lifted_kwargs)


def begin_call_ex(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """CALL_FUNCTION_EX: the callable, an iterable, optionally a mapping."""
    null = shadow.observer.session.reader.null
    args, kwargs = spread_arguments(step.row.arg, stack, null)
    function = called_at(len(stack) - step.row.taken, stack, null).function
    if builtin_base(args) not in (tuple, list) or type(kwargs) is not dict:
        step.advances = frame_of(args)
        return
    lifting = shadow.lifting
    values = tuple(builtin_base(args).__iter__(args))
    lifted = tuple(lifting.at(args, Kind.INDEX, i) for i in range(len(values)))
    pairs = [(key, lifting.at(kwargs, Kind.ITEM, key)) for key in kwargs]
    lifted_kwargs = {key: found for key, found in pairs if found is not None}
    step.link = _link(shadow, step, function, values, kwargs, lifted, lifted_kwargs)
    # What is in a sequence from before the run is known when it has been read.
    step.link.spread = id(args), len(values)


def _link(
    shadow: Shadow,
    step: Step,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    lifted: tuple[Expression | None, ...],
    lifted_kwargs: dict[str, Expression],
    returns: bool = True,
) -> Link:
    if type(function) is MethodType:
        args, lifted = (function.__self__, *args), (None, *lifted)
        function = function.__func__
    elif is_class(function):
        called, returns = _called_of_class(function)
        if called is not None:
            args, lifted = (None, *args), (None, *lifted)
            function = called
    elif (asked := _asked(function, args)) is not None:
        # Of what the method for `isinstance` gives the truth is the result.
        returns, function = function is len, asked
        args, lifted = args[::-1], lifted[::-1]
    elif type(function) is not FunctionType:
        descriptor, receiver = unbind(function)
        method = find_in_mro(type(function), "__call__")
        if type(method) is FunctionType:
            descriptor, receiver = method, (function,)
        if receiver:
            args, lifted = (*receiver, *args), (None, *lifted)
        function = descriptor
    if type(function) is FunctionType:
        returns = returns and not function.__code__.co_flags & CO_GENERATOR
        if not lifted_kwargs and all(one is None for one in lifted):
            return Link(id(function), (), {}, lifted, lifted_kwargs, returns)
    else:
        step.moves = _moves(shadow, step, function, args, kwargs, lifted, lifted_kwargs)
    held = tuple(map(hold, args))
    held_kwargs = {name: hold(value) for name, value in kwargs.items()}
    return Link(id(function), held, held_kwargs, lifted, lifted_kwargs, returns)


def _moves(
    shadow: Shadow,
    step: Step,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    lifted: tuple[Expression | None, ...],
    lifted_kwargs: dict[str, Expression],
) -> Moves | None:
    if not is_move(function):
        return None
    step.advances = frame_of(args[0]) if len(args) == 1 else 0
    spread = kwargs if step.row.opname == "CALL_FUNCTION_EX" else None
    moves = Moves(shadow.lifting)
    moves.call(function, args, kwargs, lifted, lifted_kwargs, spread)
    return moves


def _asked(function: Any, args: tuple[Any, ...]) -> Any:
    """Return the method in Python that `len` or `isinstance` asks, None for others."""
    if not args or (function is not len and function is not isinstance):
        return None
    name = "__len__" if function is len else "__instancecheck__"
    method = find_in_mro(type(args[-1]), name)
    return method if type(method) is FunctionType else None


def _called_of_class(cls: Any) -> tuple[Any, bool]:
    """Return the one function that gets the arguments, and whether it gives the result.

    None if there is no such function of Python.
    """
    starter, made = find_in_mro(cls, "__init__"), find_in_mro(cls, "__new__")
    if find_in_mro(type(cls), "__call__") is not type.__dict__["__call__"]:
        return None, True
    if type(starter) is FunctionType and made is object.__new__:
        return starter, False
    # As of named tuples: `object.__init__` looks at no argument.
    is_new = type(made) is staticmethod and starter is object.__init__
    return (made.__func__ if is_new else None), True


def begin_load(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LOAD_ATTR: a property runs a function of the object, and gives what it does."""
    found = find_in_mro(type(stack[-1]), step.row.argval)
    getter = found.fget if type(found) is property else None
    if type(getter) is FunctionType:
        step.link = Link(id(getter), (), {}, (None,), {})


def loads_plainly(shadow: Shadow, row: Row, stack: list[Any]) -> bool:
    """LOAD_ATTR of what is no tensor, whose form may be asked for, and no property."""
    session, obj = shadow.observer.session, stack[-1]
    if session.operators.is_tensor(type(obj)):
        return False
    return session.graph.plans.lookup(obj, row.argval).how is not Lookup.PROPERTY


def begin_store(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """STORE_ATTR: a class may have a setter of its own, or one of the attribute."""
    slot = target_slot(type(stack[-1]))
    obj = stack[-1] if slot is None else slot.__get__(stack[-1])
    setter = find_in_mro(type(obj), "__setattr__")
    unlifted = 2
    if type(setter) is not FunctionType:
        found = find_in_mro(type(obj), step.row.argval)
        setter = find_in_mro(type(found), "__set__")
        if type(found) is property:
            setter, unlifted = found.fset, 1
    if type(setter) is FunctionType:
        lifted = (*[None] * unlifted, step.peek(1))
        step.link = Link(id(setter), (), {}, lifted, {}, returns=False)


def store_attribute(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """STORE_ATTR: the object on top, the value below."""
    store(shadow, step, 1)


def finish_call(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """CALL, CALL_KW and CALL_FUNCTION_EX."""
    link = step.link
    if link is None:
        return
    if step.moves is not None and step.moves.finish(shadow, step, stack):
        return
    rule = _NATIVE.get(link.callee)
    if link.callee in CONVERSIONS and step.answer is not None:
        # What a method of the tensor has given is the result.
        if step.answer.value is stack[-1]:
            shadow.push_answer(stack, step)
    elif rule is not None:
        rule(shadow, step, link, stack)
    else:
        shadow.push_answer(stack, step)


NativeRule = Callable[[Shadow, Step, Link, list[Any]], None]


def _keep(shadow: Shadow, step: Step, link: Link, stack: list[Any]) -> None:
    """The call looks at types only, which never change."""
    step.operands.clear()


def _compute(shadow: Shadow, step: Step, link: Link, stack: list[Any]) -> None:
    """A function of numbers."""
    if link.kwargs:
        return
    function = PURE[link.callee]
    expression = evaluate(shadow.lifting, function, link.args, link.lifted, stack[-1])
    if expression is not None:
        step.operands.clear()
        for holder in (*link.args, *step.before[-2:]):
            step.forget(holder)
        if not isinstance(expression, Literal):
            shadow.push(stack, expression)


def _divide(shadow: Shadow, step: Step, link: Link, stack: list[Any]) -> None:
    """`divmod` of integers: the quotient and the rest."""
    if {*map(type, link.args)} != {int} or len(link.args) != 2:
        return
    for index, function in enumerate((operator.floordiv, operator.mod)):
        values = (shadow.lifting, function, link.args, link.lifted, stack[-1][index])
        expression = evaluate(*values)
        if expression is None:
            return
        shadow.lifting.place(stack[-1], Kind.INDEX, index, expression)
    step.operands.clear()


def _fields(shadow: Shadow, step: Step, link: Link, stack: list[Any]) -> None:
    """`range` and `slice`: the parts are read when the object is used."""
    parts = list(link.lifted)
    if len(parts) == 1:
        parts.insert(0, None)
    place_fields(shadow, stack[-1], parts)
    step.operands.clear()


def _fetch(shadow: Shadow, step: Step, link: Link, stack: list[Any]) -> None:
    """The result is what was read."""
    if not step.operands:
        claim_part(shadow, step, stack, *link.args[:2])


def _make_namespace(shadow: Shadow, step: Step, link: Link, stack: list[Any]) -> None:
    """`SimpleNamespace` of keywords."""
    if not link.args:
        plans = shadow.observer.session.graph.plans
        _place_keywords(shadow, step, link, plans.instance_dict(stack[-1]))


def _place_keywords(shadow: Shadow, step: Step, link: Link, target: Any) -> None:
    if step.row.opname == "CALL_FUNCTION_EX":
        return  # they were read of a dict of the program
    for name, expression in link.lifted_kwargs.items():
        shadow.lifting.place(target, Kind.ITEM, name, expression)
    step.operands.clear()


def _put(shadow: Shadow, step: Step, link: Link, stack: list[Any]) -> None:
    """The last argument is stored as it is."""
    count = step.row.arg
    if shadow.beneath or link.kwargs or count not in range(1, 4):
        return
    if len(step.operands) == 1 and step.peek(0) is not None:
        store(shadow, step, 0)


_RULES: Final[tuple[tuple[NativeRule, tuple[Any, ...]], ...]] = (
    (_compute, tuple(PURE.values())),
    (_make_namespace, (SimpleNamespace,)),
    (_keep, (isinstance, type, callable, type.__dict__["__instancecheck__"])),
    (_divide, (divmod,)),
    (_fields, (range, slice)),
    (_fetch, (getattr, dict.get, dict.__getitem__, operator.getitem)),
    (
        _put,
        (
            *(list.append, setattr, object.__setattr__, dict.__setitem__),
            builtins.setattr,
        ),
    ),
)
_NATIVE: Final = {
    id(function): rule for rule, functions in _RULES for function in functions
}
