"""Owns vectors and matrix instructions of interpreted GPU code, lane by lane.

Written from the PTX ISA ("Matrix Fragments for mma.m16n8k16", "ldmatrix") and AMD's ISA
documents of CDNA 3 (matrix instructions of 16 x 16 results), not from the tables of the
passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gpu_arithmetic import bf16_bits
from gpu_memory import (
    Block,
    Memory,
    View,
    dtype_of,
    load_neighbours,
    note_read,
    place_of_neighbours,
    store_neighbours,
)

from magweld.bindings import ir


def _of_threads(value: Any, block: Block) -> np.ndarray:
    return np.broadcast_to(value, (block.threads,))


def _load(op: Any, block: Block) -> None:
    (width,) = op.result.type.shape
    indices = [block.values[i] for i in op.indices]
    block.values[op.result] = load_neighbours(op.base, indices, width, block)


def _store(op: Any, block: Block) -> None:
    indices = [block.values[i] for i in op.indices]
    values = block.values[op.valueToStore]
    store_neighbours(values, op.base, indices, block)


def _load_matrices(op: Any, block: Block) -> None:
    """Load 8 x 8 matrices: lanes name their rows, of 16 bytes, and get parts of them.

    A byte is read by the lane that receives it, not by the one that names its row.
    """
    view: View = block.values[op.srcMemref]
    assert isinstance(view.memory, Memory)
    assert view.memory.name == "shared memory"
    count, width = op.res.type.shape
    assert view.dtype.itemsize * width == 4, "matrices of elements of two bytes"
    lane = np.arange(block.threads) % 32
    lanes = block.mask.reshape(-1, 32)
    assert (lanes.all(1) | ~lanes.any(1)).all(), "a load that some lanes skip"
    active = block.mask
    block.mask = active & (lane < 8 * count)
    indices = [block.values[i] for i in op.indices]
    rows = np.zeros((block.threads, 16), np.int64)
    rows[block.mask] = place_of_neighbours(view, indices, 8, block)
    block.observe(False, view.memory, rows[block.mask])
    block.mask = active
    # By warp, matrix, row and element: the bytes of it.
    places = rows.reshape(-1, 32, 8, 2)[:, : 8 * count].reshape(-1, count, 8, 8, 2)
    if op.transpose.value:
        places = places.swapaxes(2, 3)
    g, t = np.arange(32) // 4, np.arange(32) % 4
    pairs = [places[:, :, g, 2 * t + i] for i in range(2)]
    # By thread, matrix, element of a lane: the bytes of it.
    own = np.stack(pairs, 3).swapaxes(1, 2).reshape(block.threads, count, width, 2)
    note_read(view.memory, own.reshape(block.threads, -1)[active], block)
    raw = np.ascontiguousarray(view.memory.data[own])
    block.values[op.res] = raw.view(view.dtype)[..., 0]


def _from_elements(op: Any, block: Block) -> None:
    elements = [_of_threads(block.values[v], block) for v in op.operands]
    block.values[op.results[0]] = np.stack(elements, 1)


def _broadcast(op: Any, block: Block) -> None:
    (width,) = op.results[0].type.shape
    value = _of_threads(block.values[op.operands[0]], block)
    block.values[op.results[0]] = np.repeat(value[:, None], width, 1)


def _extract(op: Any, block: Block) -> None:
    (number,) = list(op.static_position)
    block.values[op.results[0]] = block.values[op.operands[0]][:, number]


def _extract_value(op: Any, block: Block) -> None:
    (number,) = list(ir.DenseI64ArrayAttr(op.operation.attributes["position"]))
    # A copy: what a product under way has not yet become is no number.
    block.values[op.results[0]] = block.values[op.operands[0]][:, number].copy()


def _bits(op: Any, block: Block) -> None:
    type_ = op.results[0].type
    value = np.ascontiguousarray(block.values[op.operands[0]])
    if isinstance(type_, ir.VectorType):
        block.values[op.results[0]] = value.view(dtype_of(type_.element_type))
    else:
        block.values[op.results[0]] = value.view(dtype_of(type_))[:, 0]


HANDLERS: dict[str, Callable[[Any, Block], None]] = {
    "llvm.bitcast": _bits,
    "nvgpu.ldmatrix": _load_matrices,
    "llvm.extractvalue": _extract_value,
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
    "vector.from_elements": _from_elements,
    "vector.load": _load,
    "vector.store": _store,
}


def _f32(bits: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bf16":
        return (bits.astype(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.float32)


def _mfma(kind: str, width: int) -> Callable[..., np.ndarray]:
    """16 x 16 x (4 * width); lane l has A[l % 16][width * (l / 16) + i] and B alike."""

    def multiply(a: Any, b: Any, c: Any, *flags: Any) -> np.ndarray:
        assert not any(map(np.any, flags)), "flags that permute lanes"
        lane = np.arange(64)
        left, right = (
            _f32(
                x.reshape(-1, 64, width).view(np.uint16 if kind == "bf16" else x.dtype),
                kind,
            )
            for x in (a, b)
        )
        matrix_a = np.empty((left.shape[0], 16, 4 * width), np.float32)
        matrix_b = np.empty((left.shape[0], 4 * width, 16), np.float32)
        for i in range(width):
            step = width * (lane // 16) + i
            matrix_a[:, lane % 16, step] = left[:, :, i]
            matrix_b[:, step, lane % 16] = right[:, :, i]
        product = matrix_a @ matrix_b
        result = c.reshape(-1, 64, 4).copy()
        for i in range(4):
            result[:, :, i] += product[:, 4 * (lane // 16) + i, lane % 16]
        return result.reshape(-1, 4)

    return multiply


def _mma(kind: str) -> Callable[..., np.ndarray]:
    """m16n8k16: with g = l / 4 and t = l % 4, as the figures of the PTX ISA say."""

    def pairs(register: np.ndarray) -> np.ndarray:
        raw = np.ascontiguousarray(register)
        halves = raw.reshape(-1, 1).view(np.uint16) if kind == "bf16" else raw
        return _f32(halves.reshape(-1, 32, 2), kind)

    def multiply(*registers: np.ndarray) -> np.ndarray:
        a, b = [pairs(r) for r in registers[:4]], [pairs(r) for r in registers[4:6]]
        sums = np.stack(
            [np.broadcast_to(c, a[0].shape[0] * 32) for c in registers[6:]], 1
        )
        g, t = np.arange(32) // 4, np.arange(32) % 4
        matrix_a = np.empty((a[0].shape[0], 16, 16), np.float32)
        matrix_b = np.empty((a[0].shape[0], 16, 8), np.float32)
        for i in range(2):
            for number, (row, step) in enumerate(((0, 0), (8, 0), (0, 8), (8, 8))):
                matrix_a[:, g + row, 2 * t + i + step] = a[number][:, :, i]
            for number, step in enumerate((0, 8)):
                matrix_b[:, 2 * t + i + step, g] = b[number][:, :, i]
        product = matrix_a @ matrix_b
        result = sums.reshape(-1, 32, 4).copy()
        for number in range(4):
            row, column = number // 2 * 8, number % 2
            result[:, :, number] += product[:, g + row, 2 * t + column]
        return result.reshape(-1, 4)

    return multiply


def _pair(kind: str) -> Callable[..., np.ndarray]:
    """Two numbers rounded to halves; the second one is the first element."""

    def rounded(high: Any, low: Any) -> np.ndarray:
        both = np.stack(np.broadcast_arrays(low, high), -1).astype(np.float32)
        return bf16_bits(both) if kind == "bf16" else both.astype(np.float16)

    return rounded


INTRINSICS: dict[str, Callable[..., Any]] = {
    "llvm.amdgcn.mfma.f32.16x16x16f16": _mfma("f16", 4),
    "llvm.amdgcn.mfma.f32.16x16x16bf16.1k": _mfma("bf16", 4),
    "llvm.amdgcn.mfma.f32.16x16x4f32": _mfma("f32", 1),
    "llvm.nvvm.ff2bf16x2.rn": _pair("bf16"),
    "llvm.nvvm.ff2f16x2.rn": _pair("f16"),
    "llvm.nvvm.mma.m16n8k16.row.col.f32.f32": _mma("f16"),
    "llvm.nvvm.mma.m16n8k16.row.col.bf16": _mma("bf16"),
}
