"""Small programs, traced and compiled by the default backend, against eager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from magweld.api import compile_graph, compile_service
from magweld.compiler_options import CompileOptions
from magweld.importer import operators
from magweld.runtime.service import ServiceStatistics
from magweld.targets import device_entry
from magweld.targets.writing import device_text

Compile = Callable[..., Any]


def externals(checked: Any) -> list[str]:
    """Return the operators of the only record that run through torch."""
    return list(checked.traced.records[0].compiled.report()["externals"])


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        features = F.relu(self.norm(self.conv(x)))
        return self.head(features.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        x = x + mixed.transpose(1, 2).reshape(batch, length, width)
        return x + self.mix(x)


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 2)),
        (4, 6),
    ),
    "conv": (Classifier, (2, 3, 8, 8)),
    "attention": (Attention, (2, 5, 16)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_agree_with_eager(name: str, compiled: Compile) -> None:
    make, shape = MODULES[name]
    model = make().eval().requires_grad_(False)
    checked = compiled(model, torch.randn(shape))
    checked.compare(torch.randn(shape))
    checked.compare(torch.randn(shape))


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x: x * 2 + 1, torch.float64),
        (lambda x: (x + x.flip(0)) * 3, torch.int64),
        (lambda x: x.div(2, rounding_mode="floor") + x % 3, torch.int32),
        (lambda x: x > 2, torch.float32),
        (lambda x: x.sum(0), torch.int64),
        (lambda x: x.to(torch.int64), torch.float32),
        (lambda x: (x > 1) & ~(x > 2), torch.float32),
        (lambda x: x.float().mean(1), torch.bool),
        (lambda x: x * 2, torch.float16),
        (lambda x: x.softmax(-1), torch.bfloat16),
        (lambda x: x + 3, torch.uint8),
    ],
)
def test_element_types(function: Any, dtype: torch.dtype, compiled: Compile) -> None:
    def values() -> Tensor:
        return torch.randint(0, 5, (4, 6)).to(dtype)

    compiled(function, values()).compare(values())


@pytest.mark.parametrize(
    "arrange",
    [
        lambda: torch.randn(6, 4).t(),
        lambda: torch.randn(8, 6)[::2],
        lambda: torch.randn(4, 1).expand(4, 6),
        lambda: torch.randn(30)[3:27].view(4, 6),
    ],
    ids=["transposed", "strided", "expanded", "offset"],
)
def test_inputs_that_are_not_contiguous(arrange: Any, compiled: Compile) -> None:
    checked = compiled(lambda x: x.relu() @ x.t(), arrange())
    checked.compare(arrange())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1).t(),
        lambda x: (x * 2).unsqueeze(1).expand(4, 3, 6),
        lambda x: torch.empty_like(x.t()).copy_(x.t()),
        lambda x: (x + 1)[:, 1:5:2],
    ],
    ids=["transposed", "expanded", "preserved", "sliced"],
)
def test_strides_of_results(function: Any, compiled: Compile) -> None:
    compiled(function, torch.randn(4, 6)).compare(torch.randn(4, 6))


FORMS: dict[str, Callable[[], Tensor]] = {
    "values": lambda: torch.randn(6, 6),
    "strides": lambda: torch.randn(6, 6).t(),
    "gaps": lambda: torch.randn(6, 12)[:, ::2],
    "negated": lambda: torch._neg_view(torch.randn(6, 6)),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_parameter_that_changes_its_form_between_hits(
    name: str, compiled: Compile, same: Callable[[Any, Any], None]
) -> None:
    """Guards have tested the form of what a program takes: it does not once more."""
    layer, x = nn.Linear(6, 6).requires_grad_(False), torch.randn(4, 6)
    checked = compiled(layer, x)
    for _ in range(3):
        checked.compare(x)
    for form in (FORMS[name], FORMS["values"]):
        layer.weight.data = form()
        for _ in range(3):
            same(checked.traced(x), layer(x))


def test_structures_of_results(compiled: Compile) -> None:
    def function(x: Tensor) -> dict[str, Any]:
        return {"a": (x + 1, [x * 2, None]), "n": 3}

    compiled(function, torch.randn(2, 3)).compare(torch.randn(2, 3))


def test_a_result_that_is_an_input(compiled: Compile) -> None:
    checked = compiled(lambda x, y: (x, x + y), *torch.randn(2, 3, 4))
    (x, _), (first, _) = checked.compare(*torch.randn(2, 3, 4))
    assert first is x


def test_a_result_that_is_a_view_of_an_input(compiled: Compile) -> None:
    checked = compiled(lambda x: (x[1:].t(), x.exp()), torch.randn(3, 4))
    (x,), (view, _) = checked.compare(torch.randn(3, 4))
    x.fill_(7.0)
    assert bool((view == 7.0).all())


def test_results_that_share_memory(compiled: Compile) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        doubled = x * 2
        return doubled, doubled[0]

    _, (whole, row) = compiled(function, torch.randn(3, 4)).compare(torch.randn(3, 4))
    whole.zero_()
    assert not row.any()


def test_two_equal_results_do_not_share_memory(compiled: Compile) -> None:
    checked = compiled(lambda x: (x + 1, x + 1), torch.randn(3, 4))
    _, (first, second) = checked.compare(torch.randn(3, 4))
    first.zero_()
    assert second.any()


def test_writes_to_an_input(compiled: Compile) -> None:
    def function(x: Tensor) -> Tensor:
        x.mul_(2)
        return x.sum(1)

    compiled(function, torch.randn(3, 4)).compare(torch.randn(3, 4))


def test_writes_to_an_input_through_a_view(compiled: Compile) -> None:
    def function(x: Tensor) -> Tensor:
        x[:, 1].add_(5)
        x.t()[2].zero_()
        return x + 1

    compiled(function, torch.randn(3, 4)).compare(torch.randn(3, 4))


def test_an_operator_without_lowering_runs_through_torch(compiled: Compile) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        values, order = (x * 2).sort(dim=1)
        return values + 1, order

    checked = compiled(function, torch.randn(3, 4))
    assert any("sort" in name for name in externals(checked))
    checked.compare(torch.randn(3, 4))


def test_a_lowering_that_is_missing_after_all_is_remembered(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The table of generated operators promises what the lowering does not hold.
    rules = {**operators.RULES, torch.ops.aten.sort.default: lambda node: True}
    monkeypatch.setattr(operators, "RULES", rules)

    def function(x: Tensor) -> Tensor:
        return (x * 3).sort(dim=1)[0] + 1

    def statistics() -> ServiceStatistics:
        return compile_service().statistics

    failures = statistics().failures
    checked = compiled(function, torch.randn(3, 4))
    assert len(externals(checked)) == 1
    assert statistics().failures == failures
    checked.compare(torch.randn(3, 4))
    compile_service.cache_clear()  # as a new process would
    compiled(function, torch.randn(3, 4)).compare(torch.randn(3, 4))
    assert (statistics().misses, statistics().disk_hits) == (0, 2)


def test_an_index_out_of_range_raises_what_eager_raises(compiled: Compile) -> None:
    table = nn.Embedding(10, 4).requires_grad_(False)
    checked = compiled(table, torch.tensor([1, 2, 3]))
    checked.compare(torch.tensor([9, 0, 5]))
    with pytest.raises(IndexError) as raised:
        table(torch.tensor([1, 10, 3]))
    with pytest.raises(IndexError, match="index out of range") as mine:
        checked.traced(torch.tensor([1, 10, 3]))
    assert str(mine.value) == str(raised.value)
    checked.compare(torch.tensor([1, 1, 1]))


def groups(checked: Any) -> list[list[str]]:
    """Return the operators of each kernel."""
    report = checked.traced.records[0].compiled.report()
    return [group["operators"] for group in report["groups"]]


def test_a_sum_that_is_a_result_and_normed_is_one_kernel(compiled: Compile) -> None:
    norm = nn.LayerNorm(96).requires_grad_(False)

    def add_norm(x: torch.Tensor, y: torch.Tensor) -> Any:
        total = x + y
        return total, norm(total)

    checked = compiled(add_norm, torch.randn(1024, 96), torch.randn(1024, 96))
    assert len(groups(checked)) == 1
    checked.compare(torch.randn(1024, 96), torch.randn(1024, 96))


def test_rows_that_indices_find_are_read_in_the_kernel(compiled: Compile) -> None:
    norm = nn.LayerNorm(72).requires_grad_(False)

    def look_up(words: torch.Tensor, kinds: torch.Tensor, ids: torch.Tensor) -> Any:
        return norm(words[ids] + torch.embedding(kinds, ids % 4))

    words, kinds = torch.randn(50, 72), torch.randn(4, 72)
    ids = torch.randint(0, 50, (64, 8))
    checked = compiled(look_up, words, kinds, ids)
    assert len(groups(checked)) == 1
    checked.compare(words, kinds, ids - 50)
    for position, wrong in ((5, 50), (7, -51)):
        bad = ids.clone()
        bad[position, 3] = wrong
        with pytest.raises(IndexError) as raised:
            look_up(words, kinds, bad)
        with pytest.raises(IndexError) as mine:
            checked.traced(words, kinds, bad)
        assert str(mine.value) == str(raised.value)
    checked.compare(words, kinds, torch.randint(-50, 50, (64, 8)))


def test_the_stages_can_be_read(compiled: Compile) -> None:
    checked = compiled(nn.Linear(8, 4).requires_grad_(False), torch.randn(4, 8))
    graph = checked.traced.records[0].compiled
    assert "torch.aten" in graph.mlir("torch")
    assert "linalg." in graph.mlir("linalg")
    assert "tile_graph.operator" in graph.mlir("tile-graph")
    assert "llvm.func @kernel_0" in graph.mlir("llvm")
    # Later stages are of the module that is kept, and those of one lowered anew.
    assert graph.program.scheduled
    program = replace(graph.program, scheduled="")
    anew = replace(graph, program=program)
    for stage in ("scheduled", "planned", "tiled", "llvm"):
        assert graph.mlir(stage) == anew.mlir(stage)
    with pytest.raises(Exception, match="no stage of a module is called"):
        graph.mlir("nonsense")


def test_a_device_file_that_changes_is_another_compilation(tmp_path: Path) -> None:
    file = tmp_path / "devices.toml"
    options = CompileOptions(device=f"{file}#mine")
    graph, x = fx.symbolic_trace(lambda x: torch.exp(x) + 1), torch.randn(3, 4)
    misses = compile_service().statistics.misses
    for units, expected in ((1, 1), (2, 2), (1, 2)):
        entry = device_entry("cpu")
        changed = replace(entry, device=replace(entry.device, units=units))
        file.write_text(device_text("mine", changed), "utf-8")
        result = compile_graph(graph, [x], options=options)(x)
        torch.testing.assert_close(result, x.exp() + 1)
        assert compile_service().statistics.misses - misses == expected
