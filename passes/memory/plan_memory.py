"""Owns plan-memory: where the bytes of every tensor of the host function live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import EXTERNAL, SHIFT, is_kernel, type_bytes
from magweld.passes.analysis.control_calls import ControlCall, WhileCall, control_of
from magweld.passes.analysis.joint_calls import joint_of, verify_joint
from magweld.passes.analysis.loop_calls import LoopCall, loop_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import callee_of, functions_of, located_error
from magweld.passes.memory.tile_list import TILES, Tile, tiles_of
from magweld.passes.tiling.packing import Buffer, pack

CAST = "tensor.cast"
VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape", SHIFT, CAST})
# A cache line, and the widest vector: no kernel touches a line of two buffers.
ARENA_ALIGNMENT = 64


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Give every intermediate tensor of the host function a place in one arena.

    Destinations (`tensor.empty`) get `magweld.place`: "arena" with
    `magweld.offset` in bytes by best fit over lifetimes (Welder's allocator, one
    level up), "output" where the tensor leaves the function, "adopted" where a
    callee brings its own tensor: library calls without an out variant. A call that
    runs tile by tile gets `magweld.scratch`, the offset of what its tiles share, and
    one that runs a loop or a branch that of what its iterations or arms share.

    The function gets `magweld.arena_bytes` and `magweld.transient_bytes`: the most
    that calls bring themselves at one time, a library's copies of its operands among
    it. Both together bound what a call of the function takes beside arguments and
    results.
    """

    name: ClassVar[str] = "plan-memory"

    def run(self, module: Any) -> None:
        """Plan the functions that call kernels, libraries or externals.

        Raises:
            PassError: Two calls write one destination, or a joint call does not take
                what its parts do.
        """
        functions = {f.name.value: f for f in functions_of(module)}
        for function in functions.values():
            joint = joint_of(function)
            if joint is not None:
                verify_joint(function, joint, functions)
        hosts = [
            function
            for function in functions.values()
            if not function.is_external and not is_kernel(function)
        ]
        # What a tile or an iteration takes is known before what runs it is planned.
        for function in sorted(hosts, key=lambda f: _depth(f, functions)):
            _Planner(function, functions).run()


