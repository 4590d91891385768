"""Owns the description of a linalg operation as a loop nest over flat buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from magweld.bindings import ir
from magweld.passes.cpu.generic_forms import is_float_arithmetic, maps_of
from magweld.passes.cpu.rows import LOAD, LOOP, operations_within, row_loops

# Operations that fold a value into an accumulator, with the spelling of the value
# that changes nothing. Only associative and commutative ones belong here: a row
# reduction keeps one partial result per vector lane.
COMBINERS: dict[str, str] = {
    "arith.addf": "zero",
    "arith.mulf": "one",
    "arith.maximumf": "lowest",
    "arith.maxnumf": "lowest",
    "arith.minimumf": "highest",
    "arith.minnumf": "highest",
    "arith.addi": "zero",
    "arith.muli": "one",
    "arith.maxsi": "lowest",
    "arith.minsi": "highest",
    "arith.maxui": "zero",
    "arith.minui": "all_ones",
    "arith.andi": "all_ones",
    "arith.ori": "zero",
    "arith.xori": "zero",
}


class NotALoopNest(Exception):
    """An operation that has no description as a static loop nest; says why."""


@dataclass(frozen=True)
class Access:
    """How one operand is addressed.

    Attributes:
        strides: Elements that one step of each loop moves; 0 when it does not.
        offset: Constant number of elements added to that.
        bits: Width of an element.
        used: Whether the body reads the operand's value.
    """

    strides: tuple[int, ...]
    offset: int
    bits: int
    used: bool


@dataclass(frozen=True)
class LoopNest:
    """A linalg operation without its body: extents and addresses.

    Attributes:
        extents: Trip count of each loop.
        parallel: Whether each loop is parallel (otherwise it is a reduction).
        inputs: Addresses of the inputs.
        outputs: Addresses of the outputs.
        combiners: Name of the combining operation of each output, "" when the body
            is not `combine(f(inputs), output)`.
        scalar_reason: Why the body has no form on vectors; "" when it has one.
        uses_index: Whether the body asks for loop indices.
        uses_math: Whether the body calls math functions.
        product: Whether the body is `output + input 0 * input 1`.
        bf16_product: Whether it is one of factors of bf16 that is summed in f32.
        odd_pairs: Whether the last pair of elements that it multiplies has only one.
        vector_loops: The only loops that can be vectorised, where the body loads from
            rows that values tell: those along the rows.
        inner_loops: Whether the body has loops of its own.
        beside: Addresses of what is read and written in the same sweep.
        is_float: Whether the body, and what is made of its result in the same sweep,
            is arithmetic of floats alone, which never traps.
    """

    extents: tuple[int, ...]
    parallel: tuple[bool, ...]
    inputs: tuple[Access, ...]
    outputs: tuple[Access, ...]
    combiners: tuple[str, ...]
    scalar_reason: str
    uses_index: bool
    uses_math: bool
    product: bool
    bf16_product: bool = False
    odd_pairs: bool = False
    vector_loops: frozenset[int] | None = None
    inner_loops: bool = False
    beside: tuple[Access, ...] = ()
    is_float: bool = False

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All operands in order."""
        return self.inputs + self.outputs

    @property
    def reductions(self) -> tuple[int, ...]:
        """Numbers of the reduction loops."""
        return tuple(d for d, p in enumerate(self.parallel) if not p)

    @property
    def points(self) -> int:
        """Number of times that the body runs."""
        return prod(self.extents)

    def can_be_vectors(self, loop: int) -> bool:
        """Whether iterations of a loop can be lanes as far as the body's loads go."""
        return self.vector_loops is None or loop in self.vector_loops

    def collapse(self, dims: Sequence[Sequence[int]]) -> LoopNest:
        """Return the nest with each group of adjacent loops made one loop."""

        def merged(access: Access) -> Access:
            return replace(
                access, strides=tuple(access.strides[group[-1]] for group in dims)
            )

        return replace(
            self,
            extents=tuple(prod(self.extents[d] for d in group) for group in dims),
            parallel=tuple(self.parallel[group[-1]] for group in dims),
            inputs=tuple(map(merged, self.inputs)),
            outputs=tuple(map(merged, self.outputs)),
            beside=tuple(map(merged, self.beside)),
        )


