"""Owns map-to-matrix-instructions: which products matrix instructions compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir, memref
from magweld.dialects.tile_graph import FRAGMENT, fragment_attribute
from magweld.passes.analysis.body_forms import factor_type
from magweld.passes.gpu.expanded_loops import (
    Expansion,
    expand_loops,
    split_dimensions,
)
from magweld.passes.gpu.linalg_structure import (
    LoopNest,
    is_contraction,
    is_structured,
    linalg_operations_in,
    loop_nest_of,
    matrix_loops,
    outputs_of,
)
from magweld.passes.gpu.matrix_instructions import (
    INSTRUCTIONS,
    MatrixInstruction,
)
from magweld.passes.gpu.structure import (
    block_loop_of,
    is_in_space,
    kernels_of,
    structure_copies,
    workgroup_space,
)
from magweld.passes.gpu.thread_layout import ThreadLayout
from magweld.passes.gpu.thread_loop import build_thread_loop
from magweld.passes.gpu.warpgroup_product import is_copied_in_steps
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import users_of
from magweld.passes.tiling.matrix_units import share_among_subgroups
from magweld.passes.tiling.warpgroups import share_among_warpgroups


@dataclass(frozen=True)
class MapToMatrixInstructions(Pass):
    """Let matrix instructions compute products on tiles of whole fragments.

    A contraction of two tiles in workgroup memory, of element types that an instruction
    of the `family` has and into f32, whose rows, columns and steps are multiples of the
    instruction's, becomes a loop over threads around the part of the product that a
    thread holds: `tile_graph.fragment` says so. Its accumulator is split into the parts
    of a fragment, and operations that work element by element on it or on what they
    make of it share it alike, so that all of them stay in registers.

    With `warpgroups`, four subgroups along the rows share a product whose factors
    are copied from arguments step by step, so that select-warpgroup-products finds it.

    Other products are left to map-tiles-to-threads. Products of f32 are among them on
    NVIDIA's GPUs, whose instructions would round the factors.
    """

    name: ClassVar[str] = "map-to-matrix-instructions"

    family: Annotated[str, "instructions of the target: mfma, mma or none"] = ""
    threads: Annotated[int, "threads of a block"] = 256
    subgroup: Annotated[int, "threads that execute in lockstep"] = 32
    warpgroups: Annotated[bool, "whether four subgroups compute together"] = False

    def run(self, module: Any) -> None:
        """Choose the products of all kernels."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            structure_copies(loop)
            products = map(self._product_of, linalg_operations_in(loop))
            for product in [one for one in products if one is not None]:
                # What is summed up in several products has the share of the first.
                if _is_allocation(outputs_of(product.op)[0]):
                    _Sharing(product).share()

    def _product_of(self, op: Any) -> _Product | None:
        form = _form_of(op)
        if form is None:
            return None
        for instruction in INSTRUCTIONS[self.family]:
            rows, columns, steps = instruction.shape
            fits = not (
                form.rows % rows or form.columns % columns or form.steps % steps
            )
            same = form.operand == instruction.operand
            if fits and same and instruction.subgroup == self.subgroup:
                tiles = form.rows // rows, form.columns // columns
                count = self.threads // self.subgroup
                shared = self._share(op, form, tiles, count)
                return _Product(op, form, instruction, shared)
        return None

    def _share(
        self, op: Any, form: _Form, tiles: tuple[int, int], count: int
    ) -> tuple[int, int]:
        """Return how many subgroups work along rows and columns."""
        if self.warpgroups and is_copied_in_steps(op):
            found = share_among_warpgroups(tiles, form.columns, count)
            if found is not None:
                return found
        lines = form.rows // tiles[0], form.columns // tiles[1]
        return share_among_subgroups(tiles, count, lines)


@dataclass(frozen=True)
class _Form:
    """A contraction of two matrices into the last dimensions of the result.

    All other loops have one iteration.

    Attributes:
        row: Loop of the rows of the result.
        column: Loop of its columns.
        rows: Trip count of `row`.
        columns: Trip count of `column`.
        steps: Trip count of the reduction.
        operand: Element type of both factors.
    """

    row: int
    column: int
    rows: int
    columns: int
    steps: int
    operand: str


def _form_of(op: Any) -> _Form | None:
    if not is_contraction(op):
        return None
    operand = factor_type(op.operation)
    if not operand:
        return None
    nest = loop_nest_of(op)
    loops = matrix_loops(nest)
    if loops is None:
        return None
    accumulator = outputs_of(op)[0]
    shared = all(is_in_space(value, workgroup_space()) for value in op.operands)
    if not shared or not _is_allocation(accumulator):
        return None
    row, column, step = loops
    extents = nest.extents
    return _Form(row, column, extents[row], extents[column], extents[step], operand)


