"""Random programs on buffers, with and without fuse-epilogues: equal to the bit.

Buffers are square, so that every one may be every operand: read in its place, through
views that overlap, transposed, or again by somebody later.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch

from magweld.codegen.host import HostTarget
from magweld.passes.cpu.fuse_epilogues import FuseEpilogues
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.pipelines.cpu import cpu_steps

SIZE = 20
PROGRAMS, WHOLE_PROGRAMS = 3, 8
INPUTS, RESULTS = ("%x0", "%x1"), ("%y0", "%y1")
OWN, PARTS = ("%t0", "%t1"), ("%s0", "%s1")
BUFFERS = (*INPUTS, *RESULTS, *OWN, *PARTS)
FLAT, PART = (
    f"memref<{SIZE}x{SIZE}xf32>",
    f"memref<{SIZE}x{SIZE}xf32, strided<[{SIZE}, 1], offset: {{}}>>",
)
KINDS = dict.fromkeys(BUFFERS, FLAT) | {
    "%s0": PART.format(0).replace(", offset: 0", ""),
    "%s1": PART.format(SIZE * 10),
}
BODIES = (
    "%0 = arith.maximumf %p, %q : f32\n    linalg.yield %0 : f32",
    "%0 = arith.mulf %p, %q : f32\n    %1 = arith.subf %0, %p : f32\n"
    "    linalg.yield %1 : f32",
    "%0 = arith.addf %p, %q : f32\n    linalg.yield %0 : f32",
    "%0 = math.tanh %p : f32\n    %1 = arith.addf %0, %q : f32\n"
    "    linalg.yield %1 : f32",
)


def overlap(a: str, b: str) -> bool:
    return a == b or (a in PARTS and b in PARTS)


def generic(maps: str, kinds: str, inputs: list[str], output: str, body: str) -> str:
    operands = ", ".join(inputs)
    types = ", ".join(KINDS[name] for name in inputs)
    ins = f" ins({operands} : {types})" if inputs else ""
    names = ["%p", "%q"][: len(inputs)]
    arguments = ", ".join(f"{name}: f32" for name in (*names, "%u"))
    loops = ", ".join(f'"{kind}"' for kind in kinds.split())
    return (
        f"  linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}"
        f"{ins} outs({output} : {KINDS[output]}) {{\n  ^bb0({arguments}):\n"
        f"    {body}\n  }}"
    )


class Program:
    """Steps of a random program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def steps(self) -> Iterator[str]:
        for name in (*OWN, "%s0", "%s1"):
            yield self.fill(name)
        for _ in range(4):
            result = self.random.choice((*OWN, *PARTS, *RESULTS))
            if self.random.random() < 0.8:
                yield self.fill(result)
            if self.random.random() < 0.2:
                yield self.finish()
            yield self.product(result)
            if self.random.random() < 0.2:
                yield self.fill(self.random.choice((*OWN, *RESULTS)))
            yield self.finish(result)
        yield self.finish(self.random.choice(OWN), "%y1")

    def fill(self, name: str) -> str:
        value = self.random.choice(("%zero", "%half"))
        return generic(
            "#o", "parallel parallel", [], name, f"linalg.yield {value} : f32"
        )

    def product(self, result: str) -> str:
        others = [name for name in BUFFERS if not overlap(name, result)]
        inputs = self.random.choices(others, k=2)
        maps = self.random.choice(("#a, #b, #r", "#a, #bt, #r", "#a, #b, #rt"))
        body = (
            "%0 = arith.mulf %p, %q : f32\n    %1 = arith.addf %u, %0 : f32\n"
            "    linalg.yield %1 : f32"
        )
        return generic(maps, "parallel parallel reduction", inputs, result, body)

    def finish(self, source: str = "", output: str = "") -> str:
        source = source or self.random.choice(BUFFERS)
        written = [n for n in BUFFERS if n not in INPUTS]
        free = [n for n in written if n == source or not overlap(n, source)]
        output = output or self.random.choice(
            [*free, source if source in free else "%y0"]
        )
        if output != source and overlap(output, source):
            output = "%y0"
        other = self.random.choice([n for n in BUFFERS if not overlap(n, output)])
        if self.random.random() < 0.6:
            other = self.random.choice(INPUTS)
        maps = self.random.choice(
            ("#o, #o, #o", "#o, #w, #o", "#o, #w, #o", "#o, #t, #o")
        )
        if output != source and self.random.random() < 0.3:
            maps = self.random.choice((maps, "#t, #o, #o"))
        body = self.random.choice(BODIES)
        return generic(maps, "parallel parallel", [source, other], output, body)

    def text(self) -> str:
        arguments = ", ".join(f"{name}: {FLAT}" for name in (*INPUTS, *RESULTS))
        return "\n".join(
            [
                "#o = affine_map<(i, j) -> (i, j)>",
                "#t = affine_map<(i, j) -> (j, i)>",
                "#w = affine_map<(i, j) -> (0, j)>",
                "#a = affine_map<(m, n, k) -> (m, k)>",
                "#b = affine_map<(m, n, k) -> (k, n)>",
                "#bt = affine_map<(m, n, k) -> (n, k)>",
                "#r = affine_map<(m, n, k) -> (m, n)>",
                "#rt = affine_map<(m, n, k) -> (n, m)>",
                f"func.func @kernel_0({arguments}) attributes {{tile_graph.kernel}} {{",
                "  %zero = arith.constant 0.0 : f32",
                "  %half = arith.constant 0.5 : f32",
                *(f"  {name} = memref.alloc() : {FLAT}" for name in OWN),
                f"  %whole = memref.alloc() : memref<30x{SIZE}xf32>",
                *(
                    f"  {name} = memref.subview %whole[{first}, 0] [{SIZE}, {SIZE}] "
                    f"[1, 1] : memref<30x{SIZE}xf32> to {KINDS[name]}"
                    for name, first in zip(PARTS, (0, 10), strict=True)
                ),
                *self.steps(),
                "  return",
                "}",
            ]
        )


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(WHOLE_PROGRAMS))
def test_joined_programs_give_the_same(build, seed: int, whole: bool) -> None:
    if seed >= PROGRAMS and not whole:
        pytest.skip("a program of `--whole`")
    target = HostTarget.detect()
    unit = VectorUnit(target.vector_bits, target.vector_registers)
    joined = list(cpu_steps(unit))
    apart = [step for step in joined if not isinstance(step, FuseEpilogues)]
    text = Program(seed).text()
    torch.manual_seed(seed)
    inputs = [torch.randn(SIZE, SIZE) * 0.3 for _ in INPUTS]
    found = []
    for steps in (joined, apart):
        results = [torch.full((SIZE, SIZE), 0.25) for _ in RESULTS]
        build(text, steps, parallel=False)(*inputs, *results)
        found.append(torch.cat(results))
    assert torch.equal(*found) or torch.allclose(*found, rtol=1e-5, equal_nan=True)