def collapsible_dims(nest: LoopNest, keep: int = 0) -> tuple[tuple[int, ...], ...]:
    """Group adjacent loops that walk memory as one loop; drop loops of extent one.

    Args:
        nest: The nest.
        keep: Number of leading loops that stay alone.

    Returns:
        Groups for `LoopNest.collapse`, in loop order.
    """
    groups: list[list[int]] = []
    for dim, extent in enumerate(nest.extents):
        if dim >= keep and extent == 1 and not nest.uses_index:
            continue
        if len(groups) > keep and _continues(nest, groups[-1][-1], dim):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    return tuple(map(tuple, groups))


def _continues(nest: LoopNest, outer: int, inner: int) -> bool:
    if nest.uses_index or nest.parallel[outer] != nest.parallel[inner]:
        return False
    extent = nest.extents[inner]
    accesses = (*nest.accesses, *nest.beside)
    return all(a.strides[outer] == extent * a.strides[inner] for a in accesses)


def is_linalg(op: ir.OpView | ir.Operation) -> bool:
    """Whether an operation is a structured linalg operation."""
    return str(op.operation.name) == "linalg.generic"


def read_loop_nest(op: ir.Operation) -> LoopNest:
    """Describe a `linalg.generic` on memrefs.

    Raises:
        NotALoopNest: A map is not linear, or an extent or stride is dynamic.
    """
    maps = maps_of(op)
    iterators = [str(attribute) for attribute in op.attributes["iterator_types"]]
    parallel = tuple("parallel" in text for text in iterators)
    block = op.regions[0].blocks[0]
    accesses = tuple(
        read_access(operand, affine_map, bool(list(argument.uses)))
        for operand, affine_map, argument in zip(
            op.operands, maps, block.arguments, strict=True
        )
    )
    inputs = int(op.attributes["operandSegmentSizes"][0])
    names = [str(inner.name) for inner in operations_within(block)]
    rows = row_loops(block, [access.strides for access in accesses[:inputs]])
    return LoopNest(
        extents=_extents(op, maps, len(parallel)),
        parallel=parallel,
        inputs=accesses[:inputs],
        outputs=accesses[inputs:],
        combiners=_combiners(block, inputs),
        scalar_reason=_scalar_reason(block, rows),
        uses_index=any(name == "linalg.index" for name in names),
        uses_math=any(name.startswith("math.") for name in names),
        product=is_product(op),
        bf16_product=is_product(op) and _is_of_bf16(block),
        vector_loops=rows,
        inner_loops=LOOP in names,
        is_float=is_float_arithmetic(block),
    )


