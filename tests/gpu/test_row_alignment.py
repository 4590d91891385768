"""Alignment of the rows of buffers, subviews and views of other shapes."""

from __future__ import annotations

import pytest

from magweld.bindings import ir, memref
from magweld.context import make_context
from magweld.passes.gpu.row_alignment import row_alignment
from magweld.passes.ir.utils import operations_of

LAST = "\n".join(
    [
        "func.func @f(%x: {source}, %i: index) {{",
        "  %t = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)",
        "  {made}",
        "  return",
        "}}",
    ]
)


def alignment_of(source: str, made: str = "") -> int:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(LAST.format(source=source, made=made))
        (function,) = module.body.operations
        views = [
            op.result
            for kind in (memref.SubViewOp, memref.ExpandShapeOp, memref.CollapseShapeOp)
            for op in operations_of(module.operation, kind)
        ]
        return row_alignment(views[-1] if views else function.arguments[0])


def sliced(source: str, offsets: str, sizes: str, layout: str) -> int:
    ones = ", ".join("1" for _ in sizes.split(","))
    element = source.rpartition("x")[2].rstrip(">")
    shape = "x".join(sizes.split(", "))
    target = f"memref<{shape}x{element}, strided<{layout}>>"
    made = (
        f"%s = memref.subview %x[{offsets}] [{sizes}] [{ones}] : {source} to {target}"
    )
    return alignment_of(source, made)


@pytest.mark.parametrize(
    ("source", "bytes_"),
    [
        ("memref<8x32xf32>", 16),
        ("memref<8x34xf32>", 8),
        ("memref<8x33xf32>", 4),
        ("memref<33xf32>", 16),  # one row
        ("memref<8x36xf16>", 8),
        ("memref<8x33xi8>", 1),
        ("memref<2x8x4xf32>", 16),
        ("memref<8x32xf32, strided<[32, 1], offset: ?>>", 16),  # an argument
        ("memref<8x32xf32, strided<[?, 1]>>", 4),  # rows of any distance
    ],
)
def test_rows_of_a_buffer(source: str, bytes_: int) -> None:
    assert alignment_of(source) == bytes_


@pytest.mark.parametrize(
    ("offsets", "layout", "bytes_"),
    [
        ("0, 0", "[64, 1]", 16),
        ("3, 4", "[64, 1], offset: 196", 16),
        ("0, 2", "[64, 1], offset: 2", 8),
        ("0, 1", "[64, 1], offset: 1", 4),
        ("%t, %t", "[64, 1], offset: ?", 16),
        ("%i, 0", "[64, 1], offset: ?", 16),
        ("0, %i", "[64, 1], offset: ?", 4),
    ],
)
def test_rows_of_a_subview(offsets: str, layout: str, bytes_: int) -> None:
    assert sliced("memref<64x64xf32>", offsets, "4, 16", layout) == bytes_


def test_rows_of_other_shapes() -> None:
    split = "%s = memref.expand_shape %x [[0], [1, 2]] output_shape [8, 17, 2]"
    assert (
        alignment_of(
            "memref<8x34xf32>", f"{split} : memref<8x34xf32> into memref<8x17x2xf32>"
        )
        == 8
    )
    joined = "%s = memref.collapse_shape %x [[0, 1]]"
    assert (
        alignment_of(
            "memref<8x33xf32>", f"{joined} : memref<8x33xf32> into memref<264xf32>"
        )
        == 16
    )
