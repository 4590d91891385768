"""Factors of mma.sync that ldmatrix loads: which lane gets what, banks, registers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_interpreter import launch
from gpu_memory import Memory
from test_matrix_instructions import (
    BITS,
    SHAPES,
    Product,
    binary_of,
    interpreted,
    objects_of,
)
from test_pipelined_copies import lowered, result_of, text

from magweld.bindings import ir, nvgpu
from magweld.codegen.device_tools import find_ptxas
from magweld.passes.gpu.bank_conflicts import ThreadAccess, row_padding
from magweld.passes.gpu.matrix_instructions import INSTRUCTIONS
from magweld.passes.gpu.matrix_loads import MatrixLoad, matrix_loads
from magweld.passes.ir.utils import operations_of

NO_SPILLS = "0 bytes spill stores, 0 bytes spill loads"
# A subgroup has one column, or three: an odd number of pairs of matrices.
PRODUCTS = (
    Product(m=32, n=32, k=96, rows=32, columns=32),
    Product(m=32, n=32, k=96, rows=32, columns=32, is_transposed=False),
    Product(m=16, n=96, k=48, rows=16, columns=96),
    Product(m=16, n=96, k=48, rows=16, columns=96, is_transposed=False),
)


def loads(module: ir.Module) -> list[nvgpu.LdMatrixOp]:
    return operations_of(module.operation, nvgpu.LdMatrixOp)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_factors_are_loaded_as_matrices(
    product: Product, element: str, context: None
) -> None:
    module = lowered(product, element, 3)
    turned = {bool(one.transpose.value) for one in loads(module)}
    assert turned == ({False} if product.is_transposed else {False, True})
    found = result_of(module, product, element)
    assert product.is_right(found, product.inputs(element))


def test_each_load_is_needed_as_it_is(context: None) -> None:
    product = Product(m=16, n=32, k=32, rows=16, columns=32, is_transposed=False)
    for number in range(len(loads(lowered(product, "f16", 2)))):
        module = lowered(product, "f16", 2)
        one = loads(module)[number]
        turned = ir.BoolAttr.get(not one.transpose.value)
        one.operation.attributes["transpose"] = turned
        found = result_of(module, product, "f16")
        assert not product.is_right(found, product.inputs("f16"))


@pytest.mark.parametrize("product", PRODUCTS[:2], ids=str)
def test_lanes_that_name_other_rows_are_noticed(
    product: Product, context: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = MatrixLoad.row

    def shifted(one: MatrixLoad, lane: ir.AffineExpr, turned: bool) -> Any:
        return right(one, (lane + 1) % 32, turned)

    monkeypatch.setattr(MatrixLoad, "row", shifted)
    found = interpreted(product, "f16", SHAPES["mma"])
    assert not product.is_right(found, product.inputs("f16"))


def test_lanes_receive_what_the_instruction_set_says(context: None) -> None:
    """Each lane stores its two elements of the second of two matrices."""
    kernel = """
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: memref<16x8xi16>, %y: memref<32x2xi16>) kernel {
      %t = gpu.thread_id x
      %s = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c15 = arith.constant 15 : index
      %tile = memref.view %s[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
          to memref<16x8xi16, #gpu.address_space<workgroup>>
      %row = arith.andi %t, %c15 : index
      %first = arith.cmpi eq, %row, %t : index
      scf.if %first {
        %v = vector.load %x[%row, %c0] : memref<16x8xi16>, vector<8xi16>
        vector.store %v, %tile[%row, %c0]
            : memref<16x8xi16, #gpu.address_space<workgroup>>, vector<8xi16>
      }
      gpu.barrier
      %m = nvgpu.ldmatrix %tile[%row, %c0] {numTiles = 2 : i32, transpose = TURN}
          : memref<16x8xi16, #gpu.address_space<workgroup>> -> vector<2x2xi16>
      %own = vector.extract %m[1] : vector<2xi16> from vector<2x2xi16>
      vector.store %own, %y[%t, %c0] : memref<32x2xi16>, vector<2xi16>
      gpu.return
    }
  }
  func.func @main(%x: memref<16x8xi16>, %y: memref<32x2xi16>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %bytes = arith.constant 256 : i32
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        dynamic_shared_memory_size %bytes
        args(%x : memref<16x8xi16>, %y : memref<32x2xi16>)
    return
  }
}
"""
    x = np.arange(128, dtype=np.int16).reshape(16, 8)
    for turn, matrix in (("false", x[8:]), ("true", x[8:].T)):
        y = np.full((32, 2), -1, np.int16)
        launch(ir.Module.parse(kernel.replace("TURN", turn)), [x.copy(), y])
        # "Thread fragment layout" of the PTX ISA: four lanes a row, two elements each.
        assert (y == matrix.reshape(32, 2)).all()


@pytest.mark.parametrize("is_transposed", [False, True])
def test_rows_of_matrices_lie_in_different_banks(
    is_transposed: bool, context: None
) -> None:
    # Two subgroups each way: a row is written once and read twice.
    product = Product(64, 32, 48, 64, 32, is_transposed)
    module = lowered(product, "f16", 3)
    passes: list[int] = []

    def note(
        is_store: bool, memory: Memory, lanes: Any, first: np.ndarray, size: int
    ) -> None:
        if memory.name == "shared memory" and not is_store and size == 16:
            # Eight rows at a time.
            for group in first.reshape(-1, 8):
                banks = group[:, None] // 4 % 32 + np.arange(4)
                passes.append(int(np.bincount(banks.reshape(-1) % 32).max()))

    out = np.full((product.m, product.n), -1, np.int16)
    arrays = [t.view(BITS["f16"]).numpy().copy() for t in product.inputs("f16")]
    launch(module, [*arrays, out], observer_of=lambda number: note)
    assert set(passes) == {1}


def test_paddings_keep_what_is_loaded_as_matrices_aligned() -> None:
    # Words down a column take the fewest passes with an odd number of words.
    words = ThreadAccess((32,), ((1,), (0,)), 64)
    lanes = tuple((lane % 8, lane // 8) for lane in range(32))
    rows = ThreadAccess((32,), ((1, 0), (0, 8)), 8, 8, lanes, is_whole=True)
    assert row_padding((32, 64), 2, [words], 32) == 2
    assert row_padding((32, 64), 2, [words, rows], 32) == 8
    assert row_padding((32, 64), 2, [rows], 32) == 8
    assert row_padding((32, 72), 2, [rows], 32) == 0


def test_matrices_are_loaded_four_at_a_time(context: None) -> None:
    one = INSTRUCTIONS["mma"][0]

    def sizes(positions: Any, pieces: int) -> list[int]:
        return [len(load.matrices) for load in matrix_loads(positions, pieces)]

    with ir.Location.unknown():
        assert sizes(one.left, 3) == [4, 4, 4]
        assert sizes(one.right, 4) == [4, 4]
        assert sizes(one.right, 3) == [4, 2]
        assert sizes(one.right[:1], 1) == [1]


def said_of(assembly: bytes, target: str, folder: Path) -> str:
    """Return what ptxas says of registers and memory."""
    ptxas = find_ptxas()
    assert ptxas is not None
    chip = target.partition(":")[2]
    (folder / "k.ptx").write_bytes(assembly)
    return subprocess.run(
        [*ptxas, "-v", f"--gpu-name={chip}", "k.ptx", "-o", "k.cubin"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stderr


@pytest.mark.skipif(not find_ptxas(), reason="no ptxas")
@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a"])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_products_have_their_tiles_in_registers(
    target: str, is_transposed: bool, context: None, tmp_path: Path
) -> None:
    size = 128
    product = Product(size, size, 256, size, size, is_transposed)
    binary = binary_of(text(product, "bf16", 3), target)
    (assembly,) = objects_of(binary, "Assembly")
    # Four operands of rows and four of columns, for sixteen products.
    assert assembly.count(b"mma.sync") == 16
    assert assembly.count(b"ldmatrix") == 6
    assert b"ld.shared" not in assembly
    assert NO_SPILLS in said_of(assembly, target, tmp_path)
