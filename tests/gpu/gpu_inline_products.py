"""Owns inline assembly of interpreted GPU code: products of warpgroups, and waits.

Written from the PTX ISA ("wgmma.mma_async": the left factor in registers, which lie as
those of `mma.m16n8k16` do in each warp). Nothing else is known. Sums are no numbers
until their group has been waited for, by a wait that gives them on; the registers of
their left factor have to be kept until then: they are operands of the wait.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpu_fragments import _f32
from gpu_memory import Block, RaceError
from gpu_warpgroups import _THREADS, _note, _places, _type_of

from magweld.bindings import ir, llvm

_PRODUCT = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(bf16|f16)\.\2 "
    r"\{([^}]*)\}, \{([^}]*)\}, \$(\d+), p, 1, 1, ([01]);"
)
_WAIT = re.compile(r"wgmma\.wait_group\.sync\.aligned (\d+);")
_OTHERS = {"{", "}", ".reg .pred p;", "wgmma.fence.sync.aligned;"}
_COMMIT = "wgmma.commit_group.sync.aligned;"
_ADDS = {"setp.ne.b32 p, 0, 0;": False, "setp.eq.b32 p, 0, 0;": True}


@dataclass
class _Begun:
    """A product that is under way.

    Attributes:
        before: The sums that it adds to.
        after: What becomes the result.
        kept: Registers that it reads.
        steps: Both factors of each step, whether it adds to what is there, and the
            bytes that it reads.
    """

    before: np.ndarray
    after: np.ndarray
    kept: list[np.ndarray]
    steps: list[tuple[np.ndarray, np.ndarray, bool, np.ndarray]] = field(
        default_factory=list
    )

    def finish(self, block: Block) -> None:
        """Compute the result, and forget that its factors are being read."""
        sums = self.before
        for left, right, adds, read in self.steps:
            made = _by_thread(left @ right.swapaxes(1, 2))
            sums = sums + made if adds else made
            block.shared.used[read] -= 1
            _note(block.shared, read, block.mask, block)
        self.after[:] = sums


def _run(op: Any, block: Block) -> None:
    assert block.mask.all(), "a product that some threads skip"
    lines = ir.StringAttr(op.operation.attributes["asm_string"]).value.split("\n")
    constraints = ir.StringAttr(op.operation.attributes["constraints"]).value.split(",")
    outputs = constraints.count("=f")
    tied = [int(one) for one in constraints if one.isdigit()]
    assert tied in ([], list(range(outputs))), "sums lie where they are written"
    wait = _WAIT.fullmatch(lines[0])
    if wait is None:
        _begin(op, lines, outputs, len(tied), block)
        return
    assert len(lines) == 1
    _finish(op, int(wait[1]), outputs, block)


def _finish(op: Any, left: int, outputs: int, block: Block) -> None:
    """Wait for all groups but the youngest, and give sums on."""
    groups = block.warpgroups
    there = {id(block.values[v]) for v in op.operands}
    for one in [one for group in groups.closed for one in group][: -left or None]:
        is_kept = there >= set(map(id, one.kept))
        assert is_kept, "registers of a product under way are not kept"
    groups.wait(left, block)
    made = np.full((block.threads, outputs), np.nan, np.float32)
    for number, value in zip(range(outputs), op.operands, strict=False):
        made[:, number] = _sum(value, block)
    block.values[op.results[0]] = made


def _sum(value: ir.Value, block: Block) -> np.ndarray:
    """What a sum is now, which was no number when it was taken out of all of them."""
    taken = None if isinstance(value, ir.BlockArgument) else value.owner.opview
    if not isinstance(taken, llvm.ExtractValueOp):
        return block.values[value]
    (place,) = list(ir.DenseI64ArrayAttr(taken.operation.attributes["position"]))
    return block.values[taken.container][:, place]


def _begin(op: Any, lines: list[str], outputs: int, tied: int, block: Block) -> None:
    assert "wgmma.fence.sync.aligned;" in lines
    assert lines[-2] == _COMMIT
    given = [block.values[v] for v in op.operands]
    before = np.full((block.threads, outputs), np.nan, np.float32)
    for number in range(tied):
        before[:, number] = given[number]
    count = [str(v.type) for v in op.operands].count("i32")
    kept = given[tied : tied + count]
    begun = _Begun(before, np.full_like(before, np.nan), kept)
    adds = None
    for line in lines[:-2]:
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
        read = places.reshape(len(places), -1)
        factor = _read(places, read, kind, block)
        begun.steps.append((_rows(left, kind), factor, adds, read))
    block.warpgroups.closed.append([begun])
    block.values[op.results[0]] = begun.after


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


def _read(places: np.ndarray, read: np.ndarray, kind: str, block: Block) -> np.ndarray:
    """The right factor, whose bytes are read from now on."""
    shared = block.shared
    if shared.unfenced[read].any():
        raise RaceError("a warpgroup reads what was written and not fenced")
    shared.used[read] += 1
    _note(shared, read, block.mask, block)
    raw = np.ascontiguousarray(shared.data[places]).view(_type_of(kind))[..., 0]
    return _f32(raw, kind)


def _by_thread(product: np.ndarray) -> np.ndarray:
    """What a product gives each thread: one row of sums."""
    thread = np.arange(_THREADS)
    row, pair = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
    number = np.arange(product.shape[2] // 2)
    rows = row[:, None] + number % 4 // 2 * 8
    columns = pair[:, None] + number // 4 * 8 + number % 2
    return product[:, rows, columns].reshape(-1, number.size).astype(np.float32)


HANDLERS = {"llvm.inline_asm": _run}
