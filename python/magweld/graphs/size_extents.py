"""Owns whether the extents in a graph follow from sizes as numbers say that they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import fx

from magweld.graphs.node_shapes import Shape
from magweld.graphs.places import place_of
from magweld.graphs.size_relation import SizeRelation, is_divided


@dataclass(frozen=True)
class Misfit:
    """A relation whose numbers a graph is another one for than for sizes of calls.

    Attributes:
        pair: The relation, with two sets of numbers.
        reason: Why; "" if the import of the graph for the numbers tells more.
    """

    pair: tuple[SizeRelation, SizeRelation]
    reason: str = ""

    @property
    def outcome(self) -> tuple[SizeRelation, SizeRelation] | str:
        """The reason, or what is imported and refused there."""
        return self.reason or self.pair


@dataclass(frozen=True)
class Extents:
    """The extents of one tensor of a graph, for different sizes.

    Attributes:
        pair: A relation, with two sets of numbers.
        calls: The sizes of calls.
        ours: The shape for the numbers.
        theirs: That for the other ones.
        real: Those for the sizes of calls.
    """

    pair: tuple[SizeRelation, SizeRelation]
    calls: Sequence[Sequence[int]]
    ours: Shape
    theirs: Shape
    real: Sequence[Shape]

    @property
    def divided(self) -> list[tuple[int, int]]:
        """For both sets of numbers the extents that are no products of sizes."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return [pair for dim, pair in enumerate(pairs) if not self._is_product(dim)]

    @property
    def are_known(self) -> bool:
        """Whether each is a product of sizes, or a size divided as windows do it."""
        if {len(shape) for shape in (self.theirs, *self.real)} != {len(self.ours)}:
            return False
        dims = range(len(self.ours))
        return all(self._is_product(dim) or self._is_divided(dim) for dim in dims)

    def _is_product(self, dim: int) -> bool:
        stand_ins, extent = self.pair[0].stand_ins, self.ours[dim]
        sizes = (self.pair[1].stand_ins.numbers, *self.calls)
        found = (self.theirs[dim], *(shape[dim] for shape in self.real))
        return found == tuple(stand_ins.at(extent, one) for one in sizes)

    def _is_divided(self, dim: int) -> bool:
        relation, other = self.pair
        ours, theirs = self.ours[dim], self.theirs[dim]
        if relation.stand_ins.is_runtime(ours) or other.stand_ins.is_runtime(theirs):
            return False
        numbers = (relation.stand_ins.numbers, other.stand_ins.numbers)
        sizes = [relation.extents_at(one) for one in (*numbers, *self.calls)]
        made = [ours, theirs, *(shape[dim] for shape in self.real)]
        return any(is_divided(one, made) for one in zip(*sizes, strict=True))

    def misfit(self, node: fx.Node) -> Misfit | None:
        """Return what is wrong with the shapes of calls; None if nothing is.

        Args:
            node: What makes the tensor.
        """
        relation, other = self.pair
        at, numbers = relation.stand_ins.at, other.stand_ins.numbers
        found = None
        for sizes, shape in zip(self.calls, self.real, strict=True):
            if shape == tuple(at(extent, sizes) for extent in self.ours):
                continue
            found = Misfit(self.pair)
            if self.theirs == tuple(at(extent, numbers) for extent in self.ours):
                reason = _depends(node, shape, sizes, self.ours, relation)
                return Misfit(self.pair, reason)
        return found


def _depends(
    node: fx.Node,
    shape: Shape,
    sizes: Sequence[int],
    ours: Shape,
    relation: SizeRelation,
) -> str:
    """Return that the shape of a node depends on sizes by more than products."""
    place = place_of(node)
    where = f"'{node.name}' ({place})" if place else f"'{node.name}'"
    numbers = relation.stand_ins.numbers
    return (
        f"node {where} has the shape {shape} for sizes "
        f"{_listed(sizes)} and {ours} for sizes {_listed(numbers)}"
    )


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))
