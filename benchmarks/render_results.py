"""Make tables and plots of a folder of reports.

    python benchmarks/render_results.py [FOLDER]

Writes FOLDER/README.md with one table for each report, the figures of a paper beside
those that it can be held against, and a plot for each report that has torch.compile's
times or shows what fusion saves: FOLDER/NAME.svg. FOLDER is `benchmarks/results` by
default.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from paper_claims import CLAIMS, Claim
from reports import OURS, PEERS, Report, ReportError, Row, cell_text, read_reports
from suite import RUNS

HEAD = """\
# Results

<!-- Written by `benchmarks/render_results.py`. -->

Least times of a call in milliseconds, all peers of a row in turns in one process; in
brackets how many times as fast ours is. `python benchmarks/full_run.py` measures all of
it again, `python benchmarks/compare.py` names what differs between two folders.

Where a paper has a figure or table of the same, what it states stands beside what was
found here, with what differs: machines, models, versions. `-` was not measured.

Each report has the script that measured it, in the environment that `full_run.py`
gives it. What a machine does not have is not measured: other instructions, GPUs."""

# Legible in print and on screens, for readers with any colour vision (Okabe and Ito).
_COLOURS = {"eager": "#56B4E9", "torch.compile": "#E69F00", "onnxruntime": "#009E73"}


def render(folder: Path) -> None:
    """Write the tables and plots of the reports in a folder.

    Raises:
        ReportError: A file is no report.
    """
    reports = read_reports(folder)
    pages = [page(report, folder) for report in reports.values()]
    parts = [HEAD, *not_measured(reports), *pages]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n")


def not_measured(reports: Collection[str]) -> Iterator[str]:
    """Yield a sentence on the runs that no report is there of, if there are any."""
    missing = [f"`{run.name}`" for run in RUNS if run.name not in reports]
    if missing:
        yield f"Not measured here: {', '.join(missing)}."


def page(report: Report, folder: Path) -> str:
    """Return the section of one report and write its plot."""
    lines = [f"## {report.name}", "", _origin(report), ""]
    if report.name in CLAIMS:
        lines += [*beside_paper(CLAIMS[report.name], report), ""]
    figure = plot(report) if plotted(report) else plot_saved(report)
    if figure is not None:
        # Without a date the same figures give the same file.
        figure.savefig(folder / f"{report.name}.svg", metadata={"Date": None})
        lines += [f"![{report.name}]({report.name}.svg)", ""]
    shown = [*table(report)] if any(row.times for row in report.rows) else []
    return "\n".join([*lines, *shown, *cell_table(report)])


def beside_paper(claim: Claim, report: Report) -> Iterator[str]:
    """Yield the lines of a table of what a paper states and what a report says."""
    yield f"{claim.source}, {claim.place}:"
    yield ""
    yield "| quantity | paper | here |"
    yield "| --- | ---: | ---: |"
    for quantity in claim.quantities:
        found = quantity.ours(report) or "-"
        yield f"| {quantity.text} | {quantity.paper} | {found} |"
    yield ""
    yield claim.differs


def cell_table(report: Report) -> Iterator[str]:
    """Yield the lines of a table of what else rows have, if they have anything."""
    columns = list(dict.fromkeys(name for row in report.rows for name in row.cells))
    if not columns:
        return
    yield f"| case | {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for row in report.rows:
        cells = (cell_text(row.cells.get(name, "-")) for name in columns)
        yield f"| {row.name} | {' | '.join(cells)} |"


def _origin(report: Report) -> str:
    facts = report.facts
    versions = facts.get("versions", {})
    used = facts.get("capability")
    scripts = [run.command for run in RUNS if run.name == report.name]
    start = f"By `benchmarks/{scripts[0]}`, on" if scripts else "On"
    parts = [f"{start} {facts.get('machine')}"]
    if "cores" in facts:
        parts.append(f"{facts.get('threads')} of {facts.get('cores')} cores")
    torch = f"torch {versions.get('torch')}"
    parts += [f"{facts.get('date')}", f"commit {facts.get('commit')}"]
    if used:
        parts += [f"{torch} ({used.get('torch')})", f"ours {used.get('magweld')}"]
    else:
        parts.append(torch)
    return ", ".join(parts) + "."


def table(report: Report) -> Iterator[str]:
    """Yield the lines of a table of times, geometric means last."""
    names = dict.fromkeys([*PEERS, *(p for row in report.rows for p in row.times)])
    peers = [p for p in names if any(p in r.times for r in report.rows) and p != OURS]
    yield f"| case | {' | '.join([*peers, OURS])} |"
    yield f"| --- |{' ---: |' * (len(peers) + 1)}"
    for row in report.rows:
        cells = [_cell(row.times.get(p), row.speed(p)) for p in peers]
        yield f"| {row.name} | {' | '.join([*cells, _cell(row.times.get(OURS))])} |"
    means = [report.mean_speed(p) for p in peers]
    shown = [f"**{mean:.2f}**" if mean else "-" for mean in means]
    yield f"| **times as fast, geometric mean** | {' | '.join([*shown, ''])} |"


def _cell(milliseconds: float | None, speed: float | None = None) -> str:
    if milliseconds is None:
        return "-"
    text = f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:.0f}"
    return text if speed is None else f"{text} ({speed:.2f})"


def plotted(report: Report) -> bool:
    """Whether a report is about speed beside torch.compile."""
    return any(row.speed("torch.compile") for row in report.rows)


def plot(report: Report) -> Figure:
    """Return bars of how many times as fast as each peer ours is, on a log scale."""
    rows = [row for row in report.rows if OURS in row.times]
    peers = [p for p in _COLOURS if any(row.speed(p) for row in rows)]
    figure = Figure(
        figsize=(8, 1.2 + 0.13 * (len(peers) + 1) * len(rows)), layout="constrained"
    )
    axes = figure.subplots()
    height = 0.8 / len(peers)
    for number, peer in enumerate(peers):
        measured = [(at, row.speed(peer)) for at, row in enumerate(rows)]
        places = [
            at + (number - (len(peers) - 1) / 2) * height for at, s in measured if s
        ]
        speeds = [s for _, s in measured if s]
        axes.barh(
            places,
            [s - 1 for s in speeds],
            height,
            left=1,
            color=_COLOURS[peer],
            label=f"beside {peer}",
        )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), labels(rows), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("times as fast as the peer (right of the line: ours is faster)")
    figure.legend(loc="outside upper center", ncols=len(peers))
    axes.grid(axis="x", linewidth=0.3)
    return figure


def labels(rows: Sequence[Row]) -> list[str]:
    """Return the names of rows without what all of them have in one place."""
    words = [row.name.split() for row in rows]
    if len(words) < 2 or len(set(map(len, words))) > 1:
        return [row.name for row in rows]
    told = [len(set(column)) > 1 for column in zip(*words, strict=True)]
    return [" ".join(w for w, use in zip(n, told, strict=True) if use) for n in words]


# What the bars of `plot_saved` are, by column of a report.
_SAVED = {
    "kernels": ("#56B4E9", "kernels"),
    "moved MiB": ("#E69F00", "bytes moved"),
    "predicted ms": ("#009E73", "predicted time"),
}


def plot_saved(report: Report) -> Figure | None:
    """Return what is left of kernels, bytes and time by all fusion; None without.

    Rows are those of `paper_figures/ablation.py`, whose names end in how much is fused.
    """
    rows = {row.name: row.cells for row in report.rows}
    pairs = {
        name.removesuffix(" all"): (cells, rows[f"{name.removesuffix(' all')} none"])
        for name, cells in rows.items()
        if name.endswith(" all") and f"{name.removesuffix(' all')} none" in rows
    }
    if not pairs:
        return None
    figure = Figure(figsize=(8, 1.2 + 0.5 * len(pairs)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(_SAVED)
    for number, (column, (colour, text)) in enumerate(_SAVED.items()):
        places = [at + (number - 1) * height for at in range(len(pairs))]
        shares = [100 * a[column] / none[column] for a, none in pairs.values()]
        axes.barh(places, shares, height, color=colour, label=text)
    axes.set_xlim(0, 100)
    axes.set_yticks(range(len(pairs)), list(pairs), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("per cent of what it is with every operator in a kernel of its own")
    axes.legend(loc="lower right", fontsize=8)
    return figure


# Text stays text, and names in the file do not change from run to run.
mpl.rcParams["svg.fonttype"] = "none"
mpl.rcParams["svg.hashsalt"] = "magweld"


def main() -> int:
    """Render the folder that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(__file__).with_name("results")
    parser.add_argument("folder", type=Path, nargs="?", default=default)
    options = parser.parse_args()
    try:
        render(options.folder)
    except ReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
