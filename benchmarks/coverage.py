"""Coverage of real architectures: timm and transformers models as one graph each.

A model runs eagerly, then three times through the front end: recorded, repeated with
equal inputs, and with fresh inputs of the same shape. It is
    full    one graph, no break, all three results right, two hits
    settled as full, but the first call filled a cache of the model that the program
            asks, so the second call was recorded as well and only the third was a hit
    broken  right results, but breaks or more than one graph
    wrong   a result, an argument or a buffer differs from eager
    error   the front end raised, or ran out of time or memory
    eager   eager itself fails or does not repeat its result (not counted)

With `--by magweld torch.compile` each case is also run through torch.compile, whose
graphs then run by torch as well. Each case runs in a forked process. Results are
appended to a file of JSON lines as they come, so a run that was interrupted goes on
where it ended; at the end the tables are printed, and written beside it as JSON and as
text.

    python benchmarks/coverage.py --by magweld torch.compile -j 2
    python benchmarks/coverage.py --suite transformers --only bert gpt2 --fresh
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import torchvision_schemas
from coverage_check import Case, Dynamo, FrontEnd, Magweld, check
from coverage_pool import Job, Limits, Row, run_all
from coverage_tables import markdown, reason, show, summary
from reporting import report_file, write_report

_LIBRARY = torchvision_schemas.declare()


FRONT_ENDS: dict[str, Callable[[torch.nn.Module, str], FrontEnd]] = {
    "magweld": Magweld,
    "torch.compile": lambda model, _: Dynamo(model),
}


def _jobs(
    suites: dict[str, list[Case]], known: list[Row], options: argparse.Namespace
) -> Iterator[Job]:
    done = {(row["suite"], row["family"], row["by"]) for row in known}
    for suite, cases in suites.items():
        for case in cases:
            for who in options.by:
                row = {"name": case.name, "family": case.family}
                row |= {"suite": suite, "by": who}
                if (suite, case.family, who) not in done:
                    make = functools.partial(_make, who, options.backend)
                    yield row, functools.partial(_row, row, case, make)


def _make(who: str, backend: str, model: torch.nn.Module) -> FrontEnd:
    return FRONT_ENDS[who](model, backend)


def _row(row: Row, case: Case, make: Any) -> Row:
    return {**row, **check(case, make)}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    suites = ["timm", "transformers"]
    parser.add_argument("--suite", choices=suites, nargs="+", default=suites)
    parser.add_argument("--only", nargs="*", help="names or families")
    parser.add_argument("--every", type=int, default=1, help="each n-th case only")
    names = list(FRONT_ENDS)
    parser.add_argument("--by", nargs="+", choices=names, default=names[:1])
    parser.add_argument("--backend", default="eager", choices=["eager", "magweld"])
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--retry", nargs="*", default=[], help="results to run again")
    parser.add_argument("-j", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=int, default=120, help="for one case")
    parser.add_argument("--memory", type=int, default=8, help="GiB for one model")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    return parser.parse_args()


def _earlier(options: argparse.Namespace) -> list[Row]:
    kept = _rows_file(options)
    if options.fresh or not kept.exists():
        return []
    rows = map(json.loads, kept.read_text().splitlines())
    return [row for row in rows if row["result"] not in options.retry]


def _rows_file(options: argparse.Namespace) -> Path:
    """Return where an interrupted run keeps its rows."""
    file: Path = options.o.with_suffix(".jsonl")
    return file


def _cases(options: argparse.Namespace) -> dict[str, list[Case]]:
    wanted = set(options.only or ())
    found = {}
    for suite in options.suite:
        cases = importlib.import_module(f"coverage_{suite}").cases()
        chosen = [c for c in cases if not wanted or {c.name, c.family} & wanted]
        found[suite] = chosen[:: options.every]
    return found


def main() -> None:
    """Run the chosen cases."""
    options = _options()
    torch.set_num_threads(1)
    rows = _earlier(options)
    jobs = list(_jobs(_cases(options), rows, options))
    limits = Limits(options.seconds, options.memory, not options.verbose)
    options.o.parent.mkdir(parents=True, exist_ok=True)
    with _rows_file(options).open("w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
        for number, row in enumerate(run_all(jobs, options.j, limits)):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            label = f"{number + 1}/{len(jobs)} {row['by']} {row['family']}"
            print(label, row["result"], row["seconds"], reason(row), flush=True)
    show(rows)
    write_report(options.o.with_suffix(".json"), 1, summary(rows))
    title = f"Coverage, torch {torch.__version__}, backend {options.backend}"
    options.o.with_suffix(".md").write_text(markdown(rows, title))


if __name__ == "__main__":
    main()
