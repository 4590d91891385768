"""Owns the observation of one frame: continuity, handlers, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import CO_GENERATOR
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.addresses import AddressHolding
from magweld.frontend.monitor.code_table import CALLS, Row, looks_at_frames
from magweld.frontend.state.draws import Holding
from magweld.frontend.state.nodes import Where

if TYPE_CHECKING:
    from magweld.frontend.lifting.join_expressions import Noted
    from magweld.frontend.lifting.shadow import Shadow
    from magweld.frontend.session.session import Session


def call_entry(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call the program, as any caller would, in the first frame that is observed.

    This call is the first instruction that has a rule.
    """
    return function(*args, **kwargs)


Holdings = tuple[Holding | AddressHolding, ...]


def followed(held: Holdings, row: Row, code: CodeType) -> Holdings:
    """Return where numbers are after an instruction.

    Those that it uses are left out: their value counts then. A comparison is looked at
    by its own rule.

    Args:
        held: Where they were.
    """
    for part in row.each:
        before, held = held, ()
        for holding in before:
            held += _after_one(holding, part, code)
    return held


def _after_one(holding: Holding | AddressHolding, row: Row, code: CodeType) -> Holdings:
    if isinstance(holding, AddressHolding):
        return holding.after(row, code)
    place, slot = holding.place, holding.slot
    name, top = row.opname, row.depth - 1
    if name in ("STORE_FAST", "DELETE_FAST") and slot == row.arg:
        slot = None
    if place == top and name in ("STORE_FAST", "POP_TOP"):
        if name == "STORE_FAST" and (slot is not None or looks_at_frames(code)):
            return ()  # two variables hold it now
        return holding.at(None, row.arg if name == "STORE_FAST" else slot)
    if name in _MAY_BE_UNBOUND and slot == row.arg:
        return ()
    if name == "LOAD_FAST" and slot == row.arg:
        return () if place is not None else holding.at(row.depth, slot)
    if place is None or name == "COMPARE_OP" or _is_below(place, row):
        return holding.at(place, slot)
    return ()


# They look at values that they do not take.
_REORDERING: Final = ("COPY", "SWAP")
_MAY_BE_UNBOUND: Final = ("LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR")


def _is_below(place: int, row: Row) -> bool:
    return row.opname not in _REORDERING and row.depth - row.taken > place


def ended(held: Holdings, row: Row) -> None:
    """Take note that a frame has ended, with the numbers in its variables.

    Args:
        held: Where they were before its last instruction.
    """
    if row.opname in ("RETURN_VALUE", "RETURN_CONST"):
        for holding in held:
            if isinstance(holding, AddressHolding):
                holding.end()
            else:
                holding.at(None, None)


def up_to_result(row: Row | None, stack: list[Any]) -> list[Any]:
    """Return the value stack after an instruction with its result on top."""
    if row is None or not row.above:
        return stack
    return stack[: -row.above]


After = Callable[["Observer", list[Any]], None]
# Stands for the tensor that the current instruction makes and then tests.
RESULT: Final = object()
# Slots, -1 on the stack, and what they hold after one branch and after another.
Held = Sequence[tuple[int, Any, Any]]


class Passed(NamedTuple):
    """A frame that is passed by.

    Attributes:
        function: Its function.
        offset: Offset of the instruction that runs the next function.
        callee: The next function.
    """

    function: Any
    offset: int
    callee: Any


