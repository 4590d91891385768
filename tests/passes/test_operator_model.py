"""What the scheduler reads of an operator, and what it computes whole to be safe."""

from __future__ import annotations

import pytest
from operator_models import access, loops

from magweld.bindings import ir
from magweld.context import make_context
from magweld.dialects.tile_graph import element_bytes, operators_of
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.analysis.operator_model import operator_model
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tiling.regions import (
    ZERO,
    BodyForm,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.tile_sizes import root_sizes

COPY = """ {
  ^bb0(%p: f32, %u: f32):
    linalg.yield %p : f32
}"""
SUM = """ {
  ^bb0(%p: f32, %u: f32):
    %s = arith.addf %p, %u : f32
    linalg.yield %s : f32
}"""


def graph(text: str) -> ir.Module:
    """Return a module of one function as a tile graph."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(Pipeline((FormTileGraph("v100"),)), module)
        return module


def body_of(module: ir.Module) -> GraphBody:
    """Return the body of a graph, which is to be kept: values do not keep it."""
    with module.context:
        return read_body(module.body.operations[0])


def model_of(operation: str, argument: str, result: str) -> OperatorModel:
    """Return the model of the operation that makes `%r` from `%x` and `%e`."""
    module = graph(
        f"func.func @f(%x: {argument}) -> {result} {{\n"
        "  %zero = arith.constant 0.0 : f32\n"
        f"  %e = tensor.empty() : {result}\n"
        f"  %f = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}\n"
        f"  {operation}\n  return %r : {result}\n}}"
    )
    (model,) = body_of(module).models
    return model


def generic(maps: str, kinds: str, types: str, init: str, body: str) -> str:
    argument, result = types.split(" -> ")
    return (
        f"%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"ins(%x : {argument}) outs({init} : {result}){body} -> {result}"
    )


def test_a_transposing_reduction() -> None:
    argument, result = "tensor<2x3x5xf32>", "tensor<5x2xf32>"
    text = generic(
        "affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k, i)>",
        '"parallel", "reduction", "parallel"',
        f"{argument} -> {result}",
        "%f",
        SUM,
    )
    assert model_of(text, argument, result) == OperatorModel(
        name="",
        kind=OperatorKind.REDUCTION,
        extents=(2, 3, 5),
        parallel=(0, 2),
        reads=(access(0, (2, 3, 5), loops(0, 1, 2)),),
        writes=(access(0, (5, 2), loops(2, 0)),),
        flops=1,
        form=BodyForm.SUM,
    )


def test_a_strided_dilated_padded_convolution() -> None:
    text = """func.func @f(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
        -> tensor<1x4x3x3xf32> {
      %zero = arith.constant 0.0 : f32
      %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %zero : f32
      } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
      %e = tensor.empty() : tensor<1x4x3x3xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x3x3xf32>)
        -> tensor<1x4x3x3xf32>
      %r = linalg.conv_2d_nchw_fchw
        {strides = dense<2> : tensor<2xi64>, dilations = dense<2> : tensor<2xi64>}
        ins(%p, %w : tensor<1x3x10x10xf32>, tensor<4x3x3x3xf32>)
        outs(%f : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
      return %r : tensor<1x4x3x3xf32>
    }"""
    module = graph(text)
    (model,) = body_of(module).models
    assert model.kind is OperatorKind.CONVOLUTION
    assert model.extents == (1, 4, 3, 3, 3, 3, 3)
    assert model.parallel == (0, 1, 2, 3)
    image, weight = model.reads
    window = [LinearIndex(((dim, 2), (dim + 3, 2)), -1) for dim in (2, 3)]
    border = ((0, 0), (0, 0), (1, 1), (1, 1))
    assert image == access(0, (1, 3, 8, 8), (*loops(0, 4), *window), border=border)
    assert weight.argument == 1


def test_reading_leaves_the_operation_as_it_is() -> None:
    module = graph("""func.func @f(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x3x3xf32>,
        %e: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
      %r = linalg.conv_2d_nchw_fchw
        ins(%x, %w : tensor<1x1x4x4xf32>, tensor<1x1x3x3xf32>)
        outs(%e : tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
      return %r : tensor<1x1x2x2xf32>
    }""")
    before = str(module)
    with module.context:
        (operator,) = operators_of(module.body.operations[0])
        model = operator_model(operator.operation)
    assert [read.argument for read in model.reads] == [0, 1, 2]
    assert str(module) == before


def test_a_named_transpose_counts_loops_by_its_result() -> None:
    text = """%r = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>)
      permutation = [1, 0]"""
    model = model_of(text, "tensor<2x3xf32>", "tensor<3x2xf32>")
    assert (model.kind, model.grid_extents) == (OperatorKind.ELEMENTWISE, (3, 2))
    assert model.reads[0].index == loops(1, 0)


def test_an_element_of_extent_one_may_have_a_constant_index() -> None:
    text = generic(
        "affine_map<(i) -> (i, 0)>, affine_map<(i) -> (0, i)>",
        '"parallel"',
        "tensor<4x1xf32> -> tensor<1x4xf32>",
        "%e",
        COPY,
    )
    model = model_of(text, "tensor<4x1xf32>", "tensor<1x4xf32>")
    assert model.tileable
    assert model.reads[0].index == (*loops(0), ZERO)
    assert model.parallel == (0,)


GATHER = """%r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%u: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %v : f32
} -> tensor<4xf32>"""
REVERSED = generic(
    "affine_map<(i) -> (3 - i)>, affine_map<(i) -> (i)>",
    '"parallel"',
    "tensor<4xf32> -> tensor<4xf32>",
    "%e",
    COPY,
)
FROM_ONE = generic(
    "affine_map<(i) -> (i + 1)>, affine_map<(i) -> (i)>",
    '"parallel"',
    "tensor<5xf32> -> tensor<4xf32>",
    "%e",
    COPY,
)
REPEATED = generic(
    "affine_map<(i) -> (i floordiv 2)>, affine_map<(i) -> (i)>",
    '"parallel"',
    "tensor<2xf32> -> tensor<4xf32>",
    "%e",
    COPY,
)
ONE_COLUMN = generic(
    "affine_map<(i) -> (i)>, affine_map<(i) -> (i, 1)>",
    '"parallel"',
    "tensor<4xf32> -> tensor<4x2xf32>",
    "%f",
    COPY,
)
DIAGONAL = generic(
    "affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>",
    '"parallel"',
    "tensor<4xf32> -> tensor<4x4xf32>",
    "%f",
    COPY,
)
SOFTMAX = """%r = linalg.softmax dimension(0)
  ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>"""
SLICE = "%r = tensor.extract_slice %x[1] [2] [1] : tensor<4xf32> to tensor<2xf32>"
CONCAT = """%r = tensor.concat dim(1) %x, %x :
  (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>"""
NONE_TO_JOIN = """%r = tensor.concat dim(0) %x, %x :
  (tensor<0xf32>, tensor<0xf32>) -> tensor<0xf32>"""
NOTHING = (
    "%r = linalg.exp ins(%x : tensor<0xf32>) outs(%e : tensor<0xf32>) -> tensor<0xf32>"
)


@pytest.mark.parametrize(
    ("operation", "argument", "result", "kind"),
    [
        (REVERSED, "tensor<4xf32>", "tensor<4xf32>", OperatorKind.OTHER),
        (FROM_ONE, "tensor<5xf32>", "tensor<4xf32>", OperatorKind.OTHER),
        (REPEATED, "tensor<2xf32>", "tensor<4xf32>", OperatorKind.OTHER),
        (ONE_COLUMN, "tensor<4xf32>", "tensor<4x2xf32>", OperatorKind.OTHER),
        (DIAGONAL, "tensor<4xf32>", "tensor<4x4xf32>", OperatorKind.OTHER),
        (SOFTMAX, "tensor<4xf32>", "tensor<4xf32>", OperatorKind.OTHER),
        (NONE_TO_JOIN, "tensor<0xf32>", "tensor<0xf32>", OperatorKind.MOVE),
        (NOTHING, "tensor<0xf32>", "tensor<0xf32>", OperatorKind.OTHER),
        (SLICE, "tensor<4xf32>", "tensor<2xf32>", OperatorKind.MOVE),
    ],
    ids=[
        *("reversed", "shifted", "repeated", "part", "diagonal"),
        *("softmax", "nothing-joined", "empty", "slice"),
    ],
)
def test_what_is_no_sum_of_loops_is_computed_whole(
    operation: str, argument: str, result: str, kind: OperatorKind
) -> None:
    model = model_of(operation, argument, result)
    assert model.kind is kind
    assert not model.tileable
    assert set(model.reads[0].index) == {None}
    assert len(model.parallel) == len(model.extents)


def test_a_slice_reads_what_it_takes() -> None:
    (read,) = model_of(SLICE, "tensor<4xf32>", "tensor<2xf32>").reads
    assert (read.shape, read.moved, read.total_bytes) == ((4,), (2,), 2 * 4)
    (read,) = model_of(SOFTMAX, "tensor<4xf32>", "tensor<4xf32>").reads
    assert (read.moved, read.total_bytes) == (None, 4 * 4)


def test_joined_tensors_are_taken_whole_along_one_dimension() -> None:
    model = model_of(CONCAT, "tensor<4x3xf32>", "tensor<4x6xf32>")
    assert model.kind is OperatorKind.CONCATENATION
    assert model.tileable
    assert model.unsplit == (1,)
    box = model.root_box((2, 6))
    assert [i.size for i in model.writes[0].box(box)] == [2, 6]
    assert [[i.size for i in read.box(box)] for read in model.reads] == [[2, 3]] * 2
    assert root_sizes(model, ragged=True) == [(1, 2, 4), (6,)]


def test_a_gather_may_need_all_of_its_table_and_reads_one_element_each() -> None:
    model = model_of(GATHER, "tensor<8xf32>", "tensor<4xf32>")
    (read,) = model.reads
    assert model.kind is OperatorKind.ELEMENTWISE
    assert model.tileable
    assert read.gathered
    (region,) = read.box(model.root_box((2,)))
    assert (region.offset, region.size) == (ZERO, 8)
    assert model.read_bytes(read) == 4 * 4
    assert read.gathered_bytes(100) == 8 * 4


def test_inputs_that_a_view_hides_in_an_operator_are_needed_whole() -> None:
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<2x2xf32> {
      %e = tensor.empty() : tensor<2x2xf32>
      %v = tensor.expand_shape %x [[0, 1]] output_shape [2, 2]
        : tensor<4xf32> into tensor<2x2xf32>
      %r = linalg.exp ins(%v : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>)
        -> tensor<2x2xf32>
      return %r : tensor<2x2xf32>
    }"""
    module = graph(text)
    with module.context:
        function = module.body.operations[0]
        (operator,) = operators_of(function)
        view = function.regions[0].blocks[0].operations[0].operation
        view.move_before(operator.regions[0].blocks[0].operations[0])
        model = operator_model(operator.operation)
    assert model.kind is OperatorKind.OTHER
    assert [read.shape for read in model.reads] == [(4,)]


def test_results_of_different_loops_are_computed_whole() -> None:
    text = """func.func @f(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x3xf32>
      %e1 = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<4x3xf32>) outs(%e, %f : tensor<4x3xf32>, tensor<4xf32>) {
      ^bb0(%p: f32, %u: f32, %acc: f32):
        %s = arith.addf %p, %acc : f32
        linalg.yield %s, %s : f32, f32
      } -> (tensor<4x3xf32>, tensor<4xf32>)
      return %r#0, %r#1 : tensor<4x3xf32>, tensor<4xf32>
    }"""
    module = graph(text)
    (model,) = body_of(module).models
    assert not model.tileable
    assert len(model.writes) == 2


def test_edges_know_which_result_they_carry() -> None:
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
          affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>) {
      ^bb0(%p: f32, %u: f32, %v: f32):
        linalg.yield %p, %p : f32, f32
      } -> (tensor<4xf32>, tensor<4xf32>)
      %s = linalg.exp ins(%r#1 : tensor<4xf32>) outs(%e : tensor<4xf32>)
        -> tensor<4xf32>
      return %s : tensor<4xf32>
    }"""
    module = graph(text)
    (edge,) = body_of(module).edges
    assert (edge.producer, edge.consumer, edge.operand, edge.result) == (0, 1, 0, 1)


def test_a_group_numbers_tensors_by_what_is_behind_connects() -> None:
    text = """func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %1 = linalg.add ins(%0, %y : tensor<4xf32>, tensor<4xf32>)
        outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %2 = linalg.mul ins(%1, %0 : tensor<4xf32>, tensor<4xf32>)
        outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }"""
    module = graph(text)
    body = body_of(module)
    reads = [
        [(source.producer, source.tensor) for source in sources]
        for sources in body.group([1, 2]).sources
    ]
    assert reads == [[(None, 0), (None, 1)], [(0, 2), (None, 0)]]
    assert body.group([0, 1]).outputs == ((0, 0),)
    assert body.group([0, 1, 2]).outputs == ()


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        *(("i1", 1), ("i8", 1), ("bf16", 2), ("f32", 4), ("i64", 8)),
        *(("index", 8), ("complex<f32>", 8)),
    ],
)
def test_elements_take_whole_bytes(element: str, expected: int) -> None:
    with make_context():
        assert element_bytes(ir.Type.parse(f"tensor<4x{element}>")) == expected
