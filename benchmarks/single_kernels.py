"""Compares generated kernels with torch, one and two threads, as ratios.

    python benchmarks/single_kernels.py [--json FILE] [NAME ...]

A ratio above 1 means that the generated kernel is faster. Every time is the best of
many runs, alternating between the two, since other processes only ever add time.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from timing import seconds_again
from torch import Tensor

from magweld.bindings import ir
from magweld.codegen.host import HostTarget
from magweld.codegen.kernels import compile_kernels
from magweld.codegen.launch import Launch
from magweld.codegen.loader import LoadedObjects
from magweld.context import make_context
from magweld.kernel_code import lower_kernels
from magweld.passes.infrastructure.execution import RunOptions

KERNELS = Path(__file__).parent.parent / "tests" / "cpu" / "kernels"
SECONDS = 0.4
LAUNCH = "launch_0"


@dataclass(frozen=True)
class Case:
    """A kernel, its sizes, and what torch does for it.

    Attributes:
        name: Name of the case.
        kernel: File of the kernel.
        sizes: Numbers to put into the kernel's text.
        shapes: Shapes of the operands.
        reference: The same in torch.
    """

    name: str
    kernel: str
    sizes: dict[str, int]
    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Tensor]


@dataclass(frozen=True)
class Result:
    """Times of a case in microseconds; `error` is relative to the largest value."""

    name: str
    threads: int
    torch_us: float
    magweld_us: float
    ratio: float
    error: float
    compile_seconds: float


def _batch_norm(x: Tensor, y: Tensor, *stats: Tensor) -> Tensor:
    return torch.relu(F.batch_norm(x, *stats) + y)


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * 0.125 + mask, -1) @ v


def _swap(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous()


def _linear(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(F.linear(a, b, bias))


CASES = (
    Case(
        "bias + gelu 512x1536",
        "bias_gelu",
        {"M": 512, "N": 1536, "T": 8},
        ((512, 1536), (1536,)),
        lambda x, b: F.gelu(x + b),
    ),
    Case(
        "residual + layer norm 512x384",
        "residual_layer_norm",
        {"M": 512, "N": 384, "T": 16},
        ((512, 384), (512, 384), (384,), (384,)),
        lambda x, y, w, b: F.layer_norm(x + y, (384,), w, b),
    ),
    Case(
        "masked softmax 96x64x64",
        "masked_softmax",
        {"B": 96, "S": 64},
        ((96, 64, 64), (64,)),
        lambda x, mask: torch.softmax(x + mask, -1),
    ),
    Case(
        "bias + relu 512x1536",
        "bias_relu",
        {"M": 512, "N": 1536, "T": 8},
        ((512, 1536), (1536,)),
        lambda x, b: torch.relu(x + b),
    ),
    Case(
        "batch norm + add + relu 64x56x56",
        "batch_norm_add_relu",
        {"C": 64, "H": 56, "T": 2},
        ((1, 64, 56, 56), (1, 64, 56, 56), (64,), (64,), (64,), (64,)),
        _batch_norm,
    ),
    Case(
        "transpose 8x64x12x32 to 8x12x64x32",
        "swap_middle",
        {"B": 8, "X": 64, "Y": 12, "D": 32},
        ((8, 64, 12, 32),),
        _swap,
    ),
    Case(
        "transpose 96x64x32 to 96x32x64",
        "swap_last",
        {"B": 96, "X": 64, "Y": 32},
        ((96, 64, 32),),
        _swap,
    ),
    Case(
        "attention 96 heads, S=64, D=32",
        "attention",
        {"B": 96, "S": 64, "D": 32, "T": 64},
        ((96, 64, 32),) * 3 + ((64,),),
        _attention,
    ),
    Case(
        "attention 12 heads, S=197, D=64",
        "attention",
        {"B": 12, "S": 197, "D": 64, "T": 197},
        ((12, 197, 64),) * 3 + ((197,),),
        _attention,
    ),
    Case(
        "matmul 512x384x1536",
        "matmul",
        {"M": 512, "K": 384, "N": 1536, "TM": 128, "TN": 256},
        ((512, 384), (384, 1536)),
        torch.mm,
    ),
    Case(
        "linear + relu 512x384x1536",
        "linear_relu",
        {"M": 512, "K": 384, "N": 1536, "TM": 128, "TN": 256},
        ((512, 384), (1536, 384), (1536,)),
        _linear,
    ),
    Case(
        "linear + relu 512x1536x384",
        "linear_relu",
        {"M": 512, "K": 1536, "N": 384, "TM": 128, "TN": 192},
        ((512, 1536), (384, 1536), (384,)),
        _linear,
    ),
    Case(
        "convolution 3x3, 64 to 64, 56x56",
        "convolution",
        {"C": 64, "O": 64, "H": 56, "T": 14, "K": 3, "S": 1, "P": 58, "R": 16},
        ((1, 64, 58, 58), (64, 64, 3, 3)),
        F.conv2d,
    ),
    Case(
        "mean of 512x7x7",
        "mean_inner",
        {"C": 512, "H": 7, "COUNT": 49, "T": 32},
        ((512, 7, 7),),
        lambda x: x.mean((1, 2)),
    ),
    Case(
        "sum over the middle of 8x64x384",
        "sum_middle",
        {"B": 8, "S": 64, "C": 384},
        ((8, 64, 384),),
        lambda x: x.sum(1),
    ),
    Case(
        "max pool 3x3, stride 2, 64x114x114",
        "max_pool",
        {"C": 64, "P": 114, "H": 56, "T": 4},
        ((1, 64, 114, 114),),
        lambda x: F.max_pool2d(x, 3, 2)[:, :, :56, :56].contiguous(),
    ),
)


class Kernel:
    """A compiled case; `call` runs it on tensors, the destination last."""

    def __init__(self, case: Case) -> None:
        begin = time.perf_counter()
        target = HostTarget.detect()
        template = Template((KERNELS / f"{case.kernel}.mlir").read_text())
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(template.substitute(case.sizes))
            (kernel,) = lower_kernels(module, target, RunOptions()).values()
            entries = tuple(range(kernel.pointers))
            launch = Launch(LAUNCH, kernel, entries, parallel=True)
            self._objects = LoadedObjects([compile_kernels(module, [launch])], [LAUNCH])
        self.compile_seconds = time.perf_counter() - begin
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._launch = function(self._objects.address(LAUNCH))

    def call(self, *tensors: Tensor) -> Tensor:
        table = (ctypes.c_int64 * len(tensors))(*(t.data_ptr() for t in tensors))
        self._launch(table)
        return tensors[-1]


def measure(case: Case, threads: int) -> Result:
    """Run a case with a number of threads."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    inputs = tuple(torch.rand(shape) for shape in case.shapes)
    expected = case.reference(*inputs)
    kernel = Kernel(case)
    operands = (*inputs, torch.empty_like(expected))
    result = kernel.call(*operands)
    error = float((result - expected).abs().max() / expected.abs().max())
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        best[0] = min(best[0], seconds_again(lambda: case.reference(*inputs)))
        best[1] = min(best[1], seconds_again(lambda: kernel.call(*operands)))
    return Result(
        case.name,
        threads,
        best[0] * 1e6,
        best[1] * 1e6,
        best[0] / best[1],
        error,
        kernel.compile_seconds,
    )


def show(results: list[Result]) -> None:
    """Print a table of results."""
    table = Table("kernel", "threads", "torch us", "magweld us", "ratio", "error")
    for r in results:
        times = (f"{r.torch_us:.1f}", f"{r.magweld_us:.1f}", f"{r.ratio:.2f}")
        table.add_row(r.name, str(r.threads), *times, f"{r.error:.1e}")
    Console().print(table)


def main() -> None:
    """Run the cases whose names hold one of the arguments, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    cases = [
        case
        for case in CASES
        if not arguments.names or any(name in case.name for name in arguments.names)
    ]
    results = [measure(case, threads) for threads in (1, 2) for case in cases]
    show(results)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(r) for r in results], indent=1))


if __name__ == "__main__":
    main()
