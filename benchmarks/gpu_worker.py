"""Checks and times artifacts on a GPU, in a process that `gpu.py run` starts.

    python benchmarks/gpu_worker.py FOLDER [--files FILE ...] [--time] [--modes M ...]

It prints a line of JSON for each artifact that it has checked. To time them, it
prepares the peers, prints `ready`, waits for a line, and prints all with their times.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from gpu_cases import Work, work
from gpu_machine import CurrentGpu, Machine
from gpu_outcomes import LIBRARIES, Outcome, Packed, read_pack
from reporting import DTYPES
from torch import Tensor


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
    return max(8 * torch.finfo(DTYPES[dtype]).eps, 2 * torch_error)


def check(outcome: Outcome, artifact: Any, case: Work) -> None:
    """Compare an artifact's result with torch's in double precision."""
    eager = case()
    found = artifact(*case.tensors)
    types = [t.dtype for t in tensors_of(found)]
    if types != [t.dtype for t in tensors_of(eager)]:
        outcome.problems.append(f"results of types {types}")
    doubles = (x.double() if x.is_floating_point() else x for x in case.tensors)
    exact = case.function(*doubles)
    outcome.torch_error = relative_error(eager, exact)
    outcome.error = relative_error(found, exact)
    if not outcome.error <= tolerance(outcome.packed.dtype, outcome.torch_error):
        outcome.problems.append(f"error {outcome.error:.2e}")


def check_streams(
    machine: Machine, outcome: Outcome, artifact: Any, inputs: list[Tensor]
) -> None:
    """Compare calls on two streams at a time with a call alone."""
    expected = [t.clone() for t in tensors_of(artifact(*inputs))]
    machine.synchronize()
    streams = machine.streams()
    found = []
    for _ in range(4):
        for stream in streams:
            with stream():
                found.append(tensors_of(artifact(*inputs)))
    machine.synchronize()
    if not all(map(torch.equal, expected * len(found), sum(found, ()))):
        outcome.problems.append("another result on two streams at a time")


def check_graph(
    machine: Machine, outcome: Outcome, artifact: Any, inputs: list[Tensor]
) -> None:
    """Compare replays for new inputs with calls."""
    static = [x.clone() for x in inputs]
    replay, results = machine.captured(lambda: artifact(*static))
    if static[0].is_floating_point():
        # Only the first: weights and statistics have to stay what they are.
        static[0].copy_(torch.randn_like(static[0]) * static[0].abs().mean())
    replay()
    machine.synchronize()
    expected = tensors_of(artifact(*static))
    if not all(map(torch.equal, expected, tensors_of(results))):
        outcome.problems.append("another result from a CUDA graph")


def attempt(outcome: Outcome, what: str, action: Callable[[], Any]) -> Any:
    """Run one measurement; what it raises is a problem of this artifact alone."""
    try:
        return action()
    except Exception as error:
        lines = traceback.format_exception_only(error)
        outcome.problems.append(f"{what}: {lines[-1].strip()[:300]}")
        return None


def loaded(machine: Machine, outcome: Outcome, folder: Path) -> Any:
    """Return the artifact, None if it does not load."""
    path = folder / outcome.packed.file
    return attempt(outcome, "load", lambda: machine.load(path))


Call = tuple[str, Callable[[], Any]]


def checked(
    machine: Machine, packed: Packed, folder: Path, case: Work
) -> tuple[Outcome, list[Call]]:
    """Check an artifact on a GPU; return it and eager to be timed as well."""
    outcome = Outcome(packed)
    artifact = loaded(machine, outcome, folder)
    if artifact is None:
        return outcome, []
    attempt(outcome, "check", lambda: check(outcome, artifact, case))
    if math.isnan(outcome.error):
        return outcome, []
    inputs = case.tensors
    for what, look in (("streams", check_streams), ("graph", check_graph)):
        attempt(
            outcome, what, lambda look=look: look(machine, outcome, artifact, inputs)
        )
    ours = with_graph(machine, outcome, "magweld", lambda: artifact(*inputs))
    if packed.library != LIBRARIES[0]:
        return outcome, ours  # the peers are timed beside what is predicted fastest
    return outcome, ours + with_graph(machine, outcome, "eager", case)


def compiled_calls(
    machine: Machine, outcome: Outcome, mode: str, case: Work
) -> list[Call]:
    """Return what a mode of torch.compile makes, plain and as a CUDA graph."""
    torch._dynamo.reset()
    compiled = torch.compile(case.function, dynamic=False, mode=mode)
    return with_graph(machine, outcome, mode, lambda: compiled(*case.tensors))


def with_graph(
    machine: Machine, outcome: Outcome, name: str, call: Callable[[], Any]
) -> list[Call]:
    """Return a call and its replay, as far as they run."""
    if attempt(outcome, name, lambda: (call(), True)) is None:
        return []
    replay = attempt(outcome, f"{name}-graph", lambda: machine.captured(call))
    return [(name, call)] + ([(f"{name}-graph", replay[0])] if replay else [])


def run(options: argparse.Namespace, machine: Machine) -> int:
    """Check the chosen artifacts, and time them if that is asked for."""
    end = time.monotonic() + options.seconds
    known = {one.file: one for one in read_pack(options.folder)[1] if one.file}
    files = options.files or list(known)
    found = []
    with torch.no_grad():
        for file in files:
            case = work(known[file].case, known[file].dtype, machine.device)
            outcome, calls = checked(machine, known[file], options.folder, case)
            print(json.dumps(asdict(outcome)), flush=True)
            # Raises what a kernel has done to the context: others need a new one.
            machine.synchronize()
            found.append((outcome, case, calls if options.time else []))
        if options.time:
            if options.modes:
                lock_tuning(options.folder / "tuning.lock")
            prepare_peers(machine, found, options.modes, end)
            print("ready", flush=True)
            sys.stdin.readline()
            for outcome, _, calls in found:
                measure(machine, outcome, calls)
                print(json.dumps(asdict(outcome)), flush=True)
    return 0


def prepare_peers(
    machine: Machine,
    found: list[tuple[Outcome, Work, list[Call]]],
    modes: list[str],
    end: float,
) -> None:
    """Compile peers until a time, in one mode for all artifacts before the next."""
    for mode in modes:
        for outcome, case, calls in found:
            if time.monotonic() < end and outcome.packed.library == LIBRARIES[0]:
                calls += compiled_calls(machine, outcome, mode, case)
    machine.synchronize()


def measure(machine: Machine, outcome: Outcome, calls: list[Call]) -> None:
    """Time what was prepared for an artifact."""
    for name, call in calls:
        taken = attempt(outcome, name, lambda call=call: machine.microseconds(call))
        if taken is not None:
            outcome.times[name] = taken


def lock_tuning(path: Path) -> None:
    """Let torch's compiler measure its candidates while no other process does."""

    from torch._inductor.runtime.benchmarking import benchmarker

    measure = benchmarker.benchmark_gpu

    def alone(*args: Any, **kwargs: Any) -> Any:
        with open(path, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return measure(*args, **kwargs)

    benchmarker.benchmark_gpu = alone  # type: ignore[method-assign]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", nargs="*")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--modes", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=60.0, help="for the peers")
    return run(parser.parse_args(), CurrentGpu())


if __name__ == "__main__":
    sys.exit(main())
