"""Results of AMD machine code against torch, without a GPU.

    python benchmarks/device_emulation.py [--cases NAME ...] [--targets T ...] [-o FILE]

Every kernel of the small subgraphs and models of `device_cases.py` runs in an emulator
(`emulated_gpu.py` says where that is found), all of its blocks. Operators without code
run through torch on the host. The results are compared with torch's in double
precision; memory that no kernel has written is NaN.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from device_cases import MODELS, SUBGRAPHS, Captured, captured
from device_coverage import DTYPES, in_child
from emulated_gpu import EmulatedGpu, compile_in_process, emulated, missing
from reporting import report_file

# Largest difference, relative to the largest result; half precision rounds between
# operators.
TOLERANCE = {"f32": 3e-5, "f16": 2e-2, "bf16": 1e-1}


@dataclass
class Emulation:
    """What a case gave.

    Attributes:
        case: Its name.
        target: What it was compiled for.
        dtype: Element type of its floating-point arguments.
        kernels: Launches of a call.
        externals: Operators that torch computed, with the reason where there is one.
        error: Largest difference from double precision, relative to its largest value.
        seconds: Of the launches.
        problem: What stopped it.
    """

    case: str
    target: str
    dtype: str = "f32"
    kernels: int = 0
    externals: list[str] = field(default_factory=list)
    error: float = math.inf
    seconds: float = 0.0
    problem: str = ""

    @property
    def is_right(self) -> bool:
        """Tell whether the results are those of torch."""
        return not self.problem and self.error <= TOLERANCE[self.dtype]


def emulate(case: str, target: str, dtype: str) -> Emulation:
    """Compile a case and compare its results."""
    found = Emulation(case, target, dtype)
    one = captured(case, DTYPES[dtype])
    graph, program = compile_in_process(one.graph, target)
    machine = EmulatedGpu()
    found.kernels = len(program.launches)
    found.externals = [f"{x.node.target}" for x in graph.externals.values()]
    result = emulated(graph, program, machine)(*one.tensors)
    found.seconds = sum(seconds for _, seconds in machine.driver.seconds)
    found.error = _error(one, result)
    return found


def _error(one: Captured, result: Any) -> float:
    exact = [x.double() if x.is_floating_point() else x for x in one.tensors]
    with torch.no_grad():
        expected = one.function(*exact)
    worst = 0.0
    many = isinstance(expected, tuple | list)
    pairs = zip(result, expected, strict=True) if many else [(result, expected)]
    if not many and isinstance(result, tuple | list):
        pairs = [(result[0], expected)]
    for mine, theirs in pairs:
        if mine.shape != theirs.shape:
            return math.inf
        difference = (mine.double() - theirs.double()).abs().max().item()
        if math.isnan(difference):
            return math.inf
        worst = max(worst, difference / max(theirs.abs().max().item(), 1e-30))
    return worst


def row(one: Emulation) -> str:
    """Return a line of the table."""
    state = one.problem or ("right" if one.is_right else "WRONG")
    apart = f", torch runs {', '.join(one.externals)}" if one.externals else ""
    return (
        f"{one.target} {one.dtype} {one.case}: {one.kernels} kernels{apart} | "
        f"error {one.error:.1e}, {one.seconds:.0f} s | {state}"
    )


def main() -> int:
    """Run the cases that the command line names."""
    names = [*SUBGRAPHS, *MODELS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", choices=names, default=list(SUBGRAPHS))
    parser.add_argument("--targets", nargs="*", default=["rocdl:gfx942"])
    parser.add_argument("--dtypes", nargs="*", choices=list(DTYPES), default=["f32"])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("-o", "--output", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    if missing():
        print(missing(), file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    found = []
    for target in options.targets:
        for dtype in options.dtypes:
            for case in options.cases:
                one = in_child(emulate, (case, target, dtype), options.seconds)
                if isinstance(one, str):
                    one = Emulation(case, target, dtype, problem=one)
                found.append(one)
                print(row(one), flush=True)
    wrong = [one for one in found if not one.is_right]
    print(f"{len(found) - len(wrong)} of {len(found)} right")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(one) for one in found]
    options.output.write_text(json.dumps({"results": rows}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
