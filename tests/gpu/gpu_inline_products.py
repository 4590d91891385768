"""Owns inline assembly of interpreted GPU code: products of warpgroups, waited for.

Written from the PTX ISA ("wgmma.mma_async": the left factor in registers, which lie as
those of `mma.m16n8k16` do in each warp). Nothing else is known.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from gpu_fragments import _f32
from gpu_memory import Block, RaceError
from gpu_warpgroups import _THREADS, _note, _places, _type_of

from magweld.bindings import ir

_PRODUCT = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(bf16|f16)\.\2 "
    r"\{([^}]*)\}, \{([^}]*)\}, \$(\d+), p, 1, 1, ([01]);"
)
_OTHERS = {
    "{",
    "}",
    ".reg .pred p;",
    "wgmma.fence.sync.aligned;",
    "wgmma.commit_group.sync.aligned;",
    "wgmma.wait_group.sync.aligned 0;",
}
_ADDS = {"setp.ne.b32 p, 0, 0;": False, "setp.eq.b32 p, 0, 0;": True}


def _run(op: Any, block: Block) -> None:
    assert block.mask.all(), "a product that some threads skip"
    lines = ir.StringAttr(op.operation.attributes["asm_string"]).value.split("\n")
    constraints = ir.StringAttr(op.operation.attributes["constraints"]).value.split(",")
    assert "wgmma.fence.sync.aligned;" in lines
    assert lines[-3:-1] == [
        "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned 0;",
    ]
    outputs = constraints.count("=f")
    given = [block.values[v] for v in op.operands]
    tied = [int(one) for one in constraints if one.isdigit()]
    assert tied in ([], list(range(outputs))), "sums lie where they are written"
    sums = np.full((block.threads, outputs), np.nan, np.float32)
    for number in tied:
        sums[:, number] = given[number]
    adds = None
    for line in lines:
        if line in _ADDS:
            adds = _ADDS[line]
            continue
        found = _PRODUCT.fullmatch(line)
        if found is None:
            assert line in _OTHERS, f"assembly that is not known: {line}"
            continue
        assert adds is not None, "a predicate that nothing has set"
        columns, kind, results, registers, right, across = found.groups()
        assert _numbers(results) == list(range(int(columns) // 2))
        left = [given[n - outputs] for n in _numbers(registers)]
        descriptor = op.operands[int(right) - outputs]
        places = _places(descriptor, int(columns), across == "1", block)
        made = _product(_rows(left, kind), places, kind, block)
        sums = sums + made if adds else made
    block.values[op.results[0]] = sums


def _numbers(text: str) -> list[int]:
    return [int(one.strip().removeprefix("$")) for one in text.split(",")]


def _rows(registers: list[np.ndarray], kind: str) -> np.ndarray:
    """The left factor: by warpgroup, row and step."""
    lane, warp = np.arange(32), np.arange(4)
    g, t = lane // 4, lane % 4
    made = np.zeros((len(registers[0]) // _THREADS, 64, 16), np.float32)
    for number, (row, step) in enumerate(((0, 0), (8, 0), (0, 8), (8, 8))):
        raw = np.ascontiguousarray(registers[number]).view(_type_of(kind))
        pairs = _f32(raw.reshape(-1, 4, 32, 2), kind)
        for i in range(2):
            rows = warp[:, None] * 16 + g + row
            made[:, rows, np.broadcast_to(2 * t + i + step, rows.shape)] = pairs[..., i]
    return made


def _product(
    left: np.ndarray, places: np.ndarray, kind: str, block: Block
) -> np.ndarray:
    """What a product gives each thread: one row of sums."""
    shared = block.shared
    read = places.reshape(len(places), -1)
    if shared.unfenced[read].any():
        raise RaceError("a warpgroup reads what was written and not fenced")
    _note(shared, read, block.mask, block)
    raw = np.ascontiguousarray(shared.data[places]).view(_type_of(kind))[..., 0]
    product = left @ _f32(raw, kind).swapaxes(1, 2)
    thread = np.arange(_THREADS)
    row, pair = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
    number = np.arange(product.shape[2] // 2)
    rows = row[:, None] + number % 4 // 2 * 8
    columns = pair[:, None] + number // 4 * 8 + number % 2
    return product[:, rows, columns].reshape(-1, number.size).astype(np.float32)


HANDLERS = {"llvm.inline_asm": _run}
