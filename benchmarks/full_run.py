"""Measure everything that the repository shows, one benchmark after the other.

    python benchmarks/full_run.py [--results FOLDER] [--only NAME ...] [--list]
        [--cases NAME ...]

Each run is a process of its own with the instructions and threads of its name, and
writes FOLDER/NAME.json, by default to `benchmarks/results`; then `render_results.py`
makes tables and plots of the folder. Hours on two cores: `--only` takes some, `--list`
says how long each takes, and `--cases` is handed on to what takes it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from render_results import render
from suite import RUNS, Run

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"


def main() -> int:
    """Run what is chosen; return 1 if a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [run.name for run in RUNS]
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--cases", nargs="+", help="a quick run: some cases of each")
    parser.add_argument("--list", action="store_true", help="print names and minutes")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{run.name:24} {run.minutes:3} min" for run in RUNS))
        return 0
    by_name = {run.name: run for run in RUNS}
    failed = [
        name
        for name in options.only
        if not execute(by_name[name], options.results, options.cases or ())
    ]
    if any(options.results.glob("*.json")):
        render(options.results)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def execute(run: Run, results: Path, cases: Sequence[str] = ()) -> bool:
    """Run one benchmark, its output on the terminal; return whether it succeeded."""
    script = str(FOLDER / f"{run.script}.py")
    report = str(results / f"{run.name}.json")
    chosen = [run.cases, *cases] if cases else []
    command = [sys.executable, script, *run.arguments, *chosen, "-o", report]
    return subprocess.run(command, env=run.environment(), check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
