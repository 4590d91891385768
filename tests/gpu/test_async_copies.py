"""The interpreter's copies beside the code: they arrive at the wait, not before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_interpreter import launch
from gpu_memory import RaceError

from magweld.bindings import ir

# Each thread copies two steps of 4 elements; its neighbour writes them out.
KERNEL = """
#shared = #gpu.address_space<workgroup>
!bytes = memref<?xi8, #shared>
!tile = memref<2x128xf32, #shared>
module attributes {{gpu.container_module}} {{
  func.func @main(%x: memref<8x128xf32>, %y: memref<8x128xf32>) {{
    %one = arith.constant 1 : index
    %threads = arith.constant 32 : index
    %bytes = arith.constant 1024 : i32
    gpu.launch_func @device::@kernel blocks in (%one, %one, %one)
        threads in (%threads, %one, %one) dynamic_shared_memory_size %bytes
        args(%x : memref<8x128xf32>, %y : memref<8x128xf32>)
    return
  }}
  gpu.module @device {{
    gpu.func @kernel(%x: memref<8x128xf32>, %y: memref<8x128xf32>) kernel {{
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c31 = arith.constant 31 : index
      %whole = gpu.dynamic_shared_memory : !bytes
      %s = memref.view %whole[%c0][] : memref<?xi8, #shared> to !tile
      %own = arith.muli %t, %c4 : index
      %mirrored = arith.subi %c31, %t : index
      %other = arith.muli %mirrored, %c4 : index
      %a = nvgpu.device_async_copy %x[%c0, %own], %s[%c0, %own], 4 {{bypassL1}}
        : memref<8x128xf32> to !tile
      nvvm.cp.async.commit.group
      %b = nvgpu.device_async_copy %x[%c1, %own], %s[%c1, %own], 4 {{bypassL1}}
        : memref<8x128xf32> to !tile
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group {first}
      {barrier}
      %u = memref.load %s[%c0, %other] : memref<2x128xf32, #shared>
      memref.store %u, %y[%c0, %t] : memref<8x128xf32>
      {again}
      nvvm.cp.async.wait.group {second}
      gpu.barrier
      %v = memref.load %s[%c1, %other] : memref<2x128xf32, #shared>
      memref.store %v, %y[%c1, %t] : memref<8x128xf32>
      {end}
      gpu.return
    }}
  }}
}}
"""
# The first step is copied to once more, where threads may still read it.
AGAIN = """%z = nvgpu.device_async_copy %x[%c0, %own], %s[%c0, %own], 4 {bypassL1}
        : memref<8x128xf32> to !tile
      nvvm.cp.async.commit.group"""


def run(
    first: int = 1,
    second: int = 0,
    barrier: str = "gpu.barrier",
    again: str = "",
    end: str = "",
) -> np.ndarray:
    text = KERNEL.format(
        first=first, second=second, barrier=barrier, again=again, end=end
    )
    x = np.arange(8 * 128, dtype=np.float32).reshape(8, 128)
    y = np.full((8, 128), np.nan, np.float32)
    launch(ir.Module.parse(text), [x, y])
    return y


def test_copies_arrive_at_their_wait(context: None) -> None:
    found = run()
    expected = 4.0 * np.arange(31, -1, -1)
    assert (found[0, :32] == expected).all()
    assert (found[1, :32] == 128 + expected).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": 2}, "on its way"),
        ({"second": 1}, "on its way"),
        ({"barrier": ""}, "just wrote"),
        ({"again": AGAIN}, "still reads"),
    ],
    ids=["first wait", "second wait", "barrier", "place"],
)
def test_what_is_too_loose_is_noticed(
    change: dict[str, Any], message: str, context: None
) -> None:
    with pytest.raises(RaceError, match=message):
        run(**change)


def test_copies_that_nobody_waits_for_are_noticed(context: None) -> None:
    with pytest.raises(AssertionError, match="on their way"):
        run(end=AGAIN)
