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
from magweld.passes.ir_utils import functions_of, located_error

KERNEL = "tile_graph.kernel"
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
        """Plan the functions that call kernels, libraries or externals.

        Raises:
            PassError: Two calls write one destination.
        """
        adopting = _named(module, "magweld.adopts")
        externals = _named(module, "magweld.external")
        for function in functions_of(module):
            if not function.is_external and KERNEL not in function.attributes:
                _Planner(function, adopting, externals).run()


class _Planner:
    """Plans the memory of one function."""

    def __init__(self, function: Any, adopting: set[str], externals: set[str]) -> None:
        block = function.regions[0].blocks[0]
        self._function = function
        self._operations = [op.operation for op in block.operations]
        self._adopting = adopting
        self._externals = externals
        self._owner = self._owners()
        self._last_use: dict[Any, int] = {}
        for position, op in enumerate(self._operations):
            for value in op.operands:
                self._last_use[self._owner.get(value, value)] = position
        self._returned = {
            self._owner.get(value, value) for value in self._operations[-1].operands
        }

    def run(self) -> None:
        memory = BestFit(ARENA_ALIGNMENT)
        offsets: dict[Any, int] = {}
        placed: set[Any] = set()
        for position, op in enumerate(self._operations):
            for destination in self._destinations(op):
                if destination in placed:
                    raise located_error(op, "expected a destination of its own")
                placed.add(destination)
                place = self._place(op, destination)
                if place == "arena":
                    offsets[destination] = memory.allocate(_bytes(destination))
                _annotate(destination, place, offsets.get(destination))
            for value in [v for v in offsets if self._last_use[v] <= position]:
                memory.release(offsets.pop(value))
        for op in self._operations:
            if op.name == "tensor.empty" and op.results[0] not in placed:
                # Nobody writes it: it has no elements.
                _annotate(op.results[0], "output", None)
        i64 = ir.IntegerType.get_signless(64)
        arena = ir.IntegerAttr.get(i64, memory.high_water)
        self._function.attributes["magweld.arena_bytes"] = arena

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
        if op.name != "func.call" or _callee(op) in self._externals:
            return []
        tail = list(op.operands)[len(op.operands) - len(op.results) :]
        made = [value for value in tail if defining_op(value) is not None]
        found = [v for v in made if v.owner.operation.name == "tensor.empty"]
        return found if len(found) == len(op.results) else []

    def _place(self, call: Any, destination: Any) -> str:
        if _callee(call) in self._adopting:
            return "adopted"
        return "output" if destination in self._returned else "arena"


def _named(module: Any, attribute: str) -> set[str]:
    """Names of the functions that have an attribute."""
    return {f.name.value for f in functions_of(module) if attribute in f.attributes}


def _callee(call: Any) -> str:
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def _bytes(value: Any) -> int:
    type_ = ir.RankedTensorType(value.type)
    return math.prod(map(int, type_.shape)) * element_bytes(type_)


def _annotate(destination: Any, place: str, offset: int | None) -> None:
    i64 = ir.IntegerType.get_signless(64)
    attributes = destination.owner.operation.attributes
    attributes["magweld.place"] = ir.StringAttr.get(place)
    if offset is not None:
        attributes["magweld.offset"] = ir.IntegerAttr.get(i64, offset)
