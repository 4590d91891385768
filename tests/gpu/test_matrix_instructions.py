"""Products by matrix instructions: in the interpreter, in the emulator, compiled."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

import numpy as np
import pytest
import torch
from gpu_interpreter import launch
from torch import Tensor

from magweld.bindings import gpu, ir
from magweld.codegen.device_tools import find_ptxas
from magweld.device_kernels import compile_kernel
from magweld.dialects.tile_graph import fragment_attribute
from magweld.passes.gpu import lower_matrix_instructions, map_to_matrix_instructions
from magweld.passes.gpu.matrix_instructions import (
    INSTRUCTIONS,
    MatrixInstruction,
)
from magweld.passes.gpu.serialize_to_binary import LAUNCH
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import BlockShape, block_steps
from magweld.passes.tiling import matrix_units
from magweld.passes.tiling.matrix_units import share_among_subgroups
from magweld.runtime.gpu.driver import Geometry
from magweld.targets import parse_target

KERNELS = Path(__file__).parent / "kernels"
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
emulated_gpu = importlib.import_module("emulated_gpu")

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
BITS = {"f16": torch.int16, "bf16": torch.int16, "f32": torch.int32}
SHAPES = {
    "mfma": BlockShape(256, 64, 65536, "mfma"),
    "mma": BlockShape(128, 32, 49152, "mma"),
}
CASES = [
    (family, element)
    for family, elements in (("mfma", ("f16", "bf16", "f32")), ("mma", ("f16", "bf16")))
    for element in elements
]


@dataclass(frozen=True)
class Product:
    """relu(x @ w + bias), m x k by k x n in tiles; or w is n x k."""

    m: int = 64
    n: int = 96
    k: int = 48
    rows: int = 32
    columns: int = 48
    is_transposed: bool = True

    def text(self, element: str) -> str:
        """Return the kernel in tiled form."""
        n, k, columns = self.n, self.k, self.columns
        names = {
            "E": element,
            "M": self.m,
            "N": n,
            "K": k,
            "TM": self.rows,
            "TN": columns,
            "W": "n, k" if self.is_transposed else "k, n",
            "WS": f"{n}x{k}" if self.is_transposed else f"{k}x{n}",
            "WO": "%j, 0" if self.is_transposed else "0, %j",
            "WT": f"{columns}, {k}" if self.is_transposed else f"{k}, {columns}",
            "WTS": f"{columns}x{k}" if self.is_transposed else f"{k}x{columns}",
        }
        whole = element == "f32"
        names |= {
            "WIDEN": ""
            if whole
            else f"%l32 = arith.extf %l : {element} to f32 "
            f"%r32 = arith.extf %rr : {element} to f32",
            "FACTORS": "%l, %rr" if whole else "%l32, %r32",
            "WIDEN_BIAS": "" if whole else f"%q32 = arith.extf %q : {element} to f32",
            "BIAS": "%q" if whole else "%q32",
            "NARROW": "" if whole else f"%h = arith.truncf %m : f32 to {element}",
            "RESULT": "%m" if whole else "%h",
        }
        return Template((KERNELS / "matrix.mlir").read_text()).substitute(names)

    def inputs(self, element: str) -> list[Tensor]:
        """Return x, w and the bias."""
        generator = torch.Generator().manual_seed(3)
        w = (self.n, self.k) if self.is_transposed else (self.k, self.n)
        shapes = (self.m, self.k), w, (self.n,)
        made = [torch.randn(shape, generator=generator) for shape in shapes]
        return [tensor.to(TYPES[element]) for tensor in made]

    def is_right(self, result: Tensor, inputs: list[Tensor]) -> bool:
        """Compare with the product in double precision, rounded once."""
        x, w, bias = (tensor.double() for tensor in inputs)
        product = x @ (w.t() if self.is_transposed else w) + bias
        eps = max(torch.finfo(result.dtype).eps, 1e-6)
        return torch.allclose(result.double(), product.relu(), rtol=eps, atol=8 * eps)


# Two tiles of rows and of columns: the interpreter runs each block of threads.
PRODUCTS = (
    Product(),
    Product(is_transposed=False),
    Product(m=32, n=32, rows=16, columns=16),
)


def lowered(text: str, shape: BlockShape) -> ir.Module:
    module = ir.Module.parse(text)
    run_pipeline(Pipeline(block_steps(shape)), module)
    return module


def interpreted(product: Product, element: str, shape: BlockShape) -> Tensor:
    module = lowered(product.text(element), shape)
    arguments = [t.view(BITS[element]).numpy().copy() for t in product.inputs(element)]
    number = np.float32 if element == "f32" else np.int16
    if element == "f32":
        arguments = [a.view(np.float32) for a in arguments]
    out = np.full((product.m, product.n), -1, number)
    launch(module, [*arguments, out])
    return torch.from_numpy(out).view(TYPES[element])


def count(module: ir.Module, instruction: str) -> int:
    return str(module).count(f'call_intrinsic "{instruction}')


@pytest.mark.sample(5)
@pytest.mark.parametrize(("family", "element"), CASES)
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_interpreted_products_are_torchs(
    product: Product, family: str, element: str, context: None
) -> None:
    shape = SHAPES[family]
    assert count(lowered(product.text(element), shape), "llvm.")
    found = interpreted(product, element, shape)
    assert product.is_right(found, product.inputs(element))


@pytest.mark.parametrize(("family", "element"), CASES)
@pytest.mark.parametrize("side", ["left", "right", "rows"])
def test_wrong_lanes_are_noticed(
    family: str,
    element: str,
    side: str,
    context: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(one: MatrixInstruction) -> MatrixInstruction:
        if side == "rows":
            turned = tuple(reversed(one.rows.extents))
            lane = len(turned) - 1 - one.rows.lane
            return replace(one, rows=replace(one.rows, extents=turned, lane=lane))
        first, *rest = getattr(one, side)

        def shifted(lane: ir.AffineExpr) -> tuple[ir.AffineExpr, ir.AffineExpr]:
            line, step = first((lane + 1) % one.subgroup)
            return line, step

        return replace(one, **{side: (shifted, *rest)})

    (instruction,) = (o for o in INSTRUCTIONS[family] if o.operand == element)
    bad = wrong(instruction)
    monkeypatch.setitem(INSTRUCTIONS, family, (bad,))
    for module in (lower_matrix_instructions, map_to_matrix_instructions):
        if hasattr(module, "instruction_of"):
            monkeypatch.setattr(module, "instruction_of", lambda name: bad)
    product = Product(m=32)
    found = interpreted(product, element, SHAPES[family])
    assert not product.is_right(found, product.inputs(element))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "product",
    [
        Product(m=16, rows=8),
        Product(n=24, columns=12),
        Product(k=40),
    ],
    ids=str,
)
@pytest.mark.parametrize("family", SHAPES)
def test_other_tiles_stay_with_threads(
    product: Product, family: str, context: None
) -> None:
    shape = SHAPES[family]
    assert not count(lowered(product.text("f16"), shape), "llvm.")
    found = interpreted(product, "f16", shape)
    assert product.is_right(found, product.inputs("f16"))


def test_products_of_f32_keep_their_precision_on_nvidia(context: None) -> None:
    assert not count(lowered(Product().text("f32"), SHAPES["mma"]), "llvm.")


def test_accumulators_and_epilogues_stay_in_registers(context: None) -> None:
    text = str(lowered(Product().text("f16"), SHAPES["mfma"]))
    # Two tiles of factors are all that lies in shared memory.
    assert text.count("memref.view") == 2


def binary_of(text: str, target: str) -> gpu.BinaryOp:
    module = ir.Module.parse(text)  # kept: its operations go with it
    (function,) = kernels_of(module.operation)
    compiled = compile_kernel(function, parse_target(target))
    (binary,) = operations_of(compiled.operation, gpu.BinaryOp)
    return binary


def objects_of(binary: gpu.BinaryOp, kind: str) -> list[bytes]:
    images = [gpu.ObjectAttr(one) for one in binary.objects]
    wanted = int(gpu.CompilationTarget[kind])
    return [bytes(o.object) for o in images if int(o.format) == wanted]


def ptxas_says(assembly: bytes, folder: Path) -> str:
    """Return what ptxas tells of assembly for sm_90a."""
    (folder / "k.ptx").write_bytes(assembly.rstrip(b"\0"))
    tool = find_ptxas()
    assert tool is not None
    command = [*tool, "-v", "--gpu-name=sm_90a", "k.ptx", "-o", "k.cubin"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def emulate(binary: gpu.BinaryOp, values: list[Tensor]) -> None:
    """Run AMD's machine code on arguments and a destination."""
    entries = {e.name: e.attr for e in ir.DictAttr(binary.operation.attributes[LAUNCH])}
    (code,) = objects_of(binary, "Binary")
    driver = emulated_gpu.EmulatedDriver()
    driver.launch(
        driver.function(driver.load(code), entries["symbol"].value, 0),
        Geometry(
            tuple(entries["grid"]),
            tuple(entries["block"]),
            entries["dynamic_shared_bytes"].value,
        ),
        0,
        [values[number].data_ptr() for number in entries["arguments"]],
    )


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a"])
def test_assembly_has_the_instructions(
    element: str, target: str, context: None
) -> None:
    (assembly,) = objects_of(binary_of(Product().text(element), target), "Assembly")
    name = f"mma.sync.aligned.m16n8k16.row.col.f32.{element}.{element}.f32"
    assert name.encode() in assembly


