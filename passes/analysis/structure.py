"""Owns structures: what is left of operations without names, equal for equal ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph import OPERATORS
from magweld.passes.analysis.operator_model import is_rematerialised
from magweld.passes.ir.cloning import nested_operations

# Attributes that name an operation and what is in it.
_NAMES = ("op_name", "subgraph_name", "operators", OPERATORS)


@dataclass(frozen=True)
class Structure:
    """What an operation does, whatever it is called and whatever it reads.

    Operations of one module that have equal structures do the same to the values that
    `values_of` returns, one for the other.

    Attributes:
        text: The operation without names, each value from outside written alike.
        reads: For each use of a value from outside, in order, its number; numbers
            begin at zero and rise with the first uses.
        helpers: What makes each value from outside that holds no data.
    """

    text: str
    reads: tuple[int, ...]
    helpers: tuple[Structure | None, ...]


def structure_of(op: Any) -> Structure:
    """Return the structure of an operation with regions."""
    values: dict[Any, int] = {}
    reads = tuple(values.setdefault(v, len(values)) for v in _outer_uses(op))
    helpers = tuple(
        structure_of(value.owner) if is_rematerialised(value) else None
        for value in values
    )
    return Structure(_text(op), reads, helpers)


def values_of(op: Any) -> list[Any]:
    """Return the values that an operation and its regions read from outside."""
    return list(dict.fromkeys(_outer_uses(op)))


def annotate_equal(operations: Iterable[Any], annotate: Callable[[Any], None]) -> None:
    """Annotate operations, those of one structure like the first of them.

    Args:
        operations: They have regions; each is read before the next one is annotated.
        annotate: Sets attributes of an operation and of those directly in it.
    """
    known: dict[Structure, Any] = {}
    for op in operations:
        equal = known.setdefault(structure_of(op), op)
        if equal is op:
            annotate(op)
        else:
            _copy_attributes(equal, op)


def _copy_attributes(source: Any, target: Any) -> None:
    """Give an operation, and those directly in it, what an equal one has but names."""
    pairs = zip(nested_operations(source), nested_operations(target), strict=True)
    for one, other in ((source.operation, target.operation), *pairs):
        for name in set(other.attributes).difference(one.attributes, _NAMES):
            del other.attributes[name]
        for name in set(one.attributes).difference(_NAMES):
            other.attributes[name] = one.attributes[name]


def _outer_uses(op: Any) -> list[Any]:
    """Return the values from outside that an operation and its regions read."""
    inside: set[Any] = set()
    found: list[Any] = []

    # A walk gives operations without views of their classes, which take longer.
    def visit(nested: ir.Operation) -> ir.WalkResult:
        found.extend(value for value in nested.operands if value not in inside)
        inside.update(nested.results)
        for region in nested.regions:
            for block in region.blocks:
                inside.update(block.arguments)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _text(op: Any) -> str:
    # A clone on its own: printed where it stands, the values around it are numbered.
    clone = op.operation.clone(ip=False)
    try:
        for one in (clone, *nested_operations(clone)):
            for name in _NAMES:
                if name in one.attributes:
                    del one.attributes[name]
        return str(
            clone.get_asm(
                enable_debug_info=False, assume_verified=True, use_local_scope=True
            )
        )
    finally:
        clone.erase()
