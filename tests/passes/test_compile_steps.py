"""How much work compiling takes: steps grow with a graph, not with the ways through it.

A step is a call of a Python function. A chain in which each value reads the one before
it twice has twice as many ways through it with each link.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from cProfile import Profile

import pytest

from magweld.bindings import ir
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.host_function import read_host_function
from magweld.kernel_code import compile_launches, launches_of
from magweld.passes.infrastructure.phases import Phase

# With the second ways through a chain are eight times as many as with the first: what
# follows them ends there, and not with the last after minutes.
LENGTHS = (10, 13, 20)
# To the last, steps may grow with the square of the length, and half as much again.
MOST_GROWTH = 6

SQUARE = "tensor<16x16xf32>"
HEAD = f"""
#all = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#flat = affine_map<(d0) -> (d0)>
#whole = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#last = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#left = affine_map<(m, n, k) -> (m, k)>
#right = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @main(%v0: {SQUARE}, %a: {SQUARE}, %x: tensor<2x2x16x16xf32>)
    -> RESULT {{
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : {SQUARE}
  %er = tensor.empty() : tensor<16xf32>
  %ef = tensor.empty() : tensor<256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {SQUARE}) -> {SQUARE}
  %sums = linalg.fill ins(%zero : f32) outs(%er : tensor<16xf32>) -> tensor<16xf32>
"""
ENDINGS = {
    "expand": (
        "tensor<4x4x16xf32>",
        """  %r = tensor.expand_shape VALUE [[0, 1], [2]] output_shape [4, 4, 16]
      : tensor<16x16xf32> into tensor<4x4x16xf32>
""",
    ),
    "collapse": (
        "tensor<4x16x16xf32>",
        """  %ex = tensor.empty() : tensor<2x2x16x16xf32>
  %y = linalg.generic {indexing_maps = [#whole, #last, #whole],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, VALUE : tensor<2x2x16x16xf32>, tensor<16x16xf32>)
      outs(%ex : tensor<2x2x16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x2x16x16xf32>
  %r = tensor.collapse_shape %y [[0, 1], [2], [3]]
      : tensor<2x2x16x16xf32> into tensor<4x16x16xf32>
""",
    ),
    "sum": (
        "tensor<16xf32>",
        """  %r = linalg.generic {indexing_maps = [#all, #row],
      iterator_types = ["parallel", "reduction"]}
      ins(VALUE : tensor<16x16xf32>) outs(%sums : tensor<16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %p, %o : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
""",
    ),
}


def both(name: str, one: str, other: str, body: str, maps: str = "#all, #all") -> str:
    """Return an elementwise operation of two tensors."""
    kind = SQUARE if maps != "#all, #row" else "tensor<16xf32>"
    return f"""  {name} = linalg.generic {{indexing_maps = [{maps}, #all],
      iterator_types = ["parallel", "parallel"]}}
      ins({one}, {other} : {SQUARE}, {kind}) outs(%e : {SQUARE}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    {body}
    linalg.yield %t : f32
  }} -> {SQUARE}
"""


def elementwise(old: str, new: str) -> str:
    step = "%u = arith.mulf %p, %q : f32\n    %t = arith.subf %two, %u : f32"
    product = "%t = arith.mulf %p, %q : f32"
    return both(f"{new}_a", "%a", old, step) + both(new, old, f"{new}_a", product)


def one_body(old: str, new: str) -> str:
    """Each link is one operation that uses its operand twice."""
    body = "%u = math.sin %p : f32\n    %w = math.cos %p : f32\n"
    return both(new, old, "%a", body + "    %t = arith.mulf %u, %w : f32")


def reduction(old: str, new: str) -> str:
    return f"""  {new}_s = linalg.generic {{indexing_maps = [#all, #row],
      iterator_types = ["parallel", "reduction"]}}
      ins({old} : {SQUARE}) outs(%sums : tensor<16xf32>) {{
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %p, %o : f32
    linalg.yield %t : f32
  }} -> tensor<16xf32>
""" + both(new, old, f"{new}_s", "%t = arith.subf %p, %q : f32", "#all, #row")


def product(old: str, new: str) -> str:
    return f"""  {new} = linalg.generic {{indexing_maps = [#left, #right, #out],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({old}, {old} : {SQUARE}, {SQUARE}) outs(%zeros : {SQUARE}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }} -> {SQUARE}
"""


def transposed(old: str, new: str) -> str:
    return both(new, old, old, "%t = arith.addf %p, %q : f32", "#all, #turned")


def reshaped(old: str, new: str) -> str:
    flat = "tensor<256xf32>"
    return f"""  {new}_f = tensor.collapse_shape {old} [[0, 1]] : {SQUARE} into {flat}
  {new}_g = linalg.generic {{indexing_maps = [#flat, #flat],
      iterator_types = ["parallel"]}} ins({new}_f : {flat}) outs(%ef : {flat}) {{
  ^bb0(%p: f32, %o: f32):
    %t = math.absf %p : f32
    linalg.yield %t : f32
  }} -> {flat}
  {new}_e = tensor.expand_shape {new}_g [[0, 1]] output_shape [16, 16]
      : {flat} into {SQUARE}
""" + both(new, old, f"{new}_e", "%t = arith.subf %p, %q : f32")


def joined(old: str, new: str) -> str:
    half = "tensor<16x8xf32>"
    slices = [
        f"  {new}_{at} = tensor.extract_slice {old}[0, {at}] [16, 8] [1, 1]"
        f" : {SQUARE} to {half}\n"
        for at in (0, 8)
    ]
    return "".join(slices) + (
        f"  {new} = tensor.concat dim(1) {new}_8, {new}_0"
        f" : ({half}, {half}) -> {SQUARE}\n"
    )


def padded(old: str, new: str) -> str:
    part = "tensor<8x16xf32>"
    return f"""  {new}_s = tensor.extract_slice {old}[0, 0] [8, 16] [1, 1]
      : {SQUARE} to {part}
  {new}_p = tensor.pad {new}_s low[4, 0] high[4, 0] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  }} : {part} to {SQUARE}
""" + both(new, old, f"{new}_p", "%t = arith.addf %p, %q : f32")


def gathered(old: str, new: str) -> str:
    body = f"""%i = linalg.index 1 : index
    %k = arith.fptosi %p : f32 to i32
    %m = arith.index_cast %k : i32 to index
    %n = arith.minui %m, %c0 : index
    %g = tensor.extract {old}[%n, %i] : {SQUARE}
    %t = arith.addf %g, %q : f32"""
    return both(new, old, "%a", body)


KINDS: tuple[Callable[[str, str], str], ...] = (
    elementwise,
    one_body,
    reduction,
    product,
    transposed,
    reshaped,
    joined,
    padded,
    gathered,
)


def chain(kind: Callable[[str, str], str], ending: str, links: int) -> str:
    values = [f"%v{number}" for number in range(links + 1)]
    steps = [kind(old, new) for old, new in itertools.pairwise(values)]
    result, last = ENDINGS[ending]
    last = last.replace("VALUE", values[-1]) + f"  return %r : {result}\n}}\n"
    return HEAD.replace("RESULT", result) + "".join(steps) + last


def steps_of(text: str) -> int:
    """Compile a module and return how many steps that takes."""
    # Native, and without native functions: counting would take longer than compiling.
    profile = Profile(builtins=False)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        with profile:
            # Plans are kept from one module to the next: those here are new to both.
            lower_to_tiles(module, CompileOptions(), Phase.TILED)
            host = read_host_function(module, "main", [])
            compile_launches(module, launches_of({"main": host}))
    return sum(function.callcount for function in profile.getstats())


@pytest.mark.sample(6)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_steps_grow_with_a_graph_and_not_with_ways_through_it(
    kind: Callable[[str, str], str], ending: str, whole: bool
) -> None:
    # Every kind with one ending, every ending with a third of the kinds.
    beside = (KINDS.index(kind) + [*ENDINGS].index(ending)) % len(ENDINGS)
    if beside and not whole:
        pytest.skip("one of the pairs of `--whole`")
    steps_of(chain(kind, ending, 2))  # what is made once in a process
    first, *others = LENGTHS
    most = MOST_GROWTH * steps_of(chain(kind, ending, first))
    for links in others:
        assert steps_of(chain(kind, ending, links)) <= most
