"""What Triton makes of a product and of attention, without a GPU: cubins and facts.

    PYTHON benchmarks/peers/triton_kernels.py FOLDER

is run by `device_loops.py` with a Python that has Triton. The kernels are those of its
tutorials, one of each for a tile; `kernels.json` in the folder lists them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# Rows, columns and steps of a tile, warps, and steps that are held.
PRODUCTS = (
    (128, 128, 64, 4, 3),
    (128, 128, 64, 8, 3),
    (128, 256, 64, 8, 3),
    (128, 128, 32, 4, 4),
)
# Queries and keys of a tile, warps, and blocks of keys that are held.
ATTENTIONS = ((128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3))
CHIPS = {"sm_80": 80, "sm_90a": 90}
SIZE = 128


@triton.jit
def product(
    a, b, c, m, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr
):
    """Computes a tile of `c = a @ b`."""
    tile = tl.program_id(0)
    across = n // COLUMNS
    rows = tile // across * ROWS + tl.arange(0, ROWS)
    columns = tile % across * COLUMNS + tl.arange(0, COLUMNS)
    steps = tl.arange(0, STEP)
    left = a + rows[:, None] * k + steps[None, :]
    right = b + steps[:, None] * n + columns[None, :]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for _ in range(0, k, STEP):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += STEP
        right += STEP * n
    place = c + rows[:, None] * n + columns[None, :]
    tl.store(place, total.to(c.dtype.element_ty))


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    scale,
    length,
    SIZE: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Computes some queries of one head, by online softmax."""
    head = tl.program_id(1) * length * SIZE
    rows = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    columns = tl.arange(0, SIZE)
    keys = tl.arange(0, KEYS)
    query = tl.load(q + head + rows[:, None] * SIZE + columns[None, :])
    key = k + head + keys[None, :] * SIZE + columns[:, None]
    value = v + head + keys[:, None] * SIZE + columns[None, :]
    highest = tl.full((QUERIES,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    made = tl.zeros((QUERIES, SIZE), dtype=tl.float32)
    scale *= 1.4426950408889634
    for _ in range(0, length, KEYS):
        scores = tl.dot(query, tl.load(key))
        higher = tl.maximum(highest, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - higher[:, None])
        factor = tl.math.exp2(highest - higher)
        made = made * factor[:, None]
        made = tl.dot(weights.to(value.dtype.element_ty), tl.load(value), made)
        total = total * factor + tl.sum(weights, 1)
        highest = higher
        key += KEYS * SIZE
        value += KEYS * SIZE
    made = made / total[:, None]
    place = out + head + rows[:, None] * SIZE + columns[None, :]
    tl.store(place, made.to(out.dtype.element_ty))


def compiled(
    function: Any, types: dict[str, str], numbers: dict[str, int], chip: int, how: Any
) -> Any:
    """Return a kernel of Triton for a chip; what is no number begins at 16 bytes."""
    signature = types | dict.fromkeys(numbers, "constexpr")
    aligned = [["tt.divisibility", 16]]
    attrs = {
        (place,): aligned
        for place, kind in enumerate(types.values())
        if kind.startswith("*") or kind == "i32"
    }
    source = ASTSource(function, signature=signature, constexprs=numbers, attrs=attrs)
    warps, stages = how
    options = {"num_warps": warps, "num_stages": stages}
    return triton.compile(source, target=GPUTarget("cuda", chip, 32), options=options)


def main() -> None:
    """Write all kernels to the folder that the command line names."""
    folder = Path(sys.argv[1])
    half, i32 = "*bf16", "i32"
    of_product = {"a": half, "b": half, "c": half, "m": i32, "n": i32, "k": i32}
    of_attention = {"q": half, "k": half, "v": half, "out": half}
    of_attention |= {"scale": "fp32", "length": i32}
    listed = []
    for chip, number in CHIPS.items():
        for rows, columns, step, *how in PRODUCTS:
            sizes = {"ROWS": rows, "COLUMNS": columns, "STEP": step}
            made = compiled(product, of_product, sizes, number, how)
            listed.append(
                written(folder, "product", chip, [rows, columns, step], how, made)
            )
        for queries, keys, *how in ATTENTIONS:
            sizes = {"SIZE": SIZE, "QUERIES": queries, "KEYS": keys}
            made = compiled(attention, of_attention, sizes, number, how)
            listed.append(
                written(folder, "attention", chip, [queries, keys], how, made)
            )
    (folder / "kernels.json").write_text(json.dumps(listed, indent=1) + "\n")


def written(
    folder: Path, case: str, chip: str, tile: list[int], how: list[int], made: Any
) -> dict[str, Any]:
    """Write a cubin; return what is told of it."""
    shape = "x".join(map(str, tile))
    file = f"{case}-{chip}-{shape}-{how[0]}-{how[1]}.cubin"
    (folder / file).write_bytes(made.asm["cubin"])
    facts = {"case": case, "chip": chip, "tile": tile, "file": file, "warps": how[0]}
    return facts | {"stages": how[1], "shared_bytes": made.metadata.shared}


if __name__ == "__main__":
    main()
