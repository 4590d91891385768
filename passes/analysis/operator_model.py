"""Owns the reading of an operator model from the body of a tile_graph.operator."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir, linalg
from magweld.dialects.tile_graph import captured_values, root_operation
from magweld.passes.analysis.cloning import defining_op
from magweld.passes.analysis.regions import (
    Access,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)

# Stands for the constant term beside loop numbers.
_CONSTANT = -1
# Relative price of one scalar operation; everything else costs one.
_EXPENSIVE = {
    "math.exp": 8,
    "math.erf": 12,
    "math.tanh": 12,
    "math.log": 8,
    "math.sqrt": 4,
    "math.rsqrt": 4,
    "arith.divf": 4,
}


def element_bytes(type_: Any) -> int:
    """Return the bytes that one element of a tensor type takes in memory."""
    element = type_.element_type
    if isinstance(element, ir.IndexType):
        return 8
    return max(1, int(element.width) // 8)


# Ops without data: made again wherever they are used, they are no inputs.
REMATERIALISED = frozenset({"arith.constant", "linalg.fill", "tensor.empty"})


def is_rematerialised(value: Any) -> bool:
    """Return whether a value holds no data of its own: a constant number, a fill.

    A tensor constant that is no splat is data.
    """
    producer = defining_op(value)
    if producer is None or producer.operation.name not in REMATERIALISED:
        return False
    constant = producer.operation.name == "arith.constant"
    if not constant or not isinstance(value.type, ir.RankedTensorType):
        return True
    return bool(ir.DenseElementsAttr(producer.operation.attributes["value"]).is_splat)


def inputs_of(operator: Any) -> list[Any]:
    """Return the tensors that an operator or subgraph reads, in first use.

    Upstream clean-up may move constants, fills and empty tensors out of a region;
    they are no inputs wherever they stand.
    """
    found: dict[Any, None] = {}

    def visit(values: list[Any]) -> None:
        for value in values:
            if is_rematerialised(value):
                visit(list(value.owner.operation.operands))
            elif isinstance(value.type, ir.RankedTensorType):
                found[value] = None

    visit(captured_values(operator))
    return list(found)


def root_accesses(root: Any) -> list[Access]:
    """Return how a linalg operation accesses each of its operands, inits last.

    The argument of an access is the number of the operator's input, -1 for what is
    made inside the operator.
    """
    inputs = {value: i for i, value in enumerate(inputs_of(root.parent))}
    maps = [attr.value for attr in linalg.get_indexing_maps(root)]
    return [
        _access(value, map_, inputs)
        for value, map_ in zip(root.operands, maps, strict=True)
    ]


def operator_model(operator: Any) -> OperatorModel:
    """Return the model of a `tile_graph.operator` operation.

    A root without indexing maps is of kind MOVE or OTHER: its operands are needed
    whole, so that a wrong region is never assumed.
    """
    root = root_operation(operator)
    name = ir.StringAttr(operator.attributes["op_name"]).value
    if not root.name.startswith("linalg.") or _captures_tensors(root):
        return _opaque_model(operator, name, root)
    maps = [attr.value for attr in linalg.get_indexing_maps(root)]
    accesses = root_accesses(root)
    inputs = len(accesses) - len(root.results)
    writes = tuple(
        Access(i, a.shape, a.element_bytes, a.index)
        for i, a in enumerate(accesses[inputs:])
    )
    reads = tuple(a for a in accesses if a.argument >= 0)
    extents = _extents(maps, [a.shape for a in accesses])
    parallel = None if extents is None else _parallel(writes[0], len(extents))
    if extents is None or parallel is None:
        return _opaque_model(operator, name, root)
    if "indexing_maps" in root.attributes:
        # The dialect counts parallel dimensions by loops where an operation states
        # its maps, and by dimensions of the result where it does not.
        parallel = tuple(sorted(parallel))
    return OperatorModel(
        name=name,
        kind=_kind(root, len(extents) - len(parallel)),
        extents=extents,
        parallel=parallel,
        reads=reads,
        writes=writes,
        flops=_flops(root),
    )


def _opaque_model(operator: Any, name: str, root: Any) -> OperatorModel:
    results = [ir.RankedTensorType(r.type) for r in operator.results]
    reads = tuple(
        _whole(i, ir.RankedTensorType(v.type))
        for i, v in enumerate(inputs_of(operator))
    )
    shape = tuple(results[0].shape)
    identity = tuple(LinearIndex(((i, 1),)) for i in range(len(shape)))
    moves = root.name.startswith("tensor.")
    return OperatorModel(
        name=name,
        kind=OperatorKind.MOVE if moves else OperatorKind.OTHER,
        extents=shape,
        parallel=tuple(range(len(shape))),
        reads=reads,
        writes=tuple(
            Access(i, tuple(t.shape), element_bytes(t), identity)
            for i, t in enumerate(results)
        ),
        flops=0,
    )


def _captures_tensors(root: Any) -> bool:
    """Whether the region of `root` reads tensors at places that no map tells."""
    return any(
        isinstance(value.type, ir.RankedTensorType) for value in captured_values(root)
    )


def _whole(argument: int, type_: Any) -> Access:
    shape = tuple(type_.shape)
    return Access(argument, shape, element_bytes(type_), (None,) * len(shape))


def _access(value: Any, map_: Any, inputs: dict[Any, int]) -> Access:
    """Trace an operand of the root back to an input of the operator."""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType):  # a scalar operand
        return Access(-1, (), 0, ())
    index = tuple(_linear(expr) for expr in map_.results)
    padded, source = False, value
    while source not in inputs:
        producer = defining_op(source)
        if producer is None or producer.operation.name != "tensor.pad":
            return Access(-1, tuple(type_.shape), element_bytes(type_), index)
        padded, source = True, producer.operation.operands[0]
    shape = tuple(type_.shape)
    return Access(inputs[source], shape, element_bytes(type_), index, padded)


def _linear(expr: Any) -> LinearIndex | None:
    found = _terms(expr, 1)
    if found is None:
        return None
    merged: dict[int, int] = {}
    for loop, coefficient in found:
        merged[loop] = merged.get(loop, 0) + coefficient
    constant = merged.pop(_CONSTANT, 0)
    return LinearIndex(tuple(sorted((k, v) for k, v in merged.items() if v)), constant)


def _terms(expr: Any, factor: int) -> list[tuple[int, int]] | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return [(_CONSTANT, factor * expr.value)]
    if isinstance(expr, ir.AffineDimExpr):
        return [(expr.position, factor)]
    if isinstance(expr, ir.AffineAddExpr):
        add = expr
        left, right = _terms(add.lhs, factor), _terms(add.rhs, factor)
        return None if left is None or right is None else left + right
    if isinstance(expr, ir.AffineMulExpr):
        mul = expr
        if isinstance(mul.rhs, ir.AffineConstantExpr):
            return _terms(mul.lhs, factor * mul.rhs.value)
    return None


def _extents(maps: list[Any], shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Trip counts: a loop that indexes a dimension alone runs over that dimension."""
    known: dict[int, int] = {}
    for map_, shape in zip(maps, shapes, strict=True):
        for expr, size in zip(map_.results, shape, strict=False):
            if isinstance(expr, ir.AffineDimExpr):
                known[expr.position] = size
    count = maps[0].n_dims
    if any(loop not in known for loop in range(count)):
        return None
    return tuple(known[loop] for loop in range(count))


def _parallel(write: Access, loops: int) -> tuple[int, ...] | None:
    found: list[int] = []
    for expr in write.index:
        if expr is None or len(expr.terms) > 1:
            return None
        found.extend(loop for loop, _ in expr.terms)
    return tuple(found) if len(set(found)) == len(found) <= loops else None


def _kind(root: Any, reductions: int) -> OperatorKind:
    if linalg.isa_convolution_op(root):
        return OperatorKind.CONVOLUTION
    if linalg.isa_contraction_op(root) and reductions:
        return OperatorKind.CONTRACTION
    return OperatorKind.REDUCTION if reductions else OperatorKind.ELEMENTWISE


def _flops(root: Any) -> int:
    body = root.regions[0].blocks[0].operations
    return sum(
        _EXPENSIVE.get(op.operation.name, 1)
        for op in body
        if op.operation.name != "linalg.yield"
    )
