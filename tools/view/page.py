"""Owns the page that `magweld explain --html` writes: one file, nothing loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jinja2

from magweld.api import PASSES
from magweld.columns import seconds_text
from magweld.frontend import Record
from magweld.frontend.catalogue import Break
from magweld.frontend.explain import Recompile
from magweld.report_text import describe_plan
from magweld.reports import members_of
from magweld.tools.view.differences import differences
from magweld.tools.view.ir_texts import piece_texts, subgraph_texts
from magweld.tools.view.machine_code import MachineCode, machine_codes
from magweld.tools.view.pass_changes import pass_changes
from magweld.tools.view.rows import GraphView
from magweld.tools.view.timeline import Ran


def page(
    title: str,
    records: Sequence[Record],
    breaks: Sequence[Break] = (),
    recompiles: Sequence[Recompile] = (),
    course: Sequence[Ran] = (),
    times: Mapping[str, float] = MappingProxyType({}),
    *,
    passes: bool = False,
    before: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return a page about some records, as HTML: tile graphs, guards and what failed.

    Args:
        title: What was traced.
        records: The records, in any order.
        breaks: Why calls were not captured as a whole.
        recompiles: Calls that no record answered.
        course: What ran in one call, the call first.
        times: Seconds of a call by what runs it, as eager, where they were measured.
        passes: Whether to show what each pass changed; lowers every graph again.
        before: What `magweld explain --json` printed of another compilation, to
            compare with.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("magweld.tools.view", "."),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    return template.render(
        title=title,
        records=[_record(one, passes) for one in records],
        differences=differences(before, records) if before else [],
        guarded=[_guards(one) for one in records],
        breaks=[*_breaks("the call", breaks), *_breaks_of(records)],
        recompiles=recompiles,
        course=list(_course(course)),
        times={name: seconds_text(seconds) for name, seconds in times.items()},
    )


def _course(course: Sequence[Ran]) -> Iterator[dict[str, Any]]:
    whole = max((one.start + one.seconds for one in course), default=0) or 1
    for one in course:
        yield {
            "name": one.name,
            "start": seconds_text(one.start),
            "seconds": seconds_text(one.seconds),
            "left": one.start / whole,
            "width": one.seconds / whole,
        }


def _name(record: Record) -> str:
    place = f", behind {record.begins}" if record.begins else ""
    return f"Record {record.number}{place}"


def _guards(record: Record) -> dict[str, Any]:
    kinds = Counter(str(guard.category) for guard in record.guards)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return {"name": _name(record), "counts": counts, "guards": record.guards}


def _breaks(name: str, breaks: Iterable[Break]) -> Iterator[dict[str, Any]]:
    for one in breaks:
        yield {"of": name, "break": one}


def _breaks_of(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    for record in records:
        yield from _breaks(_name(record), record.breaks)


def _record(record: Record, passes: bool) -> dict[str, Any]:
    report: Mapping[str, Any] = {}
    if record.inspectable is not None:
        report = record.inspectable.report()
    graphs = report.get("graphs", ())
    shown = bool(graphs) and not report.get("lifted")
    texts = _texts(record, "scheduled" if shown else None, len(graphs))
    plans = _texts(record, "planned" if shown else None, len(graphs))
    codes, no_code = [""] * len(graphs), ""
    if shown:
        try:
            codes = _texts(record, "object", len(graphs))
        except ValueError as error:
            no_code = str(error)
    changes = _texts(record, PASSES if shown and passes else None, len(graphs))
    kernels = _kernels(report.get("groups", ()))
    return {
        "name": _name(record),
        "ends": "" if record.ends is None else record.ends.where,
        "operators": record.operators,
        "through_torch": report.get("externals", ()),
        "times": list(_times(record)),
        "no_code": no_code,
        "tuning": [describe_plan(found) for found in report.get("tuning", ())],
        "graphs": [
            GraphView(
                graph,
                subgraph_texts(text),
                subgraph_texts(plan, "for_tiles"),
                _codes(kernels, machine_codes(code)),
                pass_changes(change),
            )
            for graph, text, plan, code, change in zip(
                graphs, texts, plans, codes, changes, strict=True
            )
        ],
    }


def _times(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the times of a call of the record's graph, where they were measured."""
    verdict = None if record.tiered is None else record.tiered.verdict
    if verdict is not None:
        yield "a call, compiled", seconds_text(verdict.compiled_seconds)
        yield "the same through torch", seconds_text(verdict.torch_seconds)


def _kernels(groups: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], str]:
    """Return the kernels that compute some operators, by the names of these."""
    found: dict[tuple[str, ...], set[str]] = {}
    for group in groups:
        for member in members_of(group):
            found.setdefault(member.operators, set()).add(member.kernel)
    # In pieces of a graph several operators may have one name.
    return {names: min(made) for names, made in found.items() if len(made) == 1}


def _codes(
    kernels: Mapping[tuple[str, ...], str], codes: Mapping[str, MachineCode]
) -> dict[tuple[str, ...], MachineCode]:
    return {made: codes[name] for made, name in kernels.items() if name in codes}


def _texts(record: Record, stage: str | None, count: int) -> list[str]:
    """Return the text of each graph at a stage, nothing where there is none."""
    texts = [] if stage is None else piece_texts(record.mlir(stage))
    # Pieces that tell nothing of themselves leave it open which text is whose.
    return texts if len(texts) == count else [""] * count
