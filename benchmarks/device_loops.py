"""Main loops of kernels for NVIDIA's GPUs beside Triton's, without a GPU.

    python benchmarks/device_loops.py [--cases NAME ...] [--chips CHIP ...]
                                      [--triton PYTHON] [--disassembler TOOL]

A product of 4096 x 4096 x 4096 and attention over 4 x 32 x 4096 x 128, in bf16. The
instructions of the loop with most matrix instructions are counted in machine code
(`sass.py`, which needs NVIDIA's disassembler), and how long they keep each part of a
multiprocessor busy (`pipe_model.py`). Triton's kernels are those of
`peers/triton_kernels.py`, for which `--triton` is a Python that has it: the fastest of
them is compared with.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from emulated_gpu import compile_in_process
from pipe_model import MATRIX, WARP, Prediction, mix_of, multiplies, predicted
from reporting import report_file, write_report
from rich.console import Console
from rich.table import Table
from sass import Code, disassembled, find_disassembler
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.importer.importer import import_graph
from magweld.targets import device

DEVICES = {"sm_80": "a100", "sm_90a": "h100"}
TRITON = Path(__file__).parent / "peers" / "triton_kernels.py"
_LOCAL = ("LDL", "STL")


@dataclass(frozen=True)
class Case:
    """An operator; `flops` are those of its matrix instructions."""

    function: Any
    shapes: tuple[tuple[int, ...], ...]
    flops: float


CASES = {
    "product": Case(torch.matmul, ((4096, 4096),) * 2, 2 * 4096**3),
    "attention": Case(
        F.scaled_dot_product_attention,
        ((4, 32, 4096, 128),) * 3,
        4 * 4 * 32 * 4096**2 * 128,
    ),
}


@dataclass
class Loop:
    """The main loop of a kernel.

    Attributes:
        case: What it computes.
        chip: For which chip.
        kernel: "ours", or which of Triton's.
        counts: Instructions of a warp in an iteration, by their pipe.
        local: Accesses of the whole kernel to spilled registers.
        flops_of_slot: Operations of matrix instructions, for each instruction issued.
        copied_of_flop: Bytes read from global memory, for a thousand of these.
        prediction: How long the loop takes in all blocks.
    """

    case: str
    chip: str
    kernel: str
    counts: dict[str, int]
    local: int
    flops_of_slot: float
    copied_of_flop: float
    prediction: Prediction = field(repr=False)


def loop_of(
    case: str, chip: str, kernel: str, code: Code, copied: float = 0, warps: int = 1
) -> Loop:
    """Return the main loop of a kernel.

    Args:
        case: What it computes.
        chip: For which chip.
        kernel: Its name in the table.
        code: Of the kernel.
        copied: Bytes of a warp that an mbarrier counts; 0 where loads say theirs.
        warps: Of a block, where one of them copies for all.

    Raises:
        ValueError: No loop has matrix instructions.
    """
    one = device(DEVICES[chip])
    mixes = [mix_of(loop, one, chip, warps) for loop in code.inner_loops(multiplies)]
    if not mixes:
        raise ValueError(f"{kernel}: no loop has matrix instructions")
    mix = max(mixes, key=lambda mix: mix.flops)
    # Keys and values, for example, have an mbarrier each.
    copied *= max(1, mix.arrivals)
    local = sum(one.name in _LOCAL for one in code.instructions)
    found = predicted(mix, CASES[case].flops, one, chip, copied or None)
    return Loop(
        *(case, chip, kernel, mix.counts, local),
        flops_of_slot=mix.flops / mix.instructions,
        copied_of_flop=1e3 * (copied or mix.copied) / mix.flops,
        prediction=found,
    )


def ours(case: str, chip: str, tool: str) -> Loop:
    """Return the main loop of what is generated for a case."""
    one = CASES[case]
    inputs = [torch.empty(shape, dtype=torch.bfloat16) for shape in one.shapes]
    with torch.no_grad():
        graph = make_fx(one.function, tracing_mode="fake", pre_dispatch=True)(*inputs)
    imported = import_graph(graph, inputs, device=torch.device("meta"))
    _, program = compile_in_process(imported, f"nvvm:{chip}@{DEVICES[chip]}")
    loops = []
    for launch in program.launches:
        images = [program.objects[image] for image in launch.images]
        code = disassembled(images[0], tool)
        warps = math.prod(launch.block) // WARP
        copied = _expected(images) / warps
        loops.append(loop_of(case, chip, "ours", code, copied, warps))
    return max(loops, key=lambda loop: loop.counts.get(MATRIX, 0))


def _expected(images: Sequence[bytes]) -> int:
    """Return the bytes that an mbarrier of a kernel counts in a step, 0 for none.

    They are a constant of its assembly, the last of its images.
    """
    text = images[-1].decode()
    registers = re.findall(r"mbarrier\.arrive\.expect_tx.*, (%r\d+);", text)
    if not registers:
        return 0
    constants = re.findall(rf"mov\.b32\s+{registers[-1]}, (\d+);", text)
    return int(constants[-1])


def triton_loops(python: str, tool: str) -> Iterator[Loop]:
    """Yield the main loops of Triton's kernels."""
    with tempfile.TemporaryDirectory(prefix="magweld-triton-") as name:
        folder = Path(name)
        subprocess.run([python, str(TRITON), name], check=True)
        for one in json.loads((folder / "kernels.json").read_text()):
            code = disassembled((folder / one["file"]).read_bytes(), tool)
            tile = "x".join(map(str, one["tile"]))
            kernel = f"{tile}, {one['warps']} warps, {one['stages']} stages"
            yield loop_of(one["case"], one["chip"], kernel, code)


