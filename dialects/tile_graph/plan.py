"""Owns what execution plans say: where tiles lie, how long, and who waits for whom.

A plan is the body of a `tile_graph.for_tiles`. Its values are tiles: they are made by
`allocate` and `load`, and by what computes into these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph.attributes import PlaceAttr
from magweld.dialects.tile_graph.roles import Role
from magweld.dialects.tile_graph.structure import captured_values

ALLOCATE = "tile_graph.allocate"
BARRIER = "tile_graph.barrier"
COMPUTE = "tile_graph.compute"
LOAD = "tile_graph.load"
RELEASE = "tile_graph.release"
STORE = "tile_graph.store"
BLOCKS = "scf.for"
# What computes positions and parts of tiles, and the loop over blocks of a stream.
_UPSTREAM = frozenset(
    {
        "affine.apply",
        "affine.max",
        "affine.min",
        "arith.constant",
        "gpu.yield",
        "scf.for",
        "scf.yield",
        "tensor.extract_slice",
    }
)
_MAKERS = (ALLOCATE, LOAD)


def is_allowed_in_plan(name: str) -> bool:
    """Return whether an operation of this name may stand in a plan."""
    ours = {*_MAKERS, BARRIER, COMPUTE, RELEASE, STORE}
    return name in ours or name in _UPSTREAM


def plan_operations(block: Any) -> Iterator[ir.Operation]:
    """Yield the operations of a plan, those of loops over blocks among them."""
    for op in block.operations:
        yield op.operation
        if op.operation.name == BLOCKS:
            yield from plan_operations(op.operation.regions[0].blocks[0])


def place_of(op: ir.Operation) -> PlaceAttr | None:
    """Return the place of what an `allocate` or `load` makes, None without one."""
    return op.attributes["place"] if "place" in op.attributes else None


def role_of(op: ir.Operation) -> Role | None:
    """Return what an `allocate` is for, None for a plain tile."""
    attributes = op.attributes
    return Role(attributes["role"].value) if "role" in attributes else None


def is_beside(op: ir.Operation) -> bool:
    """Return whether an `allocate` is for what a computation has beside its tiles."""
    role = role_of(op) if op.name == ALLOCATE else None
    return role is not None and not role.is_tile


def holder(value: Any) -> ir.Operation | None:
    """Return the `allocate` or `load` whose place a tile lies in, None if none does."""
    if isinstance(value, ir.BlockArgument):
        return _carried(value.owner.owner.operation, value.arg_number - 1)
    op, number = value.owner.operation, ir.OpResult(value).result_number
    if op.name in _MAKERS:
        return op
    if op.name == "tensor.extract_slice":
        return holder(op.operands[0])
    if op.name == BLOCKS:
        return _carried(op, number)
    found = holder(_destination(op, number)) if op.name == COMPUTE else None
    # What is loaded is read only.
    return found if found is not None and found.name == ALLOCATE else None


def _carried(loop: ir.Operation, number: int) -> ir.Operation | None:
    """What the loop starts with: behind its two bounds and its step."""
    is_loop = loop.name == BLOCKS and number >= 0
    return holder(loop.operands[number + 3]) if is_loop else None


def _destination(compute: ir.Operation, number: int) -> Any:
    """The tile from outside that a result of a compute overwrites, or that it is."""
    block = compute.regions[0].blocks[0]
    *_, terminator = block.operations
    value = terminator.operands[number]
    while (
        not isinstance(value, ir.BlockArgument) and value.owner.operation.block == block
    ):
        op = value.owner.operation
        if op.name.startswith("linalg."):
            first = len(op.operands) - len(op.results)
            value = op.operands[first + ir.OpResult(value).result_number]
        elif op.name == "tensor.insert_slice":
            value = op.operands[1]
        else:
            break
    return value


def lifetime_violations(
    block: Any, live: dict[ir.Operation, PlaceAttr] | None = None
) -> Iterator[str]:
    """Yield what is wrong with places: two tiles in one, one that is never released.

    Or one that is used when it is released.

    Args:
        block: Body of a plan, or of a loop over blocks in it.
        live: What of the operations around it has a place.
    """
    live = dict(live or {})
    made: set[ir.Operation] = set()
    released: set[ir.Operation] = set()
    for op in (nested.operation for nested in block.operations):
        if released and not released.isdisjoint(map(holder, _tiles_used(op))):
            yield f"expected no tile to be used behind its release, got '{op.name}'"
        if op.name == BLOCKS:
            yield from lifetime_violations(op.regions[0].blocks[0], live)
        elif op.name == RELEASE:
            maker = op.operands[0].owner.operation
            if maker not in made:
                yield "expected a tile to be released once, in the block that makes it"
            made.discard(maker)
            released.add(maker)
            live.pop(maker, None)
        elif op.name in _MAKERS and (place := place_of(op)) is not None:
            for other in live.values():
                if other.level == place.level and other.overlaps(place):
                    yield f"expected tiles of one time apart, got {place} and {other}"
            live[op] = place
            made.add(op)
    for op in made:
        yield f"expected the tile at {place_of(op)} to be released where it is made"


def lasting_violations(block: Any) -> Iterator[str]:
    """Yield what lies in the place of a window that lasts from tile to tile.

    Args:
        block: Body of a plan.
    """
    makers = [op for op in plan_operations(block) if op.name in _MAKERS]
    places = [(op, place) for op in makers if (place := place_of(op)) is not None]
    for op, place in places:
        if "lasting" in op.attributes:
            for other, taken in places:
                if other != op and place.level == taken.level and place.overlaps(taken):
                    yield f"expected nothing else where a window lasts, got {taken}"


def _tiles_used(op: ir.Operation) -> list[Any]:
    """The tiles that an operation of a plan reads or writes, but for a release."""
    if op.name == RELEASE:
        return []
    values = [*op.operands, *captured_values(op)]
    return [v for v in values if isinstance(v.type, ir.RankedTensorType)]


def barriers_needed(block: Any, level: str) -> list[ir.Operation]:
    """Return the operations before which all units that share tiles have to wait.

    Args:
        block: Body of a plan.
        level: Whose tiles are shared.
    """
    order = _Order(level)
    order.visit(block)
    return list(order.waiting)


@dataclass
class _Order:
    """Follows who writes and reads shared tiles between two barriers.

    Attributes:
        level: Whose tiles are shared.
        waiting: Operations that have to wait, in order of finding.
        written: Tiles written since the last barrier.
        read: Tiles read since then.
    """

    level: str
    waiting: dict[ir.Operation, None] = field(default_factory=dict)
    written: dict[ir.Operation, PlaceAttr] = field(default_factory=dict)
    read: dict[ir.Operation, PlaceAttr] = field(default_factory=dict)

    def visit(self, block: Any) -> None:
        """Follow the operations of a block; a loop twice: it comes around."""
        for op in (nested.operation for nested in block.operations):
            if op.name == BARRIER or op in self.waiting:
                self._wait()
            if op.name == BLOCKS:
                self.visit(op.regions[0].blocks[0])
                self.visit(op.regions[0].blocks[0])
            reads, writes = self._reads(op), self._writes(op)
            if self._is_early(reads, writes):
                self.waiting[op] = None
                self._wait()
            self.read |= reads
            self.written |= writes

    def _wait(self) -> None:
        self.written, self.read = {}, {}

    def _is_early(self, reads: dict[Any, PlaceAttr], writes: dict[Any, Any]) -> bool:
        behind = [*self.written.values(), *self.read.values()]
        return any(tile in self.written for tile in reads) or any(
            place.overlaps(other) for place in writes.values() for other in behind
        )

    def _reads(self, op: ir.Operation) -> dict[ir.Operation, PlaceAttr]:
        if op.name == STORE:
            return self._shared([holder(op.operands[0])])
        if op.name != COMPUTE:
            return {}
        written = self._writes(op)
        read = self._shared([holder(value) for value in _tiles_used(op)])
        return {tile: place for tile, place in read.items() if tile not in written}

    def _writes(self, op: ir.Operation) -> dict[ir.Operation, PlaceAttr]:
        if op.name == LOAD:
            return self._shared([op])
        if op.name != COMPUTE:
            return {}
        return self._shared([holder(result) for result in op.results])

    def _shared(
        self, makers: list[ir.Operation | None]
    ) -> dict[ir.Operation, PlaceAttr]:
        found = ((maker, place_of(maker)) for maker in makers if maker is not None)
        return {m: p for m, p in found if p is not None and p.level == self.level}