@pytest.mark.skipif(bool(emulated_gpu.missing()), reason=emulated_gpu.missing())
# The emulator does not know how gfx90a encodes the instruction of bf16.
@pytest.mark.parametrize(
    ("target", "element"),
    [
        ("rocdl:gfx90a", "f16"),
        ("rocdl:gfx90a", "f32"),
        ("rocdl:gfx942", "f16"),
        ("rocdl:gfx942", "bf16"),
        ("rocdl:gfx942", "f32"),
    ],
)
def test_machine_code_gives_what_torch_gives(
    target: str, element: str, context: None
) -> None:
    product = Product(is_transposed=target == "rocdl:gfx942")
    inputs = product.inputs(element)
    out = torch.full((product.m, product.n), torch.nan, dtype=TYPES[element])
    emulate(binary_of(product.text(element), target), [*inputs, out])
    assert product.is_right(out, inputs)


def test_subgroups_share_results_squarely() -> None:
    assert share_among_subgroups((4, 4), 4) == (2, 2)
    assert share_among_subgroups((1, 8), 4) == (1, 4)
    assert share_among_subgroups((3, 1), 4) == (3, 1)


def test_half_of_the_subgroups_load_less_where_registers_suffice() -> None:
    shape = 16, 8
    # 64 x 64: two by four subgroups would load 384 rows and columns, these 256.
    assert share_among_subgroups((4, 8), 8, shape) == (2, 2)
    # 128 x 128 has 64 sums of each of 256 threads.
    assert share_among_subgroups((8, 16), 8, shape) == (2, 4)


def test_plans_price_the_instructions_of_halves_that_code_has() -> None:
    every = [one for family in INSTRUCTIONS.values() for one in family]
    halves = [one for one in every if one.operand in matrix_units.HALVES]
    assert {one.shape for one in halves} == matrix_units.SHAPES
    assert {one.operand for one in halves} == matrix_units.HALVES
    assert all(matrix_units.STEP % one.reduction == 0 for one in halves)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([[16, 16], [4, 4], [16], [0, 0], [1, 1]], "three sizes"),
        ([[16, 16, 16], [4, 2], [16], [0, 0], [1, 1]], "rows of product 16"),
        ([[16, 16, 16], [4, 4], [8], [0, 0], [1, 1]], "columns of product 16"),
        ([[16, 16, 16], [4, 4], [16], [2, 0], [1, 1]], "a part of each side"),
        ([[16, 16, 16], [4, 4], [16], [0, 0], [0, 1]], "two counts"),
    ],
)
def test_impossible_fragments_are_refused(
    numbers: list[list[int]], message: str, context: None
) -> None:
    assert message in (fragment_attribute("mfma", numbers).violation() or "")
