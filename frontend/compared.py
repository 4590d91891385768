"""Owns what times of some kinds of calls of a record tell of its other kinds."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Final

from magweld.comparison import Turns
from magweld.frontend.call_kinds import elements_of
from magweld.frontend.eager_kinds import Kind
from magweld.frontend.records.record import Record

# A hit may take longer than eager by this much.
TOLERATED: Final = 1.02
# Kinds of calls that are remembered.
KINDS: Final = 256
# Kinds of calls of one record whose hits pay, or do not, before all are taken to.
_AGREEING: Final = 8
# Kinds whose times, if they agree, tell of one that has few times, and the counted
# calls of each way that it has at least.
_KNOWN: Final = 4
_FEW: Final = 2
# Hits of so many kinds that take less than this much of the time of eager runs pay for
# each kind for which the first times say so: a decoder has a kind for each length.
_MOSTLY: Final = 0.95


@dataclass
class Compared:
    """A record that is being compared, or will be once more.

    Calls of a record for one set of sizes are compared for each kind. Those of a record
    for many are compared together where their sizes are about equal, and what other
    sizes have shown tells of those that have few times.

    Attributes:
        record: The record.
        paying: Kinds of calls whose hits pay.
        losing: Those whose hits do not, each with the elements of its tensors.
        ratios: Least time of hits over that of eager runs, of kinds that have both.
        undecided: Kinds among these that are not decided.
        doubts: Hits until it is to be known again what the times of a busy machine have
            told, for the kinds that pay.
        earlier: How often they have told it.
    """

    record: Record
    paying: set[Kind] = field(default_factory=set)
    losing: dict[Kind, int] = field(default_factory=dict)
    ratios: dict[Kind, float] = field(default_factory=dict)
    undecided: set[Kind] = field(default_factory=set)
    doubts: int = 0
    earlier: int = 0

    def foreseen(self, kind: Kind, turns: Turns) -> float | None:
        """Return the ratio of few times of a kind if other kinds make it credible.

        One that says what most kinds do not has to be shown by more times of its own.
        """
        if turns.least is None or self.record.lifted is None:
            return None
        mine, theirs = turns.least
        ratio = self.ratios[kind] = mine / max(theirs, 1e-9)
        self.undecided.add(kind)
        if len(self.ratios) < _KNOWN or min(map(len, turns.times)) < _FEW:
            return None
        usual = statistics.median(self.ratios.values())
        pays = usual < _MOSTLY and ratio < 1
        loses = usual > TOLERATED and ratio > TOLERATED
        return ratio if pays or loses else None

    def take_note(self, kind: Kind, call: Kind, turns: Turns, *, pays: bool) -> None:
        """Take note of what the times of a kind have decided.

        Args:
            kind: The kind.
            call: That of one of its calls, with its sizes.
            turns: The times.
            pays: Whether hits pay.
        """
        if pays:
            self.paying.add(kind)
            self.losing.pop(kind, None)
            self.doubts += turns.calls_until_next(self.earlier) or 0
        else:
            self.losing[kind] = elements_of(call)
        self.undecided.discard(kind)

    def renewed(self) -> Compared:
        """Return the record to be compared once more."""
        return Compared(self.record, earlier=self.earlier + 1)

    def likely_lost(self, kind: Kind) -> Kind | None:
        """Return a kind that does not pay and makes it likely that another does not.

        What hits cost on top matters less where tensors are larger.

        Args:
            kind: The other one, with its sizes.
        """
        if self.record.lifted is None or self.paying or len(self.losing) < _AGREEING:
            return None
        largest = max(self.losing, key=self.losing.__getitem__)
        return largest if elements_of(kind) <= self.losing[largest] else None

    @property
    def is_settled(self) -> bool:
        """Whether the kinds that are known tell enough of the others."""
        if self.record.lifted is None:
            return bool(self.paying)
        if any(self.ratios[kind] > TOLERATED for kind in list(self.undecided)):
            return False
        return len(self.paying) >= (KINDS if self.losing else _AGREEING)
