"""GPUs in two steps: compile artifacts anywhere, check and time them where a GPU is.

    python benchmarks/gpu.py pack build/gpu [--targets T ...] [--dtypes D ...]
    python benchmarks/gpu.py run build/gpu [--seconds 540] [-o FOLDER]

`pack` needs no GPU. It compiles the subgraphs, and streaming operators of the size of a
GPU, to artifacts. `run` needs torch and this package, but no MLIR, and goes within its
time through: results against torch in double precision, streams and CUDA graphs, times
against eager, torch.compile and its max-autotune mode, achieved bytes a second beside
the prediction, and memory errors found by compute-sanitizer. Each artifact is on its
own: a failure is a row of the table. The table and a report in JSON with the device,
the date and the commit are written to the folder of `-o`, the report after each case.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from reporting import report_file
from subgraph_cases import CASES, Case
from torch import Tensor

import magweld
from magweld.diagnostics import MagweldError

TARGETS = ("nvvm:sm_80", "nvvm:sm_90a")
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
MANIFEST = "manifest.json"
ROUNDS = 30
SANITIZER = "compute-sanitizer"

STREAMING = (
    Case("add-large", torch.add, ((8192, 4096),) * 2, "bandwidth"),
    Case("softmax-large", lambda x: x.softmax(-1), ((8192, 4096),), "rows"),
    Case(
        "layer-norm-large",
        lambda x, g, b: F.layer_norm(x, g.shape, g, b),
        ((8192, 4096), (4096,), (4096,)),
        "rows",
    ),
    Case("transpose-large", lambda x: x.t() + 1, ((4096, 8192),), "columns"),
    Case(
        "linear-large",
        lambda x, w, b: F.linear(x, w, b).relu(),
        ((4096, 4096), (4096, 4096), (4096,)),
        "products",
    ),
)
ALL = {case.name: case for case in (*CASES, *STREAMING)}


@dataclass(frozen=True)
class Packed:
    """One artifact of a pack.

    Attributes:
        case: Name of the case.
        dtype: Element type of its floating-point arguments.
        target: What the code is for.
        file: The artifact, in the folder of the pack; "" if there is none.
        kernels: How many launches a call makes.
        externals: Operators that run through torch.
        predicted_seconds: Of the generated kernels.
        predicted_bytes: That the generated kernels move to and from global memory.
        problem: Why there is no artifact.
    """

    case: str
    dtype: str
    target: str
    file: str = ""
    kernels: int = 0
    externals: tuple[str, ...] = ()
    predicted_seconds: float = 0.0
    predicted_bytes: int = 0
    problem: str = ""


@dataclass
class Outcome:
    """What became of one artifact on a GPU; times are least ones, in microseconds.

    Attributes:
        packed: The artifact.
        error: Largest difference from double precision, relative to its largest value.
        torch_error: The same of eager.
        times: By peer; `graph` is a replay of ours, captured in a CUDA graph.
        problems: What failed.
    """

    packed: Packed
    error: float = math.nan
    torch_error: float = math.nan
    times: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**asdict(self.packed), **asdict(self), "packed": None}


def arguments_of(case: Case, dtype: str, device: str) -> list[Tensor]:
    """Return the arguments of a case in a type and on a device."""
    cast = DTYPES[dtype]
    return [
        (x.to(cast) if x.is_floating_point() else x).to(device)
        for x in case.arguments()
    ]


def pack_case(case: Case, dtype: str, target: str, folder: Path) -> Packed:
    """Compile a case to an artifact in a folder."""
    try:
        inputs = arguments_of(case, dtype, "cpu")
        artifact = magweld.compile(case.function, inputs, target)
    except MagweldError as error:
        return Packed(case.name, dtype, target, problem=str(error).splitlines()[0])
    name = f"{case.name}-{dtype}-{target.partition(':')[2]}.mw"
    artifact.save(folder / name)
    report = artifact.report()
    groups = report["groups"]
    return Packed(
        case.name,
        dtype,
        target,
        name,
        len(artifact.program.launches),
        tuple(report["externals"]),
        sum(group.get("predicted_seconds", 0.0) for group in groups),
        sum(group.get("traffic_after", 0) for group in groups),
    )


def pack(options: argparse.Namespace) -> None:
    """Compile all cases."""
    options.folder.mkdir(parents=True, exist_ok=True)
    packed = []
    for target in options.targets:
        for dtype in options.dtypes:
            for name in options.cases:
                packed.append(pack_case(ALL[name], dtype, target, options.folder))
                one = packed[-1]
                state = one.problem or f"{one.kernels} kernels, {len(one.externals)}"
                print(f"{target} {dtype} {name}: {state}", flush=True)
    manifest = {"commit": commit(), "artifacts": [asdict(one) for one in packed]}
    (options.folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    total = sum(path.stat().st_size for path in options.folder.iterdir())
    print(f"{len(packed)} artifacts, {total / 2**20:.1f} MiB in {options.folder}")


def commit() -> str:
    """Return the commit of this tree, "" if it is none of git's."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def read_pack(folder: Path) -> tuple[str, list[Packed]]:
    """Return the commit and the artifacts of a pack."""
    manifest = json.loads((folder / MANIFEST).read_text())
    fields = [
        {**one, "externals": tuple(one["externals"])} for one in manifest["artifacts"]
    ]
    return manifest["commit"], [Packed(**one) for one in fields]


