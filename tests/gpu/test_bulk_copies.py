"""Copies by the tensor memory accelerator: interpreted, compiled and launched."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hosted_gpu import HostedGpu, MockDriver, _interpreted, _of_cells
from test_matrix_instructions import Product, binary_of, objects_of, ptxas_says
from test_pipelined_copies import result_of
from test_warpgroup_products import IN_FLIGHT, PRODUCTS, found_out, planned
from test_warpgroup_products import SHAPE as WARPGROUPS

from magweld.artifact import DeviceLaunch, KernelStep, Place, Program, Value
from magweld.bindings import arith, gpu, ir, nvgpu, nvvm
from magweld.codegen.device_tools import find_ptxas
from magweld.context import make_context
from magweld.device_kernels import CompiledLaunch, compile_kernel
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import block_steps
from magweld.runtime.container import decode_program, encode_program
from magweld.runtime.errors import ProgramError
from magweld.runtime.gpu.driver import CUDA, HIP, DeviceError, LibraryDriver
from magweld.runtime.program import LoadedProgram
from magweld.targets import parse_target
from magweld.tensor_map import MappedParameter, TensorMap

SHAPE = replace(WARPGROUPS, has_bulk_copies=True)
# Rows of a factor that are more than a box has.
WIDE = Product(m=128, n=512, k=192, rows=128, columns=256)


def lowered(product: Product, element: str = "f16", stages: int = 3) -> ir.Module:
    module = ir.Module.parse(planned(product, element, stages))
    run_pipeline(Pipeline(block_steps(SHAPE)), module)
    return ir.Module.parse(str(module))  # which is what tools hand on


def of(module: ir.Module, kind: type) -> list[Any]:
    return operations_of(module.operation, kind)


COPY = nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp


@pytest.mark.sample(3)
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("product", [*PRODUCTS, WIDE], ids=str)
def test_products_are_torchs(product: Product, element: str, context: None) -> None:
    module = lowered(product, element)
    assert of(module, COPY)
    assert not of(module, nvgpu.DeviceAsyncCopyOp)
    found = result_of(module, product, element)
    assert product.is_right(found, product.inputs(element))


@pytest.mark.sample(3)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("product", IN_FLIGHT, ids=str)
def test_rings_of_any_length_are_right(
    product: Product, stages: int, context: None
) -> None:
    module = lowered(product, stages=stages)
    assert len(of(module, nvvm.MBarrierInitOp)) == stages
    assert not found_out(module, product)


def moved(module: ir.Module, value: ir.Value, by: int) -> ir.Value:
    """Build a number that is larger by some."""
    more = ir.IntegerAttr.get(value.type, by)
    made: ir.Value = arith.AddIOp(value, arith.ConstantOp(value.type, more)).result
    return made


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_wait_for_the_phase_before_is_noticed(stages: int, context: None) -> None:
    module = lowered(IN_FLIGHT[0], stages=stages)
    (wait,) = of(module, nvvm.MBarrierTryWaitParityOp)
    with ir.InsertionPoint(wait), wait.location:
        one = arith.ConstantOp(wait.phase.type, 1).result
        wait.operation.operands[1] = arith.XOrIOp(wait.phase, one).result
    assert "on its way" in found_out(module, IN_FLIGHT[0])


@pytest.mark.parametrize("stages", [3, 4])
def test_a_wait_for_the_slot_before_is_noticed(stages: int, context: None) -> None:
    """Of the first slot it is the last one, which nothing has begun to fill."""
    module = lowered(IN_FLIGHT[0], stages=stages)
    (wait,) = of(module, nvvm.MBarrierTryWaitParityOp)
    with ir.InsertionPoint(wait), wait.location:
        address = wait.addr.owner.operands[0]
        first = of(module, nvvm.MBarrierInitOp)[0].addr.owner.operands[0]
        same = arith.CmpIOp(arith.CmpIPredicate.eq, address, first).result
        size = address.type
        back, last = (arith.ConstantOp(size, n).result for n in (-8, 8 * (stages - 1)))
        by = arith.SelectOp(same, last, back).result
        made = arith.AddIOp(address, by).result
        pointer = wait.addr.owner.operation.clone()
        pointer.operands[0] = made
        wait.operation.operands[0] = pointer.results[0]
    assert found_out(module, IN_FLIGHT[0])


@pytest.mark.parametrize("by", [-16, 16])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_is_expected_is_what_arrives(number: int, by: int, context: None) -> None:
    module = lowered(PRODUCTS[0])
    expected = of(module, nvvm.MBarrierArriveExpectTxOp)[number]
    with ir.InsertionPoint(expected), expected.location:
        expected.operation.operands[1] = moved(module, expected.txcount, by)
    assert found_out(module)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (nvvm.FenceProxyOp, "not fenced"),
        (nvvm.MBarrierTryWaitParityOp, "on its way"),
        (nvvm.WgmmaWaitGroupSyncOp, ""),
        (nvvm.WgmmaFenceAlignedOp, "not fenced"),
    ],
)
def test_what_is_missing_is_noticed(kind: type, message: str, context: None) -> None:
    module = lowered(PRODUCTS[0])
    (op,) = of(module, kind)
    op.erase()
    found = found_out(module)
    assert found
    assert message in found


@pytest.mark.parametrize("kind", [COPY, nvvm.MBarrierArriveExpectTxOp])
@pytest.mark.parametrize("number", [0, -1])
def test_each_copy_and_arrival_is_needed(
    kind: type, number: int, context: None
) -> None:
    module = lowered(PRODUCTS[0])
    of(module, kind)[number].erase()
    assert found_out(module)


def test_every_barrier_is_needed(context: None) -> None:
    """Behind what makes the mbarriers, and in each step."""
    barriers = of(lowered(PRODUCTS[0]), gpu.BarrierOp)
    # What gives the mbarriers up is not followed by anything that has their bytes.
    for number in range(len(barriers) - 1):
        module = lowered(PRODUCTS[0])
        of(module, gpu.BarrierOp)[number].erase()
        assert found_out(module), number


def test_sums_in_flight_are_waited_for(context: None) -> None:
    module = lowered(IN_FLIGHT[0], stages=4)
    for wait in of(module, nvvm.WgmmaWaitGroupSyncOp):
        other = lowered(IN_FLIGHT[0], stages=4)
        count = ir.IntegerAttr(wait.group).value
        for one in of(other, nvvm.WgmmaWaitGroupSyncOp):
            if ir.IntegerAttr(one.group).value == count:
                i64 = ir.IntegerType.get_signless(64)
                one.operation.attributes["group"] = ir.IntegerAttr.get(i64, count + 1)
        assert found_out(other, IN_FLIGHT[0])


def test_there_has_to_be_room_for_the_mbarriers(context: None) -> None:
    product = Product(m=64, n=24, k=256, rows=64, columns=24)
    # Two slots of both factors have 22528 bytes.
    for room, is_bulk in ((22528 + 1024, True), (22528 + 1023, False)):
        module = ir.Module.parse(planned(product, "f16", 2))
        run_pipeline(Pipeline(block_steps(replace(SHAPE, shared_bytes=room))), module)
        assert bool(of(module, COPY)) == is_bulk
        assert not found_out(ir.Module.parse(str(module)), product)


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
@pytest.mark.parametrize("columns", [128, 256])
@pytest.mark.parametrize("transposed", [True, False])
def test_ptxas_takes_them_without_spills(
    transposed: bool, columns: int, context: None, tmp_path: Path
) -> None:
    product = Product(128, 512, 512, 128, columns, transposed)
    binary = binary_of(planned(product, "bf16", stages=4), "nvvm:sm_90a")
    (assembly,) = objects_of(binary, "Assembly")
    assert b"cp.async.bulk.tensor.2d.shared::cluster.global" in assembly
    assert b"cp.async.cg" not in assembly
    said = ptxas_says(assembly, tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    assert "serialized" not in said
    assert "C75" not in said


# ---- launches ------------------------------------------------------------------------


CALLED = Product(m=128, n=128, k=256, rows=128, columns=64)
STEP = "launch_0"
TARGET = parse_target("nvvm:sm_90a")


@cache
def compiled() -> tuple[Program, Callable[[Any], None]]:
    """Return a program of one product, and what computes its launches."""
    images: list[bytes] = []

    def keep(code: bytes) -> int:
        images.append(code)
        return len(images) - 1

    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(planned(CALLED, "bf16"))
        (function,) = module.body.operations
        (binary,) = of(compile_kernel(function, TARGET), gpu.BinaryOp)
        made = CompiledLaunch.of(binary, keep)
        launches = _of_cells(_interpreted(function, 1, TARGET).run)
    inputs = [(t.shape, Place.INPUT, n) for n, t in enumerate(CALLED.inputs("bf16"))]
    places = [*inputs, ((CALLED.m, CALLED.n), Place.OUTPUT, 0)]
    launch = DeviceLaunch(
        *(STEP, made.symbol, made.images, tuple(made.grid), tuple(made.block)),
        *(made.shared_bytes, tuple(made.parameters[0].arguments), ("mm",)),
        maps=made.maps,
    )
    values = (Value(tuple(s), "bf16", place, n) for s, place, n in places)
    program = Program(
        tuple(values),
        (KernelStep(STEP, (0, 1, 2), (3,)),),
        (3,),
        0,
        tuple(images),
        target="nvvm:sm_90a",
        launches=(launch,),
    )
    return program, launches


Load = Callable[..., LoadedProgram]


@pytest.fixture
def load(mock: MockDriver) -> Load:
    program, launches = compiled()
    mock.kernels[program.launches[0].kernel] = launches

    def loaded(
        changed: Program = program, driver: LibraryDriver | None = None
    ) -> LoadedProgram:
        hosted = HostedGpu(driver or LibraryDriver(CUDA, mock.path))
        return LoadedProgram(changed, no_external, hosted)

    return loaded


class Map(ctypes.Structure):
    """A tensor map as the mock driver keeps it."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("type", ctypes.c_uint),
        ("rank", ctypes.c_uint),
        ("swizzle", ctypes.c_uint),
        ("extents", ctypes.c_uint64 * 3),
        ("strides", ctypes.c_uint64 * 2),
        ("box", ctypes.c_uint * 3),
        ("promotion", ctypes.c_uint),
    )


