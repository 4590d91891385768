"""Products of halves on tiles that are no whole fragments are padded to some."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from gpu_interpreter import launch
from gpu_memory import RaceError
from test_matrix_instructions import (
    SHAPES,
    Product,
    binary_of,
    count,
    emulate,
    emulated_gpu,
    interpreted,
    lowered,
)
from test_pointwise_convolutions import Case, check_halves
from torch import Tensor

from magweld.bindings import gpu, ir
from magweld.passes.ir.utils import operations_of

INSTRUCTIONS = {"mma": "llvm.nvvm.mma", "mfma": "llvm.amdgcn.mfma"}
# Two tiles of rows, of which 48 and one are copied; of columns; of both.
PRODUCTS = (
    Product(m=98, n=32, k=48, rows=49, columns=32),
    Product(m=32, n=58, k=32, rows=32, columns=29),
    Product(m=74, n=58, k=32, rows=37, columns=29),
)
PIPELINED = replace(SHAPES["mma"], has_async_copies=True)


@pytest.mark.sample(7)
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("family", INSTRUCTIONS)
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_interpreted_products_are_torchs(
    product: Product, family: str, element: str, whole: bool, context: None
) -> None:
    if not whole and element != "f16":
        pytest.skip("one of those of `--whole`")
    assert count(lowered(product.text(element), SHAPES[family]), INSTRUCTIONS[family])
    found = interpreted(product, element, SHAPES[family])
    assert product.is_right(found, product.inputs(element))


def pipelined(product: Product) -> ir.Module:
    """Return a product of steps of 16, three of which shared memory holds."""
    text = product.text("f16").replace(
        "attributes {tile_graph.kernel}",
        "attributes {tile_graph.kernel, tile_graph.copy_stages = 3 : i64}",
    )
    return lowered(text, PIPELINED)


def run(module: ir.Module, product: Product) -> Tensor:
    arguments = [t.view(torch.int16).numpy().copy() for t in product.inputs("f16")]
    out = torch.full((product.m, product.n), torch.nan, dtype=torch.float16)
    launch(module, [*arguments, out.view(torch.int16).numpy()])
    return out


def test_parts_of_tiles_are_copied_ahead(context: None) -> None:
    # 192 rows and five: no count of threads divides all of them.
    product = Product(m=197, n=16, k=48, rows=197, columns=16)
    module = pipelined(product)
    # In front of the loop those of two steps, and in it one: both, and the weights.
    assert str(module).count("nvgpu.device_async_copy") >= 9
    assert product.is_right(run(module, product), product.inputs("f16"))


def test_without_any_one_barrier_threads_race(context: None) -> None:
    product = PRODUCTS[0]
    barriers = len(operations_of(pipelined(product).operation, gpu.BarrierOp))
    assert barriers >= 2
    for removed in range(barriers):
        module = pipelined(product)
        operations_of(module.operation, gpu.BarrierOp)[removed].erase()
        with pytest.raises(RaceError):
            run(module, product)


def tokens(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b))


def scores(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.transpose(-2, -1)).softmax(-1)


CASES = [
    Case(tokens, ((1, 49, 64), (96, 64), (96,)), True),
    Case(tokens, ((2, 37, 32), (48, 32), (48,)), True),
    Case(tokens, ((1, 49, 40), (96, 40), (96,))),
    Case(scores, ((3, 49, 32), (3, 49, 32))),
]
SHORT = 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: str(CASES[i]))
def test_products_of_any_rows_are_instructions(
    number: int, dtype: torch.dtype, whole: bool, one_unit: str
) -> None:
    if not whole and (number >= SHORT or dtype != torch.bfloat16):
        pytest.skip("one of those of `--whole`")
    check_halves(CASES[number], dtype, one_unit)


@pytest.mark.skipif(bool(emulated_gpu.missing()), reason=emulated_gpu.missing())
@pytest.mark.parametrize("target", ["rocdl:gfx90a", "rocdl:gfx942"])
def test_machine_code_gives_what_torch_gives(target: str, context: None) -> None:
    product = PRODUCTS[0]
    inputs = product.inputs("f16")
    out = torch.full((product.m, product.n), torch.nan, dtype=torch.float16)
    emulate(binary_of(product.text("f16"), target), [*inputs, out])
    assert product.is_right(out, inputs)