def _is_allocation(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and isinstance(
        value.owner.opview, memref.AllocOp
    )


@dataclass(frozen=True)
class _Product:
    """A contraction and the instruction that computes it.

    Attributes:
        op: The contraction.
        form: Its loops.
        instruction: The instruction.
        subgroups: How many subgroups work along rows and columns.
    """

    op: Any
    form: _Form
    instruction: MatrixInstruction
    subgroups: tuple[int, int]

    def fragment(self) -> ir.Attribute:
        """Return who has which element, as an attribute."""
        one = self.instruction
        sides = one.rows, one.columns
        return fragment_attribute(
            one.name,
            [
                one.shape,
                *(side.extents for side in sides),
                [side.lane for side in sides],
                self.subgroups,
            ],
        )


class _Sharing:
    """Shares a product and what is done with its result element by element."""

    def __init__(self, product: _Product) -> None:
        self._product = product
        self._buffers: list[Any] = []
        # Loop of the rows and of the columns of each operation.
        self._loops: dict[Any, tuple[int, int]] = {}
        self._operations: list[Any] = []

    def share(self) -> None:
        """Replace the operations by loops over threads."""
        form = self._product.form
        self._loops[self._product.op.operation] = form.row, form.column
        self._operations.append(self._product.op)
        self._add(outputs_of(self._product.op)[0])
        with ir.Location.unknown():
            expanded = [self._expanded_buffer(buffer) for buffer in self._buffers]
            buffers = dict(zip(self._buffers, expanded, strict=True))
            # The product last: its location and its form are asked for.
            for op in reversed(self._operations):
                self._share(op, buffers)
            for buffer in self._buffers:
                _replace_rest(buffer, buffers[buffer], self._parts(buffer))

    def _add(self, buffer: ir.Value) -> None:
        """Add a buffer and all that works on it element by element."""
        if buffer in self._buffers:
            return
        self._buffers.append(buffer)
        for op in users_of(buffer):
            if op.operation in self._loops or not is_structured(op):
                continue
            loops = _elementwise_loops(op, buffer)
            if loops is None or not self._has_extents(op, loops):
                continue
            self._loops[op.operation] = loops
            self._operations.append(op)
            nest = loop_nest_of(op)
            for value, map_ in zip(op.operands, nest.maps, strict=True):
                long = [i for i in map_ if i is not None and nest.extents[i] > 1]
                in_block = _is_allocation(value) and tuple(long) == loops
                if in_block and is_in_space(value, workgroup_space()):
                    self._add(value)

    def _has_extents(self, op: Any, loops: tuple[int, int]) -> bool:
        extents = loop_nest_of(op).extents
        form = self._product.form
        return tuple(extents[loop] for loop in loops) == (form.rows, form.columns)

    def _expansion(self, op: Any) -> Expansion:
        row, column = self._loops[op.operation]
        rows, columns, _ = self._product.instruction.shape
        one, form = self._product.instruction, self._product.form
        return Expansion(
            {
                row: (form.rows // rows, *one.rows.extents),
                column: (form.columns // columns, *one.columns.extents),
            }
        )

    def _parts(self, buffer: ir.Value) -> list[list[int]]:
        """Return the parts that each dimension of a buffer is split into."""
        form, one = self._product.form, self._product.instruction
        rows, columns, _ = one.shape
        parts = iter(
            (
                [form.rows // rows, *one.rows.extents],
                [form.columns // columns, *one.columns.extents],
            )
        )
        return [next(parts) if size > 1 else [1] for size in buffer.type.shape]

    def _expanded_buffer(self, buffer: ir.Value) -> ir.Value:
        shape = [part for parts in self._parts(buffer) for part in parts]
        type_ = ir.MemRefType.get(
            shape, buffer.type.element_type, memory_space=workgroup_space()
        )
        with ir.InsertionPoint(buffer.owner):
            made: ir.Value = memref.AllocOp(type_, [], []).memref
        return made

    def _share(self, op: Any, buffers: dict[Any, ir.Value]) -> None:
        expanded = expand_loops(op, self._expansion(op), buffers)
        if op.operation == self._product.op.operation:
            expanded.operation.attributes[FRAGMENT] = self._product.fragment()
        nest = loop_nest_of(expanded)
        layout, order = self._layout(nest, self._expansion(op))
        build_thread_loop(expanded, nest, layout, order=order)
        expanded.operation.erase()
        op.operation.erase()

    def _layout(
        self, nest: LoopNest, expansion: Expansion
    ) -> tuple[ThreadLayout, list[int]]:
        """Return the threads along each loop, and the order they are counted in."""
        one = self._product.instruction
        threads = [1] * len(nest.extents)
        outer, lanes = [], []
        sides = zip((one.rows, one.columns), self._product.subgroups, strict=True)
        for loop, (side, subgroups) in zip(expansion.parts, sides, strict=True):
            first = expansion.first(loop)
            threads[first] = subgroups
            threads[first + 1 + side.lane] = side.lanes
            outer.append(first)
            lanes.append(first + 1 + side.lane)
        order = [*outer, *lanes]
        return ThreadLayout(nest.extents, tuple(threads)), order


def _elementwise_loops(op: Any, buffer: ir.Value) -> tuple[int, int] | None:
    """Return the loops along rows and columns of what works element by element."""
    if is_contraction(op):
        return None
    nest = loop_nest_of(op)
    if nest.reduction or nest.has_windows:
        return None
    for value, map_ in zip(op.operands, nest.maps, strict=True):
        if value == buffer:
            long = [i for i in map_ if i is not None and nest.extents[i] > 1]
            every = {i for i, extent in enumerate(nest.extents) if extent > 1}
            return (long[0], long[1]) if len(long) == 2 and set(long) == every else None
    return None


def _replace_rest(buffer: ir.Value, expanded: ir.Value, parts: list[list[int]]) -> None:
    """Let what has another share of a buffer see it as it was: the other is a view."""
    if any(True for _ in buffer.uses):
        with ir.InsertionPoint.after(buffer.owner):
            view = split_dimensions(buffer, parts)
        expanded.replace_all_uses_with(view)
        expanded.owner.erase()
    else:
        buffer.owner.erase()