class _Planner:
    """Plans the memory of one function."""

    def __init__(self, function: Any, functions: Mapping[str, Any]) -> None:
        block = function.regions[0].blocks[0]
        self._function = function
        self._functions = functions
        self._operations = [op.operation for op in block.operations]
        self._owner = self._owners()
        self._last_use: dict[Any, int] = {}
        for position, op in enumerate(self._operations):
            for value in op.operands:
                self._last_use[self._owner.get(value, value)] = position
        self._returned = {
            self._owner.get(value, value) for value in self._operations[-1].operands
        }
        # What lies in the arena, and where to write its offset.
        self._buffers: list[Buffer] = []
        self._places: list[tuple[Any, str]] = []
        self._adopted: dict[Any, int] = {}

    def run(self) -> None:
        placed: set[Any] = set()
        transient = 0
        for position, op in enumerate(self._operations):
            if op.name == "func.call":
                _require_sizes(op)
            for destination in self._destinations(op):
                if destination in placed:
                    raise located_error(op, "expected a destination of its own")
                placed.add(destination)
                self._take(op, destination, position)
            if op.name == "func.call":
                callee = self._functions[callee_of(op)]
                self._place_scratch(op, callee, position)
                self._adopted.update(_brought(op, callee))
                taken = sum(self._adopted.values()) + self._taken_by(op, callee)
                transient = max(transient, taken)
            for value in [v for v in self._adopted if self._last(v) <= position]:
                del self._adopted[value]
        for op in self._operations:
            if op.name == "tensor.empty" and op.results[0] not in placed:
                # Nobody writes it: it has no elements.
                _annotate(op.results[0], "output")
        packing = pack(self._buffers, ARENA_ALIGNMENT)
        for (op, name), offset in zip(self._places, packing.offsets, strict=True):
            op.attributes[name] = i64(offset)
        attributes = self._function.attributes
        attributes["magweld.arena_bytes"] = i64(packing.size)
        attributes["magweld.transient_bytes"] = i64(transient)

    def _take(self, op: Any, destination: Any, position: int) -> None:
        place = self._place(op, destination)
        _annotate(destination, place)
        if place == "arena":
            last = max(position, self._last(destination))
            self._buffers.append(Buffer(_bytes(destination), position, last))
            maker = destination.owner.operation
            self._places.append((maker, "magweld.offset"))
        elif place == "adopted" and destination not in self._returned:
            self._adopted[destination] = _bytes(destination)

    def _last(self, value: Any) -> int:
        """Position of the last operation that reads the bytes of a value."""
        return self._last_use.get(value, -1)

    def _place_scratch(self, call: Any, callee: Any, position: int) -> None:
        """Reserve what tiles or iterations share, for as long as the call runs."""
        loop, control = loop_of(callee), control_of(callee)
        if loop is not None:
            needed = loop_scratch(self._functions[loop.function], loop)
        elif control is not None:
            needed = control_scratch(control, self._functions)
        elif TILES in callee.attributes:
            needed = max(
                tile_scratch(self._functions[tile.function], tile, call)
                for tile in tiles_of(callee)
            )
        else:
            return
        self._buffers.append(Buffer(needed, position, position))
        self._places.append((call, "magweld.scratch"))

    def _taken_by(self, call: Any, callee: Any) -> int:
        """Bytes that a callee takes while it runs, beside what it returns."""
        if TILES in callee.attributes:
            return max(_tile_bytes(self._functions[name]) for name in parts_of(callee))
        parts = [self._functions[name] for name in parts_of(callee)]
        if parts:
            attribute = "magweld.transient_bytes"
            return max(int(part.attributes[attribute].value) for part in parts)
        if "magweld.library" not in callee.attributes:
            return 0
        library = ir.DictAttr(callee.attributes["magweld.library"])
        if ir.StringAttr(library["op"]).value != "convolution":
            return 0
        # Operands and result in a layout of the library's, and the padded image.
        copies = sum(map(_bytes, call.operands))
        return copies + (_bytes(call.operands[0]) if "front" in library else 0)

    def _owners(self) -> dict[Any, Any]:
        """Map results of calls and reshapes to the value whose bytes they are."""
        owner: dict[Any, Any] = {}
        for op in self._operations:
            if op.name in VIEWS:
                owner[op.results[0]] = owner.get(op.operands[0], op.operands[0])
            for result, value in zip(op.results, self._destinations(op), strict=False):
                owner[result] = value
        return owner

    def _destinations(self, op: Any) -> list[Any]:
        """The `tensor.empty` operands of a call, which its results overwrite."""
        if op.name != "func.call":
            return []
        if EXTERNAL in self._functions[callee_of(op)].attributes:
            return []
        tail = list(op.operands)[len(op.operands) - len(op.results) :]
        made = [v for v in map(without_cast, tail) if defining_op(v) is not None]
        found = [v for v in made if v.owner.operation.name == "tensor.empty"]
        return found if len(found) == len(op.results) else []

    def _place(self, call: Any, destination: Any) -> str:
        if "magweld.adopts" in self._functions[callee_of(call)].attributes:
            return "adopted"
        return "output" if destination in self._returned else "arena"


def without_cast(value: Any) -> Any:
    """Return what a value is before it was cast to dynamic extents."""
    maker = defining_op(value)
    if maker is None or maker.operation.name != CAST or not _has_extents(value):
        return value
    return maker.operation.operands[0]


def cast_of(value: Any) -> Any:
    """Return what a result of dynamic extents is cast to behind the call, or itself."""
    if not _has_extents(value):
        return value  # of an external, and cast for kernels that read it
    users = [use.owner.operation for use in value.uses]
    casts = [user.results[0] for user in users if user.name == CAST]
    return casts[0] if casts else value


