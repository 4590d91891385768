"""Owns capturing: one monitored run of a program, turned into a record."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from magweld.frontend.annotations.arrays import ARRAYS
from magweld.frontend.annotations.autograd import AUTOGRAD
from magweld.frontend.annotations.core import CORE
from magweld.frontend.annotations.dynamo import DYNAMO_MODULE, dynamo_entries
from magweld.frontend.annotations.model import AnnotationTable
from magweld.frontend.annotations.torch_classes import TORCH_CLASSES
from magweld.frontend.annotations.torch_functions import TORCH
from magweld.frontend.annotations.user import UserAnnotation
from magweld.frontend.annotations.user_rules import user_entries
from magweld.frontend.catalogue import CATALOGUE, Break, StopRecordingError
from magweld.frontend.control.branches import Branches
from magweld.frontend.guards.derive import Arguments, derive_guards
from magweld.frontend.guards.guard import GuardProgram
from magweld.frontend.guards.torch_state import torch_state
from magweld.frontend.lifting.expressions import text_of
from magweld.frontend.lifting.recorder import LiftingRecorder
from magweld.frontend.lifting.session import LiftingSession
from magweld.frontend.lifting.settle import Settled, settle
from magweld.frontend.mock.plan import Planner
from magweld.frontend.mock.steps import Mock
from magweld.frontend.monitor.code_table import CodeTables
from magweld.frontend.monitor.events import collector_paused, event_source
from magweld.frontend.monitor.session import Session
from magweld.frontend.monitor.stack import FrameReader, StackReader, is_supported
from magweld.frontend.operators.graph import OperatorGraph, build_graph
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.watch import OperatorWatch
from magweld.frontend.rules.table import RULES
from magweld.frontend.state.natives import check_buffers
from magweld.frontend.state.paths import path_of


def shipped_annotations() -> AnnotationTable:
    """Return the table of all annotations that ship with the front end."""
    return _annotations(DYNAMO_MODULE in sys.modules)


@functools.cache
def _annotations(beside_dynamo: bool) -> AnnotationTable:
    dynamo = (dynamo_entries(),) if beside_dynamo else ()
    torch_entries = (TORCH, TORCH_CLASSES, AUTOGRAD)
    return AnnotationTable(CORE, ARRAYS, *torch_entries, *dynamo)


@functools.cache
def code_tables() -> CodeTables:
    """Return the tables of code objects; they depend on nothing but the code."""
    return CodeTables(RULES)


@functools.cache
def can_read_frames() -> bool:
    """Return whether the monitor works on this interpreter."""
    return is_supported()


def frame_reader() -> FrameReader:
    """Return a reader of frames, with torch's native stack reader where it exists."""
    module = torch._C._dynamo.eval_frame
    read: StackReader | None = getattr(
        module, "_get_frame_value_stack_with_depth", None
    )
    return FrameReader(read, getattr(module, "NULL_STACK_VALUE", None))


@dataclass(frozen=True)
class Capture:
    """A captured run.

    Attributes:
        graph: Its operators.
        program: Its guards; they fetch the graph inputs, then what the mock needs.
        mock: Its effects and result.
        input_paths: How the graph inputs are reached.
        pinned: Paths that were to be lifted, but whose value decided about the run.
        grad_enabled: Grad mode before the run.
        dynamic: Whether the graph takes tensors of several sizes.
        kept: Why numbers that keep changing were not lifted, "" if they were.
    """

    graph: OperatorGraph
    program: GuardProgram
    mock: Mock
    input_paths: tuple[str, ...]
    grad_enabled: bool
    pinned: tuple[str, ...] = ()
    dynamic: bool = False
    kept: str = ""

    @property
    def example_inputs(self) -> list[torch.Tensor]:
        """The tensors that the graph read in the run."""
        return self.graph.examples


@dataclass(frozen=True)
class Outcome:
    """What a monitored run gave.

    Attributes:
        result: What the program returned; always right.
        capture: The capture, None if the run was refused.
        refusal: Why it was refused.
    """

    result: Any
    capture: Capture | None
    refusal: Break | None


