"""Owns what `gpu.py` knows of an artifact: what was packed, and what became of it."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
# How calls of libraries are chosen, the first by the prices of the device.
LIBRARIES = ("auto", "never", "always")


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
        compile_seconds: CPU time of the compilation.
        problem: Why there is no artifact.
        library: Whether calls of libraries were chosen by prices, "auto", or else.
        calls: What libraries compute.
    """

    case: str
    dtype: str
    target: str
    file: str = ""
    kernels: int = 0
    externals: tuple[str, ...] = ()
    predicted_seconds: float = 0.0
    predicted_bytes: int = 0
    compile_seconds: float = 0.0
    problem: str = ""
    library: str = "auto"
    calls: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What became of one artifact on a GPU; times are least ones, in microseconds.

    Attributes:
        packed: The artifact.
        error: Largest difference from double precision, relative to its largest value.
        torch_error: The same of eager.
        times: By peer; names that end in "-graph" are replays of a CUDA graph.
        problems: What failed.
    """

    packed: Packed
    error: float = math.nan
    torch_error: float = math.nan
    times: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def result(self) -> dict[str, Any]:
        """Return it as a result of a report, with times in milliseconds."""
        packed = {
            key: value
            for key, value in asdict(self.packed).items()
            if (key, value) != ("library", LIBRARIES[0])
        }
        return {
            **packed,
            "milliseconds": {peer: us / 1e3 for peer, us in self.times.items()},
            "error": self.error,
            "torch_error": self.torch_error,
            "problems": self.problems,
        }


def one_of(packed: Packed) -> tuple[str, str, str, str]:
    """Return what tells artifacts of a pack apart."""
    return packed.case, packed.dtype, packed.target, packed.library


def read_pack(folder: Path) -> tuple[str, list[Packed]]:
    """Return the commit and the artifacts of a pack."""
    manifest = json.loads((folder / MANIFEST).read_text())
    return manifest["commit"], [packed_of(one) for one in manifest["artifacts"]]


def packed_of(data: dict[str, Any]) -> Packed:
    """Return an artifact from JSON data."""
    lists = {key: tuple(data.get(key, ())) for key in ("externals", "calls")}
    return Packed(**{**data, **lists})


def outcome_of(line: str) -> Outcome:
    """Return an outcome from a line of JSON."""
    data = json.loads(line)
    return Outcome(**{**data, "packed": packed_of(data["packed"])})


def row(outcome: Outcome) -> str:
    """Return a line of the table."""
    packed, times = outcome.packed, outcome.times
    figures = " ".join(f"{name} {taken:.1f}" for name, taken in times.items())
    bandwidth = ""
    if "magweld-graph" in times and packed.predicted_bytes and not packed.externals:
        rate = packed.predicted_bytes / times["magweld-graph"] / 1e3
        bandwidth = f" {rate:.0f} GB/s, predicted {packed.predicted_seconds * 1e6:.1f}"
    problems = "; ".join(outcome.problems) or "ok"
    where = f"{packed.case} {packed.dtype} {packed.target.partition(':')[2]}"
    if packed.library != "auto":
        where += f" {packed.library}"
    return f"{where}: error {outcome.error:.1e} | {figures}{bandwidth} | {problems}"


def ratios(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return geometric means of the peers' times over ours, graphs against graphs."""
    found: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, taken in outcome.times.items():
            ours = "magweld-graph" if name.endswith("-graph") else "magweld"
            if ours in outcome.times and not name.startswith("magweld"):
                found.setdefault(name, []).append(taken / outcome.times[ours])
    return {name: statistics.geometric_mean(values) for name, values in found.items()}


def choices(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return what calls of libraries gave where cases were packed with others as well.

    The time of a graph by how calls were chosen, and which of them is the least: where
    that is not "auto", prices of the device are wrong.
    """
    times: dict[tuple[str, str, str], dict[str, float]] = {}
    for outcome in outcomes:
        case, dtype, target, library = one_of(outcome.packed)
        if "magweld-graph" in outcome.times:
            known = times.setdefault((case, dtype, target), {})
            known[library] = outcome.times["magweld-graph"]
    return [
        {"case": case, "dtype": dtype, "target": target, "times": found}
        | {"fastest": min(found, key=lambda library: found[library])}
        for (case, dtype, target), found in times.items()
        if len(found) > 1
    ]
