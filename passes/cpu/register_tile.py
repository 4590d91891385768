"""Owns the decision how a loop nest uses vector registers, as data and attribute."""

from __future__ import annotations

from dataclasses import dataclass

from magweld.bindings import ir
from magweld.passes.tiling.vectors import MASKED_BITS

ATTRIBUTE = "magweld.registers"
NONE = -1
# Distances between the elements of a vector that is loaded and not gathered.
READ_ALONG = (1, 2)


@dataclass(frozen=True)
class VectorUnit:
    """The vector registers of a core.

    Attributes:
        bits: Width of a register.
        registers: Number of registers.
        pairs: Whether one instruction multiplies pairs of bf16 and adds them to f32.
    """

    bits: int = 512
    registers: int = 32
    pairs: bool = False

    @property
    def has_masks(self) -> bool:
        """Whether a load or store of some lanes takes as long as one of all.

        That is AVX-512; stores of some lanes of AVX2 take some twenty instructions.
        """
        return self.bits >= MASKED_BITS


@dataclass(frozen=True)
class RegisterTile:
    """How a loop nest is cut into register tiles.

    Attributes:
        dims: Groups of the operation's loops; each group is one loop of the nest
            and all numbers below refer to groups.
        order: Groups from the outermost loop to the innermost, reductions last.
        unroll: Iterations of each group in one register tile; vectors of `lanes`
            for the vectorised one.
        vector_dim: The vectorised group, NONE for scalar code.
        lanes: Elements of a vector, a power of two; 1 for scalar code.
        packed_input: Input that is copied panel by panel into contiguous scratch
            memory before it is used, or NONE.
        copied_input: Input that is copied as a whole before, rows of which are
            contiguous and begin in different sets of the first cache, or NONE.
        pairs: The group whose iterations are multiplied in pairs, or NONE. The packed
            input has the two elements of a pair beside each other.
        rest: The tile of the last iterations of the vectorised group, those that
            fill no vector; None where smaller vectors make them.
        masked: Whether those are lanes of one more vector, whose other lanes are
            neither read nor written.
    """

    dims: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    unroll: tuple[int, ...]
    vector_dim: int = NONE
    lanes: int = 1
    packed_input: int = NONE
    copied_input: int = NONE
    pairs: int = NONE
    rest: RegisterTile | None = None
    masked: bool = False

    def to_attribute(self) -> ir.DictAttr:
        """Return the tile as the attribute that `vectorize` reads."""
        number = ir.IntegerType.get_signless(64)
        more = {} if self.rest is None else {"rest": self.rest.to_attribute()}
        for name in ("copied_input", "pairs"):
            if (value := getattr(self, name)) != NONE:
                more[name] = ir.IntegerAttr.get(number, value)
        if self.masked:
            more["masked"] = ir.UnitAttr.get()
        return ir.DictAttr.get(
            {
                **more,
                "dims": ir.ArrayAttr.get(
                    [ir.DenseI64ArrayAttr.get(group) for group in self.dims]
                ),
                "lanes": ir.IntegerAttr.get(number, self.lanes),
                "order": ir.DenseI64ArrayAttr.get(self.order),
                "packed_input": ir.IntegerAttr.get(number, self.packed_input),
                "unroll": ir.DenseI64ArrayAttr.get(self.unroll),
                "vector_dim": ir.IntegerAttr.get(number, self.vector_dim),
            }
        )

    @staticmethod
    def from_attribute(attribute: ir.DictAttr) -> RegisterTile:
        """Read what `to_attribute` wrote."""
        return RegisterTile(
            dims=tuple(tuple(group) for group in attribute["dims"]),
            order=tuple(attribute["order"]),
            unroll=tuple(attribute["unroll"]),
            vector_dim=attribute["vector_dim"].value,
            lanes=attribute["lanes"].value,
            packed_input=attribute["packed_input"].value,
            copied_input=_number_or_none(attribute, "copied_input"),
            pairs=_number_or_none(attribute, "pairs"),
            rest=RegisterTile.from_attribute(attribute["rest"])
            if "rest" in attribute
            else None,
            masked="masked" in attribute,
        )


def _number_or_none(attribute: ir.DictAttr, name: str) -> int:
    return int(attribute[name].value) if name in attribute else NONE


@dataclass(frozen=True)
class Piece:
    """Iterations `start` to `stop` of a loop in steps of `count` vectors of `lanes`."""

    start: int
    stop: int
    count: int
    lanes: int

    @property
    def step(self) -> int:
        """Iterations of the original loop that one step covers."""
        return self.count * self.lanes

    @property
    def is_loop(self) -> bool:
        """Whether more than one step is made."""
        return self.stop - self.start > self.step

    def filled(self, number: int) -> int:
        """Return how many lanes of a vector of a step are iterations of the loop."""
        left = self.stop - self.start - number * self.lanes
        return self.lanes if self.is_loop else min(self.lanes, left)


def split_extent(
    extent: int, unroll: int, lanes: int, *, masked: bool = False
) -> tuple[Piece, ...]:
    """Cut a loop into whole register tiles, whole vectors and smaller vectors.

    The smaller vectors halve from `lanes` on, so that every extent is covered
    exactly, without masks and without reading beyond the end.

    Args:
        extent: Trip count, at least 0.
        unroll: Vectors in a register tile.
        lanes: Elements of a vector, a power of two.
        masked: Whether all that is left is one step instead, of whole vectors of which
            the last is not full.
    """
    result = []
    whole = extent - extent % (unroll * lanes)
    if whole:
        result.append(Piece(0, whole, unroll, lanes))
    start = whole
    if masked:
        left = -(-(extent - start) // lanes)
        return (*result, Piece(start, extent, left, lanes)) if left else tuple(result)
    vectors = (extent - start) // lanes
    if vectors:
        result.append(Piece(start, start + vectors * lanes, vectors, lanes))
        start += vectors * lanes
    while start < extent:
        lanes //= 2
        if extent - start >= lanes:
            result.append(Piece(start, start + lanes, 1, lanes))
            start += lanes
    return tuple(result)
