"""Owns the plain values that a page shows: rows of its tables and lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from magweld.tools.view.bars import Bar
from magweld.tools.view.machine_code import MachineCode
from magweld.tools.view.rails import Rail


@dataclass(frozen=True)
class Name:
    """What a reader calls a step or an operator, and what the IR calls it.

    Attributes:
        text: Operators of the captured graph, as torch names them.
        module: In which module they are, "" for the whole of it.
        ir: Name in the IR.
    """

    text: str
    module: str
    ir: str


@dataclass(frozen=True)
class Location:
    """A line of source: short for the reader, and in full."""

    short: str
    full: str


@dataclass(frozen=True)
class LevelRow:
    """What moves at a level.

    Attributes:
        name: Of the level, or "arithmetic".
        style: How edges at this level are drawn.
        about: Capacity and bandwidth, or the peak.
        before: Bytes with the operators apart, as text.
        after: Bytes as planned, as text.
        before_bar: For `before`.
        after_bar: For `after`.
        seconds: Predicted time, as text.
        seconds_bar: For it.
    """

    name: str
    style: str
    about: str
    before: str
    after: str
    before_bar: Bar
    after_bar: Bar
    seconds: str
    seconds_bar: Bar


@dataclass(frozen=True)
class EdgeRow:
    """A tensor that is read.

    Attributes:
        source: Where it comes from.
        source_number: Number of that step, None if it is none.
        target: Where it is read.
        target_number: Number of that step, None if it is none.
        type: Extents and element type.
        bytes: As text.
        level: At which it lives.
        style: How it is drawn.
        rule: That kept it at the outermost level; "" if none did.
        reason: The numbers of the rule.
    """

    source: Name
    source_number: int | None
    target: Name
    target_number: int | None
    type: str
    bytes: str
    level: str
    style: str
    rule: str
    reason: str


@dataclass(frozen=True)
class OperatorRow:
    """An operator of a step, with the rails beside it."""

    name: Name
    root: str
    extents: str
    tile: str
    places: tuple[Location, ...]
    rails: tuple[Rail, ...]


@dataclass(frozen=True)
class StepRow:
    """A kernel or call, with the rails beside it.

    Attributes:
        number: Its place in the order of running.
        name: Its name.
        kind: "generated", "library" or "external".
        title: What it computes.
        module: In which of the traced module's parts all of its operators are, "" for
            the whole of it.
        count: How many operators it has.
        facts: (what, value) of its plan.
        levels: What it moves, by level; arithmetic last.
        before: Bytes at the outermost level with the operators apart.
        after: The same as planned.
        before_bar: For `before`.
        after_bar: For `after`.
        predicted: Predicted time.
        measured: Measured time, "" if it was not.
        ratio: Measured over predicted, "" without both.
        share: Its part of the time of all steps, measured if it was, as text.
        keys: What steps are sorted by: (name of the order, number).
        time_bar: For the predicted time.
        measured_bar: For the measured time.
        bound: What takes the largest share of the predicted time.
        reads: Edges that lead here.
        writes: Edges that lead away.
        operators: Its operators.
        inside: Edges between these.
        rails: Beside the step.
        text: Its IR, "" if there is none.
        plan: Its execution plan, "" if there is none.
        code: Its machine code, None where it has none or none can be shown.
        code_number: Number of the step that shows it: of alike ones the first.
    """

    number: int
    name: str
    kind: str
    title: str
    module: str
    count: int
    facts: tuple[tuple[str, str], ...]
    levels: tuple[LevelRow, ...]
    before: str
    after: str
    before_bar: Bar
    after_bar: Bar
    predicted: str
    measured: str
    ratio: str
    share: str
    keys: tuple[tuple[str, float], ...]
    time_bar: Bar
    measured_bar: Bar
    bound: str
    reads: tuple[EdgeRow, ...]
    writes: tuple[EdgeRow, ...]
    operators: tuple[OperatorRow, ...]
    inside: tuple[EdgeRow, ...]
    rails: tuple[Rail, ...]
    text: str
    plan: str
    code: MachineCode | None
    code_number: int

    @property
    def lanes(self) -> int:
        """How many lanes its operators need."""
        return lanes_of(self.operators)


def lanes_of(rows: Sequence[StepRow] | Sequence[OperatorRow]) -> int:
    """Return how many lanes the rails beside some rows need."""
    return max((rail.lane + 1 for row in rows for rail in row.rails), default=0)
