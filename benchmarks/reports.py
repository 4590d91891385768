"""Owns the reading of reports: their rows, and how fast ours was beside its peers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OURS = "magweld"
# What ours is compared with; further names of a report are ways of our own.
PEERS = ("eager", "torch.compile", "max-autotune", "onnxruntime", "iree")
# What tells the rows of a report apart.
_KEYS = (
    *("case", "model", "program", "kernel", "peer", "batch", "threads", "dtype"),
    *("target", "library"),
)


class ReportError(ValueError):
    """A file that is no report of a benchmark."""


@dataclass(frozen=True)
class Row:
    """One measured case.

    Attributes:
        name: The case with its batch and threads, unique in its report.
        times: Least milliseconds of each peer; empty where the case failed.
        cells: What else a table of the report shows, by column.
    """

    name: str
    times: dict[str, float]
    cells: dict[str, Any] = field(default_factory=dict)

    def speed(self, peer: str) -> float | None:
        """Return how many times as fast as a peer ours is, None if not measured."""
        if OURS not in self.times or peer not in self.times:
            return None
        return self.times[peer] / self.times[OURS]

    def best_peer(self) -> float | None:
        """Return how many times as fast as its fastest peer ours is."""
        others = [ms for peer, ms in self.times.items() if peer in PEERS]
        return min(others) / self.times[OURS] if others and OURS in self.times else None


@dataclass(frozen=True)
class Report:
    """What a run of a benchmark wrote.

    Attributes:
        name: Name of its file without the suffix.
        facts: Machine, date, commit, versions and summary.
        rows: In the order of the run.
    """

    name: str
    facts: dict[str, Any]
    rows: tuple[Row, ...]

    def mean_speed(self, peer: str) -> float | None:
        """Return how many times as fast as a peer ours is, by the geometric mean."""
        return geometric_mean(row.speed(peer) for row in self.rows)

    def most_speed(self, peer: str) -> float | None:
        """Return how many times as fast as a peer ours is where that is most."""
        return max((s for row in self.rows if (s := row.speed(peer))), default=None)

    def row(self, name: str) -> Row | None:
        """Return the row of a case, None if it was not measured."""
        return next((row for row in self.rows if row.name == name), None)


def read_report(path: Path) -> Report:
    """Read one report.

    Raises:
        ReportError: The file cannot be read, or is no report.
    """
    try:
        data = json.loads(path.read_text())
        rows = tuple(_row(result) for result in data["results"])
        facts = {key: value for key, value in data.items() if key != "results"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"{path}: no report of a benchmark ({error!r})") from error
    return Report(path.stem, facts, rows)


def read_results(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a report as they were written.

    Raises:
        ReportError: The file cannot be read, or is no report.
    """
    try:
        results: list[dict[str, Any]] = json.loads(path.read_text())["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReportError(f"{path}: no report of a benchmark ({error!r})") from error
    return results


def read_reports(path: Path) -> dict[str, Report]:
    """Read a report, or all those in a folder, by name.

    Raises:
        ReportError: A file is no report, or there is none.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise ReportError(f"{path}: a folder without reports")
    return {file.stem: read_report(file) for file in files}


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of the ratios that there are, None without any."""
    logarithms = [math.log(ratio) for ratio in ratios if ratio]
    if not logarithms:
        return None
    return math.exp(sum(logarithms) / len(logarithms))


def cell_text(value: Any) -> str:
    """Return a number with three digits or whole, anything else as it is."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _row(result: dict[str, Any]) -> Row:
    words = [f"{result[key]}" for key in _KEYS if result.get(key) is not None]
    if "times" in result:
        times = {peer: t["min_ms"] for peer, t in result["times"].items()}
    else:
        times = dict(result.get("milliseconds", {}))
    return Row(" ".join(words), times, dict(result.get("cells", {})))
