"""Owns rematerialize-elementwise: one subtraction is cheaper than a tile in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph import REMATERIALIZED
from magweld.passes.cpu.generic_forms import has_reduction, maps_of
from magweld.passes.cpu.kernels import generics_of, mark_apart
from magweld.passes.infrastructure.base import Pass

# Operations an element that are repeated rather than stored and loaded.
MOST_OPERATIONS = 2
_CHEAP = frozenset({"arith.addf", "arith.subf", "arith.mulf", "arith.negf"})


@dataclass(frozen=True)
class RematerializeElementwise(Pass):
    """Give each reader of a cheap element-wise operation one of its own.

    Fusion of element-wise operations takes a producer that has one reader. A value
    that several read stays a tile in memory, written once and read by each of them;
    where it is made of one tensor and numbers of rows or columns by one or two
    additions or products, reading that tensor instead costs no more. Those that are
    made again are numbered by `tile_graph.rematerialized`: they stay apart, whoever
    looks for equal operations, until they are fused.

        %c = %x - %mean             %c = %x - %mean
        %v = sum %c * %c       =>   %v = sum %c * %c
        %y = %c * %s                %d = %x - %mean
                                    %y = %d * %s
    """

    name: ClassVar[str] = "rematerialize-elementwise"

    def run(self, module: ir.Operation) -> None:
        """Rewrite all kernels of the module."""
        for _, op in reversed(generics_of(module)):
            if _is_cheap(op):
                _repeat(op)


def _is_cheap(op: ir.Operation) -> bool:
    if len(op.results) != 1 or has_reduction(op):
        return False
    maps = maps_of(op)
    whole = [map_ for map_ in maps[:-1] if map_ == maps[-1]]
    narrow = [m for m in maps[:-1] if len(m.results) < len(maps[-1].results)]
    one = len(whole) == 1 and len(whole) + len(narrow) == len(maps) - 1
    return one and maps[-1] == _identity(maps[-1]) and _cheap_body(op, maps)


def _identity(map_: ir.AffineMap) -> ir.AffineMap:
    return ir.AffineMap.get_identity(map_.n_dims)


def _cheap_body(op: ir.Operation, maps: list[ir.AffineMap]) -> bool:
    """Whether few and cheap operations of a body depend on the whole tensor."""
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    if list(arguments[-1].uses):
        return False
    varies = {a for a, m in zip(arguments, maps, strict=True) if m == maps[-1]}
    *body, _ = block.operations
    count = 0
    for inner in body:
        if any(value in varies for value in inner.operation.operands):
            varies.update(inner.operation.results)
            count += 1
            if inner.operation.name not in _CHEAP:
                return False
    return 0 < count <= MOST_OPERATIONS


def _repeat(op: ir.Operation) -> None:
    """Clone an operation for all readers but the first, if all of them may fuse it."""
    uses = list(op.results[0].uses)
    readers = {use.owner.operation for use in uses}
    if len(readers) < 2 or not all(_may_fuse(r, op.results[0]) for r in readers):
        return
    for use in uses[1:]:
        reader = use.owner.operation
        with ir.InsertionPoint(reader):
            clone = op.clone().operation
        mark_apart(clone, REMATERIALIZED)
        reader.operands[use.operand_number] = clone.results[0]


def _may_fuse(reader: ir.Operation, value: ir.Value) -> bool:
    if reader.name != "linalg.generic":
        return False
    inputs = int(reader.attributes["operandSegmentSizes"][0])
    places = [n for n, operand in enumerate(reader.operands) if operand == value]
    return len(places) == 1 and places[0] < inputs
