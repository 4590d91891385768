"""Owns `magweld explain`: what becomes of a model, decision by decision."""

from __future__ import annotations

import argparse
from typing import Any

import torch

from magweld.api import CompiledGraph
from magweld.frontend import Record, trace
from magweld.tools.cli.program import example_inputs, load_model, require_runs
from magweld.tools.cli.text import bytes_text, columns

_HEADINGS = ("kernel", "operators", "tile", "level", "before", "after")


def run(options: argparse.Namespace) -> None:
    """Trace one call without gradients and print what was found and decided."""
    model, inputs = load_model(options.model), example_inputs(options.inputs)
    require_runs(model, inputs)
    traced = trace(model)
    with torch.no_grad():
        traced(*inputs)
    print(traced.explain())
    for record in traced.records:
        print(_decisions(record))


def _decisions(record: Record) -> str:
    compiled = record.compiled
    if not isinstance(compiled, CompiledGraph):
        return "not compiled: the captured graph runs through torch"
    report = compiled.report()
    rows = [_HEADINGS, *map(_row, report["groups"])]
    through_torch = [compiled.imported.where(name) for name in report["externals"]]
    lines = [
        f"{len(report['groups'])} generated kernels, predicted traffic:",
        columns(rows),
        f"through torch: {', '.join(through_torch) or 'nothing'}",
    ]
    return "\n".join(lines)


def _row(group: dict[str, Any]) -> tuple[str, ...]:
    return (
        group["kernel"],
        "+".join(map(str, group["operators"])),
        "x".join(map(str, group.get("tile", ()))),
        str(group.get("level", "")),
        *(bytes_text(group.get(f"traffic_{k}", 0)) for k in ("before", "after")),
    )