def beside_fastest(loops: Sequence[Loop]) -> dict[str, float]:
    """Return by case and chip our predicted time over that of Triton's fastest."""
    found = {}
    for case in CASES:
        for chip in DEVICES:
            of = [x for x in loops if (x.case, x.chip) == (case, chip)]
            mine = [x.prediction.seconds for x in of if x.kernel == "ours"]
            peers = [x.prediction.seconds for x in of if x.kernel != "ours"]
            if mine and peers:
                found[f"{case} {chip}"] = min(mine) / min(peers)
    return found


def cells(one: Loop) -> Iterator[str]:
    """Yield the cells of a row."""
    yield from (one.case, one.chip, one.kernel)
    yield " ".join(f"{name} {count}" for name, count in sorted(one.counts.items()))
    yield from (f"{one.flops_of_slot:.0f}", f"{one.copied_of_flop:.2f}", f"{one.local}")
    shares = sorted(one.prediction.shares.items(), key=lambda share: -share[1])
    yield ", ".join(f"{part} {share:.0%}" for part, share in shares[:4])
    yield f"{one.prediction.seconds * 1e6:.0f}"


def main() -> int:
    """Count the loops that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--chips", nargs="*", choices=DEVICES, default=list(DEVICES))
    parser.add_argument("--triton", help="a Python that has Triton")
    parser.add_argument("--disassembler", default=find_disassembler())
    parser.add_argument("-o", "--output", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    if options.disassembler is None:
        print("nvdisasm is not installed: see --disassembler", file=sys.stderr)
        return 2
    tool = options.disassembler
    found = [ours(case, chip, tool) for case in options.cases for chip in options.chips]
    if options.triton:
        found += [
            one
            for one in triton_loops(options.triton, tool)
            if one.case in options.cases and one.chip in options.chips
        ]
    head = ("case", "chip", "kernel", "a warp and iteration", "flops of a slot")
    table = Table(*head, "bytes of 1000 flops", "spills", "busy", "us")
    for one in sorted(found, key=lambda one: (one.case, one.chip)):
        table.add_row(*cells(one))
    Console(width=180).print(table)
    beside = beside_fastest(found)
    print(json.dumps(beside))
    write_report(options.output, 1, [asdict(one) for one in found], beside=beside)
    return 0


if __name__ == "__main__":
    sys.exit(main())
