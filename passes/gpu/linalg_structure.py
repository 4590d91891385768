"""Owns what GPU passes read of a linalg operation: loops, accesses, combiners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, linalg
from magweld.diagnostics import UnsupportedError
from magweld.passes.gpu.structure import structure_copies
from magweld.passes.ir.utils import located_error, node_of, operations_of

_DIALECT = "linalg."
# In the region of another linalg operation.
_NOT_STRUCTURED = frozenset({"linalg.index", "linalg.yield"})


@dataclass(frozen=True)
class Index:
    """How loops index a dimension: `constant` and the sum of `factor * loop`.

    Attributes:
        terms: Pairs of a loop and its factor, each loop once.
        constant: What is added.
    """

    terms: tuple[tuple[int, int], ...] = ()
    constant: int = 0

    @property
    def loop(self) -> int | None:
        """The loop that is the index, None if the index is something else."""
        if len(self.terms) != 1 or self.constant:
            return None
        ((loop, factor),) = self.terms
        return loop if factor == 1 else None

    @property
    def is_window(self) -> bool:
        """Tell whether the index moves, but not as one loop does."""
        return bool(self.terms) and self.loop is None


@dataclass(frozen=True)
class LoopNest:
    """The iteration space of a linalg operation.

    Attributes:
        extents: Trip count of each loop.
        indices: One tuple an operand: how each of its dimensions is indexed.
        outputs: How many of the operands, at the end, are outputs.
    """

    extents: tuple[int, ...]
    indices: tuple[tuple[Index, ...], ...]
    outputs: int

    @property
    def maps(self) -> tuple[tuple[int | None, ...], ...]:
        """The loop that is the index of each dimension, None for other indices."""
        return tuple(tuple(i.loop for i in operand) for operand in self.indices)

    @property
    def output_maps(self) -> tuple[tuple[int | None, ...], ...]:
        """Maps of the outputs."""
        return self.maps[len(self.maps) - self.outputs :]

    @property
    def has_windows(self) -> bool:
        """Tell whether an index of an operand is more than one loop or a constant."""
        return any(index.is_window for operand in self.indices for index in operand)

    @property
    def parallel(self) -> tuple[int, ...]:
        """Loops that index the first output, in its order."""
        return tuple(loop for loop in self.output_maps[0] if loop is not None)

    @property
    def reduction(self) -> tuple[int, ...]:
        """The other loops."""
        parallel = set(self.parallel)
        return tuple(i for i in range(len(self.extents)) if i not in parallel)


def reads_across_rows(nest: LoopNest, position: int) -> bool:
    """Tell whether an operand is read in another order than results are written in.

    That is so if its last dimension moves with another loop than the innermost one that
    it shares with the first output. Loops of one iteration count for nothing. Not of
    reductions and windows, which go along rows of their own.
    """
    if nest.reduction or nest.has_windows:
        return False

    def moving(loops: tuple[int | None, ...]) -> list[int]:
        return [loop for loop in loops if loop is not None and nest.extents[loop] > 1]

    own = moving(nest.maps[position])
    shared = [loop for loop in moving(nest.output_maps[0]) if loop in own]
    return bool(shared) and shared[-1] != own[-1]


def reads_transposed(op: Any, value: ir.Value) -> bool:
    """Tell whether `op` reads a value across its rows, see `reads_across_rows`."""
    nest = loop_nest_of(op)
    return any(
        one == value and reads_across_rows(nest, position)
        for position, one in enumerate(inputs_of(op))
    )


def matrix_loops(nest: LoopNest) -> tuple[int, int, int] | None:
    """Return the loops of rows, of columns and of the reduction of a product.

    Of two matrices into the last dimensions of the result; all other loops have one
    iteration. None for other nests.
    """
    long = [loop for loop in nest.parallel if nest.extents[loop] > 1]
    steps = [loop for loop in nest.reduction if nest.extents[loop] > 1]
    if nest.has_windows or len(long) != 2 or len(steps) != 1:
        return None
    if nest.output_maps[0][-2:] != tuple(long):
        return None
    left, right = (set(loops) & {*long, *steps} for loops in nest.maps[:2])
    if {frozenset(left), frozenset(right)} != {
        frozenset({loop, steps[0]}) for loop in long
    }:
        return None
    row, column = long
    return row, column, steps[0]


def linalg_operations_in(root: Any) -> list[Any]:
    """Return the structured linalg operations below `root` in program order."""
    return [op for op in operations_of(root, ir.OpView) if is_structured(op)]


def operations_on_buffers(loop: Any) -> list[Any]:
    """Return the structured operations of a loop over blocks, copies among them.

    Raises:
        PassError: One is on tensors, at its location.
    """
    structure_copies(loop)
    operations = linalg_operations_in(loop)
    for op in operations:
        for value in op.operands:
            if isinstance(value.type, ir.RankedTensorType):
                raise located_error(op, f"expected buffers, got {value.type}")
    return operations


def is_structured(op: Any) -> bool:
    """Tell whether `op` is a linalg operation with a loop nest."""
    name = op.operation.name
    return name.startswith(_DIALECT) and name not in _NOT_STRUCTURED


def loop_nest_of(op: Any) -> LoopNest:
    """Read the iteration space of a linalg operation on static shapes.

    Raises:
        UnsupportedError: `gpu-index-expression`: an index is not linear in the loops,
            an output is not indexed by single loops, or no dimension is as long as
            some loop.
    """
    maps = [attribute.value for attribute in linalg.get_indexing_maps(op.operation)]
    extents = [0] * maps[0].n_dims
    indices = []
    for map_, operand in zip(maps, op.operands, strict=True):
        read = [_index_of(expression, op) for expression in map_.results]
        for index, size in zip(read, _shape(operand), strict=True):
            if index.loop is not None:
                extents[index.loop] = size
        indices.append(tuple(read))
    nest = LoopNest(tuple(extents), tuple(indices), _output_count(op))
    written = indices[len(indices) - nest.outputs :]
    if any(index.is_window for operand in written for index in operand):
        raise _refused(op, "writes to indices that are not single loops")
    if 0 in extents:
        raise _refused(op, "has a loop that is the index of no dimension")
    return nest


def inputs_of(op: Any) -> list[ir.Value]:
    """Return the operands that a linalg operation only reads."""
    operands = list(op.operands)
    return operands[: len(operands) - _output_count(op)]


def outputs_of(op: Any) -> list[ir.Value]:
    """Return the destinations of a linalg operation."""
    operands = list(op.operands)
    return operands[len(operands) - _output_count(op) :]


def reads_output(op: Any, number: int) -> bool:
    """Tell whether the body of a linalg operation uses the old value of an output."""
    block = op.regions[0].blocks[0]
    argument = block.arguments[len(op.operands) - _output_count(op) + number]
    return any(True for _ in argument.uses)


def is_contraction(op: Any) -> bool:
    """Tell whether `op` sums products of two tensors over a loop."""
    return bool(linalg.isa_contraction_op(op.operation)) and bool(
        loop_nest_of(op).reduction
    )


def has_windows(op: Any) -> bool:
    """Tell whether `op` reads windows: convolutions and pooling."""
    return loop_nest_of(op).has_windows


def _output_count(op: Any) -> int:
    if isinstance(op, linalg.ReduceOp):
        return len(op.operands) // 2
    # Operations with one output and no other variadic operands keep no segments.
    if "operandSegmentSizes" not in op.operation.attributes:
        return 1
    segments = op.operation.attributes["operandSegmentSizes"]
    return int(ir.DenseI32ArrayAttr(segments)[1])


def _shape(operand: ir.Value) -> list[int]:
    return list(operand.type.shape) if hasattr(operand.type, "shape") else []


def _index_of(expression: ir.AffineExpr, op: Any) -> Index:
    index = linear_index(expression)
    if index is None:
        raise _refused(op, f"indexes a dimension by '{expression}'")
    return index


def linear_index(expression: ir.AffineExpr) -> Index | None:
    """Read an expression that is linear in its dimensions, None for others."""
    factors: dict[int, int] = {}
    constant = 0
    pending = [(expression, 1)]
    while pending:
        part, factor = pending.pop()
        if isinstance(part, ir.AffineAddExpr):
            pending += [(part.lhs, factor), (part.rhs, factor)]
        elif isinstance(part, ir.AffineConstantExpr):
            constant += factor * part.value
        elif isinstance(part, ir.AffineDimExpr):
            factors[part.position] = factors.get(part.position, 0) + factor
        elif isinstance(part, ir.AffineMulExpr) and isinstance(
            part.rhs, ir.AffineConstantExpr
        ):
            pending.append((part.lhs, factor * part.rhs.value))
        else:
            return None
    terms = sorted((loop, factor) for loop, factor in factors.items() if factor)
    return Index(tuple(terms), constant)


def _refused(op: Any, what: str) -> UnsupportedError:
    return UnsupportedError(
        "gpu-index-expression",
        f"'{op.operation.name}' {what}",
        where=str(op.location),
        nodes=[node_of(op.location)],
        hint="such operators are computed by a library on GPUs for now",
    )
