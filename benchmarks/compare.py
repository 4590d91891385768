"""Compare two runs of benchmarks and name what became slower.

    python benchmarks/compare.py BEFORE AFTER [--tolerance 0.05]

Both are reports, or folders of reports that are matched by their names. A case is
compared by how many times as fast as eager it was in its own run, so that runs on a
machine under another load can be compared; without eager, by its times. What is
counted or planned, such as kernels and bytes, is compared as well, and so is memory
beside that of eager. Exits with 1 if a case is worse by more than the tolerance or is
missing, and with 2 for files that are no reports.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reports import OURS, Report, ReportError, Row, geometric_mean, read_reports
from rich.console import Console
from rich.table import Table

# Columns that do not depend on what else a machine does: those that are good where they
# are low, and those that are good where they are high.
_LOW = frozenset(
    {
        *("kernels", "through torch", "moved MiB", "intermediate MiB", "host MiB"),
        *("predicted ms", "predicted s", "breaks", "broken", "wrong", "error"),
    }
)
# Those of ours that are compared beside the same of eager in the same row.
_BESIDE = {
    "magweld MiB": "eager MiB",
    "magweld s": "eager s",
    "hit ms": "eager ms",
    "guard ms": "eager ms",
}
_HIGH = frozenset({"gain", "transfers less", "full", "hits"})


@dataclass(frozen=True)
class Change:
    """What became of one case, or of a figure of it.

    Attributes:
        report: Name of the report.
        case: Name of the case, and of a column where it is a figure.
        before: How many times as fast as eager it was; milliseconds without eager; the
            figure.
        after: The same of the second run; None if the case is missing or failed.
        ratio: How many times as good it is; None likewise.
    """

    report: str
    case: str
    before: float
    after: float | None
    ratio: float | None

    def is_regression(self, tolerance: float) -> bool:
        """Whether it is missing, or worse by more than a part `tolerance`."""
        return self.ratio is None or self.ratio < 1 - tolerance


def changes(before: dict[str, Report], after: dict[str, Report]) -> Iterator[Change]:
    """Yield what became of each case that the first run measured."""
    for name, report in before.items():
        found = after.get(name)
        if found is None:
            yield Change(name, "all cases", float(len(report.rows)), None, None)
            continue
        rows = {row.name: row for row in found.rows}
        for row in report.rows:
            if OURS in row.times:
                yield _change(name, row, rows.get(row.name))
            yield from _figures(name, row, rows.get(row.name))


def _figures(report: str, old: Row, new: Row | None) -> Iterator[Change]:
    """Yield what became of the figures of a case that are counted or planned."""
    for column in old.cells:
        before = _figure(old, column)
        if before is None:
            continue
        after = _figure(new, column) if new else None
        name = f"{old.name}: {column}"
        if after is None:
            yield Change(report, name, before, None, None)
            continue
        better, worse = (before, after) if column in _LOW else (after, before)
        ratio = better / worse if worse else 1.0 + (better > 0)
        yield Change(report, name, before, after, ratio)


def _figure(row: Row, column: str) -> float | None:
    """Return what of a column is compared, None for nothing."""
    found, peer = row.cells.get(column), row.cells.get(_BESIDE.get(column, ""))
    if not isinstance(found, int | float):
        return None
    if column in _BESIDE:
        return peer / found if found and isinstance(peer, int | float) else None
    return found if column in _LOW | _HIGH else None


def _change(report: str, old: Row, new: Row | None) -> Change:
    was = old.speed("eager")
    if was is None:
        milliseconds = old.times[OURS]
        now = new.times.get(OURS) if new else None
        return Change(
            report, old.name, milliseconds, now, milliseconds / now if now else None
        )
    speed = new.speed("eager") if new else None
    return Change(report, old.name, was, speed, speed / was if speed else None)


def show(found: list[Change], tolerance: float) -> None:
    """Print the geometric mean of each report, then what became worse or is gone."""
    console = Console(width=110)
    means = Table("report", "cases", "after / before, geometric mean")
    for report in dict.fromkeys(change.report for change in found):
        ratios = [change.ratio for change in found if change.report == report]
        mean = geometric_mean(ratios)
        means.add_row(report, str(len(ratios)), f"{mean:.3f}" if mean else "-")
    console.print(means)
    worse = [change for change in found if change.is_regression(tolerance)]
    if not worse:
        console.print(f"no case is worse by more than {tolerance:.0%}")
        return
    table = Table("report", "case", "before", "after", "after / before")
    for change in sorted(worse, key=lambda change: change.ratio or 0):
        cells = (change.after, change.ratio)
        table.add_row(
            change.report,
            change.case,
            f"{change.before:.2f}",
            *("missing" if cell is None else f"{cell:.2f}" for cell in cells),
        )
    console.print(table)


def main() -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.05)
    options = parser.parse_args()
    try:
        before, after = (read_reports(p) for p in (options.before, options.after))
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.before.is_file() and options.after.is_file():
        # Two files are two runs of one benchmark, whatever they are called.
        (name,), (report,) = before, after.values()
        after = {name: report}
    found = list(changes(before, after))
    if not found:
        print(f"error: no measured case in {options.before}", file=sys.stderr)
        return 2
    show(found, options.tolerance)
    return int(any(change.is_regression(options.tolerance) for change in found))


if __name__ == "__main__":
    sys.exit(main())
