"""Owns the text about the report of a compiled graph: what a backend decided."""

from __future__ import annotations

from typing import Any, Final

from magweld.columns import shorten
from magweld.tile_graphs import describe_graph

_SHOWN_OPERATORS: Final = 6


def describe_report(report: dict[str, Any]) -> list[str]:
    """Return lines on the plans of a graph, and on what is left to torch or Python."""
    lines: list[str] = []
    places: dict[str, list[str]] = {}
    for graph in report.get("graphs", ()):
        lines += [f"  {line}" for line in describe_graph(graph)]
        places |= graph.get("sources", {})
    lines += (
        _describe_repeat(found, places) for found in report.get("written_out", ())
    )
    lines += (
        f"  Python runs branches and loops: {reason}"
        for reason in report.get("control", ())
    )
    lines += (
        _describe_joint(group)
        for group in report.get("groups", ())
        if "kernels" in group
    )
    lines += (f"  {remark}" for remark in report.get("remarks", ()))
    if "all_sizes" in report:
        which = "one program for all sizes"
        state = report["all_sizes"]
        is_one = report["is_for_all_sizes"]
        lines.append(f"  {which}: {state}" if is_one else f"  no {which}: {state}")
    lines += (f"  {describe_plan(found)}" for found in report.get("tuning", ()))
    cuts = report.get("cuts", ())
    if cuts:
        lines.append(f"  left to torch: {shorten(cuts, _SHOWN_OPERATORS)}")
    externals = [
        f"{name} ({places[name][-1]})" if name in places else name
        for name in report.get("externals", ())
    ]
    if externals:
        lines.append(f"  through torch: {shorten(externals, _SHOWN_OPERATORS)}")
    lines += (f"    {reason}" for reason in report.get("reasons", ()))
    return lines


def _describe_repeat(found: dict[str, Any], places: dict[str, list[str]]) -> str:
    at = places.get(found["node"], [""])[-1]
    where = f"{found['node']} ({at})" if at else found["node"]
    return (
        f"  no loop of {found['count']} x {found['operators']} operators:"
        f" {found['reason']}: {where} [{found['id']}]"
    )


def _describe_joint(group: dict[str, Any]) -> str:
    kernels = list(dict.fromkeys(group["kernels"]))
    return (
        f"  {len(kernels)} kernels in one launch, {len(group['members'])} calls:"
        f" {shorten(kernels, _SHOWN_OPERATORS)}"
    )


def describe_plan(found: dict[str, Any]) -> str:
    """Return where the plan of equal parts of a graph is from, and its times."""
    begin = f"plan of {found['units']} unit(s), "
    if "chosen" not in found:
        text = f"{begin}of the model alone: {found['reason']}"
        seconds = found.get("open_after")
        return text if seconds is None else f"{text}; more than {seconds:g} s go on"
    seconds, model = found["seconds"], found["seconds_of_prediction"]
    origin = "measured" if found["plan"] == "measured" else "measured before"
    return (
        f"{begin}{origin}, {len(found['measured'])} plans: {seconds * 1e3:.3g} ms,"
        f" predicted plan {model * 1e3:.3g} ms: {found['chosen']}"
    )
