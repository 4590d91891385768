"""Owns whether hits pay: whether answering a call takes longer than running it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from magweld.comparison import CALLS, Turns
from magweld.frontend.backward_times import differentiable, time_backward
from magweld.frontend.eager_kinds import Kind
from magweld.frontend.records.record import NEVER, Record
from magweld.frontend.state.mro import ClassKey, key_of_class
from magweld.frontend.state.values import text_of_scalar

# A hit may take longer than eager by this much.
_TOLERATED: Final = 1.05
# Measured calls of a record after which no gradients were asked for, at most.
_UNFINISHED: Final = 32
# Calls of a kind that run eagerly before its hits are timed once more, the first time;
# each further time it is four times as many. Few times on a busy machine may mislead.
_PAUSE: Final = 100
_LONGER: Final = 4
# Calls after which an attempt to time hits once more is given up. What runs the graph
# may have to be found out before.
_ATTEMPT: Final = 3 * CALLS
# Kinds of calls that are remembered.
_KINDS: Final = 256
# Kinds of calls of one record whose hits pay before all are taken to, if none did not.
_PAYING: Final = 8
# Hits of so many kinds that take less than this much of the time of eager runs pay for
# each kind for which the first times say so: a decoder has a kind for each length.
_MOSTLY: Final = 0.95
# The ways to answer a call.
HIT: Final = 0
EAGER: Final = 1
_VALUES: Final = (bool, int, float, str, type(None))


def kind_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Kind:
    """Return what calls have in common that should take the same time.

    Calls that run eagerly wait for this.
    """
    found: list[Any] = []
    for value in args:
        cls = type(value)
        if cls is Tensor:
            try:
                found.append((value.shape, value.dtype))
            except RuntimeError:  # nested tensors have no sizes
                found.append(key_of_class(cls))
        else:
            key = key_of_class(cls)
            found.append((cls, value) if key in _VALUES else key)
    if kwargs:
        found += [(name, kind_of((value,), {})) for name, value in kwargs.items()]
    return tuple(found)


@dataclass
class _Times:
    """Seconds of hits and of eager runs of one kind of calls.

    Attributes:
        turns: Hits, and eager runs.
        sizes: Those of the last hit if a program for all sizes has answered it.
        is_again: Whether they are measured once more, for a program of their own.
    """

    turns: Turns = field(default_factory=Turns)
    sizes: Hashable | None = None
    is_again: bool = False

    def __str__(self) -> str:
        hit, eager = [min(seconds) * 1e3 for seconds in self.turns.times]
        return f"a hit takes {hit:.3g} ms, eager {eager:.3g} ms"


@dataclass
class _Lost:
    """A kind of calls whose hits do not pay.

    Attributes:
        times: Those that have decided.
        pause: Calls that run eagerly before hits are timed once more.
        left: How many of these there are still.
        counted: What was left when its calls were last counted.
        attempts: Calls since then, in which they are timed.
        is_known: Whether its calls are told apart by code of their own.
    """

    times: _Times
    pause: int = _PAUSE
    left: int = _PAUSE
    counted: int = _PAUSE
    attempts: int = 0
    is_known: bool = False

    def take_eager(self) -> int:
        """Return how many calls have run eagerly that were not counted yet."""
        left, counted = self.left, self.counted
        self.counted = left
        return counted - left

    def attempt(self) -> bool:
        """Count a call in which hits may be timed; return whether they are not."""
        self.attempts += 1
        if self.attempts <= _ATTEMPT:
            return False
        self.renew(self.times)
        return True

    def renew(self, times: _Times) -> None:
        """Decide once more, and for longer."""
        self.pause *= _LONGER
        self.times, self.attempts = times, 0
        self.counted += self.pause - self.left
        self.left = self.pause


@dataclass
class _Compared:
    """A record that is being compared, or will be once more.

    Attributes:
        record: The record.
        unfinished: Measured calls since the last whose gradients were asked for.
        paying: Kinds of calls whose hits pay.
        has_lost: Whether those of another kind do not.
        least: Of each kind that is not decided the least time of hits, of eager runs.
        doubts: Hits until it is to be known again what the times of a busy machine have
            told, for the kinds that pay.
        earlier: How often they have told it.
    """

    record: Record
    unfinished: int = 0
    paying: set[Kind] = field(default_factory=set)
    has_lost: bool = False
    least: dict[Kind, tuple[float, float]] = field(default_factory=dict)
    doubts: int = 0
    earlier: int = 0

    def foreseen(self, kind: Kind, turns: Turns) -> float | None:
        """Return the ratio of few times of a kind if other kinds make it credible."""
        if turns.least is None or self.record.lifted is None:
            return None
        self.least[kind] = mine, theirs = turns.least
        hits, eager = (sum(times) for times in zip(*self.least.values(), strict=True))
        known = len(self.paying) + len(self.least) >= _PAYING
        credible = known and hits < _MOSTLY * eager
        return mine / theirs if credible and mine < theirs else None

    def take_note(self, kind: Kind, turns: Turns, *, pays: bool) -> None:
        """Take note of what the times of a kind have decided."""
        if pays:
            self.paying.add(kind)
            self.doubts += turns.calls_until_next(self.earlier) or 0
        else:
            self.has_lost = True
        self.least.pop(kind, None)

    def renewed(self) -> _Compared:
        """Return the record to be compared once more."""
        return _Compared(self.record, earlier=self.earlier + 1)

    @property
    def is_settled(self) -> bool:
        """Whether the kinds that are known tell enough of the others."""
        if self.record.lifted is None:
            return bool(self.paying)
        if any(hits > _TOLERATED * eager for hits, eager in self.least.values()):
            return False
        return len(self.paying) >= (_KINDS if self.has_lost else _PAYING)


class Profitability:
    """Compares hits with eager runs, in turns; what does not pay runs eagerly.

    A record is compared once its graph is compiled, on the kinds of calls that it
    answers often enough. If its hits pay there, they are taken to pay for all calls:
    one kind tells enough of a record for one set of sizes, several of one for many.
    Where a program for all sizes does not pay, one for these sizes is tried first.
    What runs eagerly is compared again after a while, and then more and more seldom; so
    is what hits were taken to pay for by the times of a busy machine.

    Args:
        compares: Whether anything is compared.
        tell: Gets a line when a kind of calls is to run eagerly.

    Attributes:
        is_open: Whether a call has to ask `runs_eagerly`, and then `comparison`.
        lost: The kinds of calls that run eagerly.
    """

    def __init__(
        self,
        compares: bool,
        tell: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.is_open = False
        self._tell = tell
        self.clock = clock
        self._compares = compares
        self._open: dict[int, _Compared] = {}
        self._later: dict[int, _Compared] = {}
        self._times: dict[tuple[int, Kind], _Times] = {}
        self.lost: dict[Kind, _Lost] = {}
        self._eager = 0

    def take_eager(self) -> int:
        """Return how many calls of lost kinds have run eagerly, each of them once."""
        found = [one.take_eager() for one in list(self.lost.values())]
        count, self._eager = self._eager + sum(found), 0
        return count

    def add(self, records: Sequence[Record]) -> None:
        """Have the first of some records compared, unless times would tell nothing.

        Args:
            records: All that there are; others are forgotten.
        """
        kept = {id(record) for record in records}
        self._open = {key: one for key, one in self._open.items() if key in kept}
        self._later = {key: one for key, one in self._later.items() if key in kept}
        new = records[0]
        if self._compares and new.is_timed:
            self._open[id(new)] = _Compared(new)
        self.is_open = bool(self._open or self.lost)

    def runs_eagerly(self, kind: Kind) -> bool:
        """Count a call; return whether hits do not pay for calls of its kind."""
        lost = self.lost.get(kind)
        if lost is None:
            return False
        if lost.left > 0:
            lost.left -= 1
            return True
        return lost.attempt()

    def compare_again(self, record: Record) -> None:
        """Compare a record once more whose times were those of a busy machine."""
        record.compared_from = NEVER
        compared = self._later.pop(id(record), None)
        if compared is not None:
            self._open[id(record)] = compared
            self.is_open = True

    def comparison(self, record: Record, kind: Kind) -> _Times | None:
        """Return the times of a kind of calls if they are to be measured now."""
        compared = self._open.get(id(record))
        if record.is_pending:
            return None
        if kind not in self.lost and (compared is None or kind in compared.paying):
            return None
        if torch.are_deterministic_algorithms_enabled():
            return None  # results must not depend on times
        if sys.gettrace() is not None or sys.getprofile() is not None:
            return None  # a debugger or a profiler takes the time
        if len(self._times) >= _KINDS:
            # Hardly any call is like one before: nothing will ever be known.
            self._times.clear()
            self._open.clear()
            self.is_open = bool(self.lost)
        return self._times.get((id(record), kind)) or self._begin(record, kind)

    def _begin(self, record: Record, kind: Kind) -> _Times | None:
        """Return times for a kind of calls; None if they cannot be measured yet."""
        is_again = kind in self.lost
        if is_again:
            # Hits may have lost because torch was taken to run their graph faster.
            record.compare_tiers()
        times = self._times[id(record), kind] = _Times(is_again=is_again)
        return None if record.is_pending else times

    def measure(
        self, record: Record, kind: Kind, way: int, start: float, result: Any
    ) -> None:
        """Add the time of a call, and of the gradients of what it has returned.

        Args:
            record: The record that has answered the call, or could have.
            kind: Kind of the call.
            way: `HIT` or `EAGER`.
            start: When the call began.
            result: What it has returned.
        """
        seconds, results = self.clock() - start, differentiable(result)
        if results is None and record.grad_enabled:
            self._dismiss(record)
        elif not results:
            self._judge(record, kind, way, seconds)
        else:
            compared = self._open.get(id(record))
            if compared is not None:
                compared.unfinished += 1
                if compared.unfinished > _UNFINISHED:
                    self._dismiss(record)

            def finish(more: float) -> None:
                if compared is not None:
                    compared.unfinished = 0
                self._judge(record, kind, way, seconds + more)

            time_backward(results, self.clock, finish)

    def _judge(self, record: Record, kind: Kind, way: int, seconds: float) -> None:
        """Add a time, and decide if the times are enough."""
        times = self._times.get((id(record), kind))
        compared, lost = self._open.get(id(record)), self.lost.get(kind)
        if times is None:
            return
        times.turns.add(way, seconds)
        ratio = times.turns.ratio
        if ratio is None and compared is not None:
            ratio = compared.foreseen(kind, times.turns)
        if ratio is None:
            return
        if ratio > _TOLERATED and times.sizes is not None and not times.is_again:
            assert record.lifted is not None, "it has answered for all sizes"
            record.lifted.want_own(times.sizes)
            self._times[id(record), kind] = _Times(is_again=True)
            return
        self._times.pop((id(record), kind), None)
        if ratio > _TOLERATED:
            self._run_eagerly(record, kind, times)
        elif lost is not None:
            self.lost.pop(kind, None)
            self._eager += lost.take_eager()
            self._tell(_describe(kind, times, "are answered by records again"))
        pays = ratio <= _TOLERATED
        compared = compared or (_Compared(record) if pays else None)
        if compared is not None:
            compared.take_note(kind, times.turns, pays=pays)
            if compared.is_settled:
                self._settle(compared)
        self.is_open = bool(self._open or self.lost)

    def _run_eagerly(self, record: Record, kind: Kind, times: _Times) -> None:
        """Have calls of a kind run eagerly, for a while or for longer."""
        lost = self.lost.get(kind)
        if lost is not None:
            lost.renew(times)
        elif len(self.lost) < _KINDS:
            self.lost[kind] = _Lost(times)
            self._tell(_describe(kind, times))
        else:
            self._dismiss(record)

    def _settle(self, compared: _Compared) -> None:
        """Compare a record no more, or only later if its times were not calm."""
        record = compared.record
        self._dismiss(record)
        if compared.doubts:
            record.compared_from = record.hits + compared.doubts
            self._later[id(record)] = compared.renewed()

    def _dismiss(self, record: Record) -> None:
        """Compare a record no more."""
        self._open.pop(id(record), None)
        self._times = {at: t for at, t in self._times.items() if at[0] != id(record)}
        self.is_open = bool(self._open or self.lost)

    def describe(self) -> list[str]:
        """Return a line for each kind of calls that runs eagerly."""
        return [_describe(kind, lost.times) for kind, lost in list(self.lost.items())]


def _describe(kind: Kind, times: _Times, now: str = "run eagerly") -> str:
    calls = ", ".join([_text(part) for part in kind])
    return f"calls like ({calls}) {now}: {times}"


def _text(kind: Any) -> str:
    if isinstance(kind, type):
        return kind.__name__
    if isinstance(kind, ClassKey):
        return kind.name
    first, second = kind
    if isinstance(first, torch.Size):
        dtype = str(second).removeprefix("torch.")
        return f"{dtype}[{', '.join(map(str, first))}]"
    return (
        text_of_scalar(second)
        if isinstance(first, type)
        else f"{first}={_text(second[0])}"
    )
