"""Equal operations have equal structures, whatever they are called."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.dialects.tile_graph import subgraphs_of
from magweld.passes.analysis.structure import structure_of, values_of
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.pipelines.middle import graph_pipeline

GRAPH = """
func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.mul ins(%x, %y : tensor<8x16xf32>, tensor<8x16xf32>)
      outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = linalg.mul ins(%y, %x : tensor<8x16xf32>, tensor<8x16xf32>)
      outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = linalg.mul ins(%x, %x : tensor<8x16xf32>, tensor<8x16xf32>)
      outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = linalg.add ins(%x, %y : tensor<8x16xf32>, tensor<8x16xf32>)
      outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0, %1, %2, %3
      : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}
"""


@pytest.fixture
def subgraphs() -> Iterator[list[ir.Operation]]:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(GRAPH)
        pipeline = graph_pipeline(
            "a100", "never", Phase.SCHEDULED, after=Phase.LINALG, fusion="none"
        )
        run_pipeline(pipeline, module)
        (function,) = module.body.operations
        yield [op.operation for op in subgraphs_of(function)]


def test_names_and_operands_make_no_difference(subgraphs: list[ir.Operation]) -> None:
    product, turned, *_ = subgraphs
    assert structure_of(product) == structure_of(turned)
    assert values_of(product) == values_of(turned)[::-1]
    # What was planned for the one is that of the other.
    assert product.attributes["tile"] == turned.attributes["tile"]
    names = {op.attributes["subgraph_name"].value for op in subgraphs}
    assert len(names) == len(subgraphs)


def test_what_is_read_twice_and_what_is_done_do(subgraphs: list[ir.Operation]) -> None:
    assert len({structure_of(op) for op in subgraphs}) == 3


def test_plans_of_equal_subgraphs_have_their_own_names(
    subgraphs: list[ir.Operation],
) -> None:
    module = subgraphs[0].parent.operation.parent.operation
    run_pipeline(
        graph_pipeline("a100", until=Phase.PLANNED, after=Phase.SCHEDULED), module
    )
    (function,) = module.regions[0].blocks[0].operations
    plans = [
        op.operation
        for op in function.regions[0].blocks[0].operations
        if op.operation.name == "tile_graph.for_tiles"
    ]
    names = [op.attributes["subgraph_name"].value for op in plans]
    operators = [str(op.attributes["operators"]) for op in plans]
    assert len(set(names)) == len(set(operators)) == len(plans) == 4
    computed = [
        nested.operation.attributes["op_name"].value
        for op in plans
        for nested in op.regions[0].blocks[0].operations
        if nested.operation.name == "tile_graph.compute"
    ]
    assert computed == ["mul_0", "mul_1", "mul_2", "add_0"]
