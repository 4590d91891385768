"""Owns the page that `magweld explain --html` writes: one file, nothing loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from magweld.frontend import Record
from magweld.frontend.explain import describe_plan
from magweld.tools.view.ir_texts import piece_texts, subgraph_texts
from magweld.tools.view.rows import GraphView


def page(title: str, records: Sequence[Record]) -> str:
    """Return a page about the tile graphs of some records, as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("magweld.tools.view", "."),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    return template.render(title=title, records=[_record(one) for one in records])


def _record(record: Record) -> dict[str, Any]:
    report: Mapping[str, Any] = {}
    if record.inspectable is not None:
        report = record.inspectable.report()
    graphs = report.get("graphs", ())
    shown = bool(graphs) and not report.get("lifted")
    texts = _texts(record, "scheduled" if shown else None, len(graphs))
    plans = _texts(record, "planned" if shown else None, len(graphs))
    return {
        "number": record.number,
        "operators": record.operators,
        "through_torch": report.get("externals", ()),
        "tuning": [describe_plan(found) for found in report.get("tuning", ())],
        "graphs": [
            GraphView(graph, subgraph_texts(text), subgraph_texts(plan, "for_tiles"))
            for graph, text, plan in zip(graphs, texts, plans, strict=True)
        ],
    }


def _texts(record: Record, stage: str | None, count: int) -> list[str]:
    """Return the text of each graph at a stage, nothing where there is none."""
    texts = [] if stage is None else piece_texts(record.mlir(stage))
    # Pieces that tell nothing of themselves leave it open which text is whose.
    return texts if len(texts) == count else [""] * count
