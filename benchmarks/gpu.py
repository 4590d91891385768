"""GPUs in two steps: compile artifacts anywhere, check and time them where a GPU is.

    python benchmarks/gpu.py pack build/gpu [--targets T ...] [--dtypes D ...]
    python benchmarks/gpu.py run build/gpu [--seconds 540] [-o FOLDER]

`pack` needs no GPU. It compiles the subgraphs, operators of the size of a GPU, and
whole models whose weights are arguments, to artifacts: as the model of the device
predicts, and with fewer and more calls of libraries where that differs, so that the
choice is measured. `run` needs torch and this package, but no MLIR. Cases are spread
over processes, so that a kernel that breaks the GPU's context, or never ends, is a row
of the table.

Processes check results side by side, against torch in double precision, on two streams
and as CUDA graphs, and prepare the peers. Then they take turns on the GPU, one at a
time, to measure. At last small cases run under compute-sanitizer. The table and a
report in JSON with the device, the date and the commit are written to the folder of
`-o`, the report after each part.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from gpu_cases import NAMES, SMALL
from gpu_machine import CurrentGpu, Machine
from gpu_outcomes import LIBRARIES, Outcome, Packed, choices, ratios, read_pack, row
from gpu_processes import (
    Worker,
    check_alone,
    check_and_measure,
    sanitized,
    worker_command,
)
from reporting import DTYPES, report_file

TARGETS = ("nvvm:sm_80", "nvvm:sm_90a")
SANITIZED = ("scores", "linear-add-norm", "conv-relu-pool", "add-norm")
TOOLS = ("memcheck", "racecheck")
ALONE_SECONDS = 60.0
# Modes of torch.compile. The second one is captured in a CUDA graph here, as ours is:
# the mode that does it itself copies inputs first.
MODES = ("default", "max-autotune-no-cudagraphs")


def pack(options: argparse.Namespace) -> int:
    """Compile the chosen cases; what the folder has of others stays."""
    import gpu_pack  # needs the compiler, which a machine with a GPU may lack

    return gpu_pack.pack(options)


def chosen(options: argparse.Namespace) -> list[Packed]:
    """Return the artifacts of the pack that the options name."""
    packed = [one for one in read_pack(options.folder)[1] if one.file]
    return [
        one
        for one in packed
        if one.case in options.cases
        and one.dtype in options.dtypes
        and one.target in options.targets
    ]


def ceilings(machine: Machine) -> dict[str, float]:
    """Measure what the GPU can do: bytes copied and multiplications a second."""
    source = torch.randn(1 << 29, device=machine.device)
    target = torch.empty_like(source)
    copied = machine.microseconds(lambda: target.copy_(source), 10)
    small = source[: 1 << 25]
    copied_small = machine.microseconds(lambda: target[: 1 << 25].copy_(small), 10)
    found = {
        "copy_bytes_per_second": 2 * source.nbytes / copied * 1e6,
        "copy_bytes_per_second_128MiB": 2 * small.nbytes / copied_small * 1e6,
    }
    for name, dtype in DTYPES.items():
        a = torch.randn(8192, 8192, device=machine.device).to(dtype)
        taken = machine.microseconds(lambda a=a: a @ a, 10)
        found[f"{name}_flops"] = 2 * 8192**3 / taken * 1e6
    return found


def run(options: argparse.Namespace) -> int:
    """Run a pack; return the exit status."""
    if not torch.cuda.is_available():
        print("torch sees no GPU: nothing can be run here", file=sys.stderr)
        return 2
    end = time.monotonic() + options.seconds
    report: dict[str, Any] = {
        "machine": torch.cuda.get_device_name(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": read_pack(options.folder)[0],
        "versions": {"torch": torch.__version__},
        "ceilings": ceilings(CurrentGpu()),
    }
    torch.cuda.empty_cache()
    print(json.dumps(report), flush=True)
    outcomes = check_all(options, report, end)
    small = [o.packed for o in outcomes if o.packed.case in SANITIZED]
    report["sanitizer"] = sanitized(
        options.folder, small, options.sanitize, end - time.monotonic()
    )
    report["ratios"] = ratios(outcomes)
    report["choices"] = choices(outcomes)
    write(options, report, outcomes)
    print(json.dumps({key: report[key] for key in ("sanitizer", "ratios")}))
    failed = [one for one in outcomes if one.problems]
    print(f"{len(outcomes)} artifacts, {len(failed)} with problems")
    return 1 if failed else 0


def check_all(
    options: argparse.Namespace, report: dict[str, Any], end: float
) -> list[Outcome]:
    """Return the outcomes of the chosen artifacts, with times as far as there is time.

    Half of the time is for checks and peers, and a fifth for the sanitizer.
    """
    packed = chosen(options)
    peers = 0.35 * options.seconds
    prepared_by = time.monotonic() + 0.55 * options.seconds
    more = ["--time", "--seconds", f"{peers:.0f}", "--modes", *options.modes]
    groups = [packed[i :: options.processes] for i in range(options.processes)]
    workers = [
        Worker(worker_command(options.folder, group, *more), group)
        for group in groups
        if group
    ]
    outcomes: list[Outcome] = []
    missing: list[Packed] = []
    measured_by = end - 0.2 * options.seconds
    for worker, found, _ in check_and_measure(workers, prepared_by, measured_by):
        outcomes += found
        missing += worker.packed[len(found) :]
        for one in found:
            print(row(one), flush=True)
        write(options, report, outcomes)
    alone = partial(_alone, options.folder, end)
    with ThreadPoolExecutor(options.processes) as pool:
        outcomes += pool.map(alone, missing)
    write(options, report, outcomes)
    return outcomes


def _alone(folder: Path, end: float, packed: Packed) -> Outcome:
    seconds = min(ALONE_SECONDS, end - time.monotonic())
    outcome = check_alone(worker_command(folder, [packed]), packed, seconds)
    print(row(outcome), flush=True)
    return outcome


def write(
    options: argparse.Namespace, report: dict[str, Any], outcomes: Sequence[Outcome]
) -> None:
    """Write what is known so far: a run may be ended at any time."""
    options.output.mkdir(parents=True, exist_ok=True)
    rows = [outcome.result() for outcome in outcomes]
    text = json.dumps({**report, "results": rows}, indent=1)
    (options.output / "gpu.json").write_text(text + "\n")
    table = "\n".join(map(row, outcomes))
    (options.output / "gpu.txt").write_text(table + "\n")


STEPS: dict[str, Callable[[argparse.Namespace], int]] = {
    "pack": pack,
    "run": run,
}


def main() -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", nargs="*", choices=NAMES, default=list(SMALL))
    parser.add_argument("--dtypes", nargs="*", choices=list(DTYPES), default=["f32"])
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--libraries", nargs="*", choices=LIBRARIES, default=LIBRARIES)
    parser.add_argument("--modes", nargs="*", default=list(MODES))
    parser.add_argument("--sanitize", nargs="*", choices=TOOLS, default=TOOLS)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument(
        "-o", "--output", type=Path, default=report_file(__file__).parent
    )
    options = parser.parse_args()
    return STEPS[options.step](options)


if __name__ == "__main__":
    sys.exit(main())
