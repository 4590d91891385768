"""Owns small vector idioms: constants, broadcasts, halving trees, block turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from magweld.bindings import arith, ir, vector


def lanes_of(value: ir.Value) -> int:
    """Return the number of lanes of a value, 1 for a scalar."""
    kind = value.type
    return int(kind.shape[0]) if isinstance(kind, ir.VectorType) else 1


def element_type(kind: ir.Type) -> ir.Type:
    """Return the scalar type of a scalar or vector type."""
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def with_lanes(kind: ir.Type, lanes: int) -> ir.Type:
    """Return the type of `lanes` elements of a scalar type; a scalar for one."""
    return kind if lanes == 1 else ir.VectorType.get([lanes], kind)


def broadcast(value: ir.Value, lanes: int) -> ir.Value:
    """Return a value with `lanes` lanes, equal in all when it was a scalar."""
    if lanes_of(value) == lanes:
        return value
    return vector.BroadcastOp(with_lanes(value.type, lanes), value).result


def splat(kind: ir.Type, number: ir.Attribute) -> ir.Value:
    """Emit a constant whose lanes are all one number."""
    if isinstance(kind, ir.VectorType):
        number = ir.DenseElementsAttr.get_splat(kind, number)
    return arith.ConstantOp(kind, number).result


def zeros(kind: ir.VectorType) -> ir.Value:
    """Emit a vector of zeros, of floats or integers."""
    element = kind.element_type
    if isinstance(element, ir.IntegerType):
        return splat(kind, ir.IntegerAttr.get(element, 0))
    return splat(kind, ir.FloatAttr.get(element, 0.0))


def table(kind: ir.VectorType, numbers: Sequence[float]) -> ir.Value:
    """Emit a constant vector of floats, one number for each lane."""
    elements = [ir.FloatAttr.get(kind.element_type, number) for number in numbers]
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get(elements, kind)).result


def first_lanes(lanes: int, filled: int) -> ir.Value:
    """Emit the mask of the first of some lanes."""
    kind = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
    return vector.ConstantMaskOp(kind, [filled]).result


def shuffle(a: ir.Value, b: ir.Value, mask: Sequence[int]) -> ir.Value:
    """Select lanes of the concatenation of two vectors."""
    kind = ir.VectorType.get([len(mask)], element_type(a.type))
    return vector.ShuffleOp(a, b, list(mask), results=[kind]).result


def lane(value: ir.Value, number: int) -> ir.Value:
    """Extract one lane; a scalar is its own lane."""
    if lanes_of(value) == 1 and not isinstance(value.type, ir.VectorType):
        return value
    return vector.ExtractOp(value, [], [number]).result


def from_lanes(scalars: Sequence[ir.Value]) -> ir.Value:
    """Return the vector of some scalars."""
    kind = ir.VectorType.get([len(scalars)], scalars[0].type)
    return vector.FromElementsOp(kind, list(scalars)).result


def fold_lanes(
    value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]
) -> ir.Value:
    """Combine all lanes of a vector pairwise, halves first."""
    lanes = lanes_of(value)
    while lanes > 1:
        lanes //= 2
        low, high = range(lanes), range(lanes, 2 * lanes)
        if lanes == 1:
            return combine(lane(value, 0), lane(value, 1))
        value = combine(shuffle(value, value, low), shuffle(value, value, high))
    return value


def fold_values(
    values: Sequence[ir.Value], combine: Callable[[ir.Value, ir.Value], ir.Value]
) -> ir.Value:
    """Combine values pairwise, neighbours first."""
    while len(values) > 1:
        pairs = [values[k : k + 2] for k in range(0, len(values), 2)]
        values = [combine(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


def turn_block(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Transpose a square block of vectors, one vector a row.

    The classic network: stage s swaps the off-diagonal blocks of side s, so n rows
    take n * log2(n) two-input shuffles.
    """
    size = len(rows)
    block = list(rows)
    side = 1
    while side < size:
        low = [k if not k & side else size + k - side for k in range(size)]
        high = [k + side if not k & side else size + k for k in range(size)]
        for first in (k for k in range(size) if not k & side):
            a, b = block[first], block[first + side]
            block[first] = shuffle(a, b, low)
            block[first + side] = shuffle(a, b, high)
        side *= 2
    return block
