"""Owns capturing: one monitored run of a program, turned into a record."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from dataclasses import dataclass
from typing import Any, Final

import torch

from magweld.frontend.annotations.addresses import ADDRESSES
from magweld.frontend.annotations.arrays import ARRAYS
from magweld.frontend.annotations.autograd import AUTOGRAD, TRAINING
from magweld.frontend.annotations.checkpoints import CHECKPOINTS
from magweld.frontend.annotations.core import CORE
from magweld.frontend.annotations.module_calls import MODULE_CALLS
from magweld.frontend.annotations.randomness import RANDOMNESS
from magweld.frontend.annotations.scripted import SCRIPTED
from magweld.frontend.annotations.torch_functions import AUTOCAST, TORCH
from magweld.frontend.annotations.torch_modules import (
    DYNAMO_MODULE,
    TORCH_CLASSES,
    TORCH_MODULES,
    dynamo_entries,
)
from magweld.frontend.annotations.transforms import TRANSFORMS, mode_entries
from magweld.frontend.annotations.user import UserAnnotation
from magweld.frontend.annotations.user_rules import user_entries
from magweld.frontend.capture.build_record import Capture, Run
from magweld.frontend.catalogue import CATALOGUE, Break, StopRecordingError
from magweld.frontend.control.branches import Branches
from magweld.frontend.control.fors import Loops
from magweld.frontend.lifting.ahead import KnownSizes, Outline, SizesAwaitedError
from magweld.frontend.lifting.operands import Operands
from magweld.frontend.monitor.annotation import AnnotationTable
from magweld.frontend.monitor.code_table import CodeTables
from magweld.frontend.monitor.events import CollectorPause, event_source
from magweld.frontend.monitor.stack import (
    MARKED,
    FrameReader,
    StackReader,
    is_supported,
)
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.torch_state import ObservingModes, torch_state
from magweld.frontend.operators.watch import OperatorWatch
from magweld.frontend.segments.continuation import Sources
from magweld.frontend.segments.program import Program
from magweld.frontend.segments.shape import Form
from magweld.frontend.segments.split import Places, ProgramLeftError, Split
from magweld.frontend.session.instructions import INSTRUCTIONS
from magweld.frontend.session.session import Session


def shipped_annotations() -> AnnotationTable:
    """Return the table of all annotations that ship with the front end."""
    return _annotations(DYNAMO_MODULE in sys.modules, bool(mode_entries()))


@functools.cache
def _annotations(beside_dynamo: bool, knows_mode: bool) -> AnnotationTable:
    dynamo = (dynamo_entries(), mode_entries()) if beside_dynamo else ()
    classes = (*TORCH_CLASSES, *TORCH_MODULES, *MODULE_CALLS, *SCRIPTED)
    torch_entries = (TORCH, RANDOMNESS, classes, AUTOGRAD, AUTOCAST, TRAINING)
    functional = (CHECKPOINTS, TRANSFORMS, ADDRESSES)
    return AnnotationTable(CORE, ARRAYS, *torch_entries, *dynamo, *functional)


@functools.cache
def code_tables() -> CodeTables:
    """Return the tables of code objects; they depend on nothing but the code."""
    return CodeTables(INSTRUCTIONS)


@functools.cache
def can_read_frames() -> bool:
    """Return whether the monitor works on this interpreter."""
    return is_supported()


def frame_reader() -> FrameReader:
    """Return a reader of frames, with torch's native stack reader where it works."""
    module = torch._C._dynamo.eval_frame
    read: StackReader | None = getattr(
        module, "_get_frame_value_stack_with_depth", None
    )
    if MARKED:
        return FrameReader()
    return FrameReader(read, getattr(module, "NULL_STACK_VALUE", None))


_NO_SIZES: Final = KnownSizes()


@dataclass(frozen=True)
class Outcome:
    """What a monitored run gave.

    Attributes:
        result: What the program returned; always right. The suspended program, when
            its frames were left at the end of the capture.
        capture: The capture, None if the run was refused.
        refusal: Why it was refused, or ended early.
        ends: Form of the state of the program at the end of the capture; None when
            that is the end of the program.
        learned: Whether the next run of the program will be split where this one was
            refused.
        error: The exception that the program raised behind the capture.
        outline: What the sizes follow from that are to be worked out before a run can
            be captured, if that is all that is in the way.
    """

    result: Any
    capture: Capture | None
    refusal: Break | None
    ends: Form | None = None
    learned: bool = False
    error: BaseException | None = None
    outline: Outline | None = None


