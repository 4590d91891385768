"""Owns which buffers of a kernel can share memory."""

from __future__ import annotations

from magweld.bindings import ir

# Operations that look at a part of their first operand, or in another shape.
VIEWS = frozenset(
    {
        "memref.cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.extract_strided_metadata",
        "memref.reinterpret_cast",
        "memref.subview",
    }
)
# Operations that give memory of its own.
_SOURCES = frozenset({"memref.alloc", "memref.get_global"})
_PURE = VIEWS | {"memref.alloc"}


def root_of(value: ir.Value) -> ir.Value | None:
    """Return what a buffer is a view of, None where that is not known.

    Two buffers with different roots share no memory that is written: destinations of
    kernels overlap no operand.
    """
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name in _SOURCES:
            return value
        if op.name not in VIEWS:
            return None
        value = op.operands[0]
    is_argument = value.owner.owner.operation.name == "func.func"
    return value if is_argument else None


def roots_of(values: list[ir.Value]) -> set[ir.Value | None]:
    """Return the roots of those values that are buffers."""
    return {root_of(v) for v in values if isinstance(v.type, ir.MemRefType)}


def roots_read(op: ir.Operation) -> set[ir.Value | None]:
    """Return the roots of what a `linalg.generic` reads, also by loads of its body."""
    inputs = int(op.attributes["operandSegmentSizes"][0])
    values = list(op.operands)[:inputs]
    for inner in op.regions[0].blocks[0].operations:
        values += inner.operation.operands
    return roots_of(values)


def roots_written(op: ir.Operation) -> set[ir.Value | None]:
    """Return the roots of what a `linalg.generic` writes."""
    inputs = int(op.attributes["operandSegmentSizes"][0])
    return roots_of(list(op.operands)[inputs:])


def is_pure(op: ir.Operation) -> bool:
    """Whether an operation neither reads nor writes buffers."""
    return op.name in _PURE or op.name.startswith(("arith.", "affine."))


def users_of_buffer(root: ir.Value) -> set[ir.Operation]:
    """Return the operations that use a buffer or a view of it, but for views."""
    found: set[ir.Operation] = set()
    waiting = [root]
    while waiting:
        for use in waiting.pop().uses:
            op = use.owner.operation
            if op.name in VIEWS:
                waiting.extend(
                    r for r in op.results if isinstance(r.type, ir.MemRefType)
                )
            else:
                found.add(op)
    return found


def last_use_before(op: ir.Operation, buffer: ir.Value) -> ir.Operation | None:
    """Return what uses a buffer last before `op` in its block, in whichever way.

    None where there is nothing, or where it is not known what shares its memory.
    """
    root = root_of(buffer)
    users = set() if root is None else users_of_buffer(root)
    if any(isinstance(r.type, ir.MemRefType) for user in users for r in user.results):
        return None
    around = {_around(user, op.block) for user in users}
    block = [other.operation for other in op.block.operations]
    before = reversed(block[: block.index(op)])
    return next((other for other in before if other in around), None)


def _around(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """Return what has an operation in it, or is that, among those of a block."""
    # A module is in no block: asking it for one ends the process.
    while op.name != "func.func":
        if op.block == block:
            return op
        op = op.parent.operation
    return None
