"""Time per call of whole models, all peers side by side.

    python benchmarks/whole_models.py [--models NAME ...] [--batch N ...]
        [--threads N ...] [--peers NAME ...] [--rounds N] [--dtype f32|bf16|f16]
        [--compile-times] [-o FILE]

Each combination of model, batch and threads is a process of its own, in which all
peers run in turns; ratios are of least times, since other processes only ever add
time. A result that differs from eager's by more than one part in a thousand of its
largest value (five in a hundred for f16 and bf16) is an error. `registers` is magweld
connecting only what melts element by element, `unfused` is every operator in a kernel
of its own. With --compile-times the first call of each peer is timed in further
processes, without and then with its caches.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from model_cases import CASES
from model_peers import PEERS
from model_tables import show
from reporting import DTYPES, report_file, write_report
from timing import interleaved, seconds_of
from torch import Tensor, nn

TOLERANCES = {"f32": 1e-3, "bf16": 5e-2, "f16": 5e-2}
DEFAULT_PEERS = ("eager", "torch.compile", "magweld")


def alone(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a function in a new process; what ends it is an entry `died`."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(work, *arguments).result()
        except BrokenProcessPool:
            return {"died": f"the process of {work.__name__}{arguments} ended"}


def difference(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest difference, relative to the largest expected value."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return float("inf")
    return float((got - expected).abs().max() / expected.abs().max())


def made(model: str, batch: int, dtype: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a model and its inputs with floats of a type."""
    module, inputs = CASES[model].make(batch)
    kind = DTYPES[dtype]
    cast = [x.to(kind) if x.is_floating_point() else x for x in inputs]
    return module.to(kind), tuple(cast)


@torch.no_grad()
def run_case(
    model: str,
    batch: int,
    threads: int,
    dtype: str,
    peers: Sequence[str],
    rounds: int,
) -> dict[str, Any]:
    """Measure one combination."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    module, inputs = made(model, batch, dtype)
    expected = module(*inputs)
    calls: dict[str, Callable[[], Any]] = {}
    absent: dict[str, str] = {}
    wrong: dict[str, float] = {}
    first: dict[str, float] = {}
    for name in peers:
        # What goes wrong in a peer is its row, whatever it is.
        try:
            call = PEERS[name](module, inputs)
            first[name] = seconds_of(call)
            error = difference(call(), expected)
        except Exception as reason:
            absent[name] = f"{type(reason).__name__}: {reason}".splitlines()[0][:200]
            continue
        calls[name] = call
        if not error <= TOLERANCES[dtype]:
            wrong[name] = error
    times = interleaved(calls, rounds)
    return {
        "times": {name: t.as_dict() for name, t in times.items()},
        "first_call_s": first,
        "absent": absent,
        "wrong": wrong,
    }


@torch.no_grad()
def first_call(
    model: str, batch: int, threads: int, dtype: str, peer: str, cache: str
) -> dict[str, Any]:
    """Time the making and first call of a peer, with a folder for its caches."""
    warnings.simplefilter("ignore")
    os.environ["MAGWELD_CACHE_DIR"] = f"{cache}/magweld"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{cache}/inductor"
    torch.set_num_threads(threads)
    module, inputs = made(model, batch, dtype)
    return {"seconds": seconds_of(lambda: PEERS[peer](module, inputs)())}


def compile_times(
    model: str, batch: int, threads: int, dtype: str, peers: Iterable[str]
) -> dict[str, list[float | None]]:
    """Return the seconds to the first result of each peer, cold and cached."""
    seconds: dict[str, list[float | None]] = {}
    for peer in peers:
        with tempfile.TemporaryDirectory() as cache:
            seconds[peer] = [
                alone(first_call, model, batch, threads, dtype, peer, cache).get(
                    "seconds"
                )
                for _ in ("cold", "cached")
            ]
    return seconds


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*PEERS, "all"]
    default = list(DEFAULT_PEERS)
    parser.add_argument("--models", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--batch", nargs="+", type=int, default=[1])
    parser.add_argument(
        "--threads", nargs="+", type=int, default=[torch.get_num_threads()]
    )
    parser.add_argument("--peers", nargs="+", choices=names, default=default)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--compile-times", action="store_true")
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    parsed = parser.parse_args()
    if "all" in parsed.peers:
        parsed.peers = list(PEERS)
    return parsed


def main() -> int:
    """Run the chosen combinations; return 1 if a result was wrong."""
    chosen = options()
    results: list[dict[str, Any]] = []
    for model, batch, threads in itertools.product(
        chosen.models, chosen.batch, chosen.threads
    ):
        case = {
            "model": model,
            "batch": batch,
            "threads": threads,
            "dtype": chosen.dtype,
        }
        result = alone(run_case, *case.values(), chosen.peers, chosen.rounds)
        if chosen.compile_times:
            others = [p for p in result.get("times", ()) if p != "eager"]
            result["compile_s"] = compile_times(*case.values(), others)
        results.append(case | result)
        show(results[-1:], chosen.peers)
        write_report(chosen.o, max(chosen.threads), results)
    show(results, chosen.peers)
    return int(any(r.get("wrong") or "died" in r for r in results))


if __name__ == "__main__":
    sys.exit(main())
