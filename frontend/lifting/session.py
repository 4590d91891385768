"""Owns one monitored run with lifted values."""

from __future__ import annotations

from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from magweld.frontend.expressions.expressions import NUMBERS, Expression
from magweld.frontend.expressions.sources import ArgumentSource
from magweld.frontend.lifting.shadow import LiftingObserver, Link
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.lifting.table import INSTRUCTIONS
from magweld.frontend.monitor.code_table import variadic_names
from magweld.frontend.monitor.events import EventSource
from magweld.frontend.monitor.hooks import Resumed
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.session.admission import ENTRY
from magweld.frontend.session.session import Session
from magweld.frontend.state.nodes import Kind


class LiftingSession(Session):
    """A monitored run that follows the values of some reads.

    Attributes:
        lifting: The lifted values.
        root: The call of the program; its result is that of the run.
    """

    def __init__(self, wanted: frozenset[str], *parts: Any) -> None:
        super().__init__(*parts)
        self.lifting = Lifting(wanted, self.graph)
        self.graph.lifting = self.lifting
        self.root = Link(0, (), {}, (), {})

    def run(self, events: EventSource, function: Any, args: Any, kwargs: Any) -> Any:
        """See `Session.run`."""
        for index, value in enumerate(args):
            self._lift_argument(args, "args", Kind.INDEX, index, value)
        for name, value in kwargs.items():
            self._lift_argument(kwargs, "kwargs", Kind.ITEM, name, value)
        return super().run(events, function, args, kwargs)

    def go_on(
        self, events: EventSource, function: FunctionType, resumed: Resumed
    ) -> Any:
        """See `Session.go_on`; what inner frames hold is not lifted."""
        args = resumed.args
        for index, (name, value) in enumerate(resumed.roots[: len(args)]):
            if type(value) in NUMBERS and name in self.lifting.wanted:
                source = ArgumentSource("args", index)
                leaf = self.lifting.make.leaf(source, value, name)
                self.lifting.place(args, Kind.INDEX, index, leaf)
        return super().go_on(events, function, resumed)

    def _lift_argument(
        self, holder: Any, name: str, kind: Kind, key: Any, value: Any
    ) -> None:
        path = f"args[{key}]" if kind is Kind.INDEX else str(key)
        if type(value) in NUMBERS and path in self.lifting.wanted:
            source = ArgumentSource(name, key)
            leaf = self.lifting.make.leaf(source, value, path)
            self.lifting.place(holder, kind, key, leaf)

    def leave(self, frame: FrameType) -> None:
        """See `Sink.leave`."""
        observer = self._observers.get(frame)
        if isinstance(observer, LiftingObserver) and self.stopped is None:
            if observer in self._active:
                observer.returned()
        super().leave(frame)

    def _observer(self, frame: FrameType, code: CodeType) -> Observer:
        rows = self._rows(code)
        observer = LiftingObserver(self, frame, rows, self.lifting, INSTRUCTIONS)
        if code is ENTRY:
            observer.caller = self.root
        parent = self.current
        step = parent.step if isinstance(parent, LiftingObserver) else None
        link = None if step is None else step.link
        if link is not None and link.entered:
            # A second function for one call: what it is given is not known.
            for expression in (*link.lifted, *link.lifted_kwargs.values()):
                self.lifting.pin(expression)
        elif link is not None:
            if id(self.reader.function(frame)) == link.callee:
                link.entered = True
                observer.caller = link if link.returns else None
                self._bind(observer, frame, link)
        return observer

    def _bind(self, observer: LiftingObserver, frame: FrameType, link: Link) -> None:
        code = frame.f_code
        for index, expression in enumerate(link.lifted):
            if expression is not None:
                self._bind_positional(observer, frame, index, expression)
        for name, expression in link.lifted_kwargs.items():
            stop = code.co_argcount + code.co_kwonlyargcount
            if name in code.co_varnames[code.co_posonlyargcount : stop]:
                index = code.co_varnames.index(name)
                self._bind_local(observer, frame, index, expression)
            else:
                keywords = self._variadic(frame, code, 0x08)
                self.lifting.place(keywords, Kind.ITEM, name, expression)

    def _bind_positional(
        self,
        observer: LiftingObserver,
        frame: FrameType,
        index: int,
        expression: Expression,
    ) -> None:
        code = frame.f_code
        if index < code.co_argcount:
            self._bind_local(observer, frame, index, expression)
            return
        rest = self._variadic(frame, code, 0x04)
        self.lifting.place(rest, Kind.INDEX, index - code.co_argcount, expression)

    def _bind_local(
        self,
        observer: LiftingObserver,
        frame: FrameType,
        index: int,
        expression: Expression,
    ) -> None:
        name = frame.f_code.co_varnames[index]
        if name in frame.f_code.co_cellvars:
            cell = self.reader.slot(frame, index)
            if type(cell) is CellType:
                self.graph.adopt(cell)
                self.lifting.place(cell, Kind.CELL, None, expression)
            else:
                self.lifting.pin(expression)
            return
        observer.names[name] = expression

    def _variadic(self, frame: FrameType, code: CodeType, flag: int) -> Any:
        """Return the tuple (flag 4) or dict (flag 8) of the further arguments."""
        names = variadic_names(code)
        name = names[-1] if flag == 0x08 else names[0]
        value = self.reader.slot(frame, code.co_varnames.index(name))
        if type(value) is CellType:
            value = value.cell_contents
        self.graph.adopt(value)
        return value
