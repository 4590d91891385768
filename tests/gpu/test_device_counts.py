"""Transactions of memory accesses: what is counted by hand, and of whole kernels."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import fx

from magweld.importer.importer import import_graph

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]

counters_of = importlib.import_module("memory_counters")
emulated = importlib.import_module("emulated_gpu")
needs_emulator = pytest.mark.skipif(bool(emulated.missing()), reason=emulated.missing())


def counted(
    first: Any, width: int = 4, shared: bool = False, store: bool = False
) -> Any:
    counters = counters_of.MemoryCounters(sector=32)
    first = np.asarray(first, np.int64)
    lanes = np.arange(len(first))
    counters.note(counters_of.Access(store, shared, lanes, first, width))
    counters.end_block()
    return counters


@pytest.mark.parametrize(
    ("first", "width", "done", "least"),
    [
        (np.arange(32) * 4, 4, 4, 4),  # neighbours
        (np.arange(32) * 4 + 16, 4, 5, 4),  # not aligned to a sector
        (np.arange(32) * 8, 4, 8, 4),  # every second word
        (np.arange(32) * 512, 4, 32, 4),  # a column
        (np.zeros(32), 4, 1, 1),  # all the same
        (np.arange(32) * 16, 16, 16, 16),  # 16 bytes a thread
        (np.arange(32) * 2, 2, 2, 2),  # halves
    ],
)
def test_sectors(first: Any, width: int, done: int, least: int) -> None:
    reads = counted(first, width).reads
    assert (reads.done, reads.least) == (done, least)
    writes = counted(first, width, store=True).writes
    assert (writes.done, writes.least) == (done, least)


@pytest.mark.parametrize(
    ("first", "width", "done", "least"),
    [
        (np.arange(32) * 4, 4, 1, 1),  # neighbours
        (np.arange(32) * 8, 4, 2, 1),  # two words a bank
        (np.arange(32) * 128, 4, 32, 1),  # all in one bank
        (np.arange(32) * 132, 4, 1, 1),  # a padded column
        (np.zeros(32), 4, 1, 1),  # one word for all
        (np.arange(64) * 4, 4, 2, 2),  # a wavefront moves 256 bytes
        (np.arange(32) * 16, 16, 4, 4),  # eight threads a pass
        (np.arange(32) * 128, 16, 32, 4),  # rows of 128 bytes
        (np.arange(32) * 2, 2, 1, 1),  # halves of a word
    ],
)
def test_passes_of_shared_memory(first: Any, width: int, done: int, least: int) -> None:
    passes = counted(first, width, shared=True).passes
    assert (passes.done, passes.least) == (done, least)


def test_a_byte_counts_once_a_block() -> None:
    counters = counters_of.MemoryCounters(sector=32)
    lanes = np.arange(32)
    read = counters_of.Access(False, False, lanes, lanes * 4, 4)
    counters.note(read)
    counters.note(read)
    counters.end_block()
    counters.note(read)
    counters.end_block()
    assert counters.block_bytes == 2 * 128
    assert counters.kernel_bytes == 128
    assert counters.reads.done == 3 * 4


def check_norm(target: str) -> None:
    """Add, then a layer norm of 32 rows of 96: read once a kernel, written once."""
    counts = importlib.import_module("device_counts").count("add-norm", target, "f32")
    added, norm = counts.kernels
    assert added.counters.block_bytes == 3 * 32 * 96 * 4
    assert added.of_blocks == added.of_memory == 1
    for kernel in (added, norm):
        assert kernel.counters.reads.ratio <= 1.1
        assert kernel.counters.writes.ratio <= 1.1
    assert norm.counters.writes.done * norm.counters.sector == 32 * 96 * 4


def test_kernels_for_nvidia_are_counted() -> None:
    check_norm("nvvm:sm_80")


@pytest.mark.whole
@needs_emulator
def test_kernels_for_amd_are_counted() -> None:
    check_norm("rocdl:gfx942")


def check_transpose(target: str) -> None:
    """Halves, of which neighbours are a row apart: tiles go through shared memory."""

    def transposed(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).contiguous()

    kernel = check_least(transposed, torch.randn(2, 48, 64).bfloat16(), target)
    assert kernel.counters.passes.done


def check_least(
    function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, target: str
) -> Any:
    graph = import_graph(fx.symbolic_trace(function), [x], device=torch.device("meta"))
    counts = importlib.import_module("device_counts")
    (kernel,), result = counts.counted(graph, [x], target)
    torch.testing.assert_close(result, function(x), rtol=0, atol=0)
    # Numbers alone: counters know every byte, which pytest would print.
    reads, writes = kernel.counters.reads.ratio, kernel.counters.writes.ratio
    assert max(reads, writes) <= 1.1
    return kernel


def test_products_copy_odd_rows_side_by_side() -> None:
    """Rows of 49 halves: as one row they move in pieces, as many bytes as planned."""

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b

    tensors = [torch.randn(1, 16, 16).bfloat16(), torch.randn(1, 16, 49).bfloat16()]
    meta = torch.device("meta")
    graph = import_graph(fx.symbolic_trace(product), tensors, device=meta)
    counts = importlib.import_module("device_counts")
    (kernel,), result = counts.counted(graph, tensors, "nvvm:sm_80")
    torch.testing.assert_close(result, product(*tensors), rtol=1e-2, atol=1e-2)
    assert kernel.counters.reads.ratio <= 1.1
    assert abs(kernel.of_blocks - 1) <= counts.AGREEMENT


def test_rows_of_tables_are_read_side_by_side() -> None:
    """The number of a row is loaded once, and pieces of the row at once."""

    def looked_up(numbers: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(numbers, table) * 2

    tensors = [torch.randint(0, 50, (2, 8)), torch.randn(50, 96).bfloat16()]
    meta = torch.device("meta")
    traced = fx.symbolic_trace(looked_up)
    graph = import_graph(traced, tensors, look_ups=True, device=meta)
    counts = importlib.import_module("device_counts")
    (kernel,), result = counts.counted(graph, tensors, "nvvm:sm_80")
    torch.testing.assert_close(result, looked_up(*tensors), rtol=0, atol=0)
    assert kernel.counters.reads.ratio <= 1.1


def test_transposes_for_nvidia_move_the_least() -> None:
    check_transpose("nvvm:sm_80")


@pytest.mark.parametrize(
    ("source", "made"),
    [(torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)],
    ids=str,
)
def test_conversions_move_the_least(source: torch.dtype, made: torch.dtype) -> None:
    check_least(lambda x: x.to(made), torch.randn(16, 256).to(source), "nvvm:sm_80")


@needs_emulator
def test_transposes_for_amd_move_the_least() -> None:
    check_transpose("rocdl:gfx942")
