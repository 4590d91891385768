"""Kernels take little of the stack of the thread that calls them."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from magweld.bindings import ir, llvm
from magweld.context import make_context
from magweld.passes.cpu.place_allocations import STACK_BYTES
from magweld.passes.ir.utils import operations_of

# Tiles whose buffers together are small, and many times as large as the limit.
KERNELS: list[tuple[str, dict[str, int]]] = [
    ("attention", {"B": 1, "S": 16, "D": 8, "T": 8}),
    ("attention", {"B": 2, "S": 256, "D": 64, "T": 64}),
    ("attention", {"B": 1, "S": 512, "D": 64, "T": 128}),
    ("matmul", {"M": 256, "K": 768, "N": 512, "TM": 128, "TN": 128}),
    ("linear_relu", {"M": 96, "K": 512, "N": 256, "TM": 48, "TN": 128}),
    ("residual_layer_norm", {"M": 64, "N": 4096, "T": 16}),
    ("masked_softmax", {"B": 2, "S": 512}),
    ("batch_norm_add_relu", {"C": 64, "H": 56, "T": 16}),
    (
        "convolution",
        {"C": 64, "O": 64, "H": 28, "T": 14, "K": 3, "S": 1, "P": 30, "R": 16},
    ),
]


@pytest.mark.parametrize(
    ("name", "sizes"), KERNELS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_kernels_stay_below_the_limit(
    build_template: Callable[..., Any], name: str, sizes: dict[str, int]
) -> None:
    kernel = build_template(name, **sizes)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(kernel.lowered)
        taken = sum(map(_bytes, operations_of(module.operation, llvm.AllocaOp)))
    assert taken <= STACK_BYTES


def _bytes(alloca: Any) -> int:
    count = alloca.operands[0].owner.attributes["value"].value
    sizes = [int(size) for size in re.findall(r"(\d+) x", str(alloca.elem_type))]
    bits = re.search(r"\d+$", str(alloca.elem_type).rstrip(">)"))
    assert bits is not None
    return int(count * math.prod(sizes) * -(-int(bits[0]) // 8))


# A segfault would end the process of the tests.
IN_A_SMALL_THREAD = """
import threading, torch, magweld

class Attention(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

inputs = tuple(torch.rand(1, 2, 512, 64) for _ in range(3))
program = magweld.compile(Attention(), inputs)
expected = program(*inputs)
got = []
threading.stack_size(128 * 1024)
thread = threading.Thread(target=lambda: got.append(program(*inputs)))
thread.start()
thread.join()
assert torch.equal(got[0], expected)
"""


def test_a_kernel_runs_in_a_thread_with_a_small_stack() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_SMALL_THREAD], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