def made_maps(mock: MockDriver) -> list[Map]:
    """Return the maps that the driver has made, all of them."""
    at = mock.library.mock_map
    at.restype = ctypes.POINTER(Map)
    return [at(number).contents for number in range(mock.library.mock_mapped())]


def test_the_driver_is_told_of_the_tensors_of_a_call(
    mock: MockDriver, load: Load
) -> None:
    tensors = CALLED.inputs("bf16")
    (found,) = load()(tensors)
    assert CALLED.is_right(found, tensors)
    by_address = {one.address: one for one in made_maps(mock)}
    factors = {tensors[0]: 128, tensors[1]: 64}
    assert set(by_address) == {tensor.data_ptr() for tensor in factors}
    for tensor, box in factors.items():
        one = by_address[tensor.data_ptr()]
        rows, columns = tensor.shape
        # CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_SWIZZLE_128B
        assert (one.type, one.rank, one.swizzle) == (9, 2, 3)
        assert list(one.extents) == [columns, rows, 0]
        assert list(one.strides) == [2 * columns, 0]
        assert list(one.box) == [64, box, 0]


def test_maps_are_made_anew_where_tensors_lie_elsewhere(
    mock: MockDriver, load: Load
) -> None:
    call, tensors = load(), CALLED.inputs("bf16")
    other = [tensors[0] + 1, *tensors[1:]]
    for factors, count in ((tensors, 2), (tensors, 2), (other, 3), (tensors, 4)):
        (found,) = call(factors)
        assert CALLED.is_right(found, factors)
        assert mock.library.mock_mapped() == count


