"""Owns the loads of a linalg body from rows that values tell: what can be vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from magweld.bindings import ir

LOAD = "memref.load"
LOOP = "scf.for"
_INDEX = "linalg.index"


def row_loops(
    block: ir.Block, strides: Sequence[tuple[int, ...]]
) -> frozenset[int] | None:
    """Return the loops along which a body can be vectors as far as its loads go.

    A load walks along a loop if that is its last index, neighbours are neighbours in
    memory, and no other index changes with the loop. All loads have to walk along the
    loop, or to find one element for all of its iterations; loops inside of the body
    have to run as often for all of them.

    Args:
        block: Body of a `linalg.generic` on buffers.
        strides: For each input, the elements that one step of each loop moves.

    Returns:
        Loops along which a load walks, None without loads.
    """
    loads = [op for op in operations_within(block) if op.name == LOAD]
    if not loads:
        return None
    walked = {loop for load in loads if (loop := _last_loop(load)) is not None}
    return frozenset(loop for loop in walked if _can_be_lanes(loop, block, strides))


def operations_within(block: ir.Block) -> Iterator[ir.Operation]:
    """Yield the operations of a body and of the loops in it, those before these."""
    for op in (op.operation for op in block.operations):
        yield op
        for region in op.regions:
            for inner in region.blocks:
                yield from operations_within(inner)


def _last_loop(load: ir.Operation) -> int | None:
    """Return the loop along which neighbours of a row are loaded, None without one."""
    buffer, *indices = load.operands
    if not indices or isinstance(indices[-1].owner, ir.Block):
        return None
    last = indices[-1].owner.operation
    steps, _ = buffer.type.get_strides_and_offset()
    is_bool = buffer.type.element_type == ir.IntegerType.get_signless(1)
    if last.name != _INDEX or steps[-1] != 1 or is_bool:
        return None
    return int(last.attributes["dim"].value)


def _can_be_lanes(
    loop: int, block: ir.Block, strides: Sequence[tuple[int, ...]]
) -> bool:
    arguments = zip(block.arguments, strides, strict=False)
    fixed = {value for value, steps in arguments if steps[loop] == 0}
    moving = _Moving(loop, {*block.arguments} - fixed)
    moving.follow(block)
    return all(moving.fits(op) for op in operations_within(block))


@dataclass
class _Moving:
    """The values of a body that change along a loop.

    Attributes:
        loop: The loop.
        values: Those that are known to change.
    """

    loop: int
    values: set[ir.Value] = field(default_factory=set)

    def follow(self, block: ir.Block) -> None:
        """Add what the operations of a block make of values that change."""
        for op in (op.operation for op in block.operations):
            if op.name == _INDEX:
                changes = op.attributes["dim"].value == self.loop
            elif op.name == LOOP:
                self._follow_loop(op)
                continue
            else:
                known = op.name == LOAD or op.name.startswith("arith.")
                changes = not known or any(v in self.values for v in op.operands)
            if changes:
                self.values.update(op.results)

    def _follow_loop(self, loop: ir.Operation) -> None:
        (body,) = loop.regions[0].blocks
        carried = list(zip(list(body.arguments)[1:], loop.results, strict=True))
        begun = list(loop.operands)[3:]
        known = -1
        while known != len(self.values):
            known = len(self.values)
            *_, terminator = body.operations
            self.follow(body)
            pairs = zip(carried, begun, terminator.operands, strict=True)
            for both, first, last in pairs:
                if first in self.values or last in self.values:
                    self.values.update(both)

    def fits(self, op: ir.Operation) -> bool:
        """Whether an operation of the body has a form for neighbours along the loop."""
        if op.name == LOOP:
            return not any(bound in self.values for bound in list(op.operands)[:3])
        if op.name != LOAD:
            return True
        *others, last = list(op.operands)[1:] or [None]
        if any(value in self.values for value in others):
            return False
        return last not in self.values or _last_loop(op) == self.loop
