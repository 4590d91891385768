"""Owns the graph that is compiled for all sizes, with numbers that stand for these."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import torch
from torch import fx

from magweld.artifact import StandIns
from magweld.diagnostics import UnsupportedError
from magweld.graphs.node_shapes import Shape, inputs_at, shapes_in
from magweld.graphs.size_extents import Extents, Misfit
from magweld.graphs.size_relation import (
    Shapes,
    SizeRelation,
    offsets_between,
    relate_twice,
)
from magweld.logs import topic

_FALLBACKS: Final[logging.Logger] = topic("fallbacks")

WithNumbers = Callable[[Sequence[Any]], fx.GraphModule]
# Shapes and numbers of a call.
Seen = tuple[Shapes, tuple[Any, ...]]


@dataclass(frozen=True)
class Examples:
    """A graph and inputs for two sets of numbers that stand for its sizes.

    Attributes:
        graphs: The graph with the numbers of each set.
        inputs: Its inputs for each set.
        relation: How inputs follow from the first set.
        others: The second set.
    """

    graphs: tuple[fx.GraphModule, fx.GraphModule]
    inputs: tuple[list[torch.Tensor], list[torch.Tensor]]
    relation: SizeRelation
    others: StandIns


@dataclass(frozen=True)
class SizedExamples:
    """Makes the examples of a graph.

    Attributes:
        with_numbers: Returns the graph for some numbers.
        tensors: Of a call.
        calls: Shapes and numbers of some calls that differ in sizes.
    """

    with_numbers: WithNumbers
    tensors: Sequence[torch.Tensor]
    calls: Sequence[Seen] = ()

    def have_shapes_at(
        self, relation: SizeRelation, samples: Iterable[Sequence[int]]
    ) -> bool:
        """Whether shapes in the graph follow from sizes as they do for the numbers.

        Args:
            relation: How inputs follow from sizes.
            samples: Some sizes.
        """
        numbers, at = relation.stand_ins.numbers, relation.stand_ins.at
        expected = shapes_in(*self._at(relation, numbers))
        for sizes in samples:
            found = shapes_in(*self._at(relation, sizes))
            wanted = [tuple(at(n, sizes) for n in shape) for _, shape in expected]
            if [shape for _, shape in found] != wanted:
                return False
        return True

    def made(self) -> Examples:
        """Return the graph and inputs for two sets of numbers that stand for sizes.

        Raises:
            UnsupportedError: `size-dependent`: shapes do not follow from sizes.
        """
        pair = self._relations()
        if isinstance(pair, str):
            hint = "a program is compiled for each size that comes back"
            raise UnsupportedError("size-dependent", pair, hint=hint)
        relation, other = pair
        ours, theirs = (self._at(relation, one.stand_ins.numbers) for one in pair)
        return Examples(
            (ours[0], theirs[0]), (ours[1], theirs[1]), relation, other.stand_ins
        )

    def _relations(
        self,
    ) -> tuple[SizeRelation, SizeRelation] | str:
        """Return how inputs follow from sizes, with two sets of numbers for these.

        The numbers are larger than the sizes that were seen unless the graph is
        another one for them, as where it reads the first rows of a table that has no
        more: then they are among the sizes that were seen. Where it is one for
        multiples of some number alone, as if it halves an image and doubles it, they
        are such multiples.
        """
        beyond = self._fitting()
        if not isinstance(beyond, Misfit):
            return beyond
        for other in ({"in_units": True}, {"is_within": True}):
            found = self._fitting(**other)
            if isinstance(found, tuple):
                return found
        return beyond.outcome

    def _fitting(
        self,
        *,
        is_within: bool = False,
        in_units: bool = False,
    ) -> tuple[SizeRelation, SizeRelation] | Misfit | str:
        """Return how inputs follow from sizes if the graph is one for the numbers."""
        calls = self.calls
        related = partial(relate_twice, is_within=is_within, in_units=in_units)
        pair = related(calls)
        if isinstance(pair, str):
            return pair
        try:
            shapes = self._shapes(pair)
            offsets = offsets_between(*pair, shapes)
            if offsets:
                longer = related(calls, offsets)
                if isinstance(longer, str):
                    return longer
                pair, shapes = longer, self._shapes(longer)
            return self._fitted(pair, shapes)
        except Exception as error:
            _FALLBACKS.info("shapes need data: %s", error)
            return Misfit(pair)

    def _shapes(
        self, pair: tuple[SizeRelation, SizeRelation]
    ) -> list[tuple[Shape, Shape]]:
        """Return the shapes of what a graph makes, for the numbers of both sets."""
        made = [self._at(pair[0], one.stand_ins.numbers) for one in pair]
        ours, theirs = (shapes_in(module, given) for module, given in made)
        return [
            (one, other) for (_, one), (_, other) in zip(ours, theirs, strict=False)
        ]

    def _fitted(
        self,
        pair: tuple[SizeRelation, SizeRelation],
        shapes: Sequence[tuple[Shape, Shape]],
    ) -> tuple[SizeRelation, SizeRelation] | Misfit:
        """Return a relation whose stand-ins are all extents that depend on sizes.

        A record is for calls whose shapes are one expression of sizes, but the numbers
        that stand for sizes are of no call. One call may have the size of a table.
        """
        relation, other = pair
        known = (relation.sizes_of(*call) for call in self.calls)
        calls = [sizes for sizes in known if sizes is not None]
        if len(calls) < 2:
            return Misfit(pair, "too few calls have sizes of two or more")
        made = [shapes_in(*self._at(relation, sizes)) for sizes in calls]
        if any(len(real) != len(shapes) for real in made):
            return Misfit(pair, "the number of tensors depends on sizes")
        found = None
        inner: dict[tuple[int, int], None] = {}
        for number, (ours, theirs) in enumerate(shapes):
            real = [shapes_of_call[number][1] for shapes_of_call in made]
            extents = Extents(pair, calls, ours, theirs, real)
            if extents.are_known:
                inner.update(dict.fromkeys(extents.divided))
                continue
            misfit = extents.misfit(made[0][number][0])
            if misfit is not None and misfit.reason:
                return misfit
            found = found or misfit
        if found is not None or not inner:
            return found or pair
        return (
            _with_inner(relation, [ours for ours, _ in inner]),
            _with_inner(other, [theirs for _, theirs in inner]),
        )

    def _at(
        self,
        relation: SizeRelation,
        sizes: Sequence[int],
    ) -> tuple[fx.GraphModule, list[torch.Tensor]]:
        """Return the graph and example inputs for some sizes."""
        module = self.with_numbers(relation.numbers_at(sizes))
        return module, inputs_at(self.tensors, relation, sizes)


def _with_inner(relation: SizeRelation, inner: Sequence[int]) -> SizeRelation:
    """Return a relation whose stand-ins know of further extents."""
    stand_ins = replace(relation.stand_ins, inner=tuple(inner))
    return replace(relation, stand_ins=stand_ins)