def _extents(
    op: ir.Operation, maps: Sequence[ir.AffineMap], rank: int
) -> tuple[int, ...]:
    extents: dict[int, int] = {}
    for operand, affine_map in zip(op.operands, maps, strict=True):
        if not isinstance(operand.type, ir.MemRefType):
            continue
        for size, expr in zip(operand.type.shape, affine_map.results, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                extents.setdefault(expr.position, size)
    missing = [d for d in range(rank) if d not in extents]
    if missing or any(size < 0 for size in extents.values()):
        raise NotALoopNest("a loop has no static extent")
    return tuple(extents[d] for d in range(rank))


def read_access(operand: ir.Value, affine_map: ir.AffineMap, used: bool) -> Access:
    """Describe how an operand is addressed.

    Raises:
        NotALoopNest: The map is not linear, or a stride is dynamic.
    """
    if not isinstance(operand.type, ir.MemRefType):
        # A scalar operand is its own value at every point.
        return Access((0,) * affine_map.n_dims, 0, _bits(operand.type), used)
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    steps, _ = operand.type.get_strides_and_offset()
    if dynamic in steps:
        raise NotALoopNest("an operand has a dynamic stride")
    strides, offset = [0] * affine_map.n_dims, 0
    for step, expr in zip(steps, affine_map.results, strict=True):
        coefficients, constant = linear_form(expr, affine_map.n_dims)
        offset += step * constant
        for dim, coefficient in enumerate(coefficients):
            strides[dim] += step * coefficient
    return Access(tuple(strides), offset, _bits(operand.type.element_type), used)


def _bits(kind: ir.Type) -> int:
    if isinstance(kind, ir.IndexType):
        return 64
    width = getattr(kind, "width", None)
    if width is None:
        raise NotALoopNest(f"an element type {kind} has no width")
    return int(width)


def linear_form(expr: ir.AffineExpr, rank: int) -> tuple[list[int], int]:
    """Return the coefficient of each loop in an affine expression and its constant.

    Raises:
        NotALoopNest: The expression divides or multiplies loops.
    """
    if isinstance(expr, ir.AffineDimExpr):
        unit = [0] * rank
        unit[expr.position] = 1
        return unit, 0
    if isinstance(expr, ir.AffineConstantExpr):
        return [0] * rank, expr.value
    if isinstance(expr, ir.AffineAddExpr):
        left, a = linear_form(expr.lhs, rank)
        right, b = linear_form(expr.rhs, rank)
        return [x + y for x, y in zip(left, right, strict=True)], a + b
    if isinstance(expr, ir.AffineMulExpr):
        left, a = linear_form(expr.lhs, rank)
        right, b = linear_form(expr.rhs, rank)
        if not any(left):
            left, a, right, b = right, b, left, a
        if not any(right):
            return [x * b for x in left], a * b
    raise NotALoopNest(f"an operand is addressed by {expr}")


def _combiners(block: ir.Block, inputs: int) -> tuple[str, ...]:
    *_, terminator = block.operations
    names = []
    for value, argument in zip(
        terminator.operands, list(block.arguments)[inputs:], strict=True
    ):
        owner = value.owner
        single = len(list(argument.uses)) == 1
        known = not isinstance(owner, ir.Block) and (
            owner.operation.name in COMBINERS and argument in list(owner.operands)
        )
        names.append(str(owner.operation.name) if single and known else "")
    return tuple(names)


def is_product(generic: ir.Operation) -> bool:
    """Whether the body of a `linalg.generic` is `output + input 0 * input 1`.

    The inputs may be widened first.
    """
    block = generic.regions[0].blocks[0]
    inputs = int(generic.attributes["operandSegmentSizes"][0])
    if inputs != 2 or len(block.arguments) != 3 or len(block.operations) < 3:
        return False
    *widenings, product, total, _ = block.operations
    a, b, output = block.arguments
    factors = {a: a, b: b}
    for op in widenings:
        name, sources = op.operation.name, list(op.operation.operands)
        if name != "arith.extf" or sources[0] not in factors:
            return False
        factors[sources[0]] = op.operation.results[0]
    names = [str(o.operation.name) for o in (product, total)]
    return (
        names == ["arith.mulf", "arith.addf"]
        and {*product.operands} == {*factors.values()}
        and {*total.operands} == {product.results[0], output}
    )


def _is_of_bf16(product: ir.Block) -> bool:
    *factors, total = (argument.type for argument in product.arguments)
    narrow = all(isinstance(kind, ir.BF16Type) for kind in factors)
    return narrow and isinstance(total, ir.F32Type)


def _scalar_reason(block: ir.Block, rows: frozenset[int] | None) -> str:
    known = {"linalg.yield", "linalg.index"}
    known |= {LOAD, LOOP, "scf.yield"} if rows else set()
    for op in operations_within(block):
        name = str(op.name)
        if name in known:
            continue
        if not name.startswith(("arith.", "math.")) or list(op.regions):
            return f"'{name}' in the body has no form on vectors"
    return ""
