"""Owns whether hits pay: whether answering a call takes longer than running it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from magweld.comparison import CALLS, Turns
from magweld.frontend.backward_times import differentiable, time_backward
from magweld.frontend.call_kinds import about_kind, text_of_kind
from magweld.frontend.compared import KINDS, TOLERATED, Compared
from magweld.frontend.eager_kinds import Kind
from magweld.frontend.records.record import NEVER, Record
from magweld.kept import KeptByRecords

# Measured calls of a record in a row whose gradients nobody has asked for, before
# nobody is taken to: programs that only infer run with gradients as well.
_UNFINISHED: Final = 32
# Calls of a kind that run eagerly before its hits are timed once more, the first time;
# each further time it is four times as many. Few times on a busy machine may mislead.
_PAUSE: Final = 100
_LONGER: Final = 4
# Hits that have lost by much are timed again later: what they lose then is to be so
# little of the time of the calls between, but no later than after so many calls.
_SHARE: Final = 0.01
_LONGEST: Final = 1600
# Failed hits of a record before calls like these run eagerly, if they are half of all.
_FAILURES: Final = 3
# Calls after which an attempt to time hits once more is given up. What runs the graph
# may have to be found out before.
_ATTEMPT: Final = 3 * CALLS
# The ways to answer a call.
HIT: Final = 0
EAGER: Final = 1


@dataclass
class _Times:
    """Seconds of hits and of eager runs of calls that are compared together.

    Attributes:
        turns: Hits, and eager runs.
        kinds: Kinds of these calls: of a record for many sizes those of about equal.
        sizes: Those of the last hit if a program for all sizes has answered it.
        has_asked: Whether a program of their own was asked for.
        is_lost: Whether nothing is measured: hits do not pay.
        fails: Whether hits have failed, and nothing was measured.
    """

    turns: Turns = field(default_factory=Turns)
    kinds: set[Kind] = field(default_factory=set)
    sizes: Hashable | None = None
    has_asked: bool = False
    is_lost: bool = False
    fails: bool = False

    @property
    def way(self) -> int:
        """Which way answers the next call."""
        return EAGER if self.is_lost else self.turns.way

    @property
    def wants_own(self) -> bool:
        """Whether a program for the sizes alone is to be tried before eager."""
        return self.sizes is not None and not self.has_asked and len(self.kinds) == 1

    @property
    def calls(self) -> int:
        """How many calls are counted."""
        return sum(map(len, self.turns.times))

    @property
    def calls_to_wait(self) -> int:
        """After how many calls hits are timed once more that have lost.

        Times of a busy machine may tell anything, so they do not make it later.
        """
        if self.turns.least is None or not self.turns.is_calm:
            return _PAUSE
        hit, eager = self.turns.least
        lost = CALLS / 2 * (hit - eager)
        return round(min(max(_PAUSE, lost / (_SHARE * eager)), _LONGEST))

    def __str__(self) -> str:
        if self.fails:
            return "the graph fails where the program does not"
        hit, eager = [min(seconds) * 1e3 for seconds in self.turns.times]
        return f"a hit takes {hit:.3g} ms, eager {eager:.3g} ms"


@dataclass
class _Lost:
    """Calls that are compared together and whose hits do not pay.

    Attributes:
        times: Those that have decided.
        first: Calls that have run eagerly before hits were timed once more, the first
            time.
        pause: Calls that run eagerly before hits are timed once more.
        left: How many of these there are still.
        counted: What was left when its calls were last counted.
        attempts: Calls since then, in which they are timed.
        is_known: Whether its calls, of all kinds, are told apart by code of their own.
    """

    times: _Times
    first: int = _PAUSE
    pause: int = field(init=False)
    left: int = field(init=False)
    counted: int = field(init=False)
    attempts: int = 0
    is_known: bool = False

    def __post_init__(self) -> None:
        self.pause = self.left = self.counted = self.first

    @property
    def ran(self) -> int:
        """How many calls have run eagerly by the end of the pause."""
        # Each one is longer than all before.
        return (_LONGER * self.pause - self.first) // (_LONGER - 1)

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

    def take_unknown(self) -> bool:
        """Count a call that no code knows; return whether it runs eagerly, untimed.

        Whoever runs it counts it as a call.
        """
        if self.left > 0:
            self.left -= 1
            self.counted -= 1
            return True
        return self.attempt()

    def renew(self, times: _Times) -> None:
        """Decide once more, and for longer."""
        self.pause *= _LONGER
        self.times, self.attempts = times, 0
        self.counted += self.pause - self.left
        self.left = self.pause


class Profitability(KeptByRecords):
    """Compares hits with eager runs, in turns; what does not pay runs eagerly.

    A record is compared once its graph is compiled, on the kinds of calls that it
    answers often enough. If its hits pay there, they are taken to pay for all calls:
    one kind tells enough of a record for one set of sizes, several of one for many.
    Of the latter, calls of about equal sizes are compared together; if several do not
    pay, smaller ones are taken not to either.
    Where a program for all sizes does not pay, one for these sizes is tried once it may
    have saved the time to compile it.
    What runs eagerly is compared again after a while, and then more and more seldom; so
    is what hits were taken to pay for by the times of a busy machine.

    Args:
        compares: Whether anything is compared.
        tell: Gets a line when a kind of calls is to run eagerly.
        clock: Seconds.
        is_busy: Whether something is being compiled behind the calls: times that are
            taken meanwhile decide for a while only.

    Attributes:
        is_open: Whether a call has to ask `lost`, and then `comparison`.
        lost: The kinds of calls that run eagerly.
        paying: Kinds of calls of which it is known that hits pay: none of these has to
            ask while others are compared.
    """

    def __init__(
        self,
        compares: bool,
        tell: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.perf_counter,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self.is_open = False
        self._tell = tell
        self._is_busy = is_busy
        self.clock = clock
        self._compares = compares
        self._open: dict[int, Compared] = {}
        self._later: dict[int, Compared] = {}
        self._times: dict[tuple[int, Kind], _Times] = {}
        self.lost: dict[Kind, _Lost] = {}
        self.paying: set[Kind] = set()
        # The same by record and by what calls are compared as, see `_compared_as`.
        self._lost_together: dict[tuple[int, Kind], _Lost] = {}
        self._about: dict[Kind, Kind] = {}
        self._eager = 0

    def forget_known(self) -> None:
        """Have lost kinds told apart anew: the code that did so is gone."""
        for one in list(self.lost.values()):
            one.is_known = False

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
        self.paying.clear()
        self._open = {key: one for key, one in self._open.items() if key in kept}
        self._later = {key: one for key, one in self._later.items() if key in kept}
        together = list(self._lost_together.items())
        self._lost_together = {at: lost for at, lost in together if at[0] in kept}
        new = records[0]
        if self._compares and new.is_timed:
            self._open[id(new)] = Compared(new)
        self.is_open = bool(self._open or self.lost)

    def compare_again(self, record: Record) -> None:
        """Compare a record once more whose times were those of a busy machine."""
        record.compared_from = NEVER
        self.paying.clear()
        compared = self._later.pop(id(record), None)
        if compared is not None:
            self._open[id(record)] = compared
            self.is_open = True

    def note_failure(self, record: Record, kind: Kind, failed: Record) -> None:
        """Take note of a hit that may have failed where the program itself has not.

        An operator may have raised within a `try`, or the code of the graph is at
        fault. If that is what hits of a record mostly do, calls like this one run
        eagerly for a while.

        Args:
            record: The record that answers the call, or its part up to a break.
            kind: Kind of the call.
            failed: The record whose hit has failed: the same, or one behind a break.
        """
        if failed.failures < _FAILURES or 2 * failed.failures < failed.hits:
            return
        at = (id(record), self._compared_as(record, kind))
        times = _Times(kinds={kind}, fails=True)
        self._times.pop(at, None)
        self._run_eagerly(record, at, times, self.lost.get(kind))
        self.is_open = bool(self._open or self.lost)

    def comparison(self, record: Record, kind: Kind) -> _Times | None:
        """Return the times of a kind of calls if they are to be measured now."""
        if record.is_pending:
            return None
        compared = self._open.get(id(record))
        at = (id(record), self._compared_as(record, kind))
        lost = self.lost.get(kind)
        is_new = lost is None
        if is_new:
            lost = self._find_lost(kind, at, compared)
        if lost is None and (compared is None or at[1] in compared.paying):
            if compared is not None and len(self.paying) < KINDS:
                self.paying.add(kind)
            return None
        if torch.are_deterministic_algorithms_enabled():
            return None  # results must not depend on times
        if is_new and lost is not None and lost.take_unknown():
            return _Times(is_lost=True)
        if sys.gettrace() is not None or sys.getprofile() is not None:
            return None  # a debugger or a profiler takes the time
        if len(self._times) >= KINDS:
            # Hardly any call is like one before: nothing will ever be known.
            self._times.clear()
            self._open.clear()
            self.is_open = bool(self.lost)
        times = self._times.get(at) or self._begin(record, at, lost)
        if times is not None:
            times.kinds.add(kind)
        return times

    def _compared_as(self, record: Record, kind: Kind) -> Kind:
        """Return what calls are compared as: those of about their sizes, or alone.

        Args:
            record: What answers them.
            kind: Their kind.
        """
        if record.lifted is None:
            return kind
        about = self._about.get(kind)
        if about is None:
            if len(self._about) >= KINDS:
                self._about.clear()
            about = self._about[kind] = about_kind(kind)
        return about

    def _find_lost(
        self, kind: Kind, at: tuple[int, Kind], compared: Compared | None
    ) -> _Lost | None:
        """Return what counts the calls of a new kind if hits likely do not pay."""
        lost = self._lost_together.get(at)
        if lost is None and compared is not None and at not in self._times:
            other = compared.likely_lost(kind)
            lost = self._lost_together.get((at[0], other)) if other else None
        if lost is not None:
            self._lose(kind, at, lost)
        return lost

    def _lose(self, kind: Kind, at: tuple[int, Kind], lost: _Lost) -> None:
        """Take note that hits do not pay for calls of a kind."""
        if len(self._lost_together) < KINDS:
            self._lost_together[at] = lost
        self.paying.discard(kind)
        if len(self.lost) < KINDS:
            self.lost[kind] = lost
            lost.is_known = False

    def _begin(
        self, record: Record, at: tuple[int, Kind], lost: _Lost | None
    ) -> _Times | None:
        """Return times for calls; None if they cannot be measured yet."""
        if lost is not None:
            # Hits may have lost because torch was taken to run their graph faster.
            record.compare_tiers()
        has_asked = lost is not None and lost.times.has_asked
        times = self._times[at] = _Times(has_asked=has_asked)
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
        if results is None and record.may_train:
            self._dismiss(record)
        elif not results:
            self._judge(record, kind, way, seconds)
        elif record.unfinished < _UNFINISHED:
            record.unfinished += 1
            time_backward(results, self.clock, self._finish(record, kind, way, seconds))
        elif record.is_trained:
            self._dismiss(record)
        else:
            # If a backward pass comes after all, it is known when they are next timed.
            time_backward(results, self.clock, lambda more: record.note_backward())
            self._judge(record, kind, way, seconds)

    def _finish(
        self, record: Record, kind: Kind, way: int, seconds: float
    ) -> Callable[[float], None]:
        """Return what takes the time of the gradients of a call."""

        def finish(more: float) -> None:
            record.note_backward()
            self._judge(record, kind, way, seconds + more)

        return finish

    def _judge(self, record: Record, kind: Kind, way: int, seconds: float) -> None:
        """Add a time, and decide if the times are enough."""
        at = (id(record), self._compared_as(record, kind))
        times = self._times.get(at)
        compared = self._open.get(id(record))
        lost = self.lost.get(kind) or self._lost_together.get(at)
        if times is None:
            return
        times.turns.add(way, seconds)
        times.turns.is_disturbed |= self._is_busy()
        ratio = times.turns.ratio
        if ratio is None and compared is not None:
            ratio = compared.foreseen(at[1], times.turns)
        if ratio is None:
            return
        if ratio > TOLERATED and times.wants_own and _has_own(record, times, lost):
            self._times[at] = _Times(has_asked=True)
            return
        self._times.pop(at, None)
        pays = ratio <= TOLERATED
        if not pays:
            self._run_eagerly(record, at, times, lost)
        elif lost is not None:
            self._regain(lost)
            self._tell(_describe(kind, times, "are answered by records again"))
        compared = compared or (Compared(record) if pays else None)
        if compared is not None:
            compared.take_note(at[1], kind, times.turns, pays=pays)
            if compared.is_settled:
                self._settle(compared)
        self.is_open = bool(self._open or self.lost)

    def _run_eagerly(
        self, record: Record, at: tuple[int, Kind], times: _Times, lost: _Lost | None
    ) -> None:
        """Have calls of some kinds run eagerly, for a while or for longer."""
        if lost is not None:
            lost.renew(times)
        elif len(self.lost) < KINDS:
            # More code may be made for one of many sizes meanwhile.
            first = times.calls_to_wait if record.lifted is None else _PAUSE
            lost = _Lost(times, first)
            # Other threads may add to them.
            kinds = sorted(list(times.kinds), key=repr)
            for kind in kinds:
                self._lose(kind, at, lost)
            self._tell(_describe(kinds[0], times))
        else:
            self._dismiss(record)

    def _regain(self, lost: _Lost) -> None:
        """Have calls answered by records again."""
        known, together = list(self.lost.items()), list(self._lost_together.items())
        self.lost = {kind: one for kind, one in known if one is not lost}
        self._lost_together = {at: one for at, one in together if one is not lost}
        self._eager += lost.take_eager()

    def _settle(self, compared: Compared) -> None:
        """Compare a record no more, or only later if its times were not calm."""
        record = compared.record
        self._dismiss(record)
        if compared.doubts:
            record.compared_from = record.hits + compared.doubts
            self._later[id(record)] = compared.renewed()

    def _dismiss(self, record: Record) -> None:
        """Compare a record no more."""
        self._open.pop(id(record), None)
        times = list(self._times.items())
        self._times = {at: one for at, one in times if at[0] != id(record)}
        self.is_open = bool(self._open or self.lost)

    def describe(self) -> list[str]:
        """Return a line for calls that run eagerly, one for those compared together."""
        first: dict[int, tuple[Kind, _Lost]] = {}
        for kind, lost in list(self.lost.items()):
            first.setdefault(id(lost), (kind, lost))
        return [_describe(kind, lost.times) for kind, lost in first.values()]


def _has_own(record: Record, times: _Times, lost: _Lost | None) -> bool:
    """Whether a program for the sizes of calls alone is tried before eager."""
    assert record.lifted is not None, "it has answered for all sizes"
    assert times.turns.least is not None, "they are known"
    calls = times.calls + (0 if lost is None else lost.ran)
    return record.lifted.want_own(times.sizes, times.turns.least, calls)


def _describe(kind: Kind, times: _Times, now: str = "run eagerly") -> str:
    others = ", and others of about these sizes," if len(times.kinds) > 1 else ""
    return f"calls like ({text_of_kind(kind)}){others} {now}: {times}"
