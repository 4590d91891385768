"""Owns fuse-epilogues: a reduction and what is around it become one loop nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import func, ir, linalg
from magweld.passes.cpu.buffer_roots import (
    is_pure,
    root_of,
    roots_of,
    roots_read,
    roots_written,
)
from magweld.passes.cpu.generic_forms import (
    fill_before,
    has_one_result,
    has_reduction,
    maps_of,
)
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.cpu.loop_nest import NotALoopNest
from magweld.passes.cpu.register_policy import choose_register_tile
from magweld.passes.cpu.register_tile import NONE, VectorUnit
from magweld.passes.cpu.sweeps import SWEEP, Sweep
from magweld.passes.cpu.vector_unit_pass import VectorUnitPass
from magweld.passes.ir.utils import operations_of

# Operations of a body behind a reduction that are worth less than a load and a store;
# longer ones, and math functions, want the registers that the sums take.
MOST_OPERATIONS = 12


@dataclass(frozen=True)
class FuseEpilogues(VectorUnitPass):
    """Mark what runs in one sweep of register tiles with a reduction.

    A fill right before it gives sums their first value in registers; what is made of
    the result element by element right behind it is made of the sums before they are
    stored, and the result itself is not stored if nobody else reads it. Operations of
    one sweep have the same number as `magweld.sweep`; `tile-for-registers` and
    `vectorize` take them together.

        y[m, n] = 0                          for each register tile of m, n:
        y[m, n] += a[m, k] * b[k, n]    =>       t = 0
        z[m, n] = max(y[m, n] + c[n], 0)         for k: t += a[m, k] * b[k, n]
                                                 z[m, n] = max(t + c[n], 0)

    Attributes:
        vector_bits: Width of a vector register.
        vector_registers: Number of vector registers.
        bf16_pairs: Whether one instruction multiplies pairs of bf16.
    """

    name: ClassVar[str] = "fuse-epilogues"

    def run(self, module: ir.Operation) -> None:
        """Mark the operations of all kernels of the module."""
        for function in kernels_of(module):
            _mark(function, self.unit)


def _mark(function: func.FuncOp, unit: VectorUnit) -> None:
    number = 0
    for op in operations_of(function, linalg.GenericOp):
        if not has_reduction(op.operation) or not has_one_result(op.operation):
            continue
        sweep = _sweep(op.operation, unit)
        if len(sweep.operations) > 1:
            kind = ir.IntegerType.get_signless(64)
            for member in sweep.operations:
                member.attributes[SWEEP] = ir.IntegerAttr.get(kind, number)
            number += 1


def _sweep(root: ir.Operation, unit: VectorUnit) -> Sweep:
    """Return the largest sweep around a reduction."""
    fill, finish = _fill_before(root), _finish_behind(root)
    if finish is not None and _finish_is_vectors(Sweep(root, fill, finish), unit):
        return Sweep(root, fill, finish)
    if fill is not None and _is_vectors(Sweep(root, fill), unit):
        return Sweep(root, fill)
    return Sweep(root)


def _is_vectors(sweep: Sweep, unit: VectorUnit) -> bool:
    try:
        return choose_register_tile(sweep.nest(), unit).vector_dim != NONE
    except NotALoopNest:
        return False


def _finish_is_vectors(sweep: Sweep, unit: VectorUnit) -> bool:
    """Whether lanes of the sums are lanes of all that is read and written behind."""
    try:
        nest = sweep.nest()
    except NotALoopNest:
        return False
    tile = choose_register_tile(nest, unit)
    if tile.vector_dim == NONE:
        return False
    collapsed, lanes = nest.collapse(tile.dims), tile.vector_dim
    assert sweep.finish is not None, "asked for sweeps that have one"
    inputs = int(sweep.finish.attributes["operandSegmentSizes"][0])
    strides = [access.strides[lanes] for access in collapsed.beside]
    return (
        collapsed.parallel[lanes]
        and all(stride in (0, 1) for stride in strides[:inputs])
        and all(stride == 1 for stride in strides[inputs:])
    )


# ---- what is before ----------------------------------------------------------------


def _fill_before(root: ir.Operation) -> ir.Operation | None:
    """Return what gives the whole result of `root`, which it reads not, one value."""
    buffer = root_of(Sweep(root).result)
    return None if buffer in roots_read(root) else fill_before(root)


# ---- what is behind ----------------------------------------------------------------


def _finish_behind(root: ir.Operation) -> ir.Operation | None:
    """Return what makes something of each element of the result, next after `root`."""
    result = Sweep(root).result
    buffer = root_of(result)
    read = roots_read(root)
    if buffer is None or buffer in read or None in read:
        return None
    block = [op.operation for op in root.block.operations]
    for op in block[block.index(root) + 1 :]:
        if is_pure(op):
            continue
        if op.name != "linalg.generic":
            return None
        if result in list(op.operands):
            return op if _finishes(op, root, result, read) else None
        written = roots_written(op)
        # It runs before the sweep then.
        if written & {buffer, None, *read} or {buffer, None} & roots_read(op):
            return None
    return None


def _finishes(
    op: ir.Operation,
    root: ir.Operation,
    result: ir.Value,
    read: set[ir.Value | None],
) -> bool:
    inputs = int(op.attributes["operandSegmentSizes"][0])
    operands, maps = list(op.operands), maps_of(op)
    if operands[:inputs].count(result) != 1 or has_reduction(op):
        return False
    place = operands.index(result)
    if not _is_whole(maps[place]) or not _walks_its_loops(root):
        return False
    others = roots_of([v for n, v in enumerate(operands[:inputs]) if n != place])
    if root_of(result) in others or not _is_short(op, inputs):
        return False
    written = operands[inputs:]
    roots = roots_of(written)
    if len(roots) < len(written) or None in roots or roots & (read | others):
        return False
    # In its place an element may be replaced, not moved.
    same = all(
        maps[inputs + n] == maps[place]
        for n, value in enumerate(written)
        if value == result
    )
    moved = any(v != result and root_of(v) == root_of(result) for v in written)
    return same and not moved and all(_is_whole(m) for m in maps[inputs:])


def _is_whole(map_: ir.AffineMap) -> bool:
    """Whether every loop is one index of an operand."""
    return bool(map_.is_permutation)


def _walks_its_loops(root: ir.Operation) -> bool:
    """Whether the parallel loops are the indices of the result."""
    map_ = maps_of(root)[-1]
    kinds = [str(kind) for kind in root.attributes["iterator_types"]]
    parallel = sum("parallel" in kind for kind in kinds)
    return bool(map_.is_projected_permutation) and len(map_.results) == parallel


def _is_short(op: ir.Operation, inputs: int) -> bool:
    body = op.regions[0].blocks[0]
    *operations, _ = [inner.operation for inner in body.operations]
    arithmetic = all(inner.name.startswith("arith.") for inner in operations)
    unread = not any(list(argument.uses) for argument in list(body.arguments)[inputs:])
    return arithmetic and unread and len(operations) <= MOST_OPERATIONS
