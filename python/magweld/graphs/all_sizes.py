"""Owns the one program that answers all sizes of a graph with lifted values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.artifact import StandIns
from magweld.diagnostics import UnsupportedError
from magweld.graphs.forms import COMPILE_AFTER
from magweld.graphs.places import place_of
from magweld.graphs.size_relation import (
    Shapes,
    SizeRelation,
    is_divided,
    offsets_between,
    relate_twice,
)
from magweld.logs import expected_errors, topic
from magweld.paced import checkpoint
from magweld.tiers import TieredGraph

_FALLBACKS: Final[logging.Logger] = topic("fallbacks")
# Programs for all sizes of one graph: the first one may have taken sizes that agree by
# chance for sizes that always do.
_MOST_PROGRAMS: Final = 2
# Kinds of sizes that are remembered: to relate them, and with the program for them.
_MOST_SEEN: Final = 8
_MOST_COVERED: Final = 4096

Shape = tuple[int, ...]


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


# Takes the graph for the sizes of a call, the tensors of that call, what returns the
# examples that are compiled (it may take long and pauses at checkpoints of
# `magweld.paced`), and what runs the graph through torch.
CompileSizes = Callable[
    [
        fx.GraphModule,
        Sequence[torch.Tensor],
        Callable[[], Examples],
        Callable[..., Any],
    ],
    TieredGraph | None,
]
WithNumbers = Callable[[Sequence[Any]], fx.GraphModule]


class AllSizes:
    """Has a graph compiled once for all sizes, and finds what runs a call.

    It is compiled at the third call, as soon as calls differ in sizes. Not for several
    threads.

    Args:
        compile_sizes: Compiles the graph.
        with_numbers: Returns the graph for some numbers.
        reference: Runs the graph through torch on tensors, then numbers.

    Attributes:
        reason: Why sizes that come back are compiled each by itself; "" if not so.
    """

    def __init__(
        self,
        compile_sizes: CompileSizes,
        with_numbers: WithNumbers,
        reference: Callable[..., Any],
    ) -> None:
        self._compile = compile_sizes
        self._with_numbers = with_numbers
        self._reference = reference
        self._seen: dict[tuple[Shapes, tuple[Any, ...]], None] = {}
        self._tiers: list[TieredGraph] = []
        # The program that is for the sizes and numbers of a call, by these.
        self._covering: dict[Hashable, Any] = {}
        self._calls = 0
        self.reason = ""

    @property
    def tiers(self) -> list[TieredGraph]:
        """The programs that there are, or that are being compiled."""
        return list(self._tiers)

    @property
    def is_whole(self) -> bool:
        """Whether torch runs no part of the programs that are there for its sizes."""
        made: list[Any] = [tier.compiled for tier in self._tiers]
        return all(sized is None or sized.is_whole for sized in made)

    @property
    def grows(self) -> bool:
        """Whether a size and a constant is a size, as of a cache that grows."""
        made: list[Any] = [tier.compiled for tier in self._tiers]
        return any(sized is not None and sized.relation.offsets for sized in made)

    def note(self, shapes: Shapes, numbers: tuple[Any, ...]) -> None:
        """Remember sizes and numbers of a call, or of the recorded run."""
        if len(self._seen) < _MOST_SEEN:
            self._seen.setdefault((shapes, numbers))

    def find(
        self, key: Hashable, tensors: list[torch.Tensor], numbers: tuple[Any, ...]
    ) -> Any:
        """Return what runs a call on its tensors and numbers; None if nothing does.

        It may be a program that is being compiled, which torch runs meanwhile.

        Args:
            key: The sizes and numbers of the call, as `key_of` gives them.
            tensors: Of the call.
            numbers: Beside them.
        """
        if self.reason:
            return None
        known = self._covering.get(key)
        form = None if known is None else known.known(key, tensors)
        if form is not None:
            return form
        self._calls += 1
        for tier in self._tiers:
            if tier.runs_through_torch:
                if tier.error is not None:
                    return self._refuse(str(tier.error))
                return tier
            form = self._form(tier, key, tensors, numbers)
            if form is not None:
                return form
        # Tensors with gaps run for their own sizes, whatever these are.
        if not all(tensor.is_contiguous() for tensor in tensors):
            return None
        self.note(tuple(tuple(t.shape) for t in tensors), numbers)
        is_soon = len(self._seen) < 2 or self._calls < COMPILE_AFTER
        if is_soon or len(self._tiers) == _MOST_PROGRAMS:
            return None
        return self._make(tensors, numbers)

    def _form(
        self,
        tier: TieredGraph,
        key: Hashable,
        tensors: list[torch.Tensor],
        numbers: tuple[Any, ...],
    ) -> Any:
        """Return the form of a program for a call, and remember that it has one."""
        sized: Any = tier.compiled
        form = sized.form(key, tensors, numbers)
        if form is not None:
            if len(self._covering) == _MOST_COVERED:
                self._covering.clear()
            self._covering[key] = sized
        return form

    def _make(self, tensors: list[torch.Tensor], numbers: tuple[Any, ...]) -> Any:
        try:
            tier = self._compile(
                self._with_numbers(numbers),
                tensors,
                lambda: self._examples(tensors),
                self._reference,
            )
        except Exception as error:
            # It costs speed at most: sizes that come back are compiled by themselves.
            return self._refuse(str(error))
        if tier is None:
            return self._refuse("torch runs a part of the graph")
        self._tiers.append(tier)
        return tier

    def _examples(self, tensors: list[torch.Tensor]) -> Examples:
        """Return the graph and inputs for two sets of numbers that stand for sizes.

        Raises:
            UnsupportedError: `size-dependent`: shapes do not follow from sizes.
        """
        pair = self._relations(tensors)
        if isinstance(pair, str):
            hint = "a program is compiled for each size that comes back"
            raise UnsupportedError("size-dependent", pair, hint=hint)
        relation, other = pair
        ours, theirs = (
            self._at(tensors, relation, one.stand_ins.numbers) for one in pair
        )
        return Examples(
            (ours[0], theirs[0]), (ours[1], theirs[1]), relation, other.stand_ins
        )

    def _relations(
        self, tensors: list[torch.Tensor]
    ) -> tuple[SizeRelation, SizeRelation] | str:
        """Return how inputs follow from sizes, with two sets of numbers for these.

        The numbers are larger than the sizes that were seen unless the graph is
        another one for them, as where it reads the first rows of a table that has no
        more: then they are among the sizes that were seen. Where it is one for
        multiples of some number alone, as if it halves an image and doubles it, they
        are such multiples.
        """
        beyond = self._fitting(tensors)
        if not isinstance(beyond, _Misfit):
            return beyond
        for other in ({"in_units": True}, {"is_within": True}):
            found = self._fitting(tensors, **other)
            if isinstance(found, tuple):
                return found
        return beyond.outcome

    def _fitting(
        self,
        tensors: list[torch.Tensor],
        *,
        is_within: bool = False,
        in_units: bool = False,
    ) -> tuple[SizeRelation, SizeRelation] | _Misfit | str:
        """Return how inputs follow from sizes if the graph is one for the numbers."""
        calls = list(self._seen)
        related = partial(relate_twice, is_within=is_within, in_units=in_units)
        pair = related(calls)
        if isinstance(pair, str):
            return pair
        try:
            shapes = self._shapes(tensors, pair)
            offsets = offsets_between(*pair, shapes)
            if offsets:
                longer = related(calls, offsets)
                if isinstance(longer, str):
                    return longer
                pair, shapes = longer, self._shapes(tensors, longer)
            return self._fitted(tensors, pair, shapes)
        except Exception as error:
            _FALLBACKS.info("shapes need data: %s", error)
            return _Misfit(pair)

    def _shapes(
        self, tensors: list[torch.Tensor], pair: tuple[SizeRelation, SizeRelation]
    ) -> list[tuple[Shape, Shape]]:
        """Return the shapes of what a graph makes, for the numbers of both sets."""
        made = [self._at(tensors, pair[0], one.stand_ins.numbers) for one in pair]
        ours, theirs = (_shapes_in(module, given) for module, given in made)
        return [
            (one, other) for (_, one), (_, other) in zip(ours, theirs, strict=False)
        ]

    def _fitted(
        self,
        tensors: list[torch.Tensor],
        pair: tuple[SizeRelation, SizeRelation],
        shapes: Sequence[tuple[Shape, Shape]],
    ) -> tuple[SizeRelation, SizeRelation] | _Misfit:
        """Return a relation whose stand-ins are all extents that depend on sizes.

        A record is for calls whose shapes are one expression of sizes, but the numbers
        that stand for sizes are of no call. One call may have the size of a table.
        """
        relation, other = pair
        known = (relation.sizes_of(*call) for call in list(self._seen))
        calls = [sizes for sizes in known if sizes is not None]
        if len(calls) < 2:
            return _Misfit(pair, "too few calls have sizes of two or more")
        made = [_shapes_in(*self._at(tensors, relation, sizes)) for sizes in calls]
        if any(len(real) != len(shapes) for real in made):
            return _Misfit(pair, "the number of tensors depends on sizes")
        found = None
        inner: dict[tuple[int, int], None] = {}
        for number, (ours, theirs) in enumerate(shapes):
            real = [shapes_of_call[number][1] for shapes_of_call in made]
            extents = _Extents(pair, calls, ours, theirs, real)
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
        tensors: Sequence[torch.Tensor],
        relation: SizeRelation,
        sizes: Sequence[int],
    ) -> tuple[fx.GraphModule, list[torch.Tensor]]:
        """Return the graph and example inputs for some sizes."""
        module = self._with_numbers(relation.numbers_at(sizes))
        return module, _inputs_at(tensors, relation, sizes)

    def _refuse(self, reason: str) -> None:
        self.reason = reason
        _FALLBACKS.info("no program for all sizes: %s", reason)


@dataclass(frozen=True)
class _Misfit:
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
class _Extents:
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

    def misfit(self, node: fx.Node) -> _Misfit | None:
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
            found = _Misfit(self.pair)
            if self.theirs == tuple(at(extent, numbers) for extent in self.ours):
                reason = _depends(node, shape, sizes, self.ours, relation)
                return _Misfit(self.pair, reason)
        return found


def _with_inner(relation: SizeRelation, inner: Sequence[int]) -> SizeRelation:
    """Return a relation whose stand-ins know of further extents."""
    stand_ins = replace(relation.stand_ins, inner=tuple(inner))
    return replace(relation, stand_ins=stand_ins)


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


def _inputs_at(
    tensors: Sequence[torch.Tensor], relation: SizeRelation, sizes: Sequence[int]
) -> list[torch.Tensor]:
    """Return tensors of the shapes for some sizes; those without such are the same."""
    return [
        torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)
        if number in relation.runtime_tensors
        else tensor
        for number, (tensor, shape) in enumerate(
            zip(tensors, relation.shapes_at(sizes), strict=True)
        )
    ]


def _shapes_in(
    module: fx.GraphModule, inputs: Sequence[torch.Tensor]
) -> list[tuple[fx.Node, Shape]]:
    """Return the nodes of a graph and the shapes of the tensors they make, in order.

    Paced work may pause at each operator.

    Args:
        module: The graph.
        inputs: Tensors of it; they are neither read nor written.

    Raises:
        Exception: What torch raises for an operator that has no shape without data.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(tensor) for tensor in inputs]
    run = _ShapeRun(module)
    pauses = _Pauses()  # type: ignore[no-untyped-call]
    with mode, pauses, torch.no_grad(), expected_errors():
        run.run(*fakes)
    return run.shapes


class _Pauses(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Pauses at each operator: a recurrent layer is one node of very many."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        checkpoint()
        return func(*args, **(kwargs or {}))


class _ShapeRun(fx.Interpreter):
    """Keeps the shapes of what nodes make."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.shapes: list[tuple[fx.Node, Shape]] = []

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.shapes.append((n, tuple(leaf.shape)))
        return result