def tensors_of(result: Any) -> tuple[Tensor, ...]:
    """Return the tensors of a case's result."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def relative_error(found: Any, expected: Any) -> float:
    """Return the largest difference, relative to the largest expected value."""
    worst = 0.0
    for a, b in zip(tensors_of(found), tensors_of(expected), strict=True):
        if a.shape != b.shape:
            return math.inf
        difference = (a.double() - b.double()).abs().max().item()
        worst = max(worst, difference / max(b.double().abs().max().item(), 1e-30))
        if math.isnan(difference):
            return math.inf
    return worst


def tolerance(dtype: str, torch_error: float) -> float:
    """Return the error that is allowed: some roundings, or twice what torch makes."""
    return max(64 * torch.finfo(DTYPES[dtype]).eps / 8, 2 * torch_error)


def check(outcome: Outcome, artifact: Any, case: Case, inputs: list[Tensor]) -> None:
    """Compare an artifact's result with torch's in double precision."""
    exact = case.function(*(x.double() if x.is_floating_point() else x for x in inputs))
    eager = case.function(*inputs)
    found = artifact(*inputs)
    types = [t.dtype for t in tensors_of(found)]
    if types != [t.dtype for t in tensors_of(eager)]:
        outcome.problems.append(f"results of types {types}")
    outcome.torch_error = relative_error(eager, exact)
    outcome.error = relative_error(found, exact)
    if not outcome.error <= tolerance(outcome.packed.dtype, outcome.torch_error):
        outcome.problems.append(f"error {outcome.error:.2e}")


def check_streams(outcome: Outcome, artifact: Any, inputs: list[Tensor]) -> None:
    """Compare calls on two streams at a time with a call alone."""
    expected = [t.clone() for t in tensors_of(artifact(*inputs))]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    found = []
    for _ in range(4):
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(tensors_of(artifact(*inputs)))
    torch.cuda.synchronize()
    if not all(map(torch.equal, expected * len(found), sum(found, ()))):
        outcome.problems.append("another result on two streams at a time")


def captured(artifact: Any, inputs: list[Tensor]) -> tuple[Callable[[], None], Any]:
    """Return a replay of a call as a CUDA graph, and where its results are."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        artifact(*inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = artifact(*inputs)
    return graph.replay, results


