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

Each case runs in a forked process. Results are appended to a file of JSON lines as
they come, so a run that was interrupted goes on where it ended.

    python benchmarks/coverage.py --suite timm
    python benchmarks/coverage.py --suite transformers --only bert gpt2 --fresh
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import torchvision_schemas
from coverage_check import Case, Dynamo, FrontEnd, Magweld, check
from rich.console import Console
from rich.markup import escape
from rich.table import Table

HERE = Path(__file__).resolve().parent
_LIBRARY = torchvision_schemas.declare()


def _front_end(peer: bool, backend: str) -> Callable[[torch.nn.Module], FrontEnd]:
    def make(model: torch.nn.Module) -> FrontEnd:
        return Dynamo(model) if peer else Magweld(model, backend)

    return make


def _work(case: Case, options: argparse.Namespace, sender: Any) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    bound = used + (options.memory << 30)
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    if not options.verbose:
        warnings.simplefilter("ignore")
    sender.send(check(case, _front_end(options.peer, options.backend)))


def run_case(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Run a case in a child process; return its row."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(case, options, sender))
    start = time.perf_counter()
    child.start()
    sender.close()
    row: dict[str, Any] = {"name": case.name, "family": case.family, "result": "error"}
    try:
        if receiver.poll(options.seconds):
            row = receiver.recv()
        else:
            row["why"] = f"no result in {options.seconds} s"
    except EOFError:
        child.join()
        row["why"] = f"the process ended with {child.exitcode}"
    child.kill()
    child.join()
    row["seconds"] = round(time.perf_counter() - start, 2)
    return row


def _reason(row: dict[str, Any]) -> str:
    texts = [
        f"{item['id']}: {item['detail']} [{item['where']}]"
        for item in row.get("breaks", ())
    ]
    return " | ".join(
        [*([row["why"]] if "why" in row else []), *texts, *row.get("miss", ())]
    )


def show(rows: list[dict[str, Any]], every: bool) -> None:
    """Print what is not full (or all rows) and the counts."""
    table = Table(
        "model", "family", "result", "first s", "hit ms", "eager ms", "reason"
    )
    for row in rows:
        if not every and row["result"] == "full":
            continue
        table.add_row(
            row["name"],
            row["family"],
            row["result"],
            f"{row.get('first_s', 0):.2f}",
            f"{row.get('third_s', 0) * 1e3:.1f}",
            f"{row.get('eager_s', 0) * 1e3:.1f}",
            escape(_reason(row)[:160]),
        )
    Console(width=200).print(table)
    ids = collections.Counter(
        item["id"] for row in rows for item in row.get("breaks", ())
    )
    counts = collections.Counter(row["result"] for row in rows)
    print(dict(counts), "of", len(rows))
    print("breaks:", dict(ids))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", choices=["timm", "transformers"], required=True)
    parser.add_argument("--only", nargs="*", help="names or families")
    parser.add_argument("--peer", action="store_true", help="torch.compile instead")
    parser.add_argument("--backend", default="eager", choices=["eager", "magweld"])
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--retry", nargs="*", default=[], help="results to run again")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--memory", type=int, default=8, help="GiB for one model")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("-o", type=Path)
    options = parser.parse_args()
    if options.o is None:
        who = "peer" if options.peer else options.backend
        options.o = HERE / "results" / f"coverage_{options.suite}_{who}.jsonl"
    return options


def _earlier(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    if options.fresh or not options.o.exists():
        return {}
    rows = map(json.loads, options.o.read_text().splitlines())
    return {r["family"]: r for r in rows if r["result"] not in options.retry}


def main() -> None:
    """Run the chosen cases."""
    options = _options()
    torch.set_num_threads(1)
    suite = importlib.import_module(f"coverage_{options.suite}")
    cases = [
        case
        for case in suite.cases()
        if not options.only or {case.name, case.family} & set(options.only)
    ]
    rows = _earlier(options)
    options.o.parent.mkdir(parents=True, exist_ok=True)
    with options.o.open("w") as file:
        for row in rows.values():
            file.write(json.dumps(row) + "\n")
        for number, case in enumerate(cases):
            if case.family in rows:
                continue
            row = rows[case.family] = run_case(case, options)
            file.write(json.dumps(row) + "\n")
            file.flush()
            label = f"{number + 1}/{len(cases)} {case.name}"
            print(label, row["result"], row["seconds"], _reason(row), flush=True)
    show([rows[c.family] for c in cases], every=False)


if __name__ == "__main__":
    main()
