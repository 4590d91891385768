"""Owns how expressions reach the frames of a run: arguments of the call, of calls."""

from __future__ import annotations

from types import CellType
from typing import TYPE_CHECKING, Any

from magweld.frontend.expressions.expressions import (
    NUMBERS,
    ArgumentSource,
    Expression,
    Leaf,
)
from magweld.frontend.lifting.shadow import Link, Shadow
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.monitor.code_table import variadic_names
from magweld.frontend.monitor.hooks import Resumed
from magweld.frontend.monitor.observer import Observer, call_entry
from magweld.frontend.state.nodes import Kind

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


def lift_arguments(lifting: Lifting, args: Any, kwargs: Any) -> None:
    """Give the numbers to lift among the arguments of the program expressions."""
    for index, value in enumerate(args):
        leaf = _leaf(lifting, ArgumentSource("args", index), value, f"args[{index}]")
        lifting.place(args, Kind.INDEX, index, leaf)
    for name, value in kwargs.items():
        leaf = _leaf(lifting, ArgumentSource("kwargs", name), value, name)
        lifting.place(kwargs, Kind.ITEM, name, leaf)


def lift_rest(lifting: Lifting, resumed: Resumed) -> None:
    """Do the same for a program that goes on; what inner frames hold is not lifted."""
    first = zip(resumed.names, resumed.values[: resumed.first], strict=False)
    for index, (name, value) in enumerate(first):
        leaf = _leaf(lifting, ArgumentSource("args", index), value, name)
        if leaf is not None:
            lifting.resumed[index] = leaf


def _leaf(
    lifting: Lifting, source: ArgumentSource, value: Any, path: str
) -> Leaf | None:
    if type(value) in NUMBERS and path in lifting.wanted:
        return lifting.make.leaf(source, value, path)
    return None


def attach_shadow(session: Session, lifting: Lifting, observer: Observer) -> None:
    """Let the observer of a frame that begins follow the expressions that it gets."""
    frame = observer.frame
    shadow = observer.shadow = Shadow(observer, lifting)
    if frame.f_code is call_entry.__code__:
        shadow.caller = lifting.root
    parent = session.calling
    outer = None if parent is None else parent.shadow
    step = None if outer is None else outer.step
    link = None if step is None else step.link
    if link is not None and link.entered:
        # A second function for one call: what it is given is not known.
        for expression in (*link.lifted, *link.lifted_kwargs.values()):
            lifting.pin(expression)
    elif link is not None:
        if id(session.reader.function(frame)) == link.callee:
            link.entered = True
            shadow.caller = link if link.returns else None
            _bind(shadow, link)
            # The first frame of a rest: it has taken these out of a list.
            for index, leaf in lifting.resumed.items():
                shadow.names[frame.f_code.co_varnames[index]] = leaf
            lifting.resumed.clear()


def _bind(shadow: Shadow, link: Link) -> None:
    """Put the expressions of the arguments of a call where the frame has these."""
    code, lifting = shadow.observer.code, shadow.lifting
    for index, expression in enumerate(link.lifted):
        if expression is not None and index < code.co_argcount:
            _bind_local(shadow, index, expression)
        elif expression is not None:
            rest, place = _variadic(shadow, 0), index - code.co_argcount
            lifting.place(rest, Kind.INDEX, place, expression)
    stop = code.co_argcount + code.co_kwonlyargcount
    for name, expression in link.lifted_kwargs.items():
        if name in code.co_varnames[code.co_posonlyargcount : stop]:
            _bind_local(shadow, code.co_varnames.index(name), expression)
        else:
            lifting.place(_variadic(shadow, -1), Kind.ITEM, name, expression)


def _bind_local(shadow: Shadow, index: int, expression: Expression) -> None:
    observer, lifting = shadow.observer, shadow.lifting
    name = observer.code.co_varnames[index]
    if name not in observer.code.co_cellvars:
        shadow.names[name] = expression
        return
    cell = observer.session.reader.slot(observer.frame, index)
    if type(cell) is CellType:
        observer.session.graph.adopt(cell)
        lifting.place(cell, Kind.CELL, None, expression)
    else:
        lifting.pin(expression)


def _variadic(shadow: Shadow, which: int) -> Any:
    """Return the tuple (0) or the dict (-1) of the further arguments."""
    code, session = shadow.observer.code, shadow.observer.session
    slot = code.co_varnames.index(variadic_names(code)[which])
    value = session.reader.slot(shadow.observer.frame, slot)
    if type(value) is CellType:
        value = value.cell_contents
    session.graph.adopt(value)
    return value
