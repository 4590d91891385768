"""Owns the text of `explain()`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from magweld.columns import shorten
from magweld.frontend.catalogue import Break
from magweld.frontend.guards.guard import Category, Failure
from magweld.frontend.records.record import Record
from magweld.report_text import describe_report

_SHOWN_GUARDS = 12
_SHOWN_INPUTS = 8


@dataclass(frozen=True)
class Miss:
    """Why a record did not answer a call.

    Attributes:
        record: Number of the record, in the order of their making.
        path: The expression whose guard failed.
        expected: What it had to give, "" when `actual` says all.
        actual: What it gave, "" when the path ended before.
        where: The user's file:line that read it.
    """

    record: int
    path: str
    expected: str
    actual: str
    where: str

    @staticmethod
    def of(record: Record, failure: Failure) -> Miss:
        """Return what a failed guard says."""
        guard = record.guards[failure.number]
        shown = failure.shown
        # Of all tensors of a record, the text tells the one that differs, and how.
        told = guard.category is Category.TENSOR and shown
        expected = "" if told else guard.expected
        return Miss(record.number, guard.path, expected, shown, guard.where)

    def __str__(self) -> str:
        at = f"  [{self.where}]" if self.where else ""
        if not self.expected:
            return f"{self.actual}{at}"
        found = f", found {self.actual}" if self.actual else ""
        return f"{self.path}: expected {self.expected}{found}{at}"


@dataclass
class Recompile:
    """A call that no record answered.

    Attributes:
        call: Its number, from 1.
        misses: Why, for each record; the most recently used record first.
        begins: File and line behind a break, "" for the call itself.
        made: Number of the record that it has left, None if it ran without one.
    """

    call: int
    misses: tuple[Miss, ...]
    begins: str = ""
    made: int | None = None

    def __str__(self) -> str:
        lines = [f"  record {miss.record}: {miss}" for miss in self.misses]
        place = f" from {self.begins} on" if self.begins else ""
        done = "ran without a record"
        if self.made is not None:
            done = f"was recorded anew, as record {self.made}"
        return "\n".join([f"call {self.call} {done}{place}:", *lines])


def explain(
    records: Sequence[Record],
    breaks: Sequence[Break],
    recompiles: Sequence[Recompile],
    all_recompiles: bool,
) -> str:
    """Return what was captured, guarded and refused."""
    lines = [f"{len(records)} record(s)"]
    for begins, part in groupby(records, attrgetter("begins")):
        indent = "  " if begins else ""
        if begins:
            lines.append(f"behind a break, from {begins} on:")
        for record in part:
            lines += [indent + line for line in _describe(record)]
    if all_recompiles:
        lines += map(str, recompiles)
    elif recompiles:
        lines.append(f"last miss: {recompiles[-1].misses[0]}")
    told = [item for record in records for item in record.breaks]
    lines += [f"break: {item}" for item in breaks if item not in told]
    return "\n".join(lines)


def _describe(record: Record) -> list[str]:
    kinds = Counter(str(guard.category) for guard in record.guards)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    lines = [
        f"record {record.number}: {record.operators} operators, "
        f"{len(record.input_paths)} inputs, {record.hits} hits",
        f"  inputs: {shorten(record.input_paths, _SHOWN_INPUTS)}",
        f"  guards: {len(record.guards)} ({counts})",
    ]
    lines += [f"    {guard}" for guard in record.guards[:_SHOWN_GUARDS]]
    hidden = len(record.guards) - _SHOWN_GUARDS
    if hidden > 0:
        lines.append(f"    ... {hidden} more in its `guards`")
    if record.ends is not None:
        lines.append(f"  ends before {record.ends.where}, which runs by itself")
    lines += [f"  {item}" for item in record.breaks]
    if record.tiered is not None:
        lines.append(f"  {record.tiered.describe()}")
    if record.evictions:
        lines.append(
            f"  {record.evictions} of {record.compilations} compiled forms were"
            " dropped: sizes or numbers keep changing beyond MAGWELD_FORMS_BYTES;"
            f" {record.torch_hits} hits went through torch"
        )
    if record.inspectable is not None:
        lines += describe_report(record.inspectable.report())
    return lines
