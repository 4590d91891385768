"""Products whose next steps are copied while one is computed with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from gpu_interpreter import launch
from gpu_memory import RaceError
from test_matrix_instructions import BITS, SHAPES, TYPES, Product, binary_of, objects_of
from torch import Tensor

from magweld.bindings import gpu, ir, nvvm
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import BlockShape, block_steps
from magweld.targets import parse_target

SHAPE = replace(SHAPES["mma"], has_async_copies=True)
# Six steps of 16.
PRODUCTS = (
    Product(m=32, n=32, k=96, rows=32, columns=32),
    Product(m=32, n=32, k=96, rows=32, columns=32, is_transposed=False),
)


def text(product: Product, element: str, stages: int) -> str:
    planned = f"{{tile_graph.kernel, tile_graph.copy_stages = {stages} : i64}}"
    return product.text(element).replace("{tile_graph.kernel}", planned)


def lowered(product: Product, element: str, stages: int) -> ir.Module:
    module = ir.Module.parse(text(product, element, stages))
    run_pipeline(Pipeline(block_steps(SHAPE)), module)
    return ir.Module.parse(str(module))  # which is what tools hand on


def result_of(module: ir.Module, product: Product, element: str) -> Tensor:
    inputs = [t.view(BITS[element]).numpy().copy() for t in product.inputs(element)]
    number = np.float32 if element == "f32" else np.int16
    out = np.full((product.m, product.n), -1, number)
    launch(module, [*(array.view(number) for array in inputs), out])
    return torch.from_numpy(out).view(TYPES[element])


def waits(module: ir.Module) -> list[nvvm.CpAsyncWaitGroupOp]:
    return operations_of(module.operation, nvvm.CpAsyncWaitGroupOp)


@pytest.mark.sample(6)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_pipelined_products_are_torchs(
    product: Product, element: str, stages: int, context: None
) -> None:
    module = lowered(product, element, stages)
    (wait,) = waits(module)
    assert ir.IntegerAttr(wait.n).value == stages - 2
    found = result_of(module, product, element)
    assert product.is_right(found, product.inputs(element))


@pytest.mark.parametrize("stages", [2, 3])
def test_a_wait_that_is_looser_by_one_is_noticed(stages: int, context: None) -> None:
    module = lowered(PRODUCTS[0], "f16", stages)
    (wait,) = waits(module)
    i32 = ir.IntegerType.get_signless(32)
    wait.operation.attributes["n"] = ir.IntegerAttr.get(i32, stages - 1)
    with pytest.raises(RaceError, match="on its way"):
        result_of(module, PRODUCTS[0], "f16")


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_one_barrier_a_step_is_enough_and_needed(element: str, context: None) -> None:
    module = lowered(PRODUCTS[0], element, 3)
    (barrier,) = operations_of(module.operation, gpu.BarrierOp)
    barrier.erase()
    with pytest.raises(RaceError):
        result_of(module, PRODUCTS[0], element)


def test_loops_have_no_more_stages_than_steps(context: None) -> None:
    product = Product(m=32, n=32, k=32, rows=32, columns=32)
    module = lowered(product, "f16", 4)
    (wait,) = waits(module)
    assert ir.IntegerAttr(wait.n).value == 0
    assert product.is_right(result_of(module, product, "f16"), product.inputs("f16"))


def test_rings_have_no_more_slots_than_there_is_room_for(context: None) -> None:
    module = ir.Module.parse(text(PRODUCTS[0], "f16", 4))
    # A slot of both factors has 2048 bytes.
    run_pipeline(Pipeline(block_steps(replace(SHAPE, shared_bytes=3 * 2048))), module)
    (wait,) = waits(module)
    assert ir.IntegerAttr(wait.n).value == 1
    found = result_of(module, PRODUCTS[0], "f16")
    assert PRODUCTS[0].is_right(found, PRODUCTS[0].inputs("f16"))


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a"])
def test_assembly_has_the_instructions(
    element: str, target: str, context: None
) -> None:
    binary = binary_of(text(PRODUCTS[0], element, 3), target)
    (assembly,) = objects_of(binary, "Assembly")
    # Two steps in front of the loop and one in it, of two factors; LLVM may unroll it.
    assert assembly.count(b"cp.async.cg.shared.global") >= 6
    assert assembly.count(b"cp.async.commit_group") >= 3
    assert b"cp.async.wait_group \t1;" in assembly


def test_amds_kernels_copy_as_ever(context: None) -> None:
    module = ir.Module.parse(text(PRODUCTS[0], "f16", 3))
    shape = BlockShape.of(parse_target("rocdl:gfx942"))
    run_pipeline(Pipeline(block_steps(shape)), module)
    assert not waits(module)
    found = result_of(module, PRODUCTS[0], "f16")
    assert PRODUCTS[0].is_right(found, PRODUCTS[0].inputs("f16"))
