"""Programs that run within a memory budget: right, within it, or told why not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import magweld
from magweld import api
from magweld.frontend import trace


class Chain(nn.Module):
    """Strides, windows of several sizes, a pool that goes beyond the border."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 12, 5, stride=2, padding=2)
        self.third = nn.Conv2d(12, 6, 3, padding=2, dilation=2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.second(F.relu(self.first(x))))
        x = F.max_pool2d(F.relu(self.third(x)), 3, 2, padding=1, ceil_mode=True)
        return F.avg_pool2d(x, 2)


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU())


class Skips(nn.Module):
    """Down and up again, with what was there on the way down beside it."""

    def __init__(self, up: Callable[[int, int], nn.Module], *widths: int) -> None:
        super().__init__()
        inner = widths[::-1]
        self.down = nn.ModuleList(
            block(i, o) for i, o in zip((3, *widths), widths, strict=False)
        )
        self.up = nn.ModuleList(up(i, o) for i, o in itertools.pairwise(inner))
        self.merge = nn.ModuleList(block(2 * o, o) for o in inner[1:])
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for down in self.down:
            x = down(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        others = reversed(kept[:-1])
        for up, merge, beside in zip(self.up, self.merge, others, strict=True):
            x = merge(torch.cat([beside, up(x)], 1))
        return self.head(x)


def transposed(inputs: int, outputs: int) -> nn.Module:
    return nn.ConvTranspose2d(inputs, outputs, 2, stride=2)


def interpolated(mode: str) -> Callable[[int, int], nn.Module]:
    def make(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Upsample(scale_factor=2, mode=mode), nn.Conv2d(inputs, outputs, 1)
        )

    return make


class Residual(nn.Module):
    """Depthwise windows, a norm, a sum with what came in, and a mean at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point = nn.Conv2d(8, 8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = F.gelu(self.norm(self.stem(x)))
        x = x + self.point(self.depth(x))
        return F.max_pool2d(x, 2), x.mean((2, 3))


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "chain": (Chain, (1, 3, 97, 131), "500kB"),
    "transposed": (lambda: Skips(transposed, 4, 6), (1, 3, 64, 48), "120kB"),
    "bilinear": (
        lambda: Skips(interpolated("bilinear"), 4, 6),
        (1, 3, 48, 64),
        "150kB",
    ),
    "nearest": (lambda: Skips(interpolated("nearest"), 4, 6), (1, 3, 48, 64), "110kB"),
    "batches": (Residual, (4, 3, 40, 36), "90kB"),
}
# Planned for as long as all others together.
DEEP = {"deep": (lambda: Skips(transposed, 4, 6, 8), (1, 3, 64, 48), "120kB")}
NAMES = [*CASES, *(pytest.param(name, marks=pytest.mark.whole) for name in DEEP)]


def memory_of(traced: Any) -> dict[str, Any]:
    (record,) = traced.records
    assert isinstance(record.compiled, api.CompiledGraph), traced.explain()
    found: dict[str, Any] = record.compiled.report()["memory"]
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_eager(name: str, same: Callable[..., None]) -> None:
    make, shape, budget = {**CASES, **DEEP}[name]
    model = make().eval()
    traced = trace(model, memory_budget=budget)
    with torch.no_grad():
        traced(torch.randn(shape))
        for _ in range(2):
            x = torch.randn(shape)
            same(traced(x), model(x))
    assert traced.stats()["hits"] == 2
    memory = memory_of(traced)
    assert memory["tiled"]
    parts = ("arena_bytes", "transient_bytes", "scratch_bytes")
    assert sum(memory[part] for part in parts) <= int(budget.removesuffix("kB")) * 1000


def test_enough_memory_changes_nothing() -> None:
    model = Chain().eval()
    x = torch.randn(1, 3, 33, 40)
    with torch.no_grad():
        traced = trace(model, memory_budget="1GiB")
        traced(x)
    memory = memory_of(traced)
    assert memory["tiled"] == []
    assert 0 < memory["arena_bytes"] < 1 << 20


def test_a_budget_that_no_plan_keeps_is_told_and_eager_runs(
    same: Callable[..., None],
) -> None:
    model = Chain().eval()
    x = torch.randn(1, 3, 33, 40)
    traced = trace(model, memory_budget=1000)
    with torch.no_grad():
        with pytest.warns(UserWarning, match="memory-budget"):
            traced(x)
        same(traced(x), model(x))
    assert "memory-budget" in traced.explain()


@pytest.mark.whole
def test_torch_compile_takes_the_budget_and_runs_nothing_before() -> None:
    torch._dynamo.reset()
    model = Residual().eval()
    options = {"memory_budget": "120kB"}
    compiled = torch.compile(model, backend="magweld", options=options)
    x = torch.randn(4, 3, 40, 36)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))


def test_artifacts_keep_their_tiles(tmp_path: Path) -> None:
    model = Residual().eval()
    x = torch.randn(4, 3, 40, 36)
    artifact = magweld.compile(model, (x,), memory_budget="90kB")
    assert artifact.report()["memory"]["tiled"]
    artifact.save(tmp_path / "tiles.mw")
    with torch.no_grad():
        expected = model(x)
    torch.testing.assert_close(magweld.load(tmp_path / "tiles.mw")(x), expected)


@pytest.mark.parametrize("size", ["2 boats", "", "-1GiB", 0, "0MB"])
def test_sizes_are_checked_before_anything_runs(size: Any) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        trace(Chain(), memory_budget=size)


def test_other_backends_know_no_budget() -> None:
    with pytest.raises(ValueError, match="memory_budget"):
        trace(Chain(), backend="eager", memory_budget="1GB")
