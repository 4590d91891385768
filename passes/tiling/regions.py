"""Owns the operator model: loops, accesses and the regions that a tile touches."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

# Loops of a window over two dimensions: the last that a convolution reduces over.
WINDOW_LOOPS = 2


class OperatorKind(StrEnum):
    """What the root operation of an operator computes."""

    CONTRACTION = "contraction"
    CONVOLUTION = "convolution"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    CONCATENATION = "concatenation"  # tensors one behind the other
    MOVE = "move"  # slices, pads: bytes only
    OTHER = "other"  # no region is known: computed whole, from whole operands


class BodyForm(StrEnum):
    """What the body of a root is, as far as streaming has to know."""

    SUM = "sum"  # out + a, or out + a * b, from zero
    WIDENED_SUM = "widened sum"  # out + a * b from zero, where a and b are widened
    MAXIMUM = "maximum"
    DIFFERENCE = "difference"
    EXPONENTIAL = "exponential"
    CAST = "cast"
    OTHER = "other"


# Stands among loop numbers for where a streamed dimension is.
STREAM = -1


# Indices and intervals are made and compared by the million: tuples do that in C.
class LinearIndex(NamedTuple):
    """An index expression `sum(coefficient * loop) + constant`.

    Attributes:
        terms: (loop number, coefficient) pairs, loops rising, no coefficient zero.
        constant: What is added.
    """

    terms: tuple[tuple[int, int], ...] = ()
    constant: int = 0

    @property
    def single_loop(self) -> int | None:
        """The loop that this is, if it is one and nothing else."""
        terms = self.terms
        if self.constant or len(terms) != 1 or terms[0][1] != 1:
            return None
        return terms[0][0]

    def extent(self, tile: tuple[int, ...]) -> int:
        """Return how many positions a box of `tile` iterations spans, anywhere."""
        return 1 + sum(abs(c) * (tile[loop] - 1) for loop, c in self.terms)

    def substitute(self, loops: tuple[LinearIndex, ...]) -> LinearIndex:
        """Return this expression with each loop replaced by an expression."""
        merged: dict[int, int] = {}
        constant = self.constant
        for loop, coefficient in self.terms:
            constant += coefficient * loops[loop].constant
            for outer, factor in loops[loop].terms:
                merged[outer] = merged.get(outer, 0) + coefficient * factor
        terms = tuple(sorted((k, v) for k, v in merged.items() if v))
        return LinearIndex(terms, constant)


ZERO = LinearIndex()


class Interval(NamedTuple):
    """Where a box lies along one loop or dimension.

    Attributes:
        offset: First position, over the parallel loops of the group's root.
        size: How many positions.
    """

    offset: LinearIndex
    size: int


@dataclass(frozen=True)
class Access:
    """One tensor that an operator reads or writes.

    Attributes:
        argument: Operand number of the operator; the result number for a write.
        shape: Extents of the whole tensor.
        element_bytes: Bytes of one element.
        index: One expression a dimension; None means the whole dimension, for
            operators that are computed whole.
        border: Elements before and behind each dimension of a border that the
            operator puts around this operand first: an index may lie in it.
        part: Extents of the part that is accessed at all where that is a slice.
        kept: The dimensions that the slice has as an operand, rising; the others are
            of extent one in it.
        first: Where the part begins in dimensions that are accessed whole; at zero
            where this is None.
        gathered: Values tell which elements are read, one an iteration: the region is
            the whole tensor, a bound that is not exact.
    """

    argument: int
    shape: tuple[int, ...]
    element_bytes: int
    index: tuple[LinearIndex | None, ...]
    border: tuple[tuple[int, int], ...] | None = None
    part: tuple[int, ...] | None = None
    kept: tuple[int, ...] | None = None
    first: tuple[int, ...] | None = None
    gathered: bool = False

    def box(self, loops: tuple[Interval, ...]) -> tuple[Interval, ...]:
        """Return the box of the tensor that a box of iterations touches.

        It is no larger than the tensor; that of a padded operand may begin before it.
        """
        return tuple(
            [
                _whole_or(expr, whole, loops)
                if loop is None
                else (loops[loop] if loops[loop].size < extent else whole)
                for extent, expr, loop, whole in self._dims
            ]
        )

    @functools.cached_property
    def _dims(
        self,
    ) -> tuple[tuple[int, LinearIndex | None, int | None, Interval], ...]:
        """Extent, index, the loop that it is, and all of it, of each dimension."""
        return tuple(
            (extent, expr, expr.single_loop if expr else None, self._whole(dim))
            for dim, (extent, expr) in enumerate(
                zip(self.shape, self.index, strict=True)
            )
        )

    def _whole(self, dim: int) -> Interval:
        """All of a dimension: of the part, if no loop goes along it."""
        if self.index[dim] is not None or self.first is None or self.part is None:
            return Interval(ZERO, self.shape[dim])
        return Interval(LinearIndex((), self.first[dim]), self.part[dim])

    def window(self, loops: tuple[Interval, ...]) -> tuple[Interval, ...]:
        """Return what iterations touch of a tensor and its border, by known indices."""
        sizes = tuple(interval.size for interval in loops)
        offsets = tuple(interval.offset for interval in loops)
        return tuple(
            Interval(expr.substitute(offsets), expr.extent(sizes))
            for expr in self.index
            if expr is not None
        )

    @property
    def padded(self) -> bool:
        """Whether an index may lie before the tensor or behind it."""
        return self.border is not None

    def bordered(self, loops: tuple[Interval, ...]) -> tuple[int, ...]:
        """Return the extents of what is kept of a tensor for a window, with its border.

        The whole border is, wherever the window is, so that sizes are static.
        """
        inside = zip(self.window(loops), self.shape, self.border or (), strict=True)
        return tuple(
            low + min(interval.size, extent) + high
            for interval, extent, (low, high) in inside
        )

    @functools.cached_property
    def moved(self) -> tuple[int, ...] | None:
        """Extents of the slice that a move takes; None for any other read."""
        is_move = all(expr is None for expr in self.index) and self.first is None
        return self.part if is_move else None

    @functools.cached_property
    def total_bytes(self) -> int:
        """Bytes of the whole tensor, or of the slice of it that is accessed."""
        return math.prod(self.part or self.shape) * self.element_bytes

    def gathered_bytes(self, points: int) -> int:
        """Return the most bytes that `points` iterations find by values."""
        return min(points * self.element_bytes, self.total_bytes)


def _whole_or(
    expr: LinearIndex | None, whole: Interval, loops: tuple[Interval, ...]
) -> Interval:
    if expr is None:
        return whole
    size = expr.extent(tuple(interval.size for interval in loops))
    if size >= whole.size:
        return whole
    return Interval(expr.substitute(tuple(i.offset for i in loops)), size)


@dataclass(frozen=True)
class OperatorModel:
    """What the scheduler knows of one operator tile.

    Attributes:
        name: For messages; two operators that differ in it alone are equal.
        kind: What it computes.
        extents: Trip count of each loop of the root operation.
        parallel: Loop numbers that index the first result, rising.
        reads: Operands that are tensors.
        writes: Results.
        flops: Arithmetic operations of one iteration.
        form: What the body is.
        factors: Type of both factors of a product of halves that are summed up in f32
            as they are; "" for anything else.
        winograd: Results along each side of the tiles by which a convolution is
            computed with fewer products; 0 where it is computed as it is written.
        runtime: Positions in `parallel` of loops whose extents a call tells; what
            stands for these is a multiple of a prime, see `magweld.artifact.StandIns`.
        cheap: Of each read of an element-wise operator, by how many additions and
            products its result depends on it; 0 where it depends by any other
            operation.
        reads_results: Whether an element-wise operator reads what its results were
            before.
    """

    name: str = field(compare=False)
    kind: OperatorKind
    extents: tuple[int, ...]
    parallel: tuple[int, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    flops: int
    form: BodyForm = BodyForm.OTHER
    factors: str = ""
    winograd: int = 0
    runtime: tuple[int, ...] = ()
    cheap: tuple[int, ...] = ()
    reads_results: bool = False

    def __hash__(self) -> int:
        """Return the hash, which is taken once: models are keys of every plan."""
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        shape = (self.kind, self.extents, self.parallel, self.flops, self.form)
        return hash((shape, self.reads, self.writes))

    @functools.cached_property
    def reduction(self) -> tuple[int, ...]:
        """Loop numbers that do not index the result."""
        parallel = set(self.parallel)
        return tuple(i for i in range(len(self.extents)) if i not in parallel)

    def read_bytes(self, read: Access) -> int:
        """Return the bytes that the whole operator needs of an operand."""
        if not read.gathered:
            return read.total_bytes
        return read.gathered_bytes(self.iterations)

    @property
    def tileable(self) -> bool:
        """Whether all indices are sums of loops with positive coefficients."""
        return self.kind not in (OperatorKind.MOVE, OperatorKind.OTHER)

    @functools.cached_property
    def grid_extents(self) -> tuple[int, ...]:
        """Extents of the parallel loops, rising loop numbers."""
        return tuple(self.extents[i] for i in self.parallel)

    @functools.cached_property
    def unsplit(self) -> tuple[int, ...]:
        """Positions in `parallel` of loops that every tile takes whole.

        That along which tensors follow each other.
        """
        if self.kind is not OperatorKind.CONCATENATION:
            return ()
        index = self.writes[0].index
        return tuple(i for i, loop in enumerate(self.parallel) if index[loop] is None)

    @functools.cached_property
    def whole_tile(self) -> tuple[int, ...]:
        """The tile that takes every parallel loop whole; 1 for an empty loop."""
        return tuple(max(1, extent) for extent in self.grid_extents)

    @functools.cached_property
    def iterations(self) -> int:
        """Points of the iteration space."""
        return math.prod(self.extents)

    def root_box(self, tile: tuple[int, ...]) -> tuple[Interval, ...]:
        """Return the iterations of a result tile, offsets in this op's own loops.

        Args:
            tile: Sizes along `parallel`; reductions are taken whole.
        """
        box = list(self._whole_box)
        for loop, size in zip(self.parallel, tile, strict=True):
            if size < self.extents[loop]:
                box[loop] = Interval(LinearIndex(((loop, 1),)), size)
        return tuple(box)

    def box_for_result(
        self, box: tuple[Interval, ...], result: int = 0
    ) -> tuple[Interval, ...]:
        """Return the iterations that compute a box of a result.

        Only for tileable operators: their results are indexed by single loops.
        """
        loops = list(self._whole_box)
        for dim, loop in self._loops_of_results[result]:
            loops[loop] = box[dim]
        return tuple(loops)

    @functools.cached_property
    def _whole_box(self) -> tuple[Interval, ...]:
        return tuple(Interval(ZERO, extent) for extent in self.extents)

    @functools.cached_property
    def _loops_of_results(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each result the dimensions that follow loops, and the loops."""
        return tuple(
            tuple(
                (dim, loop)
                for dim, expr in enumerate(write.index)
                if expr is not None
                for loop, _ in expr.terms
            )
            for write in self.writes
        )

    def tile_of(self, box: tuple[Interval, ...]) -> tuple[int, ...]:
        """Return the sizes of a box of iterations along the parallel loops."""
        return tuple([max(1, box[loop].size) for loop in self.parallel])
