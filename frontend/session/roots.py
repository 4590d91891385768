"""Owns what a monitored run begins with: the roots of its RefGraph."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from magweld.frontend.monitor.hooks import Resumed

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


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
    for obj in (function, *resumed.made):
        if type(obj) is FunctionType:
            # Whatever is read of a function was read when it began.
            graph.constant(obj)
            graph.constant(obj.__globals__)
            session.registered.add(id(obj))
        else:
            graph.adopt(obj)
    for name, value in resumed.roots:
        graph.root(value, name)
    graph.adopt(resumed.args)


def _root_name(function: Any) -> str:
    if type(function) in (FunctionType, MethodType):
        return str(function.__name__)
    return "self"
