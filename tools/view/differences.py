"""Owns the comparison of two compilations: which steps became which others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from magweld.columns import bytes_text, seconds_text
from magweld.frontend import Record
from magweld.reports import operators_of

Graph = Mapping[str, Any]
Step = Mapping[str, Any]


@dataclass(frozen=True)
class StepsDifference:
    """Steps of one compilation, and those of the other for the same operators.

    Attributes:
        before: What each step of the earlier compilation computes, and how.
        after: The same of the other compilation.
        predicted: Predicted times of both, as text.
        measured: Measured times, "" where there is none.
        moved: Bytes at the outermost level.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    predicted: tuple[str, str]
    measured: tuple[str, str]
    moved: tuple[str, str]


@dataclass(frozen=True)
class GraphDifference:
    """A tile graph of two compilations.

    Attributes:
        name: Which one.
        facts: (what, before, after) of the whole graph.
        same: How many steps are the same in both.
        rows: The others.
    """

    name: str
    facts: tuple[tuple[str, str, str], ...]
    same: int
    rows: tuple[StepsDifference, ...]


def differences(
    before: Sequence[Mapping[str, Any]], records: Sequence[Record]
) -> list[GraphDifference]:
    """Return how the graphs of an earlier compilation differ from those of records.

    Records and their graphs are compared in their order. Steps belong together that
    have an operator of the captured graph in common.

    Args:
        before: What `magweld explain --json` printed.
        records: The records.
    """
    found = []
    for number, (one, other) in enumerate(zip_longest(before, records)):
        earlier = () if one is None else one.get("graphs", ())
        inspectable = None if other is None else other.inspectable
        later = () if inspectable is None else inspectable.report().get("graphs", ())
        for place, graphs in enumerate(zip_longest(earlier, later)):
            name = f"Record {number}, graph {place}"
            found.append(_graph(name, *(graph or {"steps": ()} for graph in graphs)))
    return found


def _graph(name: str, before: Graph, after: Graph) -> GraphDifference:
    same, rows = 0, []
    for both in _paired(before["steps"], after["steps"]):
        if [*map(_decided, both.before)] == [*map(_decided, both.after)]:
            same += len(both.after)
        else:
            rows.append(_row(both.before, both.after))
    whole = _row(before["steps"], after["steps"])
    facts = (
        ("steps", str(len(before["steps"])), str(len(after["steps"]))),
        ("predicted", *whole.predicted),
        ("measured", *whole.measured),
        ("bytes moved", *whole.moved),
    )
    told = tuple(fact for fact in facts if any(fact[1:]))
    return GraphDifference(name, told, same, tuple(rows))


@dataclass(frozen=True)
class _Steps:
    """Steps of both compilations that share nodes of the captured graph."""

    nodes: frozenset[str]
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()

    def __add__(self, other: _Steps) -> _Steps:
        return _Steps(
            self.nodes | other.nodes,
            self.before + other.before,
            self.after + other.after,
        )


def _paired(before: Sequence[Step], after: Sequence[Step]) -> list[_Steps]:
    """Return the steps of both sides, those together that share nodes."""
    found: list[_Steps] = []
    single = [_Steps(_nodes(step), before=(step,)) for step in before]
    single += [_Steps(_nodes(step), after=(step,)) for step in after]
    for one in single:
        sharing = [each for each in found if each.nodes & one.nodes]
        found = [each for each in found if not each.nodes & one.nodes]
        found.append(sum((*sharing, one), _Steps(frozenset())))
    return found


def _nodes(step: Step) -> frozenset[str]:
    nodes = frozenset(node for one in step["operators"] for node in one["nodes"])
    # What the compiler adds, a fill or a constant, is of no node.
    return nodes or frozenset({step["name"]})


def _decided(step: Step) -> tuple[Any, ...]:
    """What makes a step another one: its operators, how it runs, and its plan."""
    plan = step["plan"] or {}
    decisions = (plan.get(key) for key in ("tile", "level", "traffic_after"))
    return _nodes(step), step["kind"], *map(str, decisions)


def _row(before: Sequence[Step], after: Sequence[Step]) -> StepsDifference:
    sides = (before, after)
    predicted, measured, moved = (
        [_sum(steps, *path) for steps in sides]
        for path in (
            ("plan", "predicted_seconds"),
            ("measured_seconds",),
            ("plan", "traffic_after"),
        )
    )
    return StepsDifference(
        before=tuple(map(_title, before)),
        after=tuple(map(_title, after)),
        predicted=_texts(predicted, seconds_text),
        measured=_texts(measured, seconds_text),
        moved=_texts(moved, lambda amount: bytes_text(int(amount))),
    )


def _sum(steps: Sequence[Step], *path: str) -> float:
    return sum(float(_at(step, path) or 0) for step in steps)


def _at(step: Step, path: Sequence[str]) -> Any:
    value: Any = step
    for key in path:
        value = (value or {}).get(key)
    return value


def _texts(amounts: Sequence[float], text: Callable[[float], str]) -> tuple[str, str]:
    before, after = (text(amount) if amount else "" for amount in amounts)
    return before, after


def _title(step: Step) -> str:
    tile = (step["plan"] or {}).get("tile")
    how = f", tile {'x'.join(map(str, tile)) or 'scalar'}" if tile is not None else ""
    return f"{', '.join(operators_of(step))} ({step['kind']}{how})"
