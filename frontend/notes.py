"""Owns what a traced callable counts and remembers of its calls."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Final

from magweld.frontend.catalogue import CATALOGUE, Break
from magweld.frontend.explain import Miss, Recompile
from magweld.frontend.records.cache import RecordCache, Signature
from magweld.frontend.records.record import Record

# Calls without a fitting record that `explain(recompiles=True)` remembers.
MAX_RECOMPILES: Final = 32
_COUNTS: Final = ("calls", "hits", "misses", "eager", "graphs", "breaks")


class Notes:
    """Counts, breaks, and why records did not answer.

    Attributes:
        lock: Held, never for long, while one of these or a cache changes.
        counts: Calls, hits, misses, graphs and breaks.
        breaks: Why calls were not captured, in order of appearance.
        recompiles: The last calls without a fitting record.
    """

    def __init__(self) -> None:
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

    def add(self, refusal: Break) -> None:
        """Take note of a break, once."""
        if refusal not in self.breaks:
            self.count("breaks")
            self.breaks.append(refusal)

    def failures(
        self, cache: RecordCache, signature: Signature, failures: list[Any]
    ) -> None:
        """Take note that no record has answered.

        Args:
            cache: The records.
            signature: Types of the arguments.
            failures: Each record with the guard that failed.
        """
        misses = tuple(Miss.of(*failure) for failure in failures)
        self.recompiles.append(Recompile(self.counts["calls"], misses))
        guards = [(record.guards[f.number], f) for record, f in failures]
        with self.lock:
            cache.lifting.note_miss(guards)
        if cache.fail(signature, misses[0].path):
            self.add(Break(CATALOGUE["unstable-guard"], misses[0].path, ""))
