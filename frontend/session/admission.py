"""Owns what a run begins with, and what explains a frame that begins in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.expressions.expressions import (
    NUMBERS,
    ArgumentSource,
    Expression,
    Leaf,
)
from magweld.frontend.lifting.shadow import Link, Shadow
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.monitor.annotation import Annotation, Result, Use
from magweld.frontend.monitor.code_table import SUSPENDABLE, variadic_names
from magweld.frontend.monitor.hooks import Resumed
from magweld.frontend.monitor.observer import Observer, call_entry
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.rules.functions import (
    admit_special,
    is_of_library,
    register_function,
)
from magweld.frontend.state.mro import (
    find_in_mro,
    is_class,
    name_of_class,
)
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_equal_to_itself_alone

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
    # What native code will take from a generator is not known yet.
    resumes = bool(frame.f_code.co_flags & SUSPENDABLE)
    shadow.beneath = resumes or (outer is not None and outer.beneath)
    if link is not None and link.entered:
        shadow.beneath = True
        # A second function for one call: what it is given is not known.
        for expression in (*link.lifted, *link.lifted_kwargs.values()):
            lifting.pin(expression)
    elif link is not None and id(session.reader.function(frame)) == link.callee:
        link.entered = True
        shadow.caller = link if link.returns else None
        _bind(shadow, link)
        # The first frame of a rest: it has taken these out of a list.
        for index, leaf in lifting.resumed.items():
            shadow.names[frame.f_code.co_varnames[index]] = leaf
        lifting.resumed.clear()
    elif step is not None and step.advances != id(frame):
        shadow.beneath = True
        function, moves = session.reader.function(frame), step.moves
        called = None if moves is None else moves.called(function, step)
        if called is None:
            step.calls_back = True
        else:
            shadow.caller = called if called.returns else None
            _bind(shadow, called)


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


# Code of the front end itself is not part of the program, but for the call of it.
OWN_CODE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
ENTRY: Final = call_entry.__code__
# What they return is known, or native code alone sees it.
_READS_NOTHING: Final = (
    Annotation(rest=Use.KEEP),
    Annotation(rest=Use.KEEP, result=Result.ADDRESS),
)


def is_own(code: CodeType) -> bool:
    """Return whether code belongs to the front end."""
    return code.co_filename.startswith(OWN_CODE) and code is not ENTRY


def is_opaque(session: Session, frame: FrameType) -> bool:
    """Return whether a frame runs an annotated function that reads nothing.

    Native code may call one that the program does not name, e.g. a hash.
    """
    function = session.reader.function(frame)
    return session.annotations.find(function) in _READS_NOTHING


def explain_frame(session: Session, frame: FrameType, function: Any) -> None:
    """Register the function of a frame, and an instance that it is the first to see.

    Raises:
        StopRecordingError: Nothing that was observed has called it.
    """
    parent = session.current
    if parent is not None and parent.constructing is not None:
        # `C(...)` makes the instance in native code; `__init__` gets it.
        instance = _first_argument(session, frame)
        if type(instance) is parent.constructing:
            _adopt_made(session.graph, instance)
    if id(function) not in session.registered:
        if parent is not None and parent.awaits_operator:
            # A native function runs Python code, but is no operator.
            raise StopRecordingError("native-call", parent.awaits_operator)
        if session.graph.find(function) is None:
            admit_special(session, function, _first_argument(session, frame))
        register_function(session, function)


def connect(session: Session, observer: Observer, frame: FrameType) -> None:
    """Tell the observer of a frame that begins about its caller."""
    parent = session.current
    if parent is None:
        return
    if parent.calls_native:
        observer.native_caller = True
    if parent.calls_native or parent.constructing is slice:
        _adopt_delivered(session, frame, parent)
    if is_of_library(session, frame.f_code):
        observer.anchor = parent.where()


def _adopt_delivered(session: Session, frame: FrameType, parent: Observer) -> None:
    # Pairs that an iterator has made for a callback; their elements were read.
    for index in range(frame.f_code.co_argcount):
        value = session.reader.slot(frame, index)
        if type(value) is tuple:
            session.graph.adopt(value)
        elif parent.constructing is not None and type(value) is parent.constructing:
            # `__set_name__` gets the class as well
            _adopt_made(session.graph, value)


def _adopt_made(graph: RefGraph, obj: Any) -> None:
    if is_class(obj):
        graph.own_class(obj)
    elif type(find_in_mro(type(obj), "__new__")) is staticmethod:
        # A function of Python may have kept it.
        graph.adopt(obj)
    elif graph.find(obj) is None:
        graph.bear(obj)


def _first_argument(session: Session, frame: FrameType) -> Any:
    code = frame.f_code
    if code.co_argcount == 0:
        return NULL
    value = session.reader.slot(frame, 0)
    if type(value) is CellType and code.co_varnames[0] in code.co_cellvars:
        return value.cell_contents
    return value


def check_classes(values: Iterable[Any]) -> None:
    """Refuse arguments whose classes are told apart by code of the program.

    Raises:
        StopRecordingError: There is one.
    """
    for cls in map(type, values):
        if not is_equal_to_itself_alone(cls):
            raise StopRecordingError("opaque-value", name_of_class(cls))


def begin_call(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Register the program and the arguments of a call of it."""
    graph = session.graph
    graph.constant(function).name = _root_name(function)
    graph.adopt(args)
    graph.adopt(kwargs)
    for index, value in enumerate(args):
        graph.root(value, f"args[{index}]")
    for name, value in kwargs.items():
        graph.root(value, name)


def begin_rest(session: Session, function: FunctionType, resumed: Resumed) -> None:
    """Register the state of a program that goes on."""
    graph = session.graph
    graph.goes_on = True
    for obj in (function, *resumed.made):
        if type(obj) is FunctionType:
            # Whatever is read of a function was read when it began.
            graph.constant(obj)
            graph.constant(obj.__globals__)
            session.registered.add(id(obj))
        else:
            graph.adopt(obj)
    for name, value in zip(resumed.names, resumed.values, strict=True):
        graph.root(value, name)
    graph.adopt(resumed.given)


def _root_name(function: Any) -> str:
    if type(function) in (FunctionType, MethodType):
        return str(function.__name__)
    return "self"
