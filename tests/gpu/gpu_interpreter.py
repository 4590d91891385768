"""Runs `gpu.func` on the CPU: all threads of a block in lockstep, races detected.

Every SSA value is a scalar or an array with one entry a thread. Memory remembers for
each byte which thread wrote and read it since the last barrier; an access that
depends on the timing of another thread raises `RaceError`. Shared and private memory
start as NaN, so that a read of what nobody wrote shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from magweld.bindings import arith, gpu, ir

_NOBODY, _SEVERAL = -1, -2


class RaceError(AssertionError):
    """Two threads touch the same byte without a barrier between them, one writing."""


class Memory:
    """Bytes that threads share, with who touched them when."""

    def __init__(self, data: np.ndarray, name: str) -> None:
        self.data = data
        self.name = name
        self.writer = np.full(data.size, _NOBODY, np.int64)
        self.written_at = np.zeros(data.size, np.int64)
        self.reader = np.full(data.size, _NOBODY, np.int64)
        self.reader_block = np.full(data.size, _NOBODY, np.int64)
        self.read_at = np.zeros(data.size, np.int64)


@dataclass(frozen=True)
class View:
    """A memref: where its elements lie in a memory.

    `offset` is in elements, one number or one a thread.
    """

    memory: Memory | np.ndarray  # an array is private: one row a thread
    dtype: np.dtype
    offset: Any
    strides: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass
class Block:
    """The state of one block of threads."""

    number: int
    threads: int
    epoch: int
    values: dict[Any, Any]
    mask: np.ndarray
    shared: Memory

    @property
    def identities(self) -> np.ndarray:
        return self.number * self.threads + np.arange(self.threads)


def launch(module: ir.Module, arguments: list[np.ndarray]) -> None:
    """Run the only launch of a module; arrays are changed in place."""
    (launched,) = _find(module.operation, gpu.LaunchFuncOp)
    (function,) = _find(module.operation, gpu.GPUFuncOp)
    blocks = _constant(launched.gridSizeX)
    threads = _constant(launched.blockSizeX)
    size = launched.dynamicSharedMemorySize
    shared_bytes = 0 if size is None else _constant(size)
    memories = [
        Memory(np.reshape(arguments[i], -1).view(np.uint8), f"argument {i}")
        for i in (operand.arg_number for operand in launched.kernelOperands)
    ]
    epoch = 0
    for number in range(blocks):
        shared = Memory(np.full(shared_bytes, 0xFF, np.uint8), "shared memory")
        mask = np.ones(threads, bool)
        block = Block(number, threads, epoch + 1, {}, mask, shared)
        body = function.entry_block
        for argument, memory in zip(body.arguments, memories, strict=True):
            block.values[argument] = _whole(argument.type, memory)
        _run(body, block)
        epoch = block.epoch


def _find(root: ir.Operation, kind: type) -> list[Any]:
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, kind):
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def _constant(value: ir.Value) -> int:
    return ir.IntegerAttr(value.owner.attributes["value"]).value


def _dtype(type_: ir.Type) -> np.dtype:
    names = {"f32": "f4", "f64": "f8", "index": "i8", "i1": "?"}
    text = str(type_)
    return np.dtype(names.get(text) or f"i{ir.IntegerType(type_).width // 8}")


def _whole(type_: ir.Type, memory: Any, offset: Any = 0) -> View:
    memref = ir.MemRefType(type_)
    strides, _ = memref.get_strides_and_offset()
    return View(
        memory, _dtype(memref.element_type), offset, tuple(strides), tuple(memref.shape)
    )


def _run(body: ir.Block, block: Block) -> None:
    for op in body.operations:
        name = op.operation.name
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(op, block)
            continue
        operands = [block.values[v] for v in op.operands]
        with np.errstate(all="ignore"):
            result = _compute(op, name, operands)
        block.values[op.results[0]] = result


def _compute(op: Any, name: str, operands: list[Any]) -> Any:
    if name == "llvm.call_intrinsic":
        return _INTRINSICS[ir.StringAttr(op.intrin).value](*operands)
    return _PURE[name](*operands)


# --- memory -----------------------------------------------------------------


def _bytes_of(view: View, indices: list[Any], block: Block) -> np.ndarray:
    position = np.broadcast_to(np.asarray(view.offset), block.threads).astype(np.int64)
    for index, stride, size in zip(indices, view.strides, view.shape, strict=True):
        index = np.broadcast_to(index, block.threads)
        inside = (index >= 0) & (index < size)
        assert inside[block.mask].all(), f"index out of bounds of {view.shape}"
        position = position + index * stride
    first = position * view.dtype.itemsize
    return first[:, None] + np.arange(view.dtype.itemsize)


def _load(op: Any, block: Block) -> None:
    view: View = block.values[op.memref]
    where = _bytes_of(view, [block.values[i] for i in op.indices], block)[block.mask]
    result = np.zeros(block.threads, view.dtype)
    if isinstance(view.memory, np.ndarray):
        rows = np.arange(block.threads)[block.mask][:, None]
        raw = view.memory[rows, where]
    else:
        _note_read(view.memory, where, block)
        raw = view.memory.data[where]
    result[block.mask] = np.ascontiguousarray(raw).view(view.dtype)[:, 0]
    block.values[op.result] = result


def _store(op: Any, block: Block) -> None:
    view: View = block.values[op.memref]
    where = _bytes_of(view, [block.values[i] for i in op.indices], block)[block.mask]
    value = np.broadcast_to(block.values[op.value], block.threads)[block.mask]
    raw = np.ascontiguousarray(value.astype(view.dtype)).view(np.uint8)
    raw = raw.reshape(-1, view.dtype.itemsize)
    if isinstance(view.memory, np.ndarray):
        rows = np.arange(block.threads)[block.mask][:, None]
        view.memory[rows, where] = raw
    else:
        _note_write(view.memory, where, block)
        view.memory.data[where] = raw


def _note_read(memory: Memory, where: np.ndarray, block: Block) -> None:
    who = np.broadcast_to(block.identities[block.mask][:, None], where.shape)
    _check_writer(memory, where, who, block, "reads")
    again = memory.read_at[where] == block.epoch
    other = again & (memory.reader[where] != who)
    # One thread of several at the same byte is kept by the assignment: that several
    # read it within one instruction is seen by counting.
    flat, counts = np.unique(where, return_counts=True)
    memory.reader[where] = np.where(other, _SEVERAL, who)
    memory.reader[flat[counts > 1]] = _SEVERAL
    blocks = memory.reader_block[where]
    known = (blocks == _NOBODY) | (blocks == block.number)
    memory.reader_block[where] = np.where(known, block.number, _SEVERAL)
    memory.read_at[where] = block.epoch


def _note_write(memory: Memory, where: np.ndarray, block: Block) -> None:
    who = np.broadcast_to(block.identities[block.mask][:, None], where.shape)
    _check_writer(memory, where, who, block, "writes")
    if np.unique(where).size != where.size:
        raise RaceError(f"two threads write one byte of {memory.name}")
    blocks = memory.reader_block[where]
    elsewhere = (blocks != _NOBODY) & (blocks != block.number)
    now = memory.read_at[where] == block.epoch
    if (elsewhere | (now & (memory.reader[where] != who))).any():
        raise RaceError(f"a thread writes to {memory.name} what another still reads")
    memory.writer[where] = who
    memory.written_at[where] = block.epoch


def _check_writer(
    memory: Memory, where: np.ndarray, who: np.ndarray, block: Block, verb: str
) -> None:
    writer = memory.writer[where]
    other = (writer != _NOBODY) & (writer != who)
    unordered = (writer // block.threads != block.number) | (
        memory.written_at[where] == block.epoch
    )
    if (other & unordered).any():
        raise RaceError(f"a thread {verb} what another just wrote to {memory.name}")


def _alloca(op: Any, block: Block) -> None:
    view = _whole(op.memref.type, None)
    size = int(np.prod(view.shape, dtype=np.int64)) * view.dtype.itemsize
    private = np.full((block.threads, size), 0xFF, np.uint8)
    block.values[op.memref] = _whole(op.memref.type, private)


def _view(op: Any, block: Block) -> None:
    source: View = block.values[op.source]
    shift = int(block.values[op.byte_shift])
    made = _whole(op.result.type, source.memory)
    assert shift % made.dtype.itemsize == 0, "a view must be aligned"
    block.values[op.result] = _whole(
        op.result.type, source.memory, shift // made.dtype.itemsize
    )


def _reinterpret(op: Any, block: Block) -> None:
    source: View = block.values[op.source]
    dynamic = iter(op.offsets)
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    (static,) = list(op.static_offsets)
    offset = block.values[next(dynamic)] if static == marker else static
    strides, _ = ir.MemRefType(op.result.type).get_strides_and_offset()
    # An offset counts from the start of the allocation, not of the source.
    block.values[op.result] = View(
        source.memory,
        source.dtype,
        offset + (source.offset if _is_placed(op.source) else 0),
        tuple(strides),
        tuple(op.result.type.shape),
    )


def _is_placed(value: ir.Value) -> bool:
    """Tell whether a memref is a view, whose allocation starts at its byte shift."""
    return not isinstance(value, ir.BlockArgument) and (
        value.owner.name == "memref.view"
    )


# --- control ----------------------------------------------------------------


def _if(op: Any, block: Block) -> None:
    outer = block.mask
    block.mask = outer & np.broadcast_to(block.values[op.condition], block.threads)
    if block.mask.any():
        _run(op.regions[0].blocks[0], block)
    block.mask = outer
    assert not list(op.results), "scf.if with results"


def _for(op: Any, block: Block) -> None:
    bounds = (op.lowerBound, op.upperBound, op.step)
    lower, upper, step = (int(block.values[v]) for v in bounds)
    assert not list(op.results), "scf.for with results"
    for index in range(lower, upper, step):
        block.values[op.induction_variable] = np.int64(index)
        _run(op.body, block)


def _barrier(op: Any, block: Block) -> None:
    assert block.mask.all(), "a barrier that some threads skip"
    block.epoch += 1


def _nothing(op: Any, block: Block) -> None:
    """Terminators."""


def _constant_op(op: arith.ConstantOp, block: Block) -> None:
    attribute = op.operation.attributes["value"]
    dtype = _dtype(op.result.type)
    block.values[op.result] = dtype.type(attribute.value)


def _shared(op: Any, block: Block) -> None:
    block.values[op.result] = View(block.shared, np.dtype("u1"), 0, (1,), (-1,))


def _identity(numbers: Callable[[Block], Any]) -> Callable[[Any, Block], None]:
    def set_value(op: Any, block: Block) -> None:
        is_x = str(op.dimension) == "#gpu<dim x>"
        block.values[op.result] = numbers(block) if is_x else np.int64(0)

    return set_value


def _compare(op: Any, block: Block) -> None:
    left, right = (block.values[v] for v in op.operands)
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    table = _FLOAT_TESTS if isinstance(op, arith.CmpFOp) else _INTEGER_TESTS
    block.values[op.result] = table[predicate](left, right)


def _cast(op: Any, block: Block) -> None:
    value = np.asarray(block.values[op.operands[0]])
    block.values[op.results[0]] = value.astype(_dtype(op.results[0].type))


def _bitcast(op: Any, block: Block) -> None:
    value = np.asarray(block.values[op.operands[0]])
    block.values[op.results[0]] = value.view(_dtype(op.results[0].type))


def _unsigned(value: Any) -> Any:
    value = np.asarray(value)
    return value.view(np.dtype(f"u{value.dtype.itemsize}"))


def _truncated(a: Any, b: Any) -> Any:
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(
        np.result_type(a, b)
    )


def _fma(a: Any, b: Any, c: Any) -> Any:
    wide = np.asarray(a, np.float64) * b + c
    return wide.astype(np.result_type(a))


def _exp2(x: Any) -> Any:
    return np.exp2(np.asarray(x, np.float64)).astype(np.result_type(x))


_INTEGER_TESTS: dict[int, Callable[[Any, Any], Any]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
    6: lambda a, b: _unsigned(a) < _unsigned(b),
}
_FLOAT_TESTS: dict[int, Callable[[Any, Any], Any]] = {
    1: lambda a, b: a == b,
    2: lambda a, b: a > b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a < b,
    5: lambda a, b: a <= b,
    9: lambda a, b: ~(a <= b),
    10: lambda a, b: ~(a < b),
    11: lambda a, b: ~(a >= b),
    12: lambda a, b: ~(a > b),
    13: lambda a, b: a != b,
    14: lambda a, b: np.isnan(a) | np.isnan(b),
}
_PURE: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.divsi": _truncated,
    "arith.maximumf": np.maximum,
    "arith.maxnumf": np.fmax,
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.negf": np.negative,
    "arith.remsi": lambda a, b: a - b * _truncated(a, b),
    "arith.select": np.where,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.subf": np.subtract,
    "arith.subi": np.subtract,
}
_INTRINSICS: dict[str, Callable[..., Any]] = {
    "llvm.copysign.f32": np.copysign,
    "llvm.exp2.f32": _exp2,
    "llvm.fabs.f32": np.abs,
    "llvm.floor.f32": np.floor,
    "llvm.fma.f32": _fma,
    "llvm.sqrt.f32": np.sqrt,
}
_HANDLERS: dict[str, Callable[[Any, Block], None]] = {
    "arith.bitcast": _bitcast,
    "arith.cmpf": _compare,
    "arith.cmpi": _compare,
    "arith.constant": _constant_op,
    "arith.index_cast": _cast,
    "arith.sitofp": _cast,
    "arith.trunci": _cast,
    "gpu.barrier": _barrier,
    "gpu.block_id": _identity(lambda block: np.int64(block.number)),
    "gpu.dynamic_shared_memory": _shared,
    "gpu.return": _nothing,
    "gpu.thread_id": _identity(lambda block: np.arange(block.threads)),
    "memref.alloca": _alloca,
    "memref.load": _load,
    "memref.reinterpret_cast": _reinterpret,
    "memref.store": _store,
    "memref.view": _view,
    "scf.for": _for,
    "scf.if": _if,
    "scf.yield": _nothing,
}