def capture(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    wanted: frozenset[str] = frozenset(),
    annotations: tuple[UserAnnotation, ...] = (),
    preferred: bool = False,
) -> Outcome:
    """Run a program once under observation.

    Exceptions of the program propagate; nothing is captured then.

    Args:
        function: The program.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        wanted: Paths of numbers to lift.
        annotations: What users have annotated, beside what ships.
        preferred: Whether a branch on a tensor becomes an operator of the graph
            rather than a guard, where both are possible.
    """
    if not can_read_frames():
        refusal = Break(CATALOGUE["interpreter"], sys.version.split()[0], "")
        return Outcome(function(*args, **kwargs), None, refusal)
    watch = OperatorWatch()
    table = shipped_annotations()
    if annotations:
        table = table.extended(user_entries(annotations))
    session, recorder = _observers(watch, table, wanted, preferred)
    state = torch_state()
    try:
        with _no_other_compiler(), watch, recorder:
            result = session.run(event_source(), function, args, kwargs)
    except StopRecordingError as stop:
        # Raised before the program began: another tool holds the events.
        refusal = Break(stop.refusal, stop.detail, "")
        return Outcome(function(*args, **kwargs), None, refusal)
    if session.stopped is not None:
        return Outcome(result, None, session.stopped)
    try:
        with collector_paused():
            arguments = Arguments(args, kwargs)
            finished = _finish(session, recorder, arguments, state, result)
    except StopRecordingError as stop:
        return Outcome(result, None, Break(stop.refusal, stop.detail, ""))
    return Outcome(result, finished, None)


def _observers(
    watch: OperatorWatch,
    table: AnnotationTable,
    wanted: frozenset[str],
    preferred: bool,
) -> tuple[Session, OperatorRecorder]:
    recorder: OperatorRecorder
    if wanted:
        recorder = LiftingRecorder(watch)
    else:
        recorder = OperatorRecorder(watch)
    tables, reader = code_tables(), frame_reader()
    if isinstance(recorder, LiftingRecorder):
        session: Session = LiftingSession(wanted, tables, reader, table, recorder)
    else:
        session = Session(tables, reader, table, recorder)
        Branches(session, recorder, preferred)
    recorder.attach(session)
    return session, recorder


def _settle(session: Session, recorder: OperatorRecorder) -> Settled | None:
    lifting = session.graph.lifting
    if lifting is None or not isinstance(recorder, LiftingRecorder):
        return None
    return settle(recorder, lifting)


def _finish(
    session: Session,
    recorder: OperatorRecorder,
    arguments: Arguments,
    state: tuple[Any, ...],
    result: Any,
) -> Capture:
    recorder.tensors.check_forms()
    check_buffers(session.graph, bool(recorder.written))
    outputs: list[fx.Node] = []

    def output_of(obj: Any) -> int | None:
        node = recorder.output_node(obj)
        if node is None:
            return None
        if node not in outputs:
            outputs.append(node)
        return outputs.index(node)

    planner = Planner(session.graph, output_of, session.effects)
    root = session.root.result if isinstance(session, LiftingSession) else None
    mock = planner.plan(result, root)
    settled = _settle(session, recorder)
    scalars = {} if settled is None else settled.scalars
    graph = build_graph(recorder, outputs, state[0], scalars)
    fetched = [
        *(item.node for item in graph.inputs),
        *graph.scalars,
        *(item if settled is None else settled.final(item) for item in planner.fetched),
    ]
    conditions = [] if settled is None else settled.conditions
    dims = {} if settled is None else settled.dims
    program = derive_guards(
        session.graph, recorder, arguments, state, fetched, conditions, dims
    )
    writes = session.graph.snapshots or session.graph.slot_snapshots
    if not writes and not recorder.written and torch_state() == state:
        verdict = program.check(arguments.args, arguments.kwargs)
        if type(verdict) is not list:
            raise StopRecordingError(
                "guard-failed", program.guards[verdict.number].path
            )
    paths = [path_of(item.node) for item in graph.inputs]
    paths += map(text_of, graph.scalars)
    pinned = () if settled is None else settled.pinned
    kept = "" if settled is None else settled.kept
    return Capture(
        graph, program, mock, tuple(paths), state[0], pinned, bool(dims), kept
    )


@contextlib.contextmanager
def _no_other_compiler() -> Iterator[None]:
    # Code compiled by torch.compile would not show its operators.
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
