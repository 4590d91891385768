"""Results that are stored past the caches, wherever in memory they begin.

Of two results the first one is read again, by the same operation or another one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.pipelines.cpu import cpu_steps

KERNELS = Path(__file__).parent / "kernels"
Build = Callable[..., Any]
ROWS, TILE = 12, 4
TEXT = Template((KERNELS / "total_and_scaled.mlir").read_text())


def text(columns: int, which: str = "[0, 1]", element: str = "f32") -> str:
    sizes = {"M": ROWS, "R": TILE, "N": columns}
    return TEXT.substitute(sizes, T=element, WHICH=which)


def results(columns: int, offset: int, kind: torch.dtype) -> list[Tensor]:
    """Return tensors that begin some elements behind a line."""
    made = []
    for _ in range(2):
        memory = torch.full((ROWS * columns + 64,), 7.0, dtype=kind)
        assert memory.data_ptr() % 64 == 0
        made.append(memory[offset : offset + ROWS * columns].view(ROWS, columns))
    return made


def check(kernel: Any, columns: int, offset: int, kind: torch.dtype) -> None:
    x, y = (torch.randint(-4, 5, (ROWS, columns)).to(kind) for _ in range(2))
    total, scaled = results(columns, offset, kind)
    kernel(x, y, total, scaled)
    assert torch.equal(total, x + y)
    expected = total.double() * total.double().sum(1, keepdim=True)
    torch.testing.assert_close(scaled, expected.to(kind))
    for result in (total, scaled):
        beside = result.untyped_storage().nbytes() // result.element_size()
        whole = torch.empty(0, dtype=kind).set_(result.untyped_storage(), 0, (beside,))
        assert (whole[:offset] == 7).all()
        assert (whole[offset + result.numel() :] == 7).all()


@pytest.mark.parametrize("offset", [0, 1, 3, 16])
@pytest.mark.parametrize("parallel", [False, True])
def test_results_begin_anywhere(build: Build, offset: int, parallel: bool) -> None:
    kernel = build(text(64), parallel=parallel)
    assert kernel.lowered.count("nontemporal") >= 2
    assert kernel.lowered.count("llvm.fence seq_cst") == 1
    check(kernel, 64, offset, torch.float32)


@pytest.mark.parametrize("which", ["[0]", "[1]"])
def test_one_of_two_results(build: Build, which: str) -> None:
    kernel = build(text(64, which))
    assert "nontemporal" in kernel.lowered
    check(kernel, 64, 0, torch.float32)


@pytest.mark.parametrize("columns", [21, 63, 65])
def test_tiles_of_no_whole_lines_are_stored_as_others(
    build: Build, columns: int
) -> None:
    kernel = build(text(columns))
    assert "llvm.fence" not in kernel.lowered
    check(kernel, columns, 0, torch.float32)


@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize("offset", [0, 1])
def test_narrow_vectors_make_lines(build: Build, bits: int, offset: int) -> None:
    kernel = build(text(96), cpu_steps(VectorUnit(bits, 16)))
    assert "nontemporal" in kernel.lowered
    check(kernel, 96, offset, torch.float32)


@pytest.mark.parametrize(
    ("element", "kind"), [("f64", torch.float64), ("f16", torch.float16)]
)
def test_other_types(build: Build, element: str, kind: torch.dtype) -> None:
    kernel = build(text(64, element=element))
    for offset in (0, 2, 32):
        check(kernel, 64, offset, kind)


def test_rows_that_follow_each_other_make_lines_together(build: Build) -> None:
    kernel = build(text(20))
    assert "llvm.fence" in kernel.lowered
    check(kernel, 20, 0, torch.float32)