def _has_extents(value: Any) -> bool:
    """Whether a value is a tensor of dynamic extents."""
    is_tensor = isinstance(value.type, ir.RankedTensorType)
    return is_tensor and not value.type.has_static_shape


def tile_scratch(function: Any, tile: Tile, call: Any) -> int:
    """Bytes that a tile needs in the arena: its own, and copies of what it reads."""
    arena = aligned(int(function.attributes["magweld.arena_bytes"].value))
    read = zip(function.arguments, tile.operands, strict=True)
    parts = [v for v, operand in read if v.type != call.operands[operand].type]
    return arena + sum(aligned(_bytes(part)) for part in parts)


def loop_scratch(function: Any, loop: LoopCall) -> int:
    """Bytes that iterations need in the arena: their own, and what they hand over.

    A result of which only the last one is returned goes there in every other iteration.
    """
    arena = aligned(int(function.attributes["magweld.arena_bytes"].value))
    results = zip(function.type.results, loop.stacked, strict=True)
    return arena + sum(aligned(type_bytes(t)) for t, stacked in results if not stacked)


def control_scratch(control: ControlCall, functions: Mapping[str, Any]) -> int:
    """Bytes that arms or iterations need in the arena: their own, and their results.

    An arm writes the results of the call. Those of an iteration go there and to a
    buffer beside it in turn, but for the truth value, which has a place of its own.
    """
    parts = [functions[name] for name in control.functions]
    arena = max(aligned(int(p.attributes["magweld.arena_bytes"].value)) for p in parts)
    if not isinstance(control, WhileCall):
        return arena
    return arena + sum(aligned(type_bytes(t)) for t in parts[0].type.results)


def parts_of(callee: Any) -> tuple[str, ...]:
    """Return the functions that a call of a declaration runs: tiles, bodies, arms."""
    loop, control = loop_of(callee), control_of(callee)
    if loop is not None:
        return (loop.function,)
    if control is not None:
        return control.functions
    tiles = tiles_of(callee) if TILES in callee.attributes else ()
    return tuple(dict.fromkeys(tile.function for tile in tiles))


def aligned(size: int) -> int:
    """Return the bytes that a buffer of a size takes in an arena."""
    return -(-size // ARENA_ALIGNMENT) * ARENA_ALIGNMENT


def _depth(function: Any, functions: Mapping[str, Any]) -> int:
    """Return how many functions run in each other, from this one inwards."""
    calls = (op.operation for op in function.regions[0].blocks[0].operations)
    parts = [
        _depth(functions[name], functions)
        for op in calls
        if op.name == "func.call"
        for name in parts_of(functions[callee_of(op)])
    ]
    return 1 + max(parts, default=0)


def _brought(call: Any, callee: Any) -> dict[Any, int]:
    """What an operator that runs through torch returns, with its bytes."""
    if EXTERNAL not in callee.attributes:
        return {}
    return {value: _bytes(value) for value in call.results}


def _tile_bytes(function: Any) -> int:
    """Bytes that a tile takes beside the arena: what it brings, and its result."""
    *_, terminator = function.regions[0].blocks[0].operations
    transient = int(function.attributes["magweld.transient_bytes"].value)
    return transient + sum(map(_bytes, terminator.operation.operands))


def _require_sizes(call: Any) -> None:
    values = [without_cast(value) for value in call.operands]
    values += [cast_of(value) for value in call.results]
    for value in values:
        is_tensor = isinstance(value.type, ir.RankedTensorType)
        if not is_tensor or not value.type.has_static_shape:
            raise located_error(call, f"expected tensors, got {value.type}")


def _bytes(value: Any) -> int:
    return type_bytes(value.type)


def _annotate(destination: Any, place: str) -> None:
    attributes = destination.owner.operation.attributes
    attributes["magweld.place"] = ir.StringAttr.get(place)
