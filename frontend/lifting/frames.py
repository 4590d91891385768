"""Owns how expressions reach the frames of a run: arguments of the call, of calls."""

from __future__ import annotations

from types import CellType, CodeType, FrameType
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
        _lift(lifting, (args, "args", Kind.INDEX, index), value, f"args[{index}]")
    for name, value in kwargs.items():
        _lift(lifting, (kwargs, "kwargs", Kind.ITEM, name), value, str(name))


def lift_rest(lifting: Lifting, resumed: Resumed) -> None:
    """Do the same for a program that goes on; what inner frames hold is not lifted."""
    first = zip(resumed.names, resumed.values[: resumed.first], strict=False)
    for index, (name, value) in enumerate(first):
        leaf = _leaf(lifting, ArgumentSource("args", index), value, name)
        if leaf is not None:
            lifting.resumed[index] = leaf


def _lift(
    lifting: Lifting, place: tuple[Any, str, Kind, Any], value: Any, path: str
) -> None:
    holder, name, kind, key = place
    leaf = _leaf(lifting, ArgumentSource(name, key), value, path)
    if leaf is not None:
        lifting.place(holder, kind, key, leaf)


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
    parent = session.current
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
            _Binding(session, shadow, frame).bind(link)
            # The first frame of a rest: it has taken these out of a list.
            for index, leaf in lifting.resumed.items():
                shadow.names[frame.f_code.co_varnames[index]] = leaf
            lifting.resumed.clear()


class _Binding:
    """A frame that gets the expressions of the arguments of a call."""

    def __init__(self, session: Session, shadow: Shadow, frame: FrameType) -> None:
        self.session = session
        self.lifting = shadow.lifting
        self.names = shadow.names
        self.frame = frame

    def bind(self, link: Link) -> None:
        """Put the expressions where the frame has its arguments."""
        code = self.frame.f_code
        for index, expression in enumerate(link.lifted):
            if expression is not None:
                self._bind_positional(index, expression)
        for name, expression in link.lifted_kwargs.items():
            stop = code.co_argcount + code.co_kwonlyargcount
            if name in code.co_varnames[code.co_posonlyargcount : stop]:
                self._bind_local(code.co_varnames.index(name), expression)
            else:
                keywords = self._variadic(code, 0x08)
                self.lifting.place(keywords, Kind.ITEM, name, expression)

    def _bind_positional(self, index: int, expression: Expression) -> None:
        code = self.frame.f_code
        if index < code.co_argcount:
            self._bind_local(index, expression)
            return
        rest = self._variadic(code, 0x04)
        self.lifting.place(rest, Kind.INDEX, index - code.co_argcount, expression)

    def _bind_local(self, index: int, expression: Expression) -> None:
        name = self.frame.f_code.co_varnames[index]
        if name in self.frame.f_code.co_cellvars:
            cell = self.session.reader.slot(self.frame, index)
            if type(cell) is CellType:
                self.session.graph.adopt(cell)
                self.lifting.place(cell, Kind.CELL, None, expression)
            else:
                self.lifting.pin(expression)
            return
        self.names[name] = expression

    def _variadic(self, code: CodeType, flag: int) -> Any:
        """Return the tuple (flag 4) or dict (flag 8) of the further arguments."""
        names = variadic_names(code)
        name = names[-1] if flag == 0x08 else names[0]
        value = self.session.reader.slot(self.frame, code.co_varnames.index(name))
        if type(value) is CellType:
            value = value.cell_contents
        self.session.graph.adopt(value)
        return value
