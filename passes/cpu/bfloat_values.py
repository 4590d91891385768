"""Owns what is known of the numbers of a kernel when they are rounded to bf16."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from magweld.bindings import func, ir
from magweld.passes.cpu.buffer_roots import VIEWS
from magweld.passes.cpu.emit_vectors import element_type

# Operations whose result is one of their operands, or that with another sign.
_SELECTING = frozenset(
    {
        "arith.maximumf",
        "arith.maxnumf",
        "arith.minimumf",
        "arith.minnumf",
        "arith.negf",
        "arith.select",
        "math.absf",
        "vector.broadcast",
        "vector.extract",
        "vector.from_elements",
        "vector.insert",
        "vector.shuffle",
    }
)
# Operations whose NaN is the one of an operand, made quiet, or the CPU's own. Calls are
# those of expanded functions; text is the product of pairs.
_COMPUTING = _SELECTING | {
    "arith.addf",
    "arith.divf",
    "arith.mulf",
    "arith.remf",
    "arith.sitofp",
    "arith.subf",
    "arith.uitofp",
    "func.call",
    "llvm.inline_asm",
    "math.ceil",
    "math.copysign",
    "math.floor",
    "math.fma",
    "math.roundeven",
    "math.rsqrt",
    "math.sqrt",
    "math.trunc",
    "scf.for",
    "scf.if",
    "scf.while",
    "ub.poison",
    "vector.fma",
    "vector.reduction",
}
_LOADS = frozenset({"memref.load", "vector.load"})
_STORES = frozenset({"memref.store", "vector.store"})
_OTHER_USES = frozenset({"memref.dealloc", "memref.prefetch"})
_VIEWS = VIEWS | {"memref.view"}
_OWN_MEMORY = frozenset({"memref.alloc", "memref.alloca"})
_LOW_HALF, _INFINITY, _ALL_ONES = 0xFFFF, 0x7F800000, 0xFFFFFFFF


def operations_on_singles(function: func.FuncOp) -> list[ir.Operation]:
    """Return the operations of a kernel that give numbers of f32, in their order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if any(map(is_single, op.results)):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def exact_values(operations: Iterable[ir.Operation]) -> set[ir.Value]:
    """Return numbers of f32 that bf16 holds as they are: rounding changes no bit.

    They are widened from bf16, or are one of several such numbers.
    """
    found: set[ir.Value] = set()
    for op in operations:
        if len(op.results) == 1 and _is_exact(op, found):
            found.add(op.results[0])
    return found


def _is_exact(op: ir.Operation, exact: set[ir.Value]) -> bool:
    if op.name == "arith.extf":
        return is_bfloat(op.operands[0])
    if op.name == "arith.constant":
        return _bits_of(op) & _LOW_HALF == 0
    if op.name not in _SELECTING:
        return False
    return all(value in exact for value in op.operands if is_single(value))


def long_payloads(
    function: func.FuncOp, operations: Iterable[ir.Operation]
) -> set[ir.Value]:
    """Return numbers of f32 that may be a NaN with bits in its low half.

    Every other NaN stays one when a number is added to the low half: it comes from
    bf16, or is made by the CPU. What f32 in memory of others holds is not known, nor
    what is computed of it.

    Args:
        function: A kernel.
        operations: Those of it that give numbers of f32.
    """
    memories = _Memories()
    found: set[ir.Value] = set()
    waiting = [
        v for op in operations if not _is_short(op, memories) for v in op.results
    ]
    waiting += function.body.blocks[0].arguments
    while waiting:
        value = waiting.pop()
        if value in found or not is_single(value):
            continue
        found.add(value)
        for use in value.uses:
            waiting += _followers(use.owner.operation, memories)
    return found


def _is_short(op: ir.Operation, memories: _Memories) -> bool:
    """Whether an operation makes no NaN with a low half, if its operands have none."""
    if op.name in _LOADS:
        return memories.loads_of(op.operands[0]) is not None
    if op.name == "arith.extf":
        return is_bfloat(op.operands[0])
    if op.name == "arith.constant":
        bits = _bits_of(op)
        return bits & _LOW_HALF == 0 or bits & _INFINITY != _INFINITY
    return op.name in _COMPUTING


def _followers(op: ir.Operation, memories: _Memories) -> Iterator[ir.Value]:
    """Yield what may hold the same NaN as an operand of an operation."""
    if op.name in _STORES:
        yield from memories.taken(op.operands[1])
        return
    around = op.parent.operation if op.name == "scf.yield" else op
    yield from around.results
    for region in around.regions:
        yield from region.blocks[0].arguments


class _Memories:
    """The memory of a kernel's own, and what is loaded from it."""

    def __init__(self) -> None:
        self._loads: dict[ir.Value, list[ir.Value] | None] = {}
        self._taken: set[ir.Value] = set()

    def loads_of(self, buffer: ir.Value) -> list[ir.Value] | None:
        """Return what is loaded from the memory of a buffer.

        None unless it is the kernel's own, and all that is done with it is known.
        """
        memory = _memory_of(buffer)
        if memory is None:
            return None
        if memory not in self._loads:
            self._loads[memory] = _loaded(memory)
        return self._loads[memory]

    def taken(self, buffer: ir.Value) -> list[ir.Value]:
        """Return what is loaded from the memory of a buffer, nothing the next time."""
        memory = _memory_of(buffer)
        if memory is None or memory in self._taken:
            return []
        self._taken.add(memory)
        return self.loads_of(buffer) or []


def _memory_of(buffer: ir.Value) -> ir.Value | None:
    """Return the memory of the kernel that a buffer is in, None for other memory."""
    while not isinstance(buffer.owner, ir.Block):
        op = buffer.owner.operation
        if op.name in _OWN_MEMORY:
            return buffer
        if op.name not in _VIEWS:
            return None
        buffer = op.operands[0]
    return None


def _loaded(memory: ir.Value) -> list[ir.Value] | None:
    """Return what is loaded from memory, None if more is done than loads and stores."""
    found, waiting = [], [memory]
    while waiting:
        for use in waiting.pop().uses:
            op = use.owner.operation
            if op.name in _VIEWS:
                waiting += [r for r in op.results if isinstance(r.type, ir.MemRefType)]
            elif op.name in _LOADS:
                found += op.results
            elif op.name not in _STORES | _OTHER_USES:
                return None
    return found


def _bits_of(op: ir.Operation) -> int:
    """Return the bits of a constant of f32; all ones where its lanes differ."""
    number = op.attributes["value"]
    if isinstance(number, ir.DenseElementsAttr):
        if not number.is_splat:
            return _ALL_ONES
        number = number.get_splat_value()
    (bits,) = struct.unpack("<I", struct.pack("<f", ir.FloatAttr(number).value))
    return int(bits)


def is_single(value: ir.Value) -> bool:
    """Tell whether a value is a number of f32, or a vector of them."""
    return isinstance(element_type(value.type), ir.F32Type)


def is_bfloat(value: ir.Value) -> bool:
    """Tell whether a value is a number of bf16, or a vector of them."""
    return isinstance(element_type(value.type), ir.BF16Type)
