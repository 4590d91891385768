"""The import as a whole: its text, its arguments, and what a caller can change."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from linalg_reference import Reference

from magweld.bindings import ir
from magweld.context import make_context
from magweld.importer import refusals
from magweld.importer.importer import import_graph
from magweld.passes.graph.lower_torch_to_linalg import (
    LowerTorchToLinalg,
    UnloweredError,
)


def block(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
    hidden = F.gelu(F.linear(x, w, b))
    return hidden.sort(1).values + 1


def inputs() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(4, 8), torch.randn(6, 8), torch.randn(6)]


def test_equal_graphs_have_equal_text(record: Any) -> None:
    first = import_graph(record(block, *inputs()), inputs())
    graph = copy.deepcopy(record(block, *inputs()))
    second = import_graph(graph, [tensor + 1 for tensor in inputs()])
    assert first.text == second.text


def test_text_holds_no_data_of_inputs_and_constants(record: Any) -> None:
    held = torch.full((100, 100), 1.2345)

    def function(x: torch.Tensor) -> Any:
        return x @ held + torch.tensor([[1.5]])

    graph = record(function, torch.zeros(3, 100))
    imported = import_graph(graph, [torch.zeros(3, 100)])
    assert "dense_resource" not in imported.text
    assert "1.234" not in imported.text
    assert "1.5" in imported.text
    assert [tuple(c.shape) for c in imported.constants] == [(100, 100)]
    assert imported.prepare([torch.zeros(3, 100)])[1] is imported.constants[0]


def test_locations_are_nodes(record: Any) -> None:
    imported = import_graph(record(block, *inputs()), inputs())
    names = {node.name for node in imported.aten.graph.nodes}
    assert 'loc("mm")' in imported.text
    assert "mm" in names
    assert set(imported.externals) <= names


def test_unused_inputs_are_no_arguments(record: Any) -> None:
    def function(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
        return z * 2, y, x.shape[0]

    values = [torch.zeros(n) for n in (2, 3, 4)]
    imported = import_graph(record(function, *values), values)
    assert imported.arguments == (2,)
    assert [tuple(a.shape) for a in imported.prepare(values)] == [(4,)]


def test_any_node_can_run_through_torch(record: Any) -> None:
    values = inputs()
    imported = import_graph(record(block, *values), values)
    names = [n.name for n in imported.aten.graph.nodes if n.op == "call_function"]
    everything = imported.with_externals([n for n in names if "getitem" not in n])
    reference = Reference(everything)
    assert "linalg" not in reference.linalg
    results = reference(everything.prepare(values))
    torch.testing.assert_close(everything.finish(values, results), block(*values))
    with pytest.raises(KeyError, match="no_such"):
        imported.with_externals(["no_such"])


def test_what_cannot_be_lowered_is_named_by_its_node() -> None:
    operator = 'torch.operator "torch.aten.unknown"'
    text = f"""
    func.func @main(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {{
      %0 = {operator}(%x) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
        loc("unknown_3")
      return %0 : !torch.vtensor<[4],f32>
    }}"""
    module = ir.Module.parse(text, make_context())
    with pytest.raises(UnloweredError) as caught:
        LowerTorchToLinalg().run(module.operation)
    (left,) = caught.value.operations
    assert (left.operation, left.node) == ("torch.aten.unknown", "unknown_3")


def test_source_lines_come_from_the_recording(record: Any) -> None:
    graph = record(block, *inputs())
    for node in graph.graph.nodes:
        node.meta["stack_trace"] = '  File "model.py", line 12, in forward\n    x'
    imported = import_graph(graph, inputs())
    assert imported.where("mm") == "node 'mm' (model.py:12)"
    assert imported.where("nothing") == "node 'nothing'"


def test_documentation_lists_every_refusal() -> None:
    page = Path(__file__).parents[2] / "docs" / "importer.md"
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", page.read_text(), re.MULTILINE))
    entries = vars(refusals).values()
    known = {entry.id for entry in entries if isinstance(entry, refusals.Refusal)}
    assert listed == known
