"""Tables of the coverage run: what is not full and why, and the counts."""

from __future__ import annotations

import collections
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Row = dict[str, Any]
_ORDER = ("full", "settled", "broken", "wrong", "error", "eager")


def reason(row: Row) -> str:
    """Return why a case is not full."""
    texts = [
        f"{item['id']}: {item['detail']} [{item['where']}]"
        for item in row.get("breaks", ())
    ]
    why = [row["why"]] if row.get("why") else []
    return " | ".join([*why, *texts, *row.get("miss", ())])


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
        rest = [row for row in group if row["result"] not in ("full", "eager")]
        found.append(
            {
                "suite": suite,
                "by": by,
                "cases": len(group),
                "counts": {name: counts[name] for name in _ORDER},
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
