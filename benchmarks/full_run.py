"""Measure everything that the repository shows, one benchmark after the other.

    python benchmarks/full_run.py [--results FOLDER] [--only NAME ...] [--list]

Each run is a process of its own with the instructions and threads of its name, and
writes FOLDER/NAME.json, by default to `benchmarks/results`; then `render_results.py`
makes tables and plots of the folder. Hours on two cores: `--only` takes some.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from render_results import render

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"


@dataclass(frozen=True)
class Run:
    """One benchmark as it is run.

    Attributes:
        script: File of the benchmark without its suffix.
        arguments: What it is given beside `-o`.
        capability: Instructions that torch and magweld may use.
        label: What tells it from other runs of the script.
    """

    script: str
    arguments: tuple[str, ...] = ()
    capability: str = "default"
    label: str = ""

    @property
    def name(self) -> str:
        """Name of its report."""
        words = [self.script, self.label]
        words += [self.capability] if self.capability != "default" else []
        return "-".join(word for word in words if word)

    def environment(self) -> dict[str, str]:
        """Return the environment of its process."""
        # Torch's own "default" is no vectors at all, not all that there are.
        names = ("MAGWELD_CPU_CAPABILITY", "ATEN_CPU_CAPABILITY")
        limited = self.capability != "default"
        return dict(os.environ) | dict.fromkeys(
            names if limited else (), self.capability
        )


def _threaded(
    script: str, threads: int, *more: str, capability: str = "default"
) -> Run:
    return Run(script, ("--threads", str(threads), *more), capability, f"t{threads}")


_TYPED = tuple(
    Run("subgraphs", ("--threads", "1", "--dtype", dtype), label=f"t1-{dtype}")
    for dtype in ("bf16", "f16")
)
_MODELS = (
    "--batch",
    "1",
    "8",
    "--peers",
    "eager",
    "torch.compile",
    "onnxruntime",
    "magweld",
)
RUNS = (
    _threaded("subgraphs", 1),
    _threaded("subgraphs", 2),
    _threaded("subgraphs", 1, capability="avx2"),
    *_TYPED,
    _threaded("whole_models", 1, *_MODELS),
    _threaded("whole_models", 2, *_MODELS),
    _threaded("whole_models", 1, *_MODELS, capability="avx2"),
    Run("everyday"),
    Run("inplace", ("--threads", "1"), label="t1"),
)


def main() -> int:
    """Run what is chosen; return 1 if a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [run.name for run in RUNS]
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--list", action="store_true", help="print the names of runs")
    options = parser.parse_args()
    if options.list:
        print("\n".join(names))
        return 0
    failed = [
        run.name
        for run in RUNS
        if run.name in options.only and not execute(run, options.results)
    ]
    if any(options.results.glob("*.json")):
        render(options.results)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def execute(run: Run, results: Path) -> bool:
    """Run one benchmark, its output on the terminal; return whether it succeeded."""
    script = str(FOLDER / f"{run.script}.py")
    report = str(results / f"{run.name}.json")
    command = [sys.executable, script, *run.arguments, "-o", report]
    return subprocess.run(command, env=run.environment(), check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
