"""The tile_graph dialect from Python: loading, building, reading, exporting.

Its verifier is tested in lit_tests/dialects/tile_graph/invalid.mlir.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from magweld.bindings import ir, registry
from magweld.context import make_context
from magweld.diagnostics import from_mlir
from magweld.dialects import device_attributes, irdl_module, load_dialects
from magweld.dialects.device_attributes import (
    device_attribute,
    device_from_attribute,
)
from magweld.dialects.tile_graph import (
    DEVICE,
    TileAttr,
    build_connect,
    build_operator,
    build_subgraph,
    captured_values,
    device_of,
    is_tile_graph,
    operators_of,
    parallel_extents,
    root_operation,
    subgraphs_of,
    tile_attribute,
    yield_values,
)
from magweld.targets import device, device_names
from magweld.targets.device import Level

EXP = """
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %exp = linalg.exp ins(%x : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>)
      -> tensor<8x4xf32>
  return %exp : tensor<8x4xf32>
}
"""


def _function(body: str, arguments: str) -> ir.Module:
    return ir.Module.parse(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}")


def _last(module: ir.Module) -> ir.Operation:
    """Return the last operation before the terminator of the only function."""
    block = module.body.operations[0].regions[0].blocks[0]
    return block.operations[len(block.operations) - 2].operation


def test_loading_twice_and_two_contexts_are_fine() -> None:
    first, second = make_context(), make_context()
    load_dialects(first)
    for context in (first, second):
        with context:
            attribute = ir.Attribute.parse("#tile_graph.tile<[16, 384]>")
            assert isinstance(attribute, TileAttr)
            assert attribute.sizes == (16, 384)


def test_contexts_run_python_in_the_calling_thread() -> None:
    assert make_context().get_num_threads() == 1


def test_tiles_keep_their_sizes() -> None:
    with make_context():
        assert str(tile_attribute([16, 384])) == "#tile_graph.tile<[16, 384]>"
        assert tile_attribute([]).sizes == ()


@pytest.mark.parametrize("name", ["cpu", *device_names(), "v100+host"])
def test_devices_survive_the_way_through_text(name: str) -> None:
    expected = device(name)
    with make_context():
        text = str(device_attribute(expected))
        attribute = ir.Attribute.parse(text)
        assert device_from_attribute(attribute) == expected
        assert [level.index for level in attribute.levels] == list(
            range(len(expected.levels))
        )


def test_a_device_is_read_once_for_all_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(device("cpu"), name="of many edges")
    read: list[str] = []

    def level(**parts: Any) -> Level:
        read.append(parts["name"])
        return Level(**parts)

    monkeypatch.setattr(device_attributes, "Level", level)
    edge = '%{} = "tile_graph.connect"(%x) {{level = "{}"}} : (!t) -> !t'
    edges = "\n".join(edge.format(i, known.levels[0].name) for i in range(8))
    for _ in range(2):
        with make_context():
            attribute = f"attributes {{{DEVICE} = {device_attribute(known)}}}"
            text = f"func.func @f(%x: !t) {attribute} {{\n{edges}\nreturn\n}}"
            module = ir.Module.parse(text.replace("!t", "tensor<4xf32>"))
            assert module.operation.verify()
            assert device_of(module.body.operations[0]) == known
    assert read == [level.name for level in known.levels]


def _wrap_into_subgraph(module: ir.Module) -> ir.OpView:
    """Turn @main of `EXP` into a graph of one subgraph; return the function."""
    function = module.body.operations[0]
    block = function.regions[0].blocks[0]
    empty, exp, terminator = (op.operation for op in block.operations)
    with ir.InsertionPoint(empty), ir.Location.unknown():
        subgraph = build_subgraph("s", [exp.results[0].type], level="l2")
        with ir.InsertionPoint(subgraph.body.blocks[0]):
            operator = build_operator("exp", [exp.results[0].type])
            yield_values(list(operator.operation.results))
        with ir.InsertionPoint(operator.body.blocks[0]):
            yield_values(list(exp.results))
        result = subgraph.operation.results[0]
        terminator.operands[0] = build_connect(result, "global").output
    last = operator.body.blocks[0].operations[0].operation
    empty.move_before(last)
    exp.move_before(last)
    function.attributes[DEVICE] = device_attribute(device("a100"))
    return function


def test_what_builders_make_is_valid_and_reads_back() -> None:
    with make_context():
        module = ir.Module.parse(EXP)
        assert not is_tile_graph(module.body.operations[0])
        function = _wrap_into_subgraph(module)
        assert module.operation.verify()
        assert is_tile_graph(function)
        assert device_of(function) == device("a100")
        assert operators_of(function) == []
        (subgraph,) = subgraphs_of(function)
        (operator,) = operators_of(subgraph)
        assert root_operation(operator).name == "linalg.exp"
        assert captured_values(subgraph) == [function.arguments[0]]
        assert captured_values(operator) == [function.arguments[0]]


def test_built_and_parsed_graphs_are_the_same_text() -> None:
    with make_context():
        module = ir.Module.parse(EXP)
        _wrap_into_subgraph(module)
        assert str(ir.Module.parse(str(module))) == str(module)


def test_a_violation_is_an_error_at_the_line_of_the_op() -> None:
    with make_context():
        module = ir.Module.parse(EXP)
        _wrap_into_subgraph(module)
        text = str(module).replace('{level = "global"}', '{level = "nowhere"}')
        line = 1 + text[: text.index('"nowhere"')].count("\n")
        with pytest.raises(ir.MLIRError, match=r"got 'nowhere'") as raised:
            ir.Module.parse(text)
        (error,) = map(from_mlir, raised.value.error_diagnostics)
        assert error.position is not None
        assert error.position.line == line


@pytest.mark.parametrize("number", [0, 3])
def test_ops_have_one_or_two_results(number: int) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        types = [ir.F32Type.get()] * number
        with ir.InsertionPoint(module.body), pytest.raises(ValueError, match="results"):
            build_operator("x", types)


def test_captured_values_are_in_first_use_and_once() -> None:
    with make_context():
        module = _function(
            """scf.execute_region {
              %0 = arith.addi %b, %a : i32
              %1 = arith.addi %b, %0 : i32
              scf.yield
            }""",
            "%a: i32, %b: i32",
        )
        arguments = module.body.operations[0].regions[0].blocks[0].arguments
        assert captured_values(_last(module)) == [arguments[1], arguments[0]]


CONVOLUTION = """%r = linalg.conv_2d_nchw_fchw
  ins(%a, %b : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>)
  outs(%c : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>"""
TRANSPOSED_SUM = """%r = linalg.generic {
  indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>,
                   affine_map<(i, j, k) -> (k, i)>],
  iterator_types = ["parallel", "reduction", "parallel"]}
  ins(%a : tensor<2x3x5xf32>) outs(%b : tensor<5x2xf32>) {
^bb0(%x: f32, %y: f32):
  %s = arith.addf %x, %y : f32
  linalg.yield %s : f32
} -> tensor<5x2xf32>"""
WITH_SCALAR = """%r = linalg.generic {
  indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
  iterator_types = ["parallel"]}
  ins(%a : f32) outs(%b : tensor<5xf32>) {
^bb0(%x: f32, %y: f32):
  linalg.yield %x : f32
} -> tensor<5xf32>"""
MATMUL = """%r = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x5xf32>)
  outs(%c : tensor<2x5xf32>) -> tensor<2x5xf32>"""
CONCAT = """%r = tensor.concat dim(0) %a, %b
  : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>"""


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        (
            CONVOLUTION,
            "%a: tensor<1x3x8x8xf32>, %b: tensor<4x3x3x3xf32>, %c: tensor<1x4x6x6xf32>",
            (1, 4, 6, 6),
        ),
        (TRANSPOSED_SUM, "%a: tensor<2x3x5xf32>, %b: tensor<5x2xf32>", (2, 5)),
        (WITH_SCALAR, "%a: f32, %b: tensor<5xf32>", (5,)),
        (
            MATMUL,
            "%a: tensor<2x3xf32>, %b: tensor<3x5xf32>, %c: tensor<2x5xf32>",
            (2, 5),
        ),
        (CONCAT, "%a: tensor<2xf32>, %b: tensor<3xf32>", (5,)),
    ],
    ids=["convolution", "loop-order", "scalar-operand", "matmul", "move"],
)
def test_parallel_extents_are_in_loop_order(
    body: str, arguments: str, expected: tuple[int, ...]
) -> None:
    with make_context():
        module = _function(body, arguments)
        root = _last(module)
        before = str(root)
        assert parallel_extents(root) == expected
        assert str(root) == before


def test_the_irdl_export_defines_every_op_and_attribute() -> None:
    with ir.Context() as context:
        module = ir.Module.parse(irdl_module())
        dialect = module.body.operations[0]
        defined = {
            ir.StringAttr(op.operation.attributes["sym_name"]).value
            for op in dialect.regions[0].blocks[0].operations
        }
        assert not context.is_dialect_loaded("tile_graph")
    assert defined == {
        *("connect", "operator", "shift", "subgraph"),
        *("for_tiles", "allocate", "load", "compute", "store", "barrier", "release"),
        *("device", "fragment", "instruction", "level", "library", "peak"),
        *("place", "tile"),
    }


def test_the_examples_of_the_documentation_are_valid() -> None:
    page = Path(__file__).parents[2] / "docs" / "dialect.md"
    parts = page.read_text("utf-8").split("```mlir\n")[1:]
    graph, plan = (part.partition("```")[0] for part in parts)
    device = graph.partition("func.func")[0]
    planned = (
        f"{device} func.func @f(%x: tensor<64x128xf32>) -> tensor<64xf32> "
        f"attributes {{tile_graph.device = #device}} {{ {plan} "
        "return %0 : tensor<64xf32> }"
    )
    with make_context():
        for example in (graph, planned):
            module = ir.Module.parse(example)
            assert is_tile_graph(module.body.operations[0])


def test_the_bindings_find_the_module_of_the_dialect() -> None:
    # Else they search for it on every look-up of a class, and verifying gets slow.
    assert "magweld.dialects" in registry.dialect_search_modules
    assert importlib.import_module("magweld.dialects.tile_graph")
