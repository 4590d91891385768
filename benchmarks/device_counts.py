"""Memory transactions of the kernels for GPUs against the least, without a GPU.

    python benchmarks/device_counts.py [--cases NAME ...] [--targets T ...] [-o FILE]

AMD's machine code runs in the emulator (`emulated_gpu.py`), kernels for NVIDIA in the
interpreter of the tests, which sees the accesses of the gpu dialect: what LLVM joins
after that it does not know. All blocks of each kernel are counted:

- sectors of global memory that the instructions of a subgroup touch, against those
  that the bytes of its threads fill (32 bytes on NVIDIA, 64 on AMD),
- passes of shared memory against those without bank conflicts,
- bytes that blocks touch against what the plan predicts for the level in front of the
  tiles: a byte counts once a block,
- bytes that the kernel touches against what the plan predicts for the memory of the
  device: a byte counts once, as the second cache has room for all of such small cases.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from device_cases import MODELS, SUBGRAPHS, captured
from device_coverage import DTYPES, in_child
from emulated_gpu import (
    EmulatedDriver,
    EmulatedGpu,
    HostDriver,
    compile_in_process,
    emulated,
    interpreted,
    missing,
)
from memory_counters import Access, MemoryCounters
from reporting import report_file, write_report
from traced_amd import SECTOR, traced

from magweld.artifact import KernelStep, Program
from magweld.importer.importer import ImportedGraph
from magweld.runtime.gpu.driver import Geometry
from magweld.targets import parse_target

TARGETS = ("nvvm:sm_80", "rocdl:gfx942")
_NVIDIA_SECTOR, _WARP = 32, 32
AGREEMENT = 0.15  # of plans with what is counted
NEAR = 1.1  # times the least


@dataclass
class KernelCounts:
    """What the launches of a step of a program did.

    Attributes:
        kernel: Name of its first kernel.
        sources: Graph nodes that it computes.
        counters: Transactions.
        to_blocks: Bytes that the plan moves to and from the tiles of all blocks, 0 if
            it says nothing.
        to_memory: Bytes that it moves to and from the memory of the device, likewise.
        least: Bytes of the step's arguments and results.
    """

    kernel: str
    sources: tuple[str, ...]
    counters: MemoryCounters
    to_blocks: int = 0
    to_memory: int = 0
    least: int = 0

    @property
    def of_blocks(self) -> float:
        """Bytes that blocks touch by those predicted."""
        counted = self.counters.block_bytes
        return counted / self.to_blocks if self.to_blocks else 0.0

    @property
    def of_memory(self) -> float:
        """Bytes that the kernel touches by those predicted."""
        counted = self.counters.kernel_bytes
        return counted / self.to_memory if self.to_memory else 0.0


@dataclass
class Counts:
    """What the kernels of a case did on a target."""

    case: str
    target: str
    dtype: str
    kernels: list[KernelCounts] = field(default_factory=list)
    problem: str = ""


@dataclass
class CountingDriver(HostDriver):
    """A driver whose launches are counted; each kernel once.

    Attributes:
        run: Runs a kernel and counts it.
        counted: Counters by kernel.
    """

    run: Callable[[Any, Geometry, Sequence[int]], MemoryCounters]
    load: Callable[[bytes], Any]
    counted: dict[str, MemoryCounters] = field(default_factory=dict)

    def launch(
        self,
        function: Any,
        geometry: Geometry,
        stream: int,
        pointers: Sequence[int],
        *,
        is_table: bool = False,
    ) -> None:
        """Count all blocks of a kernel."""
        counters = self.run(function, geometry, pointers)
        self.counted.setdefault(function[1], counters)


def _amd_driver(graph: ImportedGraph, target: str) -> CountingDriver:
    emulator = EmulatedDriver()

    def run(
        function: Any, geometry: Geometry, pointers: Sequence[int]
    ) -> MemoryCounters:
        counters = MemoryCounters(SECTOR)
        with traced(counters, range(8 * len(pointers))):
            emulator.launch(function, geometry, 0, pointers)
        return counters

    return CountingDriver(run, emulator.load)


def _nvidia_driver(graph: ImportedGraph, target: str) -> CountingDriver:
    kernels = interpreted(graph.text, target)

    def run(
        function: Any, geometry: Geometry, pointers: Sequence[int]
    ) -> MemoryCounters:
        counters = MemoryCounters(_NVIDIA_SECTOR)
        noted = _warps_noted(counters)

        def observer_of(number: int) -> Any:
            counters.end_block()
            return noted

        kernels[function[1]](pointers.__getitem__, observer_of=observer_of)
        counters.end_block()
        return counters

    return CountingDriver(run, lambda image: None)


def _warps_noted(counters: MemoryCounters) -> Callable[..., None]:
    """Return an observer of the interpreter that counts warps."""

    def note(
        is_store: bool, memory: Any, threads: Any, first: np.ndarray, width: int
    ) -> None:
        is_shared = memory.name == "shared memory"
        at = first if is_shared else first + memory.data.ctypes.data
        for warp in np.unique(threads // _WARP):
            chosen = threads // _WARP == warp
            lanes = threads[chosen] % _WARP
            counters.note(Access(is_store, is_shared, lanes, at[chosen], width))

    return note


_DRIVERS = {"nvvm": _nvidia_driver, "rocdl": _amd_driver}


def count(case: str, target: str, dtype: str) -> Counts:
    """Compile a case, run it and count its kernels."""
    one = captured(case, DTYPES[dtype])
    kernels, _ = counted(one.graph, one.tensors, target)
    return Counts(case, target, dtype, kernels)


def counted(
    graph: ImportedGraph, tensors: Sequence[Any], target: str
) -> tuple[list[KernelCounts], Any]:
    """Compile a graph, run it, and return its kernels and its results."""
    graph, program = compile_in_process(graph, target)
    levels = parse_target(target).device.level_names()
    driver = _DRIVERS[target.partition(":")[0]](graph, target)
    machine = EmulatedGpu(driver)  # type: ignore[arg-type]
    results = emulated(graph, program, machine)(*tensors)
    return list(_by_step(program, driver.counted, levels)), results


def _by_step(
    program: Program, counted: dict[str, MemoryCounters], levels: Sequence[str]
) -> Iterator[KernelCounts]:
    steps = [step for step in program.steps if isinstance(step, KernelStep)]
    done = set()
    for step, plan in zip(steps, program.report["groups"], strict=True):
        launches = [one for one in program.launches if one.step == step.symbol]
        name = launches[0].kernel
        if name in done:
            continue
        done.add(name)
        total = counted[name]
        for launch in launches[1:]:
            total.add(counted[launch.kernel])
        values = {*step.reads, *step.writes}
        # From the memory of the device to the level in front of that of the tiles.
        moved = plan.get("moved_after", {})
        on_the_way = [moved[name] for name in levels if name in moved][:-1] or [0]
        yield KernelCounts(
            name,
            launches[0].sources,
            total,
            on_the_way[-1] * launches[0].members,
            on_the_way[0] * launches[0].members,
            sum(_bytes(program.values[number]) for number in values),
        )


def _bytes(value: Any) -> int:
    bits = {"i1": 8, "bf16": 16}.get(value.dtype) or int(value.dtype[1:])
    return int(np.prod(value.shape, dtype=np.int64)) * bits // 8


def rows(one: Counts) -> Iterator[str]:
    """Yield the lines of a case in the table."""
    head = f"| {one.target} | {one.dtype} | {one.case} |"
    if one.problem:
        yield f"{head} {one.problem} |"
    for kernel in one.kernels:
        counters = kernel.counters
        yield (
            f"{head} {' '.join(kernel.sources)[:40]} | {counters.instructions} "
            f"| {counters.reads.ratio:.2f} | {counters.writes.ratio:.2f} "
            f"| {counters.passes.done} | {counters.passes.ratio:.2f} "
            f"| {counters.block_bytes} | {kernel.of_blocks:.2f} "
            f"| {counters.kernel_bytes} | {kernel.of_memory:.2f} |"
        )


HEAD = (
    "| target | type | case | operators | accesses | read | written | shared passes "
    "| of least | to blocks | of plan | to memory | of plan |\n" + "| --- " * 13 + "|"
)


def summary(found: list[Counts]) -> dict[str, Any]:
    """Return over all kernels what is more than the least, and agrees with plans."""
    kernels = [kernel for one in found for kernel in one.kernels]
    counters = [kernel.counters for kernel in kernels]
    planned = [kernel for kernel in kernels if kernel.to_blocks]
    sectors = (max(one.reads.ratio, one.writes.ratio) for one in counters)
    return {
        "kernels": len(kernels),
        "sectors_near_least": sum(ratio <= NEAR for ratio in sectors),
        "passes_near_least": sum(one.passes.ratio <= NEAR for one in counters),
        "planned": len(planned),
        "to_blocks_as_planned": _agree(one.of_blocks for one in planned),
        "to_memory_as_planned": _agree(one.of_memory for one in planned),
    }


def _agree(ratios: Iterable[float]) -> int:
    return sum(abs(ratio - 1) <= AGREEMENT for ratio in ratios)


def main() -> int:
    """Count the cases that the command line names."""
    names = [*SUBGRAPHS, *MODELS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", choices=names, default=list(SUBGRAPHS))
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--dtypes", nargs="*", choices=list(DTYPES), default=["f32"])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("-o", "--output", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    if missing() and any(t.startswith("rocdl") for t in options.targets):
        print(missing(), file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    found = []
    print(HEAD)
    for target in options.targets:
        for dtype in options.dtypes:
            for case in options.cases:
                one = in_child(count, (case, target, dtype), options.seconds)
                if isinstance(one, str):
                    one = Counts(case, target, dtype, problem=one)
                found.append(one)
                print("\n".join(rows(one)), flush=True)
    print(summary(found))
    results = [asdict(one) for one in found]
    write_report(options.output, 1, results, **summary(found))
    return 1 if any(one.problem for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