@dataclass(eq=False, repr=False, slots=True)
class Observer:
    """Watches one frame.

    Attributes:
        session: The run that the frame belongs to.
        frame: The frame; None when it is let go of.
        rows: The instructions of its code.
        code: Code of the frame.
        previous: Instruction of the last event.
        after: What to do with the result of the last instruction.
        began: Moment of the run when the frame began.
        awaits_operator: Name of the native call whose result must come from a tensor
            operator, "" if there is none.
        asks: Name of the function with a cache that the current instruction calls.
        calls_native: Whether the current instruction runs native code, which may
            look into what Python callbacks return to it.
        native_caller: Whether native code called this frame.
        keyword_names: Names of the keyword arguments of the coming call.
        callee: Python function that the current call runs and whose result it gives.
        passed: The frames that the current call begins and that are passed by.
        passes: Whether the frame is one: what it reads is recorded, and it does nothing
            but call `callee` and give its result.
        function: The function object that the frame runs.
        constructing: Class whose instance the current call makes.
        anchor: The user's instruction that led here, when this is library code.
        testing: Tensor whose truth the current instruction tests, or RESULT.
        drawn: Random numbers that nothing but this frame holds, and where.
        stays_whole: Whether the frame cannot go on in a later call: it has asked for
            modes of torch and was told of those that observe the run, or tells objects
            apart by their addresses.
        shadow: Expressions of the lifted values in the frame, None if none are lifted.
    """

    session: Session
    frame: Any
    rows: list[Row | None]
    code: CodeType = field(init=False)
    began: int = field(init=False)
    previous: Row | None = None
    after: After | None = None
    awaits_operator: str = ""
    asks: str = ""
    calls_native: bool = False
    native_caller: bool = False
    keyword_names: tuple[str, ...] = ()
    callee: Any = None
    passed: tuple[Passed, ...] = ()
    passes: bool = False
    function: Any = None
    constructing: type | None = None
    anchor: Where | None = None
    testing: Any = None
    drawn: Holdings = ()
    stays_whole: bool = False
    shadow: Shadow | None = None

    def __post_init__(self) -> None:
        self.code = self.frame.f_code
        self.began = self.session.graph.moment

    def observe(self, frame: FrameType, offset: int) -> None:
        """Handle the event before the instruction at `offset`; never raises."""
        session = self.session
        if session.stopped is not None:
            session.end_transform(frame)
            session.finish_withdrawal()
            return
        if session.opaque_caller is not None:
            if session.opaque_caller is not self:
                return
            session.opaque_caller = None
        try:
            self._step(frame, offset)
        except StopRecordingError as stop:
            session.stop(stop)
        except Exception as error:
            # A fault of the monitor must not reach the program that it watches.
            session.stop(StopRecordingError("monitor-error", repr(error)))

    def observe_from(
        self, start: int, shift: int = 0
    ) -> Callable[[FrameType, int], None]:
        """Return what observes the instructions from an offset on.

        Args:
            shift: How far they lie behind those of the code that is observed.
        """

        def observe(frame: FrameType, offset: int) -> None:
            if offset >= start:
                self.observe(frame, offset - shift)

        return observe

    def _step(self, frame: FrameType, offset: int) -> None:
        row = self.rows[offset >> 1]
        previous = self.previous
        if row is None:
            raise StopRecordingError("lost-events", self.code.co_qualname)
        raised = previous is not None and offset not in previous.normal
        if raised and previous is not None:
            self._raised(previous, offset)
        after, shadow, control = self.after, self.shadow, self.session.control
        idle = after is None and row.handler is None and not self.drawn
        idle = idle and not (control is not None and control.scopes)
        if idle and (shadow is None or (shadow.step is None and shadow.passes(row))):
            self.previous = row
            return
        stack = self.session.reader.stack(frame, row.depth)
        if after is not None:
            self.after = None
            after(self, up_to_result(previous, stack))
        if shadow is not None:
            shadow.finish(stack if raised else up_to_result(previous, stack), raised)
        self.previous = row
        self.calls_native = False
        if control is not None and control.scopes:
            control.arrive(self, row)
        if self.drawn:
            self.drawn = followed(self.drawn, row, self.code)
        if shadow is None or (idle and shadow.passes(row)):
            self.handle(row, stack)
            return
        step = shadow.begin(row, stack)
        self.handle(row, stack)
        shadow.collect(step, row, stack)

    def end(self) -> None:
        """Take note that the frame has come to its end."""
        if self.drawn and self.previous is not None:
            ended(self.drawn, self.previous)

    def handle(self, row: Row, stack: list[Any]) -> None:
        """Apply the rule of an instruction; where it refuses, the recording ends."""
        if row.handler is not None:
            try:
                row.handler(self, row, stack)
            except StopRecordingError as stop:
                self.session.split(self, row, stack, stop)

    def release(self) -> None:
        """Let go of the frame and of what belongs to it."""
        self.frame = self.function = self.callee = None
        self.passed = ()
        self.after = self.testing = self.shadow = self.constructing = None
        self.drawn = ()

    def fork_for(self, frame: FrameType, rows: list[Row | None]) -> Observer:
        """Return what observes a frame that goes on where this one is."""
        made = Observer(self.session, frame, rows)
        made.stays_whole = self.stays_whole
        made.shadow = None if self.shadow is None else self.shadow.fork_for(made)
        return made

    def noted(self, depth: int) -> Noted | None:
        """Return the expressions in the frame, if they are followed."""
        return None if self.shadow is None else self.shadow.noted(depth)

    def join(
        self, row: Row, other: Noted | None, values: Held, returns: bool = False
    ) -> None:
        """Take note that another branch may have led to an instruction.

        Args:
            other: What was noted at the end of the other branch.
            returns: Whether only what the instruction returns matters.
        """
        if self.shadow is not None and other is not None:
            self.shadow.join(row.depth, other, values, returns)

    def resume(self, offset: int) -> None:
        """Take note that a suspended frame goes on at its RESUME instruction."""
        row = self.rows[offset >> 1]
        if row is not None and row.opname == "RESUME" and self.previous is not None:
            if row.offset in self.previous.normal:
                self.previous = row

    def _raised(self, previous: Row, offset: int) -> None:
        if previous.opname == "RESUME" and offset == previous.offset:
            return  # 3.12 reports the instruction after the resumption
        if offset not in previous.handlers:
            raise StopRecordingError("lost-events", self.code.co_qualname)
        self.give_up_result()

    def give_up_result(self) -> None:
        """Forget the expected result: the instruction raised."""
        self.session.end_transform(self.frame)
        stop = self.if_raised()
        self.awaits_operator = self.asks = ""
        self.after = None
        self.passed = ()
        self.constructing = None
        self.keyword_names = ()
        self.drawn = ()
        if stop is not None:
            raise stop

    def if_raised(self) -> StopRecordingError | None:
        """Return why the recording ends if the current instruction has raised."""
        if self.awaits_operator:
            return StopRecordingError("operator-raised", self.awaits_operator)
        if self.asks:
            # It keeps no exception: the next call of it may return.
            return StopRecordingError("native-call", f"{self.asks}, which has raised")
        return None

    def pass_by(self, caller: Observer) -> None:
        """Pass this frame by, if that is what the call of another frame is about.

        Raises:
            StopRecordingError: That frame is passed by, and begins another one than it
                was to.
        """
        if caller.passes and caller.callee is not self.function:
            raise StopRecordingError("lost-events", caller.code.co_qualname)
        passed, caller.passed = caller.passed, ()
        if not passed or not (passed[0].function is caller.callee is self.function):
            return
        self.previous = self.rows[passed[0].offset >> 1]
        self.callee, self.passed = passed[0].callee, passed[1:]
        self.passes = True

    @property
    def is_suspended(self) -> bool:
        """Whether the frame, when it is left, can be resumed later."""
        if not self.code.co_flags & CO_GENERATOR or self.previous is None:
            return False
        return self.previous.opname in ("YIELD_VALUE", "RETURN_GENERATOR")

    def links_to(self, inner: Observer) -> bool:
        """Return whether the result of the inner frame is that of this call."""
        row = self.previous
        calls = row is not None and row.opname in CALLS
        return calls and self.callee is not None and self.callee is inner.function

    def where(self) -> Where | None:
        """Return the user's instruction: this one, or the one that led here."""
        if self.anchor is not None or self.previous is None:
            return self.anchor
        if self.code is call_entry.__code__:
            return None
        return Where(self.code, self.previous.offset)
