"""Units of real graphs: what is equal, which plans there are, what they compute."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import magweld
from magweld import TuneOptions, api
from magweld.artifact import Program
from magweld.bindings import ir
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import is_tile_graph
from magweld.frontend import trace
from magweld.importer.importer import import_graph
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.ir.utils import functions_of
from magweld.passes.tile.units import mark_units
from magweld.passes.tile.units import units_of as units_of_graph
from magweld.runtime.container import decode_program, encode_parts, encode_request
from magweld.runtime.measuring import agree, example_inputs
from magweld.runtime.program import LoadedProgram
from magweld.tuning import tasks

WIDTH = 512  # so much that two layers do not share a kernel
ROWS = 32


@pytest.fixture(autouse=True)
def own_cache(
    shared_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAGWELD_CACHE_DIR", str(tmp_path / "cache"))
    torch.manual_seed(0)
    api.compile_service.cache_clear()


@pytest.fixture
def model() -> nn.Module:
    layers = [(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(3)]
    return nn.Sequential(*(part for layer in layers for part in layer)).eval()


def text_of(model: nn.Module, x: Tensor) -> str:
    found: list[str] = []

    def backend(graph: Any, inputs: list[Tensor]) -> Any:
        found.append(import_graph(graph, inputs).text)
        return graph.forward

    with torch.no_grad():
        trace(model, backend=backend)(x)
    return found[0]


def units_of(text: str, options: CompileOptions) -> list[dict[str, Any]]:
    answer = json.loads(tasks.find_units(encode_request(options.text(), text)))
    found: list[dict[str, Any]] = answer["units"]
    return found


def run(program: Program) -> list[Tensor]:
    def no_external(node: str, tensors: Any) -> Any:
        raise AssertionError(node)

    return LoadedProgram(program, no_external)(example_inputs(program))


def test_equal_layers_are_equal_units(model: nn.Module) -> None:
    options = CompileOptions()
    units = units_of(text_of(model, torch.randn(ROWS, WIDTH)), options)
    assert len(units) == 3
    assert len({unit["structure"] for unit in units}) == 1
    other = units_of(text_of(model, torch.randn(ROWS // 2, WIDTH)), options)
    mine = {unit["structure"] for unit in units}
    assert mine.isdisjoint(unit["structure"] for unit in other)
    assert all(unit["seconds"] > 0 for unit in units)


def alternatives_of(unit: str, options: CompileOptions) -> list[dict[str, Any]]:
    parts = [options.text(), "4", unit]
    payload = encode_parts([part.encode() for part in parts])
    found: list[dict[str, Any]] = json.loads(tasks.find_alternatives(payload))
    return found


def test_every_alternative_computes_the_same(model: nn.Module) -> None:
    options = CompileOptions()
    text = text_of(model, torch.randn(ROWS, WIDTH))
    unit = units_of(text, options)[0]["structure"]
    found = alternatives_of(unit, options)
    assert len({a["text"] for a in found}) == len(found) == 4
    assert {"library" in a["label"] for a in found} == {True, False}
    requests = [encode_request(options.text(), a["text"]) for a in found]
    programs = [decode_program(tasks.compile_alternative(r)) for r in requests]
    first, *others = map(run, programs)
    assert all(agree(other, first) for other in others)
    generated = alternatives_of(unit, CompileOptions(library="never"))
    assert generated
    assert not any("library" in a["label"] for a in generated)


def test_what_has_no_lowering_is_named() -> None:
    class Unknown(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.linalg.qr(x)[0] + 1

    traced = trace(Unknown(), tune=5)
    with torch.no_grad():
        x = torch.randn(6, 6)
        traced(x)
        torch.testing.assert_close(traced(x), torch.linalg.qr(x)[0] + 1)


def test_a_tuned_model_gives_what_eager_gives(model: nn.Module) -> None:
    x = torch.randn(ROWS, WIDTH)
    traced = trace(model, tune=TuneOptions(seconds=60, candidates=2, progress=False))
    with torch.no_grad():
        traced(x)
        torch.testing.assert_close(traced(x), model(x))
    assert traced.stats()["hits"] == 1
    assert "plan of " in traced.explain()
    report = traced.records[0].inspectable.report()["tuning"]
    assert [unit["units"] for unit in report] == [3]


def test_an_executor_and_a_second_process(model: nn.Module, tmp_path: Path) -> None:
    x = torch.randn(ROWS, WIDTH)
    with ThreadPoolExecutor(2) as pool:
        options = TuneOptions(seconds=60, candidates=2, executor=pool)
        artifact = magweld.compile(model, (x,), tune=options)
    with torch.no_grad():
        torch.testing.assert_close(artifact(x), model(x))
    # Another process finds the programs or, without them, what was measured.
    api.compile_service.cache_clear()
    programs = [p for p in (tmp_path / "cache").glob("programs-*/*")]
    for path in programs:
        path.unlink()
    again = magweld.compile(model, (x,), tune=TuneOptions(seconds=1e-9))
    origins = [unit["plan"] for unit in again.report()["tuning"]]
    kept = len(list((tmp_path / "cache").glob("plans-*/*")))
    assert origins.count("cache") == kept
    # What there was no time for is no reason to tune in every process.
    api.compile_service.cache_clear()
    third = magweld.compile(model, (x,), tune=TuneOptions(seconds=1e-9))
    assert third.report()["tuning"] == again.report()["tuning"]
    assert api.compile_service().statistics.misses == 0


def test_no_tuning_of_other_machines(model: nn.Module) -> None:
    with pytest.raises(magweld.diagnostics.UnsupportedError, match="tune-target"):
        magweld.compile(model, (torch.randn(ROWS, WIDTH),), "nvvm:sm_80", tune=True)


def test_no_tuning_of_other_backends() -> None:
    with pytest.raises(ValueError, match="tune=True"):
        trace(torch.relu, backend="eager", tune=True)


def test_units_that_were_found_are_not_looked_for_again(model: nn.Module) -> None:
    text = text_of(model, torch.randn(ROWS, WIDTH))
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        lower_to_tiles(module, CompileOptions(), Phase.TILE_GRAPH)
        (graph,) = filter(is_tile_graph, functions_of(module.operation))
        first = units_of_graph(graph)
        # All in one, which no search finds.
        everything = tuple(sorted(m for unit in first for m in unit.members))
        mark_units(graph, [replace(first[0], members=everything)])
        (marked,) = units_of_graph(graph)
        assert marked.members == everything
        assert "unit" not in marked.structure
        mark_units(graph, first)
        again = units_of_graph(graph)
        assert [u.structure for u in again] == [u.structure for u in first]
