"""Products of warpgroups: interpreted, with what is missing noticed, and compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_matrix_instructions import SHAPES, Product, binary_of, objects_of, ptxas_says
from test_pipelined_copies import result_of, text

from magweld.bindings import gpu, ir, nvvm
from magweld.codegen.device_tools import find_ptxas
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import block_steps

SHAPE = replace(
    SHAPES["mma"],
    threads=256,
    shared_bytes=232448,
    has_async_copies=True,
    has_warpgroups=True,
)
# Two warpgroups of 64 rows, or of twice as many; one of 64.
PRODUCTS = (
    Product(m=128, n=64, k=192, rows=128, columns=64),
    Product(m=128, n=64, k=192, rows=128, columns=64, is_transposed=False),
    Product(m=256, n=128, k=192, rows=256, columns=64, is_transposed=False),
    Product(m=64, n=24, k=256, rows=64, columns=24),
    Product(m=64, n=128, k=256, rows=64, columns=128, is_transposed=False),
    # 128 sums of each lane.
    Product(m=128, n=256, k=192, rows=128, columns=256),
    Product(m=256, n=128, k=192, rows=256, columns=128, is_transposed=False),
)
# With four slots, the products of a step are under way while the next ones begin.
IN_FLIGHT = (
    Product(m=128, n=64, k=512, rows=128, columns=64),
    Product(m=256, n=64, k=384, rows=256, columns=64, is_transposed=False),
)


def planned(product: Product, element: str, stages: int = 3, step: int = 64) -> str:
    return text(product, element, stages).replace(
        "{tile_graph.kernel,",
        f"{{tile_graph.kernel, tile_graph.reduction_step = {step} : i64,",
    )


def lowered(product: Product, element: str = "f16", stages: int = 3) -> ir.Module:
    module = ir.Module.parse(planned(product, element, stages))
    run_pipeline(Pipeline(block_steps(SHAPE)), module)
    return ir.Module.parse(str(module))  # which is what tools hand on


def products(module: ir.Module) -> list[nvvm.WgmmaMmaAsyncOp]:
    return operations_of(module.operation, nvvm.WgmmaMmaAsyncOp)


@pytest.mark.sample(3)
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_products_are_torchs(product: Product, element: str, context: None) -> None:
    module = lowered(product, element)
    rows = max(1, product.rows // 128)
    assert len(products(module)) == 4 * rows
    found = result_of(module, product, element)
    assert product.is_right(found, product.inputs(element))


def waits(module: ir.Module) -> list[nvvm.WgmmaWaitGroupSyncOp]:
    return operations_of(module.operation, nvvm.WgmmaWaitGroupSyncOp)


@pytest.mark.parametrize("product", IN_FLIGHT, ids=str)
def test_products_are_in_flight_where_there_are_slots(
    product: Product, context: None
) -> None:
    module = lowered(product, stages=4)
    assert [ir.IntegerAttr(one.group).value for one in waits(module)] == [1, 0]
    assert not found_out(module, product)


def test_products_of_some_of_the_subgroups_are_waited_for(context: None) -> None:
    product = Product(m=64, n=64, k=384, rows=64, columns=64)
    module = lowered(product, stages=4)
    assert [ir.IntegerAttr(one.group).value for one in waits(module)] == [0]
    assert not found_out(module, product)


@pytest.mark.parametrize("product", IN_FLIGHT, ids=str)
@pytest.mark.parametrize("number", [0, 1])
def test_waits_for_products_in_flight_are_as_they_have_to_be(
    number: int, product: Product, context: None
) -> None:
    module = lowered(product, stages=4)
    wait = waits(module)[number].operation
    i64 = ir.IntegerType.get_signless(64)
    count = ir.IntegerAttr(wait.attributes["group"]).value
    wait.attributes["group"] = ir.IntegerAttr.get(i64, count + 1)
    assert found_out(module, product)


def test_copies_ahead_of_products_in_flight_are_waited_for(context: None) -> None:
    module = lowered(IN_FLIGHT[0], stages=4)
    (wait,) = operations_of(module.operation, nvvm.CpAsyncWaitGroupOp)
    i32 = ir.IntegerType.get_signless(32)
    assert ir.IntegerAttr(wait.operation.attributes["n"]).value == 1
    wait.operation.attributes["n"] = ir.IntegerAttr.get(i32, 2)
    assert "on its way" in found_out(module, IN_FLIGHT[0])


def found_out(module: ir.Module, product: Product = PRODUCTS[0]) -> str:
    """Return what the interpreter says of a product that was changed."""
    try:
        found = result_of(module, product, "f16")
    except AssertionError as error:
        return str(error)
    is_right = product.is_right(found, product.inputs("f16"))
    return "" if is_right else "another result"


def test_a_wait_for_copies_that_is_looser_by_one_is_noticed(context: None) -> None:
    module = lowered(PRODUCTS[0])
    (wait,) = operations_of(module.operation, nvvm.CpAsyncWaitGroupOp)
    i32 = ir.IntegerType.get_signless(32)
    wait.operation.attributes["n"] = ir.IntegerAttr.get(i32, 2)
    assert "on its way" in found_out(module)


def test_a_wait_for_products_that_is_looser_by_one_is_noticed(context: None) -> None:
    module = lowered(PRODUCTS[0])
    (wait,) = operations_of(module.operation, nvvm.WgmmaWaitGroupSyncOp)
    i64 = ir.IntegerType.get_signless(64)
    wait.operation.attributes["group"] = ir.IntegerAttr.get(i64, 1)
    assert found_out(module)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (nvvm.FenceProxyOp, "not fenced"),
        (gpu.BarrierOp, "just wrote"),
        (nvvm.WgmmaFenceAlignedOp, "not fenced"),
        (nvvm.WgmmaWaitGroupSyncOp, ""),
    ],
)
def test_what_is_missing_is_noticed(kind: type, message: str, context: None) -> None:
    module = lowered(PRODUCTS[0])
    (op,) = operations_of(module.operation, kind)
    op.erase()
    found = found_out(module)
    assert found
    assert message in found


def test_a_fence_behind_the_barrier_is_noticed(context: None) -> None:
    """Every thread has to have fenced what it has copied before others go on."""
    module = lowered(PRODUCTS[0])
    (fence,) = operations_of(module.operation, nvvm.FenceProxyOp)
    (wait,) = operations_of(module.operation, nvvm.CpAsyncWaitGroupOp)
    fence.operation.move_before(wait.operation)
    assert "not fenced" in found_out(module)


@pytest.mark.parametrize("side", ["layoutA", "layoutB"])
def test_layouts_are_needed_as_they_are(side: str, context: None) -> None:
    module = lowered(PRODUCTS[1])
    for one in products(module):
        attributes = one.operation.attributes
        other = "col" if "row" in str(attributes[side]) else "row"
        attributes[side] = ir.Attribute.parse(f"#nvvm.mma_layout<{other}>")
    assert found_out(module, PRODUCTS[1])


@pytest.mark.parametrize(
    "product",
    [
        # Columns of the second factor that are no rows of 64, and one step alone.
        Product(m=64, n=96, k=192, rows=64, columns=96, is_transposed=False),
        Product(m=64, n=64, k=64, rows=64, columns=64),
        Product(m=96, n=64, k=192, rows=96, columns=64),
    ],
    ids=str,
)
def test_other_products_are_computed_as_ever(product: Product, context: None) -> None:
    module = lowered(product)
    assert not products(module)
    assert not found_out(module, product)


def test_steps_that_are_no_rows_are_computed_as_ever(context: None) -> None:
    module = ir.Module.parse(planned(PRODUCTS[0], "f16", step=32))
    run_pipeline(Pipeline(block_steps(SHAPE)), module)
    assert not products(module)
    assert not found_out(module)


def test_there_has_to_be_room_at_multiples_of_swizzled_pieces(context: None) -> None:
    product = Product(m=64, n=24, k=256, rows=64, columns=24)
    # Two slots of both factors have 22528 bytes.
    for room, count in ((22528, 4), (22527, 0)):
        module = ir.Module.parse(planned(product, "f16", 2))
        shape = replace(SHAPE, shared_bytes=room)
        run_pipeline(Pipeline(block_steps(shape)), module)
        assert len(products(module)) == count


@pytest.mark.sample(2)
@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
@pytest.mark.parametrize("columns", [128, 256])
@pytest.mark.parametrize("transposed", [True, False])
def test_ptxas_takes_them_without_spills(
    transposed: bool, columns: int, context: None, tmp_path: Path
) -> None:
    product = Product(128, 512, 512, 128, columns, transposed)
    binary = binary_of(planned(product, "bf16", stages=4), "nvvm:sm_90a")
    (assembly,) = objects_of(binary, "Assembly")
    assert assembly.count(f"m64n{columns}k16.f32.bf16.bf16".encode()) >= 4
    assert b"mma.sync" not in assembly
    said = ptxas_says(assembly, tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    # Products that wait for each other, in the loop as well.
    assert "serialized" not in said
    assert "C75" not in said