def test_programs_keep_their_maps(mock: MockDriver, load: Load) -> None:
    program, _ = compiled()
    (launch,) = program.launches
    again = Program.from_header(program.header(), program.objects, program.constants)
    assert again.launches == program.launches
    assert {one.map.extents for one in launch.maps} == {(128, 256)}
    tensors = CALLED.inputs("bf16")
    (found,) = load(again)(tensors)
    assert CALLED.is_right(found, tensors)


def test_encoded_programs_keep_their_maps() -> None:
    program, _ = compiled()
    restored = decode_program(encode_program(program))
    assert restored.launches == program.launches
    assert restored.objects == program.objects


def test_maps_that_are_refused_name_the_kernel(mock: MockDriver, load: Load) -> None:
    call = load()
    mock.fail("tensor_map", 1)
    with pytest.raises(DeviceError, match=r"'kernel_kernel'.*CUDA_ERROR_OTHER"):
        call(CALLED.inputs("bf16"))
    mock.fail("", 0)
    tensors = CALLED.inputs("bf16")
    (found,) = call(tensors)
    assert CALLED.is_right(found, tensors)


def test_a_driver_without_maps_is_told_from_others(
    mock: MockDriver, load: Load
) -> None:
    with pytest.raises(DeviceError, match="tensor maps") as raised:
        load(driver=LibraryDriver(HIP, mock.path))
    assert raised.value.id == "device-driver"


MAP = TensorMap("bf16", (128, 256), (512,), (128, 64), 128)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"element": "f64"}, "elements of f16"),
        ({"extents": ()}, "1 to 5 dimensions"),
        ({"extents": (0, 256)}, "elements a dimension"),
        ({"strides": (520,)}, "strides"),
        ({"strides": ()}, "strides and a box"),
        ({"box": (257, 64)}, "boxes"),
        ({"box": (128, 65)}, "rows of"),
        ({"box": (128, 72)}, "rows of up to 128"),
        ({"swizzle": 64}, "swizzle"),
    ],
)
def test_maps_that_no_driver_takes_are_one_clear_error(
    changed: dict[str, Any], text: str, load: Load
) -> None:
    assert not list(MAP.violations())
    wrong = replace(MAP, **changed)
    with pytest.raises(ProgramError, match=text) as raised:
        load(with_maps(MappedParameter(0, wrong)))
    assert raised.value.id == "bad-launch"


def with_maps(*maps: MappedParameter) -> Program:
    program, _ = compiled()
    (launch,) = program.launches
    return replace(program, launches=(replace(launch, maps=maps),))


def test_maps_are_of_parameters(load: Load) -> None:
    for maps in (
        (MappedParameter(4, MAP),),
        (MappedParameter(-1, MAP),),
        (MappedParameter(0, MAP), MappedParameter(0, MAP)),
    ):
        with pytest.raises(ProgramError, match="another parameter"):
            load(with_maps(*maps))


def no_external(node: str, tensors: Any) -> Any:
    raise AssertionError(node)
