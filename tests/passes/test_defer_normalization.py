"""When rows of a product are scaled instead of those of its operand, and when not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.graph.defer_normalization import DeferNormalization
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline

# 8 rows of 8 so that a wrong dimension has the right extent.
TEMPLATE = """
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0) -> (d0)>
#left = affine_map<(m, n, k) -> (m, k)>
#right = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<8x8xf32>, %v: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %unit = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %tiny = arith.constant 1.0e-6 : f32
  %two = arith.constant 2.0 : f32
  %low = arith.constant START : f32
  %infinite = arith.constant 0xFF800000 : f32
  %no = arith.constant false
  %e1 = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %e3 = tensor.empty() : tensor<8x4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %m0 = linalg.generic {indexing_maps = [#all, #MAXIMUM],
                        iterator_types = ["MKINDS"]}
      ins(%x : tensor<8x8xf32>) outs(%lows : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%m0 : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    REFERENCE
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#all, #SUBTRACTED, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x8xf32>, tensor<8xf32>) outs(%e2 : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  %p = linalg.generic {indexing_maps = [#all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<8x8xf32>) outs(%e2 : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #SUM],
                       iterator_types = ["SKINDS"]}
      ins(%p : tensor<8x8xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    FACTOR
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %w = linalg.generic {indexing_maps = [#all, #SCALED, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %r : tensor<8x8xf32>, tensor<8xf32>) outs(%e2 : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.SCALE %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#left, #right, #out],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<8x8xf32>, tensor<8x4xf32>) outs(%i : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
"""
ALONG = {"row": 'parallel", "reduction', "column": 'reduction", "parallel'}
COPY = "%t = arith.select %no, %zero, %a : f32"
RECIPROCAL = "%t = arith.divf %unit, %a : f32"
SOFTMAX = {
    "START": "0xFF800000",
    "MAXIMUM": "row",
    "REFERENCE": COPY,
    "SUBTRACTED": "row",
    "SUM": "row",
    "FACTOR": RECIPROCAL,
    "SCALED": "row",
    "SCALE": "mulf",
}
GUARDED = """%c = arith.cmpf {0}, %a, {1} : f32
    %n = arith.cmpi eq, %c, %no : i1
    %t = arith.select %n, {2}, %a : f32"""
DEFERRED: dict[str, dict[str, str]] = {
    "reciprocal": {},
    "quotient": {"FACTOR": COPY, "SCALE": "divf"},
    # Rows that are masked altogether, as torch's safe softmax treats them.
    "infinite maximum": {"REFERENCE": GUARDED.format("une", "%infinite", "%zero")},
    "zero sum": {"FACTOR": GUARDED.format("une", "%zero", "%unit"), "SCALE": "divf"},
    "clamped sum": {
        "FACTOR": "%t = arith.maximumf %a, %tiny : f32",
        "SCALE": "divf",
    },
}
KEPT: dict[str, dict[str, str]] = {
    "half of the maximum": {"REFERENCE": "%t = arith.mulf %a, %half : f32"},
    "beside the maximum": {"REFERENCE": "%t = arith.addf %a, %two : f32"},
    "maximum with a bound": {"REFERENCE": "%t = arith.minimumf %a, %two : f32"},
    "constant for small maxima": {"REFERENCE": GUARDED.format("ogt", "%zero", "%zero")},
    "finite start": {"START": "0.0"},
    "maximum of columns": {"MAXIMUM": "column", "SUBTRACTED": "column"},
    "maxima of columns for rows": {"MAXIMUM": "column"},
    "sum of columns for rows": {"SUM": "column"},
    "multiplied by the sum": {"FACTOR": COPY},
    "divided by the reciprocal": {"SCALE": "divf"},
    "sum and more": {"FACTOR": "%t = arith.addf %a, %unit : f32", "SCALE": "divf"},
    "larger sums cut off": {
        "FACTOR": "%t = arith.minimumf %a, %two : f32",
        "SCALE": "divf",
    },
    "root of the sum": {"FACTOR": "%t = math.sqrt %a : f32", "SCALE": "divf"},
}


def module_of(changes: dict[str, str]) -> ir.Module:
    """Return an attention with some of its parts changed."""
    parts = SOFTMAX | changes
    parts["MKINDS"], parts["SKINDS"] = ALONG[parts["MAXIMUM"]], ALONG[parts["SUM"]]
    text = re.sub("|".join(parts), lambda found: parts[found[0]], TEMPLATE)
    return ir.Module.parse(text)


def deferred(module: ir.Module) -> bool:
    """Return whether what is returned is scaled, and no sum of products."""
    *_, last, _ = module.body.operations[0].regions[0].blocks[0].operations
    return len(list(last.operation.regions[0].blocks[0].operations)) == 2


@pytest.mark.parametrize("name", DEFERRED)
def test_softmax_is_deferred(name: str) -> None:
    with make_context(), ir.Location.unknown():
        module = module_of(DEFERRED[name])
        run_pipeline(Pipeline((DeferNormalization(),)), module)
        assert deferred(module)
        assert "magweld.remarks" not in module.body.operations[0].attributes


@pytest.mark.parametrize("name", KEPT)
def test_anything_else_is_kept_and_says_why(name: str) -> None:
    with make_context(), ir.Location.unknown():
        module = module_of(KEPT[name])
        run_pipeline(Pipeline((DeferNormalization(),)), module)
        assert not deferred(module)
        (remark,) = module.body.operations[0].attributes["magweld.remarks"]
        assert "normalization stays before a product" in remark.value


@pytest.mark.parametrize("name", [*DEFERRED, *KEPT])
def test_large_numbers_stay_finite(
    name: str, evaluate: Callable[[Any, Sequence[Any]], list[Any]]
) -> None:
    """Weighted sums of large rows are what they are without the pass."""
    scores = np.zeros((8, 8), np.float32)
    scores[:, 0] = 160.0
    values = np.full((8, 4), 1e30, np.float32)
    with make_context(), ir.Location.unknown():
        changes = DEFERRED.get(name) or KEPT.get(name) or {}
        (expected,) = evaluate(module_of(changes), [scores, values])
        module = module_of(changes)
        run_pipeline(Pipeline((DeferNormalization(),)), module)
        (got,) = evaluate(module, [scores, values])
    np.testing.assert_allclose(got, expected, rtol=1e-5)
