"""Owns the cloning of a linalg body onto scalars and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from magweld.bindings import arith, ir, scf, vector
from magweld.passes.cpu.emit_index import Index
from magweld.passes.cpu.emit_vectors import (
    broadcast,
    element_type,
    lanes_of,
    with_lanes,
)
from magweld.passes.cpu.rows import LOAD, LOOP

IndexOf = Callable[[int], tuple[Index, int]]
Body = Callable[[Sequence[ir.Value | None], IndexOf], list[ir.Value]]


def emit_body(
    block: ir.Block, arguments: Sequence[ir.Value | None], index_of: IndexOf
) -> list[ir.Value]:
    """Clone a body; an operation gets vectors as soon as one operand is a vector.

    Args:
        block: Body of a `linalg.generic`.
        arguments: Value of each block argument, None where the body ignores it.
        index_of: Index of a loop and the number of lanes that count up from it.

    Returns:
        The yielded values.
    """
    pairs = zip(block.arguments, arguments, strict=True)
    return _emit_block(block, {old: new for old, new in pairs if new}, index_of)


def _emit_block(
    block: ir.Block, values: dict[ir.Value, ir.Value], index_of: IndexOf
) -> list[ir.Value]:
    """Clone the operations of a block; `values` has what stands for known values."""
    *body, terminator = block.operations
    for op in body:
        if op.operation.name == "linalg.index":
            values[op.operation.results[0]] = _emit_index(op.operation, index_of)
            continue
        operands = [values.get(v, v) for v in op.operation.operands]
        if _is_widened(op.operation, operands):
            values[op.operation.results[0]] = operands[0]
            continue
        if op.operation.name == LOOP:
            results = _emit_loop(op.operation, operands, values, index_of)
        elif op.operation.name == LOAD and lanes_of(operands[-1]) > 1:
            results = [_emit_row_load(op.operation, operands, index_of)]
        else:
            results = _emit_operation(op.operation, operands, values)
        values.update(zip(op.operation.results, results, strict=True))
    return [values.get(v, v) for v in terminator.operands]


def _emit_loop(
    loop: ir.Operation,
    operands: list[ir.Value],
    values: dict[ir.Value, ir.Value],
    index_of: IndexOf,
) -> list[ir.Value]:
    """Clone a loop of the body, whose bounds are scalars.

    What it carries is a vector where its body makes one of it: the loop is emitted
    again, with as many lanes for what turned out to be a vector, until all agrees.
    """
    lower, upper, step, *begun = operands
    while True:
        copy = scf.ForOp(lower, upper, step, begun)
        (body,) = loop.regions[0].blocks
        inside = dict(values)
        arguments = [copy.induction_variable, *copy.inner_iter_args]
        inside.update(zip(body.arguments, arguments, strict=True))
        with ir.InsertionPoint(copy.body):
            carried = _emit_block(body, inside, index_of)
            lanes = [max(map(lanes_of, p)) for p in zip(begun, carried, strict=True)]
            scf.YieldOp(list(map(broadcast, carried, lanes)))
        if lanes == [lanes_of(value) for value in begun]:
            return list(copy.results)
        copy.operation.erase()
        begun = list(map(broadcast, begun, lanes))


def emit_copied(values: Sequence[ir.Value | None], index_of: IndexOf) -> list[ir.Value]:
    """Return what was loaded: the body of a copy."""
    (value, *_) = values
    assert value is not None, "a copy reads its operand"
    return [value]


def emit_widened(
    values: Sequence[ir.Value | None], index_of: IndexOf
) -> list[ir.Value]:
    """Return what was loaded as f32."""
    (value,) = emit_copied(values, index_of)
    kind = with_lanes(ir.F32Type.get(), lanes_of(value))
    return [arith.ExtFOp(kind, value).result]


def _is_widened(op: ir.Operation, operands: Sequence[ir.Value]) -> bool:
    """Whether an operation would widen what a copy has widened already."""
    if op.name != "arith.extf":
        return False
    return bool(element_type(operands[0].type) == op.results[0].type)


def _emit_index(op: ir.Operation, index_of: IndexOf) -> ir.Value:
    index, lanes = index_of(op.attributes["dim"].value)
    first = index.emit()
    if lanes == 1:
        return first
    kind = ir.VectorType.get([lanes], ir.IndexType.get())
    steps = vector.StepOp(kind).result
    return arith.AddIOp(broadcast(first, lanes), steps).result


def _emit_row_load(
    op: ir.Operation, operands: list[ir.Value], index_of: IndexOf
) -> ir.Value:
    """Load neighbours of a row: the last index counts up, the others are scalars."""
    along = op.operands[-1].owner.operation
    first, lanes = index_of(along.attributes["dim"].value)
    buffer, *indices = operands[:-1]
    kind = ir.VectorType.get([lanes], op.results[0].type)
    return vector.LoadOp(kind, buffer, [*indices, first.emit()]).result


def _emit_operation(
    op: ir.Operation, operands: list[ir.Value], values: dict[ir.Value, ir.Value]
) -> list[ir.Value]:
    lanes = max((lanes_of(value) for value in operands), default=1)
    if lanes == 1:
        return _clone_scalar(op, values)
    created = ir.Operation.create(
        op.name,
        results=[with_lanes(r.type, lanes) for r in op.results],
        operands=[broadcast(value, lanes) for value in operands],
        attributes={name: op.attributes[name] for name in op.attributes},
    )
    return list(created.results)


def _clone_scalar(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    copy = op.operation.clone(ir.InsertionPoint.current)
    _replace_operands(copy.operation, values)
    return list(copy.operation.results)


def _replace_operands(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> None:
    for number, operand in enumerate(op.operands):
        if operand in values:
            op.operands[number] = values[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _replace_operands(inner.operation, values)


class Combiner:
    """The operation that folds a value into an accumulator."""

    def __init__(self, op: ir.Operation, kind: str) -> None:
        self.op = op
        self.kind = kind

    def __call__(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Emit the combination of two values of one type."""
        created = ir.Operation.create(
            self.op.name,
            results=[a.type],
            operands=[a, b],
            attributes={name: self.op.attributes[name] for name in self.op.attributes},
        )
        return created.results[0]

    def neutral(self) -> ir.Attribute:
        """Return the number that leaves an accumulator as it is."""
        kind = element_type(self.op.results[0].type)
        if isinstance(kind, ir.IntegerType):
            return ir.IntegerAttr.get(kind, _NEUTRAL_INTEGERS[self.kind](kind.width))
        return ir.FloatAttr.get(kind, _NEUTRAL_FLOATS[self.kind])


_NEUTRAL_FLOATS = {
    # -0.0 and not 0.0: x + -0.0 is x for every x, also for -0.0.
    "zero": -0.0,
    "one": 1.0,
    "lowest": float("-inf"),
    "highest": float("inf"),
}
_NEUTRAL_INTEGERS: dict[str, Callable[[int], int]] = {
    "zero": lambda width: 0,
    "one": lambda width: 1,
    "lowest": lambda width: -(1 << (width - 1)),
    "highest": lambda width: (1 << (width - 1)) - 1,
    "all_ones": lambda width: -1,
}
