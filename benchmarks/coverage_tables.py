"""Tables of the coverage run: what is not full and why, and the counts."""

from __future__ import annotations

import collections
import re
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Row = dict[str, Any]
_PACKAGES = re.compile(r"/\S*/site-packages/")  # where they are on this machine
_ORDER = ("full", "settled", "broken", "wrong", "error", "eager")


def reason(row: Row) -> str:
    """Return why a case is not full."""
    texts = [
        f"{item['id']}: {item['detail']} [{item['where']}]"
        for item in row.get("breaks", ())
    ]
    why = [row["why"]] if row.get("why") else []
    return _PACKAGES.sub("", " | ".join([*why, *texts, *row.get("miss", ())]))


def _groups(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["suite"], row["by"]), []).append(row)
    return groups


def summary(rows: list[Row]) -> list[Row]:
    """Return the counts of each suite and front end, and its cases that are not full.

    An architecture counts as full when one of its cases is.
    """
    found = []
    for (suite, by), group in _groups(rows).items():
        counts = collections.Counter(row["result"] for row in group)
        full = {row["name"] for row in group if row["result"] == "full"}
        ids = collections.Counter(
            item["id"] for row in group for item in row.get("breaks", ())
        )
        shown = {name: counts[name] for name in _ORDER}
        rest = [row for row in group if row["result"] not in ("full", "eager")]
        found.append(
            {
                "suite": suite,
                "by": by,
                "case": f"{suite} {by}",
                "cells": {"by": by, "cases": len(group), **shown},
                "cases": len(group),
                "counts": shown,
                "architectures_full": len(full),
                "breaks": dict(ids),
                "not_full": {row["family"]: reason(row)[:300] for row in rest},
            }
        )
    return found


def show(rows: list[Row]) -> None:
    """Print what is not full, and the counts."""
    console = Console(width=180)
    table = Table("case", "by", "result", "first s", "hit ms", "eager ms", "reason")
    for row in rows:
        if row["result"] not in ("full", "eager"):
            times = [row.get(key, 0.0) for key in ("first_s", "third_s", "eager_s")]
            shown = [f"{times[0]:.2f}", *(f"{t * 1e3:.1f}" for t in times[1:])]
            why = escape(reason(row)[:200])
            table.add_row(row["family"], row["by"], row["result"], *shown, why)
    console.print(table)
    counts = Table(
        "suite", "by", "cases", *_ORDER, "architectures full", "breaks by id"
    )
    for part in summary(rows):
        cells = [str(part["counts"][name]) for name in _ORDER]
        full, ids = str(part["architectures_full"]), str(part["breaks"])
        counts.add_row(part["suite"], part["by"], str(part["cases"]), *cells, full, ids)
    console.print(counts)


def _line(*cells: Any) -> str:
    texts = [str(cell).replace("|", "/").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(texts)} |"


def markdown(rows: list[Row], title: str) -> str:
    """Return the tables as text: counts, what is not full and why, what is full."""
    parts = summary(rows)
    head = ("suite", "by", "cases", *_ORDER, "architectures full")
    lines = [f"# {title}", "", _line(*head), _line(*["---"] * len(head))]
    for part in parts:
        cells = [part["counts"][name] for name in _ORDER]
        names = (part["suite"], part["by"], part["cases"])
        lines.append(_line(*names, *cells, part["architectures_full"]))
    lines += ["", _line("not full", "by", "reason"), _line(*["---"] * 3)]
    for part in parts:
        for family, why in part["not_full"].items():
            lines.append(_line(family, part["by"], why))
    for (suite, by), group in _groups(rows).items():
        full = sorted(row["family"] for row in group if row["result"] == "full")
        lines += ["", f"Full, {suite}, {by}: {', '.join(full)}."]
    return "\n".join(lines) + "\n"
