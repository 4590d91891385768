"""Owns what a page says of a tile graph: rows, tables and drawings as plain values.

A graph is what `magweld.passes.analysis.summary` tells, as the report of a compiled
graph has it. Numbers become text here, and lengths of bars shares of the longest one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from magweld.columns import bytes_text, seconds_text, shorten
from magweld.reports import operators_of
from magweld.targets.device import ARITHMETIC
from magweld.tools.view.bars import Scale
from magweld.tools.view.machine_code import MachineCode
from magweld.tools.view.parts import (
    EdgeRow,
    LevelRow,
    Location,
    Name,
    OperatorRow,
    StepRow,
    lanes_of,
)
from magweld.tools.view.pass_changes import PassChange
from magweld.tools.view.rails import Edge, lay_out

Graph = Mapping[str, Any]

# Of a step that computes more, tables name these.
_NAMED = 3
_WORD = re.compile(r"\w+")


class GraphView:
    """A tile graph as a page shows it.

    Args:
        graph: The graph.
        texts: IR of its subgraphs, by name.
        plans: Their execution plans, likewise.
        codes: Machine code, by the names of the operators that it computes.
        passes: What each pass changed; none if it is not to be shown.
    """

    def __init__(
        self,
        graph: Graph,
        texts: Mapping[str, str],
        plans: Mapping[str, str],
        codes: Mapping[tuple[str, ...], MachineCode],
        passes: Sequence[PassChange] = (),
    ) -> None:
        self._graph = graph
        self._texts = texts
        self._plans = plans
        self._codes = codes
        self.passes = passes
        # Of equal code the first step that runs it shows it.
        self._shown: dict[MachineCode, int] = {}
        self._steps: Sequence[Graph] = graph["steps"]
        self._levels = [level["name"] for level in graph["device"]["levels"]]
        self._numbers = {step["name"]: n for n, step in enumerate(self._steps)}
        self._names = {step["name"]: self._step_name(step) for step in self._steps}
        self._operator_names = {
            one["name"]: self._operator_name(one)
            for step in self._steps
            for one in step["operators"]
        }
        self.device: str = graph["device"]["name"]
        self.levels = tuple(self._level_rows(self._totals()))
        self.steps = tuple(self._step_rows())
        self.refused = tuple(e for e in self._edges(graph["edges"]) if e.rule)

    @property
    def lanes(self) -> int:
        """How many lanes the rails beside the steps need."""
        return lanes_of(self.steps)

    @property
    def legend(self) -> list[tuple[str, str]]:
        """(style, name) of every level."""
        return [(self._style(name), name) for name in self._levels]

    @property
    def rules(self) -> list[tuple[str, int]]:
        """(rule, how often) of the edges left unconnected, the most frequent first."""
        return Counter(edge.rule for edge in self.refused).most_common()

    @property
    def facts(self) -> list[tuple[str, str]]:
        """(what, value) of the whole graph."""
        kinds = Counter(step["kind"] for step in self._steps)
        facts = [(f"{kind} steps", str(count)) for kind, count in kinds.items()]
        facts.append(("predicted", seconds_text(self._sum("predicted_seconds"))))
        facts.append(("predicted unfused", seconds_text(self._sum("seconds_apart"))))
        measured = [
            s["measured_seconds"] for s in self._steps if "measured_seconds" in s
        ]
        if measured:
            facts.append(("measured", seconds_text(sum(measured))))
        return facts

    def _sum(self, key: str) -> float:
        return sum(float((step["plan"] or {}).get(key, 0)) for step in self._steps)

    def _style(self, level: str) -> str:
        return (
            f"level{self._levels.index(level)}" if level in self._levels else "level0"
        )

    def _totals(self) -> dict[str, dict[str, float]]:
        """The tables of all plans, added."""
        totals: dict[str, dict[str, float]] = {}
        for key in ("moved_before", "moved_after", "predicted_shares"):
            total = totals.setdefault(key, {})
            for step in self._steps:
                for name, amount in (step["plan"] or {}).get(key, {}).items():
                    total[name] = total.get(name, 0) + amount
        return totals

    def _level_rows(self, plan: Mapping[str, Any]) -> Iterator[LevelRow]:
        before, after = plan.get("moved_before", {}), plan.get("moved_after", {})
        shares = plan.get("predicted_shares", {})
        moved, times = (
            Scale([*before.values(), *after.values()]),
            Scale(shares.values()),
        )
        for name in (*self._levels, ARITHMETIC):
            if not (before.get(name) or after.get(name) or shares.get(name)):
                continue
            moves = name != ARITHMETIC
            yield LevelRow(
                name,
                self._style(name) if moves else ARITHMETIC,
                self._about(name),
                bytes_text(int(before.get(name, 0))) if moves else "",
                bytes_text(int(after.get(name, 0))) if moves else "",
                moved.bar(before.get(name)),
                moved.bar(after.get(name)),
                seconds_text(shares.get(name, 0)),
                times.bar(shares.get(name)),
            )

    def _about(self, name: str) -> str:
        device = self._graph["device"]
        if name == ARITHMETIC:
            return f"{device['peak_gflops']:g} GFLOP/s"
        level = device["levels"][self._levels.index(name)]
        size = bytes_text(level["capacity"]) if level["capacity"] else "unbounded"
        units = f"{level['units']} x " if level["units"] > 1 else ""
        return f"{units}{size}, {level['bandwidth']:g} GB/s"

    def _step_rows(self) -> Iterator[StepRow]:
        edges = self._graph["edges"]
        rails = lay_out(len(self._steps), list(self._drawn(edges, self._numbers)))
        plans = [step["plan"] or {} for step in self._steps]
        moved = Scale(
            plan.get(key, 0)
            for plan in plans
            for key in ("traffic_before", "traffic_after")
        )
        times = [p.get("predicted_seconds", 0) for p in plans]
        times += [step.get("measured_seconds", 0) for step in self._steps]
        lasting = Scale(times)
        timed = any("measured_seconds" in step for step in self._steps)
        spent = times[len(plans) :] if timed else times[: len(plans)]
        total = sum(spent) or 1
        for number, (step, plan) in enumerate(zip(self._steps, plans, strict=True)):
            name = step["name"]
            made = tuple(operator["name"] for operator in step["operators"])
            code = self._codes.get(made)
            predicted = plan.get("predicted_seconds", 0)
            measured = step.get("measured_seconds", 0)
            shares = plan.get("predicted_shares", {})
            before, after = plan.get("traffic_before"), plan.get("traffic_after")
            yield StepRow(
                number=number,
                name=name,
                kind=step["kind"],
                title=", ".join(operators_of(step)),
                module=self._module_of(step),
                count=len(step["operators"]),
                facts=tuple(self._facts_of(step, plan)),
                levels=tuple(self._level_rows(plan)),
                before="" if before is None else bytes_text(before),
                after="" if after is None else bytes_text(after),
                before_bar=moved.bar(before),
                after_bar=moved.bar(after),
                predicted=seconds_text(predicted) if predicted else "",
                measured=seconds_text(measured) if measured else "",
                ratio=_ratio(measured, predicted),
                share=f"{spent[number] / total:.1%}" if spent[number] else "",
                keys=(
                    ("order", -number),
                    ("predicted", predicted),
                    ("measured", measured),
                    ("bytes", after or 0),
                ),
                time_bar=lasting.bar(predicted),
                measured_bar=lasting.bar(measured),
                bound=max(shares, key=lambda part: shares[part], default=""),
                reads=self._edges(e for e in edges if e["consumer"] == name),
                writes=self._edges(e for e in edges if e["producer"] == name),
                operators=tuple(self._operators(step)),
                inside=self._edges(step["edges"]),
                rails=tuple(rails[number]),
                text=self._texts.get(name, ""),
                plan=self._plans.get(name, ""),
                code=code,
                code_number=number if code is None else self._shown_at(code, number),
            )

    def _shown_at(self, code: MachineCode, number: int) -> int:
        return self._shown.setdefault(code, number)

    def _facts_of(self, step: Graph, plan: Graph) -> Iterator[tuple[str, str]]:
        yield "runs", step["kind"]
        if "tile" in plan:
            yield "tile", "x".join(map(str, plan["tile"])) or "scalar"
            yield "tiles", str(step["grid"])
        if "level" in plan:
            yield "level", plan["level"]
        if "footprint" in plan:
            room = self._graph["device"]["levels"][self._levels.index(plan["level"])]
            share = f" of {bytes_text(room['capacity'])}" if room["capacity"] else ""
            yield "footprint", bytes_text(plan["footprint"]) + share
        if "recompute" in plan:
            yield "arithmetic done over needed", f"{plan['recompute']:.3g}"
        for key, name in (
            ("predicted_seconds", "predicted"),
            ("seconds_apart", "predicted unfused"),
        ):
            if key in plan:
                yield name, seconds_text(plan[key])
        if "measured_seconds" in step:
            yield "measured", seconds_text(step["measured_seconds"])

    def _module_of(self, step: Graph) -> str:
        """Return the innermost module that has all operators of a step."""
        modules = self._graph.get("modules", {})
        nodes = [node for one in step["operators"] for node in one["nodes"]]
        # What the compiler adds, a fill or a constant, is in none.
        paths = [
            modules[node].split(".")
            for node in nodes or [step["name"]]
            if node in modules
        ]
        levels = takewhile(lambda names: len({*names}) == 1, zip(*paths, strict=False))
        return ".".join(names[0] for names in levels)

    def _step_name(self, step: Graph) -> Name:
        computed = shorten(operators_of(step), _NAMED)
        return Name(computed, self._module_of(step), step["name"])

    def _operator_name(self, operator: Graph) -> Name:
        modules, nodes = self._graph.get("modules", {}), operator["nodes"]
        return Name(
            ", ".join(nodes) or operator["name"],
            ", ".join(_once(modules.get(node, "") for node in nodes)),
            operator["name"],
        )

    def _operators(self, step: Graph) -> Iterator[OperatorRow]:
        sources = self._graph.get("sources", {})
        numbers = {one["name"]: n for n, one in enumerate(step["operators"])}
        drawn = self._drawn(step["edges"], numbers, inside=True)
        rails = lay_out(len(numbers), list(drawn))
        for number, one in enumerate(step["operators"]):
            places = [place for node in one["nodes"] for place in sources.get(node, ())]
            yield OperatorRow(
                self._operator_names[one["name"]],
                one["root"],
                "x".join(map(str, one["extents"])) or "scalar",
                "x".join(map(str, one["tile"])),
                tuple(map(_location, dict.fromkeys(reversed(places)))),
                tuple(rails[number]),
            )

    def _drawn(
        self, edges: Sequence[Graph], numbers: Mapping[str, int], inside: bool = False
    ) -> Iterator[Edge]:
        """Yield the edges that lead from one row to another."""
        names = self._operator_names if inside else self._names
        for edge in edges:
            source, target = (edge[end] for end in _ends(inside))
            first, last = numbers.get(source), numbers.get(target)
            if first is None or last is None:
                continue
            label = (
                f"{names[source].text} to {names[target].text}: {edge['type']} in "
                f"{edge['level']}"
            )
            if edge["refused"]:
                label += f", {self._readable(edge['refused'])}"
            style = self._style(edge["level"])
            yield Edge(first, last, edge["maker"], style, label)

    def _edges(self, edges: Any) -> tuple[EdgeRow, ...]:
        rows = (self._edge(edge) for edge in edges)
        return tuple(dict.fromkeys(rows))

    def _edge(self, edge: Graph) -> EdgeRow:
        inside = edge["producer"] == edge["consumer"]
        rule, _, reason = edge["refused"].partition(": ")
        names = self._operator_names if inside else self._names
        source, target = (edge[end] for end in _ends(inside))
        return EdgeRow(
            source=names.get(source, Name(source, "", source)),
            source_number=None if inside else self._numbers.get(edge["producer"]),
            target=names.get(target, Name(target, "", target)),
            target_number=None if inside else self._numbers.get(edge["consumer"]),
            type=edge["type"],
            bytes=bytes_text(edge["bytes"]),
            level=edge["level"],
            style=self._style(edge["level"]),
            rule=rule,
            reason=self._readable(reason),
        )

    def _readable(self, reason: str) -> str:
        """Return a reason with operators as the captured graph names them."""
        names = self._operator_names
        return _WORD.sub(lambda m: names[m[0]].text if m[0] in names else m[0], reason)


def _ends(inside: bool) -> tuple[str, str]:
    """Return what an edge calls its ends: operators inside of a step, steps outside."""
    return ("maker", "reader") if inside else ("producer", "consumer")


def _location(place: str) -> Location:
    """Return a line of source without the folder of packages, or the current one."""
    inside = place.rpartition("/site-packages/")[2]
    return Location(inside.removeprefix(f"{Path.cwd()}/"), place)


def _once(names: Iterable[str]) -> list[str]:
    """Return names that are not empty, each once."""
    return [name for name in dict.fromkeys(names) if name]


def _ratio(measured: float, predicted: float) -> str:
    """Return how many times as long as predicted it took, "" where one is not known."""
    if not measured or not predicted:
        return ""
    ratio = measured / predicted
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"
