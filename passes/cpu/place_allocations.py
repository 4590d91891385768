"""Owns place-allocations: where the buffers of a kernel lie, one place for several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import arith, func, ir, memref
from magweld.dialects.tile_graph import LEVEL, PLACE, place_attribute, type_bytes
from magweld.passes.cpu.kernels import PLACED, SCRATCH, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error, operations_of
from magweld.passes.tiling.packing import Buffer, slots_of

# Kernels run in threads of the caller, whose stacks are as small as 128 KiB on some
# systems; other frames want most of that.
STACK_BYTES = 16 * 1024
_ALIGNMENT = 64


@dataclass(frozen=True)
class PlaceAllocations(Pass):
    """Give every buffer of a kernel its place, which others have before and after it.

    A tile's buffers have static sizes and are free again with its end, so all tiles
    of a call, which one thread runs, share them. The smallest go on the stack until
    `stack_bytes` are used; the others are allocated at entry and freed at the end.
    Of these, buffers that are never in use at one time share one allocation, as large
    as the largest of them: the memory of a chain of products is that of two results.
    On the stack those of one type do.

    `tile_graph.place` of each allocation says where it lies if all of them lie one
    behind the other in the level of the plan, or in the one further out that the plan
    names for it, `tile_graph.placed_bytes` of the kernel how many bytes of its level
    that takes, `magweld.scratch_bytes` how many are not on the stack.

    Attributes:
        stack_bytes: Bytes that a kernel may take of its thread's stack.
    """

    name: ClassVar[str] = "place-allocations"

    stack_bytes: int = STACK_BYTES

    def run(self, module: ir.Operation) -> None:
        """Place the buffers of all kernels of the module."""
        for function in kernels_of(module):
            allocations = operations_of(function, memref.AllocOp)
            for op in operations_of(function, memref.DeallocOp):
                op.operation.erase()
            for op in allocations:
                _require_local(op)
            _place(function, allocations, self.stack_bytes)


def _place(function: func.FuncOp, allocations: list[memref.AllocOp], left: int) -> None:
    allocations = sorted(allocations, key=_bytes)
    # Those of one type share their place on the stack, with no view of it.
    alike: dict[ir.Type, list[memref.AllocOp]] = {}
    for op in allocations:
        if _bytes(op) <= left:
            alike.setdefault(op.memref.type, []).append(op)
    found = [group for ops in alike.values() for group in _shared(function, ops)]
    groups: list[list[memref.AllocOp]] = []
    for group in sorted(found, key=_bytes_of):
        left -= _rounded_up(_bytes_of(group))
        if left >= 0:
            groups.append(group)
    on_stack = len(groups)
    placed = {op for group in groups for op in group}
    groups += _shared(function, [op for op in allocations if op not in placed])
    own = _own_level(function)
    ends: Counter[str] = Counter()
    allocated = 0
    for number, group in enumerate(groups):
        size, level = _bytes_of(group), _level_of(group[0], own)
        made = _allocate(function, group, size, on_stack=number < on_stack)
        if own:
            with function.location:
                place = place_attribute(level, ends[level], size, _ALIGNMENT)
            made.attributes[PLACE] = place
        ends[level] += _rounded_up(size)
        allocated += 0 if number < on_stack else size
    number = ir.IntegerType.get_signless(64, function.context)
    if allocations:
        function.attributes[PLACED] = ir.IntegerAttr.get(number, ends[own])
    if allocated:
        function.attributes[SCRATCH] = ir.IntegerAttr.get(number, allocated)


def _own_level(function: func.FuncOp) -> str:
    """The level that holds the tiles of a kernel, an empty name without one."""
    attributes = function.attributes
    return ir.StringAttr(attributes[LEVEL]).value if LEVEL in attributes else ""


def _level_of(op: memref.AllocOp, own: str) -> str:
    """The level of a buffer; what streams past the tiles may lie further out."""
    attributes = op.operation.attributes
    return str(attributes[PLACE].level) if own and PLACE in attributes else own


def _shared(
    function: func.FuncOp, allocations: list[memref.AllocOp]
) -> list[list[memref.AllocOp]]:
    """Return allocations of one level in groups, no two of one in use at one time."""
    spans, own = _Spans(function), _own_level(function)
    found: list[list[memref.AllocOp]] = []
    for level in dict.fromkeys(_level_of(op, own) for op in allocations):
        there = [op for op in allocations if _level_of(op, own) == level]
        slots = slots_of([Buffer(_bytes(op), *spans.of_buffer(op)) for op in there])
        groups: dict[int, list[memref.AllocOp]] = {}
        for slot, op in sorted(zip(slots, there, strict=True), key=lambda s: s[0]):
            groups.setdefault(slot, []).append(op)
        found += groups.values()
    return found


def _bytes(op: memref.AllocOp) -> int:
    return type_bytes(op.memref.type)


def _bytes_of(group: Sequence[memref.AllocOp]) -> int:
    return max(map(_bytes, group))


def _rounded_up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _require_local(op: memref.AllocOp) -> None:
    if not op.memref.type.has_static_shape:
        raise located_error(op, "expected a static size inside a kernel")
    if any(use.owner.operation.name == "scf.yield" for use in op.memref.uses):
        raise located_error(op, "is carried from one iteration to the next")


def _allocate(
    function: func.FuncOp,
    group: Sequence[memref.AllocOp],
    size: int,
    *,
    on_stack: bool,
) -> ir.Operation:
    """Make one allocation for buffers, each of which becomes a view of it."""
    *_, terminator = function.entry_block.operations
    first, *others = group
    kind = first.memref.type
    if any(op.memref.type != kind for op in others):
        byte = ir.IntegerType.get_signless(8)
        kind = ir.MemRefType.get([size], byte)
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ALIGNMENT)
    make = memref.AllocaOp if on_stack else memref.AllocOp
    with ir.InsertionPoint.at_block_begin(function.entry_block), first.location:
        made = make(kind, [], [], alignment=alignment)
        for op in group:
            view = _view(made.memref, op.memref.type)
            op.memref.replace_all_uses_with(view)
    for op in group:
        op.operation.erase()
    if not on_stack:
        with ir.InsertionPoint(terminator), made.location:
            memref.DeallocOp(made.memref)
    return made.operation


def _view(whole: ir.Value, kind: ir.MemRefType) -> ir.Value:
    if whole.type == kind:
        return whole
    start = arith.constant(ir.IndexType.get(), 0)
    return memref.ViewOp(kind, whole, start, []).result


class _Spans:
    """Numbers the operations of a kernel in the order in which they run."""

    def __init__(self, function: func.FuncOp) -> None:
        self._spans: dict[ir.Operation, tuple[int, int]] = {}
        self._next = 0
        self._number(function.entry_block)

    def of_buffer(self, buffer: memref.AllocOp) -> tuple[int, int]:
        """Return the first and the last operation that use an allocation.

        A use in a loop that does not contain the allocation counts for all of the
        loop: the buffer may carry values from one iteration to the next. One of which a
        loop or branch gives a view is in use all the time.
        """
        block = buffer.operation.block
        users = list(_users(buffer.memref))
        if any(user.name == "scf.yield" for user in users):
            return 0, self._next
        spans = [self._spans[_ancestor(user, block)] for user in users]
        spans = spans or [self._spans[buffer.operation]]
        return min(first for first, _ in spans), max(last for _, last in spans)

    def _number(self, block: ir.Block) -> None:
        for op in block.operations:
            first = self._next
            self._next += 1
            for region in op.operation.regions:
                for nested in region.blocks:
                    self._number(nested)
            self._spans[op.operation] = (first, self._next - 1)


def _ancestor(op: ir.Operation, block: ir.Block) -> ir.Operation:
    while op.block != block:
        op = op.parent.operation
    return op


def _users(buffer: ir.Value) -> Iterator[ir.Operation]:
    """Yield what uses a buffer; what gives one of what it is given gives a view."""
    for use in buffer.uses:
        user = use.owner.operation
        yield user
        for result in user.results:
            if isinstance(result.type, ir.MemRefType):
                yield from _users(result)
