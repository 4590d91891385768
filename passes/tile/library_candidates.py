"""Owns which operators of a graph one call of a library may compute together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, ir, tensor
from magweld.dialects.tile_graph import (
    build_operator,
    root_operation,
    yield_values,
)
from magweld.passes.analysis.graph_body import Edge, GraphBody
from magweld.passes.analysis.library_calls import (
    call_on,
    is_library,
    reads_sums,
    rounded_call,
    takes_bias,
)
from magweld.passes.analysis.library_form import LibraryCall
from magweld.passes.analysis.library_roundings import (
    Rounding,
    rounding_of,
    widened_source,
)
from magweld.passes.analysis.operator_model import inputs_of
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.linalg_builder import build_generic
from magweld.targets.device import Device

# What stands between two operators.
_BETWEEN = frozenset(
    {"tensor.expand_shape", "tensor.collapse_shape", "tile_graph.connect"}
)
_OPERATOR = "tile_graph.operator"


@dataclass(frozen=True)
class Called:
    """Operators that one call may compute.

    Attributes:
        members: Their positions, rising; the first is the product or convolution.
        call: The call, as which it computes the first and rounds its sums.
        bias: What is added to these, a row of halves; None for nothing.
        dim: Along which dimension.
    """

    members: tuple[int, ...]
    call: LibraryCall
    bias: Any | None = None
    dim: int = -1


def called_operators(body: GraphBody, device: Device) -> Iterator[Called]:
    """Yield what calls may compute: products, convolutions, those of halves rounded."""
    for position, operator in enumerate(body.operators):
        if "implementation" in operator.attributes:
            continue
        call = call_on(device, [operator])
        if isinstance(call, LibraryCall):
            yield Called((position,), call)
        elif body.models[position].factors:
            yield from _rounded(body, position, device)


def decided_calls(body: GraphBody, device: Device) -> Iterator[Called]:
    """Yield the calls of several operators that a plan has decided for."""
    for position, operator in enumerate(body.operators):
        alone = call_on(device, [operator])
        if is_library(operator) and not isinstance(alone, LibraryCall):
            if body.models[position].factors:
                yield from _rounded(body, position, device)


def _rounded(body: GraphBody, product: int, device: Device) -> Iterator[Called]:
    """Yield the product of halves with what alone reads its sums, and rounds them."""
    edge = _only_edge(body, product)
    if edge is None:
        return
    operator, reader = body.operators[product], body.operators[edge.consumer]
    if reads_sums(reader, operator):
        call = call_on(device, [operator, reader])
        if isinstance(call, LibraryCall):
            yield Called((product, edge.consumer), call)
        return
    added, row = _only_edge(body, edge.consumer), _added_row(body, edge)
    if added is None or row is None:
        return
    end = body.operators[added.consumer]
    if rounding_of(root_operation(end)) != Rounding() or not reads_sums(end, reader):
        return
    call = rounded_call(operator, end.results[0])
    if isinstance(call, LibraryCall) and takes_bias(call, row.dim, operator):
        members = product, edge.consumer, added.consumer
        yield Called(members, call, row.bias, row.dim)


def _only_edge(body: GraphBody, position: int) -> Edge | None:
    """Return the edge to the one operator that reads what another one makes."""
    results = list(body.operators[position].results)
    uses = [use for result in results for use in result.uses]
    edges = body.edges_from[position]
    return edges[0] if len(results) == len(uses) == len(edges) == 1 else None


def _added_row(body: GraphBody, edge: Edge) -> Rounding | None:
    """Return the row of halves that an operator adds to what it reads over an edge."""
    operator = body.operators[edge.consumer]
    root, sums = root_operation(operator), body.inputs[edge.consumer][edge.operand]
    if root.name != "linalg.generic" or len(root.operands) != 3 or not _adds(root):
        return None
    maps = [attr.value for attr in ir.ArrayAttr(root.attributes["indexing_maps"])]
    whole = ir.AffineMap.get_identity(maps[2].n_dims)
    numbers = [n for n in (0, 1) if root.operands[n] == sums]
    if len(numbers) != 1 or maps[numbers[0]] != whole or maps[2] != whole:
        return None
    (number,) = numbers
    other = root.operands[1 - number]
    dims = [expr for expr in maps[1 - number].results if _is_dim(expr)]
    row = _widened_row(other)
    if (
        row is None
        or len(dims) != 1
        or math.prod(other.type.shape) != row.type.shape[0]
    ):
        return None
    dim = int(dims[0].position)
    is_row = sums.type.shape[dim] == row.type.shape[0]
    return Rounding(row, dim) if is_row else None


def _adds(root: Any) -> bool:
    """Whether a body is the sum of its two inputs."""
    block = root.regions[0].blocks[0]
    *operations, terminator = (op.operation for op in block.operations)
    (*inputs, _) = block.arguments
    return (
        [op.name for op in operations] == ["arith.addf"]
        and set(operations[0].operands) == {*inputs}
        and list(terminator.operands) == list(operations[0].results)
    )


def _is_dim(expr: Any) -> bool:
    return isinstance(expr, ir.AffineDimExpr)


def _widened_row(value: Any) -> Any | None:
    """Return the argument of one dimension whose halves are widened to a value."""
    maker = defining_op(_behind_views(value))
    if maker is None or maker.operation.name != _OPERATOR:
        return None
    source = widened_source(root_operation(maker))
    row = None if source is None else _behind_views(source)
    is_row = isinstance(row, ir.BlockArgument) and row.type.rank == 1
    return row if is_row else None


def _behind_views(value: Any) -> Any:
    maker = defining_op(value)
    while maker is not None and maker.operation.name in _BETWEEN:
        value = maker.operation.operands[0]
        maker = defining_op(value)
    return value


def fold_rounding(body: GraphBody, called: Called, level: str) -> None:
    """Write one operator for what rounds the sums of a call, and keep its edge inside.

    Args:
        body: The graph, which knows nothing of it.
        called: The call.
        level: Of the edge.
    """
    edge = _only_edge(body, called.members[0])
    assert edge is not None, "candidates have one reader"
    edge.connect.attributes["level"] = ir.StringAttr.get(level)
    if "refused" in edge.connect.attributes:
        del edge.connect.attributes["refused"]
    if called.bias is None:
        return
    rounded = body.operators[called.members[-1]]
    with ir.InsertionPoint(rounded), rounded.location:
        made = _rounding_operator(rounded, edge.connect.results[0], called)
    rounded.results[0].replace_all_uses_with(made.results[0])
    _erase_unread(rounded)


def _erase_unread(op: Any) -> None:
    """Erase an operation that nobody reads, and what is read by it alone."""
    if any(list(result.uses) for result in op.results):
        return
    if op.name not in (*_BETWEEN, _OPERATOR):
        return
    read = inputs_of(op) if op.name == _OPERATOR else list(op.operands)
    op.erase()
    for value in read:
        maker = defining_op(value)
        if maker is not None:
            _erase_unread(maker.operation)


def _rounding_operator(rounded: Any, sums: Any, called: Called) -> Any:
    (result,) = rounded.results
    name = ir.StringAttr(rounded.attributes["op_name"]).value
    operator = build_operator(name, [result.type])
    rank = sums.type.rank
    whole = ir.AffineMap.get_identity(rank)
    row = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(called.dim)])

    def body(values: Sequence[Any]) -> list[Any]:
        total, term, narrow = values
        wide = arith.extf(total.type, term)
        return [arith.truncf(narrow.type, arith.addf(total, wide))]

    with ir.InsertionPoint(operator.body.blocks[0]):
        shape, kind = result.type.shape, result.type.element_type
        empty = tensor.EmptyOp(list(shape), kind).result
        maps = [whole, row, whole]
        generic = build_generic([sums, called.bias], [empty], maps, body)
        yield_values(list(generic.results))
    operator.operation.attributes["implementation"] = ir.StringAttr.get("library")
    return operator.operation
