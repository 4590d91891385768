"""Owns the text about tile graphs: what the compiler decided, in tables.

A graph is the plain data that a compiling backend reports: steps with their operators
and plans, and the edges between them. Nothing of it need be there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from magweld.columns import bytes_text, columns, seconds_text, shorten
from magweld.reports import operators_of

Graph = Mapping[str, Any]

_SHOWN_OPERATORS: Final = 4
_SHOWN_EDGES: Final = 12
_HEADINGS: Final = ("", "step", "operators", "runs", "level", "tile", "footprint")
_NUMBERS: Final = re.compile(r"(_\d+)+")


def describe_graph(graph: Graph) -> list[str]:
    """Return lines on the steps of a graph, bytes by level, and edges refused."""
    steps = graph["steps"]
    device = graph["device"]
    kinds = Counter(step["kind"] for step in steps)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    lines = [f"tile graph for {device['name']}: {counts or 'nothing to run'}"]
    planned = [step for step in steps if step["plan"]]
    if planned:
        lines += _indented(columns(list(_levels(device, planned))))
        lines.append(_times(planned, steps))
        lines += _indented(columns(list(_steps(device, steps)), left=6))
    return [*lines, *_refused(graph["edges"])]


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _levels(device: Graph, steps: Sequence[Graph]) -> Iterator[tuple[str, ...]]:
    """Yield rows: what all steps together move at each level."""
    yield ("level", "bytes apart", "as planned", "predicted")
    for level in (level["name"] for level in device["levels"]):
        plans = [step["plan"] for step in steps]
        before = sum(plan.get("moved_before", {}).get(level, 0) for plan in plans)
        after = sum(plan.get("moved_after", {}).get(level, 0) for plan in plans)
        seconds = sum(plan.get("predicted_shares", {}).get(level, 0) for plan in plans)
        if before or after:
            yield (level, bytes_text(before), bytes_text(after), seconds_text(seconds))


def _times(planned: Sequence[Graph], steps: Sequence[Graph]) -> str:
    together = sum(step["plan"].get("predicted_seconds", 0) for step in planned)
    apart = sum(step["plan"].get("seconds_apart", 0) for step in planned)
    text = f"predicted {seconds_text(together)}, {seconds_text(apart)} unfused"
    measured = [s["measured_seconds"] for s in steps if "measured_seconds" in s]
    return text + (f", measured {seconds_text(sum(measured))}" if measured else "")


def _steps(device: Graph, steps: Sequence[Graph]) -> Iterator[tuple[str, ...]]:
    """Yield rows: the steps in the order of their running, equal ones once."""
    outermost = device["levels"][0]["name"]
    measured = any("measured_seconds" in step for step in steps)
    times = ("predicted", "measured") if measured else ("predicted",)
    yield (*_HEADINGS, f"{outermost} apart", "planned", *times, "bound by")
    equal: dict[str, list[Graph]] = {}
    for step in steps:
        same = repr((step["kind"], operators_of(step), step["plan"]))
        equal.setdefault(same, []).append(step)
    for group in equal.values():
        yield (f"{len(group)} x", *_cells(group, measured))


def _cells(group: Sequence[Graph], measured: bool) -> Iterator[str]:
    """Yield the cells of some equal steps, times being the means of them."""
    step = group[0]
    plan = step["plan"] or {}
    yield step["name"]
    yield shorten(operators_of(step), _SHOWN_OPERATORS)
    yield "winograd" if step.get("winograd") else step["kind"]
    yield str(plan.get("level", ""))
    yield "x".join(map(str, plan.get("tile", ())))
    for key in ("footprint", "traffic_before", "traffic_after"):
        yield bytes_text(plan[key]) if key in plan else ""
    yield seconds_text(plan["predicted_seconds"]) if "predicted_seconds" in plan else ""
    if measured:
        times = [one["measured_seconds"] for one in group if "measured_seconds" in one]
        yield seconds_text(sum(times) / len(times)) if times else ""
    shares = plan.get("predicted_shares", {})
    yield max(shares, key=lambda name: shares[name], default="")


def _refused(edges: Sequence[Graph]) -> Iterator[str]:
    """Yield lines on edges that stay at the outermost level, the most bytes first.

    Edges that differ in numbers of names only are one line: layers repeat.
    """
    refused = [edge for edge in edges if edge["refused"]]
    if not refused:
        return
    rules = Counter(edge["refused"].partition(":")[0] for edge in refused)
    counts = ", ".join(f"{count} {rule}" for rule, count in rules.items())
    yield f"not connected: {counts}"
    equal: dict[tuple[str, str], list[Graph]] = {}
    for edge in refused:
        key = (edge["type"], _NUMBERS.sub("", edge["refused"]))
        equal.setdefault(key, []).append(edge)
    ordered = sorted(equal.values(), key=lambda group: -_bytes(group))
    for group in ordered[:_SHOWN_EDGES]:
        edge = group[0]
        way = f"{edge['producer']} -> {edge['consumer']}, {edge['type']}"
        size = bytes_text(_bytes(group))
        yield f"  {len(group)} x  {way}, {size}: {edge['refused']}"
    if len(ordered) > _SHOWN_EDGES:
        hidden = sum(map(len, ordered[_SHOWN_EDGES:]))
        yield f"  ... {hidden} more"


def _bytes(edges: Sequence[Graph]) -> int:
    return sum(int(edge["bytes"]) for edge in edges)
