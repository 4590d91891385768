"""Owns the question whether the program can still reach an object another way."""

from __future__ import annotations

import contextvars
import gc
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.control.flow import flow_of
from magweld.frontend.monitor.code_table import CALLS
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.state.ends import referents_of
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.mro import is_class
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_identity, is_scalar

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

# A program that holds more objects than this beside its tensors is not searched.
MAX_OBJECTS: Final = 4000


def may_escape(
    session: Session,
    wanted: frozenset[int],
    values: Iterable[Any],
    callers: Iterable[Observer],
) -> bool:
    """Return whether one of some objects may be reached, or that cannot be known.

    Native code that has called a frame may hold its arguments, and what else it likes.

    Args:
        wanted: Ids of the objects.
        values: What the innermost frame holds.
        callers: Observers of the other frames.
    """
    if not wanted:
        return False
    graph, callers = session.graph, list(callers)
    current = session.current
    if any(frame.native_caller for frame in (*callers, current) if frame is not None):
        return True
    seen: set[int] = set()
    work = [*values, *_written(graph)]
    for observer in callers:
        work += _held_by(session, observer)
    while work:
        obj = work.pop()
        if id(obj) in wanted:
            return True
        if id(obj) in seen or not _may_lead_on(session, obj):
            continue
        seen.add(id(obj))
        if len(seen) > MAX_OBJECTS:
            return True
        is_tensor = session.operators.is_tensor(type(obj))
        work += _attributes_of(obj) if is_tensor else referents_of(obj)
    return False


def _attributes_of(tensor: Any) -> list[Any]:
    """Return what a tensor was given as attributes."""
    namespace = instance_dict(tensor)
    return [] if namespace is None else list(namespace.values())


def _written(graph: RefGraph) -> Iterator[Any]:
    """Yield the content of containers from before the run that it wrote to."""
    yield from (gc.get_referents(graph.nodes[key].obj) for key in graph.snapshots)
    for key, _ in graph.slot_snapshots:
        obj = graph.nodes[key].obj
        # The context holds what a variable is set to.
        in_context = type(obj) is contextvars.ContextVar
        yield obj.get(None) if in_context else gc.get_referents(obj)


def _held_by(session: Session, observer: Observer) -> Iterator[Any]:
    row = observer.previous
    if row is None:
        return
    flow = flow_of(session.tables.table(observer.code))
    for slot in flow.live_after(row):
        value = session.reader.slot(observer.frame, slot)
        if value is not NULL:
            yield value
    # A call of a Python function has handed over its arguments, their slots are stale;
    # other instructions hold their operands until they are done.
    taken = row.taken if row.opname in CALLS else 0
    depth = row.depth - taken
    if observer.frame is not None:
        yield from session.reader.suspended_stack(observer.frame, max(0, depth))


def _may_lead_on(session: Session, obj: Any) -> bool:
    if obj is NULL or is_scalar(obj) or type(obj) is types.FrameType:
        return False
    if session.operators.is_tensor(type(obj)):
        return bool(_attributes_of(obj))
    node = session.graph.find(obj)
    if node is None:
        # A class or a descriptor that the run has made is known.
        return not (is_identity(obj) or is_class(obj))
    # What was there before the run can hold nothing new, unless it was written to.
    return not node.external
