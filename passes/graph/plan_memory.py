"""Owns plan-memory: where the bytes of every tensor of the host function live."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import ir
from magweld.passes.analysis.best_fit import BestFit
from magweld.passes.analysis.cloning import defining_op
from magweld.passes.analysis.operator_model import element_bytes
from magweld.passes.base import Pass
from magweld.passes.ir_utils import functions_of

VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
# A cache line, and the widest vector: no kernel touches a line of two buffers.
ARENA_ALIGNMENT = 64


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Give every intermediate tensor of the host function a place in one arena.

    Destinations (`tensor.empty`) get `magweld.place`: "arena" with
    `magweld.offset` in bytes by best fit over lifetimes (Welder's allocator, one
    level up), "output" where the tensor leaves the function, "adopted" where a
    callee brings its own tensor: library calls without an out variant. The function
    gets `magweld.arena_bytes`.
    """

    name: ClassVar[str] = "plan-memory"

    def run(self, module: Any) -> None:
        """Plan the functions that call kernels, libraries or externals."""
        for function in functions_of(module):
            if function.is_external or "tile_graph.kernel" in function.attributes:
                continue
            _plan(module, function)


def _plan(module: Any, function: Any) -> None:
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    owner = _owners(operations)
    last_use: dict[Any, int] = {}
    for position, op in enumerate(operations):
        for value in op.operands:
            last_use[owner.get(value, value)] = position
    returned = {owner.get(value, value) for value in operations[-1].operands}
    adopting = _adopting(module)
    memory = BestFit(ARENA_ALIGNMENT)
    offsets: dict[Any, int] = {}
    for position, op in enumerate(operations):
        if op.name == "func.call":
            for destination in _destinations(op):
                place = _place(op, destination, returned, adopting)
                if place == "arena":
                    offset = memory.allocate(_bytes(destination))
                    offsets[destination] = offset
                    _annotate(destination, place, offset)
                else:
                    _annotate(destination, place, 0)
        for value in [v for v in offsets if last_use.get(v, position) <= position]:
            memory.release(offsets.pop(value))
    i64 = ir.IntegerType.get_signless(64)
    function.attributes["magweld.arena_bytes"] = ir.IntegerAttr.get(
        i64, memory.high_water
    )


def _owners(operations: list[Any]) -> dict[Any, Any]:
    """Map results of calls and reshapes to the value whose bytes they are."""
    owner: dict[Any, Any] = {}
    for op in operations:
        if op.name in VIEWS:
            owner[op.results[0]] = owner.get(op.operands[0], op.operands[0])
        elif op.name == "func.call":
            destinations = _destinations(op)
            for result, destination in zip(op.results, destinations, strict=False):
                owner[result] = destination
    return owner


def _destinations(call: Any) -> list[Any]:
    """The `tensor.empty` operands of a call, which its results overwrite."""
    tail = list(call.operands)[len(call.operands) - len(call.results) :]
    found = []
    for value in tail:
        producer = defining_op(value)
        if producer is not None and producer.operation.name == "tensor.empty":
            found.append(value)
    return found if len(found) == len(call.results) else []


def _adopting(module: Any) -> set[str]:
    """Names of callees that return a tensor of their own."""
    return {
        function.name.value
        for function in functions_of(module)
        if "magweld.adopts" in function.attributes
    }


def _place(call: Any, destination: Any, returned: set[Any], adopting: set[str]) -> str:
    callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    if callee in adopting:
        return "adopted"
    return "output" if destination in returned else "arena"


def _bytes(value: Any) -> int:
    type_ = ir.RankedTensorType(value.type)
    return math.prod(map(int, type_.shape)) * element_bytes(type_)


def _annotate(destination: Any, place: str, offset: int) -> None:
    i64 = ir.IntegerType.get_signless(64)
    attributes = destination.owner.operation.attributes
    attributes["magweld.place"] = ir.StringAttr.get(place)
    if place == "arena":
        attributes["magweld.offset"] = ir.IntegerAttr.get(i64, offset)
