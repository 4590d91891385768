"""Owns what a traced callable counts and remembers of its calls."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Any, Final

from magweld.columns import seconds_text
from magweld.frontend.catalogue import CATALOGUE, Break
from magweld.frontend.explain import Miss, Recompile
from magweld.frontend.records.cache import RecordCache, Signature
from magweld.frontend.records.record import Record
from magweld.logs import name_of, topic

_BREAKS: Final = topic("breaks")
_FALLBACKS: Final = topic("fallbacks")
_GUARDS: Final = topic("guards")
_RECOMPILES: Final = topic("recompiles")
_RECORDS: Final = topic("records")
# Calls without a fitting record that `explain(recompiles=True)` remembers.
MAX_RECOMPILES: Final = 32
_COUNTS: Final = ("calls", "hits", "misses", "eager", "graphs", "breaks")


class CallLog:
    """Counts, breaks, and why records did not answer; what happens is logged as well.

    Attributes:
        name: Of the program, for the log.
        lock: Held, never for long, while one of these or a cache changes.
        counts: Calls, hits, misses, graphs and breaks.
        breaks: Why calls were not captured, and failures of backends, in order of
            appearance.
        recompiles: The last calls without a fitting record.
    """

    def __init__(self, target: object = None) -> None:
        self.name = name_of(target)
        self.lock = threading.Lock()
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.breaks: list[Break] = []
        self.recompiles: deque[Recompile] = deque(maxlen=MAX_RECOMPILES)

    def count(self, *names: str) -> None:
        """Add one to some counts."""
        with self.lock:
            for name in names:
                self.counts[name] += 1

    def hit(self, cache: RecordCache, record: Record, calls: int = 0) -> None:
        """Take note that a record answers, and of calls that were not counted yet."""
        with self.lock:
            self.counts["calls"] += calls
            self.counts["hits"] += 1
            record.hits += 1
            records = cache.records
            if cache.failures or not records or records[0] is not record:
                cache.promote(record)

    def left_alone(self, cache: RecordCache, signature: Signature) -> None:
        """Take note of a call that no record has answered and none is made for."""
        with self.lock:
            rest = cache.leave_alone(signature)
        if rest:
            self.fell_back(
                f"no record fits such calls: the next {rest} do not ask for any"
            )

    def wake(self, cache: RecordCache) -> None:
        """Have calls ask for the records of a cache again."""
        with self.lock:
            cache.wake()

    def add(self, refusal: Break) -> None:
        """Take note of a break, once."""
        if refusal not in self.breaks:
            self.count("breaks")
            self.breaks.append(refusal)
            _BREAKS.info("%s: %s", self.name, refusal)

    def fell_back(self, why: object) -> None:
        """Log that something which was captured runs through torch or eagerly."""
        _FALLBACKS.info("%s: %s", self.name, why)

    def recorded(
        self, record: Record, seconds: float, missed: Recompile | None
    ) -> None:
        """Log a new record.

        Args:
            record: The record.
            seconds: Time that the observed run took.
            missed: What was noted of the call, if there were other records.
        """
        if missed is not None:
            missed.made = record.number
        name = self._place(record.begins)
        if _RECORDS.isEnabledFor(logging.INFO):
            _RECORDS.info(
                "%s: record %d: %d operators, %d inputs, %d guards, %d effects;"
                " observed in %s%s%s",
                name,
                record.number,
                record.operators,
                len(record.input_paths),
                len(record.guards),
                len(record.mock.steps),
                seconds_text(seconds),
                _prepared(record),
                f"; ends before {record.ends.where}" if record.ends else "",
            )
        if _GUARDS.isEnabledFor(logging.DEBUG):
            for guard in record.guards:
                _GUARDS.debug("%s: record %d: %s", name, record.number, guard)

    def _place(self, begins: str) -> str:
        return f"{self.name} behind {begins}" if begins else self.name

    def missed(
        self,
        cache: RecordCache,
        signature: Signature,
        failures: list[Any],
        begins: str = "",
    ) -> Recompile:
        """Take note that no record has answered; return the note.

        Args:
            signature: Types of the arguments.
            failures: Each record with the guard that failed.
            begins: File and line behind a break, "" for the call itself.
        """
        misses = tuple(Miss.of(*failure) for failure in failures)
        call = self.counts["calls"]
        noted = Recompile(call, misses, begins)
        self.recompiles.append(noted)
        if not cache.has_given_up(signature):
            name = self._place(begins)
            for miss in misses:
                _RECOMPILES.info(
                    "%s: call %d does not fit record %d: %s",
                    name,
                    call,
                    miss.record,
                    miss,
                )
        return noted

    def gives_up(
        self, cache: RecordCache, signature: Signature, failures: list[Any]
    ) -> bool:
        """Count guards that have failed; return whether they always do.

        Args:
            signature: Types of the arguments.
            failures: Each record with the guard that failed.
        """
        with self.lock:
            cache.note_miss(failures)
        path = Miss.of(*failures[0]).path
        if not cache.fail(signature, path):
            return False
        self.add(Break(CATALOGUE["unstable-guard"], path, ""))
        return True


def _prepared(record: Record) -> str:
    """Return what has become of the graph of a new record."""
    if record.lifted is not None:
        return "; sizes or numbers are lifted: those that come back are compiled"
    if record.seconds:
        return f", handed to the backend in {seconds_text(record.seconds)}"
    return ""
