"""Owns what takes part in a monitored run beside the interpreter's events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer

if TYPE_CHECKING:
    from magweld.frontend.control.branches import Branches

Rows = list[Row | None]


class OperatorLayer:
    """The tensor side of a monitored run; this one is that of a run without tensors.

    Attributes:
        serial: Number of operators seen so far.
        last: Name of the last one.
        library: Folder whose code is not the user's.
        in_opaque: Whether the Python code that runs is part of one operator.
        is_transforming: Whether torch runs a transform of `torch.func`, also if nothing
            is recorded any more.
    """

    serial = 0
    last = ""
    library = "\0"
    in_opaque = False
    is_transforming = False

    @property
    def has_effects(self) -> bool:
        """Whether operators have written to older memory or drawn random numbers."""
        return False

    def is_tensor(self, kind: type) -> bool:
        """Return whether objects of this type are tensors."""
        return False

    def is_operator(self, native: Any) -> bool:
        """Return whether a native callable can only act through operators."""
        return False

    def open(self, func: Any, args: Any, kwargs: Any, *, watched: bool = False) -> None:
        """Take a call that is about to happen for one operator, whatever it does.

        Args:
            watched: Whether it runs observed Python code, whose operators are its own.
        """

    def note_written(self, tensors: list[Any]) -> None:
        """Take note of tensors that this call writes behind torch's back."""

    def close(self, result: Any) -> None:
        """Record that call, now that its result is known."""

    def follow(self, on: bool) -> None:
        """Record operators, or none of those that run now: they are of other code."""

    def hide_modes(self) -> None:
        """Have torch find no modes, up to `show_modes`."""

    def show_modes(self) -> None:
        """Undo `hide_modes`."""

    def read_form(self, tensor: Any) -> None:
        """Take note that type, dtype, device and shape of a tensor were used."""

    def twin(self, array: Any) -> Any:
        """Return the tensor of the run whose memory an array shows, None if of none."""

    def take_array(self, func: Any, args: Any, kwargs: Any, array: Any) -> None:
        """Record the array that a function of arrays of tensors has given."""

    def release(self) -> None:
        """Let go of the tensors: nothing is recorded any more."""

    def take_alias(self, tensor: Any, others: list[Any]) -> None:
        """Record a tensor that native code has given out; a new one shows another.

        Args:
            others: Objects among which the other one is.
        """


class Shown(NamedTuple):
    """A function that is observed although code that is not calls it.

    Attributes:
        observer: Of the frame whose current instruction runs that code.
        function: The function.
        begin: Gets its frame when that begins.
    """

    observer: Observer
    function: Any
    begin: Callable[[FrameType], None] = lambda frame: None


class Site(NamedTuple):
    """Where an observed frame is.

    Attributes:
        code: Its code.
        offset: Offset of its current instruction.
        linked: Whether this instruction is a call that runs the next frame and gives
            its result.
        stays: Whether the frame cannot go on in another one.
    """

    code: CodeType
    offset: int
    linked: bool
    stays: bool = False


@dataclass(frozen=True)
class Resumed:
    """The state with which a program goes on.

    Attributes:
        names: Readable names of its values.
        values: The values; nothing may hold them when the recording has ended.
        first: How many of them belong to the outermost frame.
        given: The list from which its continuation takes them.
        made: What the frames inside go on with: functions, lists, callables.
    """

    names: tuple[str, ...]
    values: list[Any]
    first: int
    given: list[Any]
    made: tuple[Any, ...]


@dataclass
class SessionHooks:
    """What else takes part in a run.

    Attributes:
        rows: Gives the rows to be used for a code object.
        is_read: Tells whether the variable in a slot may be read from an offset on.
        begins: Gives the offset at which a frame of this code begins to be observed.
        split: Told when the recording ends before an instruction has run; by default
            the call as a whole is given up.
    """

    rows: Callable[[CodeType, Rows], Rows] = lambda code, rows: rows
    is_read: Callable[[CodeType, int, int], bool] = lambda *_: True
    begins: Callable[[CodeType], int] = lambda code: 0
    split: Callable[[Observer, Row, list[Any]], None] = lambda *_: None


def sites_of(active: Sequence[Observer], control: Branches | None) -> tuple[Site, ...]:
    """Return where a recording ends: the observed frames from the outermost.

    Args:
        active: Their observers.
        control: What follows the branches of the run. A branch that nothing guards is
            where the recording ends, however far the run has come in it.
    """
    jump = control.unguarded if control is not None else None
    found: list[Site] = []
    for observer, follower in zip_longest(active, active[1:]):
        if jump is not None and jump[0] is observer:
            stays = observer.stays_whole
            return (*found, Site(observer.code, jump[1].offset, False, stays))
        if observer.previous is not None:
            linked = follower is not None and observer.links_to(follower)
            at, stays = observer.previous.offset, observer.stays_whole
            found.append(Site(observer.code, at, linked, stays))
    return tuple(found)