def check_graph(outcome: Outcome, artifact: Any, inputs: list[Tensor]) -> Any:
    """Return a replay whose results were compared with a call's, for new inputs."""
    static = [x.clone() for x in inputs]
    replay, results = captured(artifact, static)
    for x in static:
        if x.is_floating_point():
            x.copy_(torch.randn_like(x) * x.abs().mean())
    replay()
    torch.cuda.synchronize()
    expected = tensors_of(artifact(*static))
    if not all(map(torch.equal, expected, tensors_of(results))):
        outcome.problems.append("another result from a CUDA graph")
    return replay


def microseconds(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the least time of a call on the GPU, caches swept before each."""
    sweep = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for turn in range(rounds + 3):
        sweep.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        if turn >= 3:
            times.append(start.elapsed_time(end) * 1e3)
    return min(times)


def peers_of(
    case: Case, inputs: list[Tensor], modes: Sequence[str]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield eager and torch.compile in some modes."""
    yield "eager", lambda: case.function(*inputs)
    for mode in modes:
        torch._dynamo.reset()
        compiled = torch.compile(case.function, dynamic=False, mode=mode)
        yield mode, lambda compiled=compiled: compiled(*inputs)  # type: ignore[misc]


def attempt(outcome: Outcome, what: str, action: Callable[[], Any]) -> Any:
    """Run one measurement; what it raises is a problem of this artifact alone."""
    try:
        return action()
    except Exception as error:
        lines = traceback.format_exception_only(error)
        outcome.problems.append(f"{what}: {lines[-1].strip()[:300]}")
        return None


def run_artifact(
    packed: Packed, folder: Path, modes: Sequence[str], *, times: bool
) -> Outcome:
    """Check one artifact on the current GPU, and time it."""
    outcome = Outcome(packed)
    if packed.problem:
        outcome.problems.append(packed.problem)
        return outcome
    case = ALL[packed.case]
    inputs = arguments_of(case, packed.dtype, "cuda")
    artifact = attempt(outcome, "load", lambda: magweld.load(folder / packed.file))
    if artifact is None:
        return outcome
    attempt(outcome, "check", lambda: check(outcome, artifact, case, inputs))
    if math.isnan(outcome.error) or not times:
        return outcome
    attempt(outcome, "streams", lambda: check_streams(outcome, artifact, inputs))
    replay = attempt(outcome, "graph", lambda: check_graph(outcome, artifact, inputs))
    calls = [("magweld", lambda: artifact(*inputs))]
    if replay is not None:
        calls.append(("graph", replay))
    for name, call in (*calls, *peers_of(case, inputs, modes)):
        taken = attempt(outcome, name, lambda call=call: microseconds(call))
        if taken is not None:
            outcome.times[name] = taken
    return outcome


def ceilings() -> dict[str, float]:
    """Measure what the GPU can do: bytes copied and multiplications a second."""
    source = torch.randn(1 << 29, device="cuda")
    copied = microseconds(lambda: source.clone(), 10)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    multiplied = microseconds(lambda: a @ a, 10)
    return {
        "copy_bytes_per_second": 2 * source.nbytes / copied * 1e6,
        "bf16_flops": 2 * 8192**3 / multiplied * 1e6,
    }


def sanitized(options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Check the results of the small cases once more under compute-sanitizer."""
    tool = shutil.which(SANITIZER)
    if tool is None or seconds < 30:
        return {"ran": False, "reason": "not installed" if tool is None else "no time"}
    command = [tool, "--tool", "memcheck", "--error-exitcode", "9", sys.executable]
    command += [__file__, "run", str(options.folder), "--check-only"]
    command += ["--cases", *(case.name for case in CASES)]
    command += ["--dtypes", "f32", "--seconds", str(seconds * 0.8), "-o", "-"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"ran": False, "reason": f"not done in {seconds:.0f} s"}
    tail = done.stdout.splitlines()[-20:]
    return {"ran": True, "errors": done.returncode == 9, "output": tail}


def row(outcome: Outcome) -> str:
    """Return a line of the table."""
    packed, times = outcome.packed, outcome.times
    figures = " ".join(f"{name} {taken:.1f}" for name, taken in times.items())
    bandwidth = ""
    if "graph" in times and packed.predicted_bytes and not packed.externals:
        rate = packed.predicted_bytes / times["graph"] / 1e3
        bandwidth = f" {rate:.0f} GB/s, predicted {packed.predicted_seconds * 1e6:.1f}"
    problems = "; ".join(outcome.problems) or "ok"
    where = f"{packed.case} {packed.dtype} {packed.target}"
    return f"{where}: error {outcome.error:.1e} | {figures}{bandwidth} | {problems}"


def ratios(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return geometric means of the peers' times over ours, graphs against graphs."""
    found: dict[str, list[float]] = {}
    for outcome in outcomes:
        ours = outcome.times.get("graph", outcome.times.get("magweld"))
        for name, taken in outcome.times.items():
            if ours and name not in ("magweld", "graph"):
                found.setdefault(name, []).append(taken / ours)
    return {name: statistics.geometric_mean(values) for name, values in found.items()}


def run(options: argparse.Namespace) -> int:
    """Run a pack; return the exit status."""
    if not torch.cuda.is_available():
        print("torch sees no GPU: nothing can be run here", file=sys.stderr)
        return 2
    end = time.monotonic() + options.seconds
    packed_commit, packed = read_pack(options.folder)
    chosen = [
        one
        for one in packed
        if one.case in options.cases
        and one.dtype in options.dtypes
        and one.target in options.targets
    ]
    modes = ("default", "max-autotune") if not options.check_only else ()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": packed_commit,
        "torch": torch.__version__,
        "ceilings": {} if options.check_only else ceilings(),
    }
    print(json.dumps(report), flush=True)
    outcomes: list[Outcome] = []
    share = 1.0 if options.check_only else 0.8  # the rest is for the sanitizer
    with torch.no_grad():
        for number, one in enumerate(chosen):
            left = end - time.monotonic() - (1 - share) * options.seconds
            # What needs a compilation of torch's goes when time gets short.
            slow = left < (len(chosen) - number) * 5
            outcomes.append(
                run_artifact(
                    one,
                    options.folder,
                    () if slow else modes,
                    times=not options.check_only and left > 0,
                )
            )
            print(row(outcomes[-1]), flush=True)
            write(options, report, outcomes)
    if not options.check_only:
        report["sanitizer"] = sanitized(options, end - time.monotonic())
        report["ratios"] = ratios(outcomes)
        print(json.dumps({key: report[key] for key in ("sanitizer", "ratios")}))
        write(options, report, outcomes)
    failed = [one for one in outcomes if one.problems and one.packed.file]
    print(f"{len(outcomes)} artifacts, {len(failed)} with problems")
    return 1 if failed else 0


def write(
    options: argparse.Namespace, report: dict[str, Any], outcomes: Sequence[Outcome]
) -> None:
    """Write what is known so far: a run may be ended at any time."""
    if str(options.output) == "-":
        return
    options.output.mkdir(parents=True, exist_ok=True)
    rows = [outcome.as_dict() for outcome in outcomes]
    text = json.dumps({**report, "results": rows}, indent=1)
    (options.output / "gpu.json").write_text(text + "\n")
    table = "\n".join(map(row, outcomes))
    (options.output / "gpu.txt").write_text(table + "\n")


def main() -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("pack", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", nargs="*", choices=list(ALL), default=list(ALL))
    parser.add_argument("--dtypes", nargs="*", choices=list(DTYPES), default=["f32"])
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--check-only", action="store_true")
    parser.add_argument(
        "-o", "--output", type=Path, default=report_file(__file__).parent
    )
    options = parser.parse_args()
    if options.step == "run":
        return run(options)
    pack(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
