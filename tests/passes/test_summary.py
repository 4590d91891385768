"""The summary of a scheduled graph: steps, plans, edges with their reasons, nodes."""

from __future__ import annotations

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.analysis.summary import GraphSummary, summarize
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import find_function

SCHEDULE = (
    "form-tile-graph{device=a100},select-implementation{library=always},"
    "connect-operators,extract-subgraphs,select-tiles,propagate-tiles"
)
# A product for the library, a softmax of its rows, an operator that torch runs.
GRAPH = """
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func private @outside(tensor<4096x512xf32>) -> tensor<4096x512xf32>
    attributes {magweld.external = "sort"}
func.func @main(%x: tensor<4096x1024xf32>, %w: tensor<1024x512xf32>)
    -> tensor<4096x512xf32> {
  %zero = arith.constant 0.0 : f32 loc("fill")
  %e = tensor.empty() : tensor<4096x512xf32>
  %e1 = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x512xf32>)
    -> tensor<4096x512xf32>
  %product = linalg.matmul
    ins(%x, %w : tensor<4096x1024xf32>, tensor<1024x512xf32>)
    outs(%init : tensor<4096x512xf32>) -> tensor<4096x512xf32> loc("mm")
  %none = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4096xf32>)
    -> tensor<4096xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}
    ins(%product : tensor<4096x512xf32>) outs(%none : tensor<4096xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %s = arith.addf %p, %acc : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32> loc(fused["sum", "keepdim"])
  %ratio = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
    ins(%product, %sum : tensor<4096x512xf32>, tensor<4096xf32>)
    outs(%e : tensor<4096x512xf32>) {
  ^bb0(%p: f32, %s: f32, %u: f32):
    %d = arith.divf %p, %s : f32
    linalg.yield %d : f32
  } -> tensor<4096x512xf32> loc("div")
  %sorted = call @outside(%ratio)
    : (tensor<4096x512xf32>) -> tensor<4096x512xf32>
  return %sorted : tensor<4096x512xf32>
}
"""


@pytest.fixture(scope="module")
def summary() -> GraphSummary:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(GRAPH)
        run_pipeline(Pipeline.parse(SCHEDULE), module)
        return summarize(find_function(module.operation, "main"))


def test_steps_come_in_the_order_of_their_running(summary: GraphSummary) -> None:
    assert [(step.name, step.kind) for step in summary.steps] == [
        ("subgraph_0", "library"),
        ("subgraph_1", "generated"),
        ("sort", "external"),
    ]
    assert summary.device.name == "a100"


def test_operators_tell_their_nodes_and_tiles(summary: GraphSummary) -> None:
    total, ratio = summary.steps[1].operators
    assert total.nodes == ("sum", "keepdim")
    assert total.extents == (4096,)
    assert (ratio.nodes, ratio.root) == (("div",), "linalg.generic")
    assert ratio.tile == summary.steps[1].plan["tile"]
    assert total.tile == ratio.tile[:1]


def test_a_plan_is_plain(summary: GraphSummary) -> None:
    step = summary.steps[1]
    assert step.plan["level"] == "shared"
    # Together the ratio needs no second look at the product in global memory.
    after, before = step.plan["traffic_after"], step.plan["traffic_before"]
    assert step.plan["moved_after"]["global"] == after < before
    assert step.grid * step.plan["tile"][0] == 4096
    assert step.plan["predicted_seconds"] < step.plan["seconds_apart"]


def test_edges_inside_have_a_level(summary: GraphSummary) -> None:
    (edge,) = summary.steps[1].edges
    maker, reader = (operator.name for operator in summary.steps[1].operators)
    assert (edge.maker, edge.reader) == (maker, reader)
    assert (edge.type, edge.bytes) == ("4096xf32", 4096 * 4)
    assert edge.level in ("shared", "register")
    assert edge.refused == ""


def test_edges_between_steps_have_a_reason(summary: GraphSummary) -> None:
    between = [e for e in summary.edges if e.producer == "subgraph_0"]
    # Both operators of the group read the product.
    assert {e.consumer for e in between} == {"subgraph_1"}
    assert {e.level for e in between} == {"global"}
    assert all(e.refused == "library: matmul_0 is a library call" for e in between)
    assert {e.bytes for e in between} == {4096 * 512 * 4}


def test_ways_lead_from_arguments_to_results(summary: GraphSummary) -> None:
    ways = {(edge.producer, edge.consumer) for edge in summary.edges}
    assert ("argument 0", "subgraph_0") in ways
    assert ("argument 1", "subgraph_0") in ways
    assert ("subgraph_1", "sort") in ways
    assert ("sort", "result 0") in ways
