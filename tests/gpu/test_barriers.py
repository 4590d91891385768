"""Every barrier is needed, and the interpreter sees when one is missing."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_memory import RaceError

from magweld.bindings import gpu
from magweld.passes.ir.utils import operations_of

# Threads that fill no subgroup reduce through shared memory.
SOFTMAX = ("masked_softmax", {"B": 2, "S": 7}, ((2, 7, 7), (7,)), (2, 7, 7))
# Each row is shared by two subgroups of eight threads.
LAYER_NORM = (
    "residual_layer_norm",
    {"M": 4, "N": 48, "T": 2},
    ((4, 48), (4, 48), (48,), (48,)),
    (4, 48),
)
# Three reduction steps of 16.
LINEAR = (
    "linear_relu",
    {"M": 8, "N": 8, "K": 48, "TM": 8, "TN": 8},
    ((8, 48), (8, 48), (8,)),
    (8, 8),
)


@pytest.mark.parametrize("kernel", [SOFTMAX, LAYER_NORM, LINEAR], ids=lambda k: k[0])
def test_without_any_one_barrier_threads_race(kernel, build, run) -> None:
    name, sizes, shapes, result = kernel
    inputs = [np.ones(shape, np.float32) for shape in shapes]
    count = len(operations_of(build(name, sizes).operation, gpu.BarrierOp))
    assert count > 1
    for removed in range(count):
        module = build(name, sizes)
        operations_of(module.operation, gpu.BarrierOp)[removed].erase()
        with pytest.raises(RaceError):
            run(module, inputs, result)


def test_rows_of_one_subgroup_need_no_barrier_nor_shared_memory(build) -> None:
    module = build("masked_softmax", {"B": 2, "S": 16})
    assert operations_of(module.operation, gpu.ShuffleOp)
    assert not operations_of(module.operation, gpu.BarrierOp)
    (launch,) = operations_of(module.operation, gpu.LaunchFuncOp)
    assert launch.dynamicSharedMemorySize is None


def test_an_elementwise_kernel_has_no_barrier(build) -> None:
    module = build("bias_relu", {"M": 8, "N": 32, "T": 4})
    assert not operations_of(module.operation, gpu.BarrierOp)


def test_accumulators_stay_in_registers(build) -> None:
    module = build("linear_relu", LINEAR[1])
    (function,) = operations_of(module.operation, gpu.GPUFuncOp)
    text = str(function)
    assert "memref.alloca() : memref<2x1xf32, #gpu.address_space<private>>" in text
    (launch,) = operations_of(module.operation, gpu.LaunchFuncOp)
    # Four words lie behind each row of the operand whose columns threads walk down.
    staged_bytes = 4 * (8 * 16 + 8 * 20)
    size = launch.dynamicSharedMemorySize.owner.attributes["value"]
    assert size.value == staged_bytes
