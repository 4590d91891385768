"""Which operators a library computes, and with what; in doubt none."""

from __future__ import annotations

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.dialects.tile_graph import operators_of
from magweld.passes.analysis.library_calls import library_call
from magweld.passes.analysis.library_form import LibraryCall
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tiling.propagation import Refusal


def last_call(body: str, arguments: str, result: str) -> LibraryCall | Refusal:
    """Return how the last operator of a function that returns `%r` is called."""
    text = (
        f"func.func @f({arguments}) -> {result} {{\n"
        "  %zero = arith.constant 0.0 : f32\n  %one = arith.constant 1.0 : f32\n"
        f"  %e = tensor.empty() : {result}\n"
        f"  %f = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}\n"
        f"  %g = linalg.fill ins(%one : f32) outs(%e : {result}) -> {result}\n"
        f"  {body}\n  return %r : {result}\n}}"
    )
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(Pipeline((FormTileGraph("v100"),)), module)
        return library_call(operators_of(module.body.operations[0])[-1].operation)


def product(maps: str, init: str = "%f") -> LibraryCall | Refusal:
    return last_call(
        f"%r = linalg.matmul indexing_maps = [{maps}, affine_map<(m, n, k) -> (m, n)>]"
        f" ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>)"
        f" outs({init} : tensor<4x4xf32>) -> tensor<4x4xf32>",
        "%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>",
        "tensor<4x4xf32>",
    )


LEFT = "affine_map<(m, n, k) -> (m, k)>"
LEFT_TURNED = "affine_map<(m, n, k) -> (k, m)>"
RIGHT = "affine_map<(m, n, k) -> (k, n)>"
RIGHT_TURNED = "affine_map<(m, n, k) -> (n, k)>"


@pytest.mark.parametrize(
    ("maps", "turned"),
    [
        (f"{LEFT}, {RIGHT}", (False, False)),
        (f"{LEFT_TURNED}, {RIGHT}", (True, False)),
        (f"{LEFT}, {RIGHT_TURNED}", (False, True)),
        (f"{LEFT_TURNED}, {RIGHT_TURNED}", (True, True)),
    ],
)
def test_products_know_which_operand_is_transposed(
    maps: str, turned: tuple[bool, bool]
) -> None:
    attributes = {"transpose_a": turned[0], "transpose_b": turned[1]}
    assert product(maps) == LibraryCall("matmul", (0, 1), attributes)


@pytest.mark.parametrize("init", ["%g", "%c"], ids=["ones", "argument"])
def test_an_accumulator_that_starts_elsewhere_is_refused(init: str) -> None:
    refusal = product(f"{LEFT}, {RIGHT}", init)
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "library-init"


def convolution(preparation: str, image: str, weight: str) -> LibraryCall | Refusal:
    """Return the call of a convolution of 10x10 images with 3x3 weights."""
    return last_call(
        f"{preparation}\n  %r = linalg.conv_2d_nchw_fchw"
        f" ins({image}, {weight} : tensor<1x2x10x10xf32>, tensor<4x2x3x3xf32>)"
        f" outs(%f : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>",
        "%x: tensor<1x2x10x10xf32>, %s: tensor<1x2x8x8xf32>, "
        "%t: tensor<1x2x9x10xf32>, %u: tensor<1x1x10x10xf32>, "
        "%w: tensor<4x2x3x3xf32>, %v: tensor<4x2x1x1xf32>",
        "tensor<1x4x8x8xf32>",
    )


def pad(result: str, source: str, low: list[int], high: list[int], value: str) -> str:
    """Return a pad; `result` and `source` are names with types."""
    name, made = result.split(" : ")
    operand, type_ = source.split(" : ")
    return (
        f"{name} = tensor.pad {operand} low{low} high{high} {{\n"
        "  ^bb0(%i: index, %j: index, %k: index, %l: index):\n"
        f"    tensor.yield {value} : f32\n  }} : {type_} to {made}"
    )


IMAGE = "%p : tensor<1x2x10x10xf32>"
SMALL = "%s : tensor<1x2x8x8xf32>"
SHORT = "%t : tensor<1x2x9x10xf32>"
SHORT_MADE = "%o : tensor<1x2x9x10xf32>"
ONE_CHANNEL = "%u : tensor<1x1x10x10xf32>"
WEIGHT = "%p : tensor<4x2x3x3xf32>"
POINT = "%v : tensor<4x2x1x1xf32>"
NONE = [0, 0, 0, 0]
AROUND = [0, 0, 1, 1]
BELOW = [0, 0, 1, 0]
CENTRED = pad(IMAGE, SMALL, AROUND, AROUND, "%zero")
ONES = pad(IMAGE, SMALL, AROUND, AROUND, "%one")
ONE_SIDED = pad(IMAGE, SHORT, NONE, BELOW, "%zero")
CHANNELS = pad(IMAGE, ONE_CHANNEL, NONE, [0, 1, 0, 0], "%zero")
TWICE = (
    pad(SHORT_MADE, SMALL, AROUND, [0, 0, 0, 1], "%zero")
    + "\n  "
    + pad(IMAGE, SHORT_MADE, NONE, BELOW, "%zero")
)
PADDED_WEIGHT = pad(WEIGHT, POINT, AROUND, AROUND, "%zero")


@pytest.mark.parametrize(
    ("preparation", "image", "padding"),
    [("", "%x", [0, 0]), (CENTRED, "%p", [1, 1])],
    ids=["plain", "padded"],
)
def test_convolutions_know_their_padding(
    preparation: str, image: str, padding: list[int]
) -> None:
    call = convolution(preparation, image, "%w")
    assert isinstance(call, LibraryCall)
    assert call.operands == (0, 1)
    assert call.attributes["padding"] == padding
    assert call.attributes["groups"] == 1


@pytest.mark.parametrize("preparation", [ONE_SIDED, TWICE], ids=["once", "twice"])
def test_what_one_side_has_more_is_padded_before(preparation: str) -> None:
    call = convolution(preparation, "%p", "%w")
    assert isinstance(call, LibraryCall)
    sides = {name: call.attributes[name] for name in ("padding", "front", "behind")}
    assert sides == {"padding": [0, 0], "front": [0, 0], "behind": [1, 0]}


@pytest.mark.parametrize(
    ("preparation", "image", "weight"),
    [
        (ONES, "%p", "%w"),
        (CHANNELS, "%p", "%w"),
        (PADDED_WEIGHT, "%x", "%p"),
    ],
    ids=["ones", "channels", "weight"],
)
def test_other_pads_are_refused(preparation: str, image: str, weight: str) -> None:
    refusal = convolution(preparation, image, weight)
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "library-operand"


def test_what_is_in_no_table_is_refused() -> None:
    refusal = last_call(
        "%r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>)"
        " -> tensor<4xf32>",
        "%x: tensor<4xf32>",
        "tensor<4xf32>",
    )
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "no-library"


def test_a_product_of_a_slice_is_generated() -> None:
    found = last_call(
        "%s = tensor.extract_slice %a[0, 2, 0] [4, 1, 4] [1, 1, 1]"
        " : tensor<4x3x4xf32> to tensor<4x4xf32>"
        " %r = linalg.matmul ins(%s, %b : tensor<4x4xf32>, tensor<4x4xf32>)"
        " outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>",
        "%a: tensor<4x3x4xf32>, %b: tensor<4x4xf32>",
        "tensor<4x4xf32>",
    )
    assert isinstance(found, Refusal)
    assert found.rule == "library-operand"
