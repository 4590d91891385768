"""Compares random linalg operations on the vector path with the plain path."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from magweld.passes.cpu.tile_for_registers import TileForRegisters
from magweld.passes.pipelines.cpu import cpu_steps

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i64", "i32", "i8", "i1")
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 49, 64)
MOST_POINTS = 20_000


@dataclass
class RandomOperation:
    """One `linalg.generic` as a kernel.

    Attributes:
        seed: What it was made from.
        dtype: Element type of all operands.
        text: The module.
        shapes: Shapes of the inputs, then of the output.
    """

    seed: int
    dtype: str = ""
    text: str = ""
    shapes: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        extents = _extents(rng)
        self.dtype = rng.choice(("f32",) * 5 + FLOATS + INTEGERS)
        kind = rng.choice(("map", "reduction", "product"))
        reduced = [kind != "map" and rng.random() < 0.35 for _ in extents]
        operands = _operands(rng, extents, reduced, 2 if kind == "product" else None)
        self.shapes = [shape for _, shape in operands]
        body = _body(rng, kind, self.dtype, len(operands) - 1, any(reduced))
        self.text = _text(operands, reduced, self.dtype, body)


Operand = tuple[list[str], list[int]]


def _extents(rng: random.Random) -> list[int]:
    extents: list[int] = []
    points = 1
    for _ in range(rng.randint(1, 4)):
        extent = rng.choice([e for e in EXTENTS if e * points <= MOST_POINTS])
        extents.append(extent)
        points *= extent
    return extents


def _operands(
    rng: random.Random, extents: list[int], reduced: list[bool], inputs: int | None
) -> list[Operand]:
    """Return index expressions and shapes: permuted, broadcast, strided accesses."""
    loops = list(range(len(extents)))
    result = [d for d in loops if not reduced[d]]
    rng.shuffle(result)
    operands = []
    plain = set(result)
    for _ in range(inputs or rng.randint(1, 3)):
        dims = [d for d in loops if rng.random() < 0.75]
        if rng.random() < 0.5:
            rng.shuffle(dims)
        strided = {d for d in dims if rng.random() < 0.12}
        plain |= set(dims) - strided
        operands.append(
            (
                [f"d{d} * 2 + 1" if d in strided else f"d{d}" for d in dims],
                [2 * extents[d] if d in strided else extents[d] for d in dims],
            )
        )
    for dim in set(loops) - plain:
        operands[0][0].append(f"d{dim}")
        operands[0][1].append(extents[dim])
    return [*operands, ([f"d{d}" for d in result], [extents[d] for d in result])]


def _body(
    rng: random.Random, kind: str, dtype: str, inputs: int, reduces: bool
) -> list[str]:
    """Return the body's lines; the last names the value to yield."""
    real = dtype in FLOATS
    add, multiply = (
        ("arith.addf", "arith.mulf") if real else ("arith.addi", "arith.muli")
    )
    if kind == "product":
        return [f"%t = {multiply} %a0, %a1 : {dtype}", f"%y = {add} %o, %t : {dtype}"]
    lines, last = [], "%a0"
    for k in range(1, inputs):
        lines.append(f"%t{k} = {add} {last}, %a{k} : {dtype}")
        last = f"%t{k}"
    if not reduces and rng.random() < 0.4:
        lines += [
            "%i = linalg.index 0 : index",
            "%c3 = arith.constant 3 : index",
            "%first = arith.cmpi ult, %i, %c3 : index",
            f"%s = arith.select %first, {last}, %a0 : {dtype}",
        ]
        last = "%s"
    floats = (add, "arith.maximumf", "arith.minimumf", "arith.maxnumf")
    whole = (add, "arith.maxsi", "arith.minui", "arith.andi", "arith.xori")
    combine = rng.choice(floats if real else whole) if reduces else multiply
    other = "%o" if reduces else "%a0"
    return [*lines, f"%y = {combine} {last}, {other} : {dtype}"]


def _text(
    operands: list[Operand], reduced: list[bool], dtype: str, body: list[str]
) -> str:
    loops = ", ".join(f"d{d}" for d in range(len(reduced)))
    maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(e)})>" for e, _ in operands)
    iterators = ", ".join('"reduction"' if r else '"parallel"' for r in reduced)
    types = [f"tensor<{''.join(f'{n}x' for n in s)}{dtype}>" for _, s in operands]
    inputs = len(operands) - 1
    names = ", ".join(f"%x{k}" for k in range(inputs))
    typed = ", ".join(f"%x{k}: {types[k]}" for k in range(inputs))
    arguments = ", ".join([*(f"%a{k}: {dtype}" for k in range(inputs)), f"%o: {dtype}"])
    lines = "\n    ".join(body)
    return f"""
func.func @kernel_0({typed}, %out0: {types[-1]}) -> {types[-1]} attributes {{tile_graph.kernel}} {{
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} ins({names} : {", ".join(types[:-1])}) outs(%out0 : {types[-1]}) {{
  ^bb0({arguments}):
    {lines}
    linalg.yield %y : {dtype}
  }} -> {types[-1]}
  return %r : {types[-1]}
}}
"""  # noqa: E501


DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i8": torch.int8,
    "i1": torch.bool,
}
# The two paths add in different orders.
TOLERANCES = {"f64": 1e-12, "f32": 2e-5, "f16": 5e-2, "bf16": 3e-1}


def _random_tensor(shape: list[int], dtype: str) -> Tensor:
    if dtype in FLOATS:
        return (torch.rand(shape) * 2 - 1).to(DTYPES[dtype])
    if dtype == "i1":
        return torch.rand(shape) > 0.5
    return torch.randint(-5, 6, shape).to(DTYPES[dtype])


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(60))
def test_vectors_give_what_plain_loops_give(seed: int, build) -> None:
    torch.manual_seed(seed)
    case = RandomOperation(seed)
    plain_steps = [s for s in cpu_steps() if not isinstance(s, TileForRegisters)]
    *inputs, first = [_random_tensor(shape, case.dtype) for shape in case.shapes]
    second = first.clone()
    build(case.text, parallel=False)(*inputs, first)
    build(case.text, plain_steps, parallel=False)(*inputs, second)
    if case.dtype in INTEGERS:
        assert torch.equal(first, second)
        return
    error = (first.double() - second.double()).abs().max()
    assert error <= TOLERANCES[case.dtype] * max(1e-6, second.double().abs().max())
