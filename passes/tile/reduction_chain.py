"""Owns a reduction with the elementwise operations that make its operands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from magweld.bindings import func, ir, linalg
from magweld.dialects.tile_graph import captured_values
from magweld.passes.analysis.long_reductions import Reduction
from magweld.passes.analysis.operator_model import is_rematerialised
from magweld.passes.ir.cloning import ValueMap, clone_helper, clone_mapped, defining_op
from magweld.passes.tile.partial_reductions import operands_along, repeated


@dataclass(frozen=True)
class Chain:
    """A reduction and the elementwise operations that make its operands.

    Attributes:
        ops: In their order, the reduction last.
        ends: What they read that varies along the loops that are reduced.
    """

    ops: tuple[Any, ...]
    ends: frozenset[Any]


def chain_of(reduction: Reduction) -> Chain:
    """Return a reduction with what is made in parts when it is."""
    found: dict[Any, None] = {}
    ends: set[Any] = set()
    # A value that several read is followed once: ways through a graph are too many.
    seen: set[tuple[Any, int]] = set()

    def visit(value: Any, dim: int) -> None:
        if (value, dim) in seen:
            return
        seen.add((value, dim))
        producer = repeated(value)
        if producer is None:
            ends.add(value)
            return
        maps = [attribute.value for attribute in producer.indexing_maps]
        for operand, along in operands_along(producer, maps, dim):
            visit(operand, along)
        found[producer.operation] = None

    for loop in reduction.reduced:
        for value, dim in operands_along(reduction.op, reduction.maps, loop):
            visit(value, dim)
    ops = sorted(found, key=cmp_to_key(_in_order))
    return Chain((*ops, reduction.op), frozenset(ends))


# Operations between a product and a reduction behind it; a softmax has six.
_MOST_BETWEEN = 16


def chain_behind_product(chain: Chain) -> Chain | None:
    """Return a chain with the product that its ends are made of, and all in between.

    That is element by element or a reduction, whoever else reads it. None where there
    is no such product, or something else in between.
    """
    found: dict[Any, None] = dict.fromkeys(chain.ops)
    values, has_product = list(chain.ends), False
    for value in values:
        maker = defining_op(value)
        op = None if maker is None else maker.operation
        if op is None or op in found or is_rematerialised(value):
            continue
        if not op.name.startswith("linalg.") or len(found) > _MOST_BETWEEN:
            return None
        found[op] = None
        if linalg.isa_contraction_op(op):
            has_product = True
        else:
            values += [*op.operands, *captured_values(op)]
    ops = sorted(found, key=cmp_to_key(_in_order))
    return Chain(tuple(ops), frozenset()) if has_product else None


def _in_order(first: Any, second: Any) -> int:
    """Compare two operations of a block: the block itself may be long."""
    if first == second:
        return 0
    return -1 if first.is_before_in_block(second) else 1


def function_of(chain: Chain) -> Any:
    """Return a function of the operations of a chain, which takes what they read."""
    made = {result for op in chain.ops for result in op.results}
    used = [v for op in chain.ops for v in (*op.operands, *captured_values(op))]
    helpers = [value for value in used if is_rematerialised(value)]
    read = dict.fromkeys(v for v in used if v not in made and v not in helpers)
    types = [value.type for value in read]
    root = chain.ops[-1]
    function = func.FuncOp("main", (types, [root.results[0].type]))
    values = ValueMap()
    with ir.InsertionPoint(function.add_entry_block()):
        for value, argument in zip(read, function.arguments, strict=True):
            values[value] = argument
        for helper in helpers:
            clone_helper(helper, values)
        for op in chain.ops:
            clone_mapped(op, values)
        func.ReturnOp([values[root.results[0]]])
    return function


def erase_unread(function: Any) -> None:
    """Erase what nobody reads any more."""
    for op in reversed(list(function.regions[0].blocks[0].operations)):
        pure = op.operation.name.startswith(("linalg.", "tensor."))
        if pure and not any(list(result.uses) for result in op.operation.results):
            op.operation.erase()
