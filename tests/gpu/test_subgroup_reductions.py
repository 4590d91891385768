"""Reductions that lanes share: every combination, and that no barrier is too many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from conftest import SMALL_BLOCK
from gpu_interpreter import launch
from gpu_memory import RaceError

from magweld.bindings import gpu, ir
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import block_steps

TEXT = """
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @kernel_0(%x: tensor<ROWSxLENGTHxTYPE>, %out: tensor<ROWSxTYPE>)
    -> tensor<ROWSxTYPE> attributes {tile_graph.kernel} {
  %start = arith.constant START : TYPE
  %r = scf.forall (%i) = (0) to (ROWS) step (TILE) shared_outs(%o = %out)
      -> (tensor<ROWSxTYPE>) {
    %sx = tensor.extract_slice %x[%i, 0] [TILE, LENGTH] [1, 1]
      : tensor<ROWSxLENGTHxTYPE> to tensor<TILExLENGTHxTYPE>
    %so = tensor.extract_slice %o[%i] [TILE] [1]
      : tensor<ROWSxTYPE> to tensor<TILExTYPE>
    %none = linalg.fill ins(%start : TYPE) outs(%so : tensor<TILExTYPE>)
      -> tensor<TILExTYPE>
    %sum = linalg.generic {indexing_maps = [#all, #row],
                           iterator_types = ["parallel", "reduction"]}
      ins(%sx : tensor<TILExLENGTHxTYPE>) outs(%none : tensor<TILExTYPE>) {
    ^bb0(%p: TYPE, %acc: TYPE):
      %0 = arith.COMBINE %p, %acc : TYPE
      linalg.yield %0 : TYPE
    } -> tensor<TILExTYPE>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %o[%i] [TILE] [1]
        : tensor<TILExTYPE> into tensor<ROWSxTYPE>
    }
  }
  return %r : tensor<ROWSxTYPE>
}
"""


@dataclass(frozen=True)
class Combination:
    """An operation on elements of a type, from a start, and what it makes of rows."""

    name: str
    element: str
    start: str
    reduce: Any

    def __str__(self) -> str:
        return f"{self.name}-{self.element}"


COMBINATIONS = (
    Combination("addf", "f32", "2.0", lambda x: x.sum(1) + 2),
    Combination("mulf", "f32", "2.0", lambda x: x.prod(1) * 2),
    Combination("maximumf", "f32", "0xFF800000", lambda x: x.max(1)),
    Combination("minimumf", "f32", "0x7F800000", lambda x: x.min(1)),
    Combination("maxnumf", "f32", "0xFF800000", lambda x: np.fmax.reduce(x, 1)),
    Combination("minnumf", "f32", "0x7F800000", lambda x: np.fmin.reduce(x, 1)),
    Combination("maximumf", "f16", "0xFC00", lambda x: x.max(1)),
    Combination("addi", "i32", "-3", lambda x: x.sum(1) - 3),
    Combination("minsi", "i32", "7", lambda x: np.minimum(x.min(1), 7)),
    Combination("xori", "i32", "5", lambda x: np.bitwise_xor.reduce(x, 1) ^ 5),
)
# Rows, their length and how many a tile has, for 32 threads in subgroups of eight: one
# group of lanes a row, the second time with several rows a thread; two groups; three.
SHAPES = ((8, 32, 4), (32, 16, 16), (4, 48, 2), (2, 96, 1))
TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32}


def lowered(one: Combination, rows: int, length: int, tile: int) -> ir.Module:
    text = TEXT
    for name, value in {
        "ROWS": rows,
        "LENGTH": length,
        "TILE": tile,
        "TYPE": one.element,
        "START": one.start,
        "COMBINE": one.name,
    }.items():
        text = text.replace(name, str(value))
    module = ir.Module.parse(text)
    run_pipeline(Pipeline(block_steps(SMALL_BLOCK)), module)
    return module


def elements(one: Combination, rows: int, length: int) -> np.ndarray:
    numbers = np.random.default_rng(rows * length)
    if one.element == "i32":
        return numbers.integers(-99, 99, (rows, length), np.int32)
    made = numbers.uniform(0.9, 1.1, (rows, length)) * numbers.choice(
        [-1, 1], (rows, length)
    )
    return made.astype(TYPES[one.element])


@pytest.mark.sample(22)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("one", COMBINATIONS, ids=str)
def test_lanes_combine_what_rows_hold(one, shape, context) -> None:
    rows, length, _ = shape
    module = lowered(one, *shape)
    assert operations_of(module.operation, gpu.ShuffleOp)
    x, out = elements(one, rows, length), np.zeros(rows, TYPES[one.element])
    launch(module, [x, out])
    np.testing.assert_allclose(out, one.reduce(x), rtol=1e-5, atol=1e-5)


def test_a_nan_in_a_row_is_its_largest(context) -> None:
    one = COMBINATIONS[2]
    x = elements(one, 4, 48)
    x[1, 37] = np.nan
    out = np.zeros(4, np.float32)
    launch(lowered(one, 4, 48, 2), [x, out])
    assert np.isnan(out).tolist() == [False, True, False, False]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_reduction_takes_one_barrier_which_it_needs(shape, context) -> None:
    rows, length, _ = shape
    module = lowered(COMBINATIONS[0], *shape)
    (barrier,) = operations_of(module.operation, gpu.BarrierOp)
    barrier.erase()
    arrays = [np.ones((rows, length), np.float32), np.zeros(rows, np.float32)]
    with pytest.raises(RaceError):
        launch(module, arrays)


PARTLY = """
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @kernel(%a: memref<16xf32>) kernel {
      %end = arith.constant END : index
      %distance = arith.constant 4 : i32
      %width = arith.constant 8 : i32
      %t = gpu.thread_id x
      %takes_part = arith.cmpi slt, %t, %end : index
      scf.if %takes_part {
        %x = memref.load %a[%t] : memref<16xf32>
        %y, %valid = gpu.shuffle xor %x, %distance, %width : f32
        memref.store %y, %a[%t] : memref<16xf32>
      }
      gpu.return
    }
  }
  func.func @host(%a: memref<16xf32>) {
    %one = arith.constant 1 : index
    %threads = arith.constant 16 : index
    gpu.launch_func @device::@kernel blocks in (%one, %one, %one)
      threads in (%threads, %one, %one) args(%a : memref<16xf32>)
    return
  }
}
"""


def test_lanes_exchange_in_whole_subgroups_alone(context) -> None:
    x = np.arange(16, dtype=np.float32)
    launch(ir.Module.parse(PARTLY.replace("END", "8")), [x])
    assert x.tolist() == [4, 5, 6, 7, 0, 1, 2, 3, *range(8, 16)]
    with pytest.raises(AssertionError, match="some lanes skip"):
        launch(ir.Module.parse(PARTLY.replace("END", "12")), [x])