def capture(
    program: Program,
    sources: Sources,
    places: Places,
    wanted: frozenset[str] = frozenset(),
    annotations: tuple[UserAnnotation, ...] = (),
    preferred: bool = False,
    assumes: bool = False,
    known: KnownSizes = _NO_SIZES,
    changing: frozenset[str] = frozenset(),
) -> Outcome:
    """Run a program once under observation.

    Exceptions of the program propagate when they are raised before a break; nothing
    is captured then.

    Args:
        places: Where the recording has to end before an instruction.
        wanted: Paths of numbers to lift.
        annotations: What users have annotated, beside what ships.
        preferred: Whether a branch on a tensor becomes an operator of the graph
            rather than a guard, where both are possible.
        assumes: Whether a branch on a tensor that is neither is taken for that of all
            calls; a hit that is to take the other one fails.
        known: What there is of the sizes of a run that lifts some.
        changing: Paths of data that keeps changing from call to call.
    """
    if not can_read_frames():
        refusal = Break(CATALOGUE["interpreter"], sys.version.split()[0], "")
        return Outcome(program.run(), None, refusal)
    table = shipped_annotations()
    if annotations:
        table = table.extended(user_entries(annotations))
    session, recorder = _observers(table, wanted, preferred, assumes, changing)
    run = Run(session, recorder, program.arguments, torch_state(), known)
    split = Split(session, sources, places, run.finish_early)
    try:
        with CollectorPause() as collector:
            outcome = _observed(program, run, split, collector)
            # A collection would go through all that was recorded: it ends before one.
            session.close()
        return outcome
    except StopRecordingError as stop:
        # Raised before the program began: another tool holds the events.
        refusal = Break(stop.refusal, stop.detail, "")
        return Outcome(program.run(), None, refusal)
    finally:
        session.close()


def _observed(
    program: Program, run: Run, split: Split, collector: CollectorPause
) -> Outcome:
    session = run.session
    try:
        with contextlib.ExitStack() as around:
            around.enter_context(_no_other_compiler())
            modes = around.enter_context(ObservingModes(run.recorder))
            session.withdraw = functools.partial(_withdraw, around, modes, collector)
            result = program.observe(session, event_source())
    except StopRecordingError:
        raise  # the program has not run
    except ProgramLeftError:
        return Outcome(split.left, split.part, session.stopped, split.form)
    except BaseException as error:
        if split.form is None:
            raise
        return Outcome(None, split.part, session.stopped, split.form, error=error)
    if split.form is not None:
        return Outcome(result, split.part, session.stopped, split.form)
    if session.stopped is not None:
        return Outcome(result, None, session.stopped, learned=split.learn())
    return _finished(run, split, result)


def _finished(run: Run, split: Split, result: Any) -> Outcome:
    """Return what a run has given whose program has come to its end."""
    try:
        finished = run.finish(result)
    except SizesAwaitedError as awaited:
        return Outcome(result, None, None, outline=awaited.outline)
    except StopRecordingError as stop:
        run.session.stopped = Break(stop.refusal, stop.detail, "")
        return Outcome(result, None, run.session.stopped, learned=split.learn())
    except Exception as error:
        # A fault of the monitor must not reach the program, which has run.
        return Outcome(result, None, Break(CATALOGUE["monitor-error"], repr(error), ""))
    return Outcome(result, finished, None)


def _withdraw(
    around: contextlib.ExitStack, modes: ObservingModes, collector: CollectorPause
) -> bool:
    """End what is there for the recording alone; False if a mode is at work."""
    left = modes.leave()
    if left:
        around.close()
        collector.end()
    return left


def _observers(
    table: AnnotationTable,
    wanted: frozenset[str],
    preferred: bool,
    assumes: bool,
    changing: frozenset[str],
) -> tuple[Session, OperatorRecorder]:
    session = Session(code_tables(), frame_reader(), table, wanted, changing)
    session.operators = recorder = OperatorRecorder(OperatorWatch(), session)
    lifting = session.graph.lifting
    if lifting is not None:
        Operands(lifting, session, recorder).attach()
        lifting.loops = Loops(lifting, session, recorder)
    Branches(session, recorder, preferred, assumes).attach()
    return session, recorder


class _Stance:
    """Keeps torch.compile from running code while any thread is monitored.

    Its stance is one for the process: the first run that begins sets it, and the last
    one that ends puts back what was before.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._stance: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._runs == 0 and "torch._dynamo" in sys.modules:
                # Code compiled by torch.compile would not show its operators.
                self._stance = torch.compiler.set_stance("force_eager")
                self._stance.__enter__()
            self._runs += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._runs -= 1
            if self._runs == 0 and self._stance is not None:
                self._stance.__exit__(None, None, None)
                self._stance = None


@functools.cache
def _no_other_compiler() -> _Stance:
    """Return the stance of this process."""
    return _Stance()
