"""Owns what GPU passes read of a linalg operation: loops, accesses, combiners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, linalg
from magweld.diagnostics import UnsupportedError
from magweld.passes.ir_utils import node_of, operations_of

_DIALECT = "linalg."
# In the region of another linalg operation.
_NOT_STRUCTURED = frozenset({"linalg.index", "linalg.yield"})


@dataclass(frozen=True)
class LoopNest:
    """The iteration space of a linalg operation.

    Attributes:
        extents: Trip count of each loop.
        maps: One tuple an operand: the loop that indexes each of its dimensions,
            None where a constant does.
        outputs: How many of the operands, at the end, are outputs.
    """

    extents: tuple[int, ...]
    maps: tuple[tuple[int | None, ...], ...]
    outputs: int

    @property
    def output_maps(self) -> tuple[tuple[int | None, ...], ...]:
        """Maps of the outputs."""
        return self.maps[len(self.maps) - self.outputs :]

    @property
    def parallel(self) -> tuple[int, ...]:
        """Loops that index the first output, in its order."""
        return tuple(loop for loop in self.output_maps[0] if loop is not None)

    @property
    def reduction(self) -> tuple[int, ...]:
        """The other loops."""
        parallel = set(self.parallel)
        return tuple(i for i in range(len(self.extents)) if i not in parallel)


def linalg_operations_in(root: Any) -> list[Any]:
    """Return the structured linalg operations below `root` in program order."""
    return [op for op in operations_of(root, ir.OpView) if is_structured(op)]


def is_structured(op: Any) -> bool:
    """Tell whether `op` is a linalg operation with a loop nest."""
    name = op.operation.name
    return name.startswith(_DIALECT) and name not in _NOT_STRUCTURED


def loop_nest_of(op: Any) -> LoopNest:
    """Read the iteration space of a linalg operation on static shapes.

    Raises:
        UnsupportedError: `gpu-index-expression`: a dimension is not indexed by one
            loop, as in a convolution.
    """
    maps = [attribute.value for attribute in linalg.get_indexing_maps(op.operation)]
    extents = [0] * maps[0].n_dims
    positions = []
    for map_, operand in zip(maps, op.operands, strict=True):
        loops = []
        for expression, size in zip(map_.results, _shape(operand), strict=True):
            loop = _loop_of(expression, op)
            if loop is not None:
                extents[loop] = size
            loops.append(loop)
        positions.append(tuple(loops))
    return LoopNest(tuple(extents), tuple(positions), _output_count(op))


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


def _loop_of(expression: ir.AffineExpr, op: Any) -> int | None:
    if isinstance(expression, ir.AffineConstantExpr):
        return None
    if not isinstance(expression, ir.AffineDimExpr):
        raise UnsupportedError(
            "gpu-index-expression",
            f"'{op.operation.name}' indexes a dimension by '{expression}', "
            "not by a single loop",
            where=str(op.location),
            nodes=[node_of(op.location)],
            hint="such operators are computed by a library on GPUs for now",
        )
    return int(expression.position)
