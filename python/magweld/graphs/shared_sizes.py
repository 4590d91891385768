"""Owns whether the program of one record for all sizes is also that of another record.

Sizes of one are never lifted: torch may treat them otherwise. A record in which a size
is one has a graph of its own. Most often it is that of a record for many such sizes,
with the number one in it: then one program will do for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import torch
from torch import Tensor, fx

from magweld.graphs.size_relation import SizeRelation
from magweld.layouts import noted_dtype, noted_layout

Shape = tuple[int, ...]
# Kinds of nodes that have nothing but what they are given.
_SAFE: Final = frozenset({"call_function", "call_method", "output"})
# What is equal where type and text are.
_PLAIN: Final = (
    bool,
    complex,
    float,
    int,
    str,
    torch.device,
    torch.dtype,
    torch.layout,
    torch.memory_format,
    tuple,
    type(None),
)


@dataclass(frozen=True)
class Recorded:
    """A graph as a record has it.

    Attributes:
        module: Takes tensors, then numbers.
        numbers: How many of its inputs are numbers.
        kinds: Type and device of each tensor.
    """

    module: fx.GraphModule
    numbers: int
    kinds: tuple[tuple[torch.dtype, torch.device], ...]


def may_be_alike(own: Recorded, other: Recorded) -> bool:
    """Whether graphs are the same but for numbers, whatever these are."""
    return own.kinds == other.kinds and _paired(own, other) is not None


def shared_relation(
    own: Recorded,
    other: Recorded,
    relation: SizeRelation,
    call: tuple[Sequence[Shape], Sequence[Any]],
) -> tuple[SizeRelation, tuple[tuple[int, ...], ...]] | None:
    """Return how inputs of a graph follow from sizes of another one's program.

    None if the graphs differ in more than numbers, or results may lie otherwise.

    Args:
        own: A graph in which sizes are one.
        other: One that was recorded for others.
        relation: How inputs of the other one follow from sizes.
        call: Shapes and numbers of a call of the first one.

    Returns:
        The relation, and sizes for which both graphs have to make the same shapes.
    """
    shapes, numbers = call
    wide = replace(relation, least=1)
    sizes = wide.sizes_at(shapes)
    if sizes is None or own.kinds != other.kinds or min(sizes) > 1:
        return None
    samples = (sizes, _others(wide, sizes))
    values = [wide.numbers_at(sample) for sample in samples]
    found = _Numbers(list(zip(*values, strict=True)), numbers)
    pairs = _paired(own, other)
    if pairs is None or not all(_are_alike(found, *pair) for pair in pairs):
        return None
    written = found.own(len(numbers))
    if written is None:
        return None
    named = tuple(wide.numbers[number] for number in written)
    return replace(wide, numbers=named), samples


def _others(relation: SizeRelation, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return other sizes that are one where some are."""
    count = len(relation.places)
    primes = relation.stand_ins.numbers[:count]
    told = [1 if n == 1 else prime for n, prime in zip(sizes, primes, strict=False)]
    return (*told, *(told[number] + added for number, added in relation.offsets))


class _Numbers:
    """Which numbers of one graph are those of another one.

    Args:
        others: The values of each number of the other graph, one for each sample.
        own: Values of the own ones in the first sample.
    """

    def __init__(self, others: Sequence[tuple[Any, ...]], own: Sequence[Any]) -> None:
        self._others = others
        self._values = own
        self._found: dict[int, int] = {}

    def is_number(self, own: int, other: int) -> bool:
        """Whether an own number may be one of the other graph."""
        values = self._others[other]
        if not _is_equal(self._values[own], values[0]):
            return False
        known = self._found.setdefault(own, other)
        pairs = zip(self._others[known], values, strict=True)
        return all(_is_equal(*pair) for pair in pairs)

    def is_constant(self, value: Any, other: int) -> bool:
        """Whether a number of the other graph is always some value."""
        return all(_is_equal(value, one) for one in self._others[other])

    def own(self, count: int) -> list[int] | None:
        """Return for each own number that of the other graph; None if one has none."""
        found = [self._found.get(number) for number in range(count)]
        return None if None in found else [n for n in found if n is not None]


def _is_equal(one: Any, other: Any) -> bool:
    if not isinstance(one, _PLAIN):
        return one is other
    return type(one) is type(other) and repr(one) == repr(other)


@dataclass(frozen=True)
class _Place:
    """A number among the inputs of a graph."""

    number: int


def _paired(own: Recorded, other: Recorded) -> list[tuple[Any, Any]] | None:
    """Return the leaves of what operators of both graphs are given, in pairs.

    None if they are other operators, or lie in memory otherwise at the end.
    """
    first, second = (_operators(one.module) for one in (own, other))
    if len(first) != len(second):
        return None
    names = [_names(one) for one in (own, other)]
    pairs: list[tuple[Any, Any]] = []
    for one, two in zip(first, second, strict=True):
        if (one.op, one.target) != (two.op, two.target) or one.op not in _SAFE:
            return None
        if noted_dtype(one) is not noted_dtype(two):
            return None
        leaves = [
            list(_leaves((node.args, node.kwargs), named))
            for node, named in zip((one, two), names, strict=True)
        ]
        if len(leaves[0]) != len(leaves[1]):
            return None
        pairs += zip(*leaves, strict=True)
    returned = (*first[-1].all_input_nodes, *second[-1].all_input_nodes)
    return pairs if all(map(_is_dense, returned)) else None


def _operators(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op != "placeholder"]


def _names(recorded: Recorded) -> dict[fx.Node, Any]:
    """Return what stands for each node: its number among tensors, or among numbers."""
    nodes = list(recorded.module.graph.nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    first = len(inputs) - recorded.numbers
    named: dict[fx.Node, Any] = {
        node: _Place(number - first) if number >= first else ("input", number)
        for number, node in enumerate(inputs)
    }
    made = [node for node in nodes if node.op != "placeholder"]
    named.update((node, ("made", number)) for number, node in enumerate(made))
    return named


def _leaves(value: Any, named: dict[fx.Node, Any]) -> Iterator[Any]:
    """Yield what containers hold, and their kinds and lengths."""
    if isinstance(value, fx.Node):
        yield named[value]
    elif isinstance(value, slice):
        yield from _leaves((value.start, value.stop, value.step), named)
    elif isinstance(value, (tuple, list)):
        yield ("sequence", len(value))
        for one in value:
            yield from _leaves(one, named)
    elif isinstance(value, dict):
        yield ("keys", *value)
        yield from _leaves(tuple(value.values()), named)
    else:
        yield value


def _are_alike(numbers: _Numbers, own: Any, other: Any) -> bool:
    if isinstance(other, _Place):
        if isinstance(own, _Place):
            return numbers.is_number(own.number, other.number)
        return type(own) is int and numbers.is_constant(own, other.number)
    return not isinstance(own, _Place) and _is_equal(own, other)


def _is_dense(node: fx.Node) -> bool:
    """Whether a captured run has had the tensor of a node without gaps, in order."""
    layout = noted_layout(node)
    if layout is None:
        return False
    sizes = layout.shape
    dense = tuple(math.prod(sizes[dim + 1 :]) for dim in range(len(sizes)))
    return layout.stride == dense


class Lifted(Protocol):
    """A graph with lifted values, as `LiftedGraph` is."""

    all_sizes: Any

    @property
    def recorded(self) -> Recorded:
        """The graph as its record has it."""


@dataclass(frozen=True)
class Sharing:
    """Finds programs of other graphs that are for one as well.

    Attributes:
        own: The graph.
        beside: Returns the graphs of other records of the same callable.
        reference: Runs the own graph through torch.
    """

    own: Lifted
    beside: Callable[[], Iterable[Lifted]]
    reference: Callable[..., Any]

    @property
    def is_awaited(self) -> bool:
        """Whether a program is being compiled that may turn out to be one."""
        return any(tier.is_pending for tier in self._tiers)

    @property
    def may_be(self) -> bool:
        """Whether there are programs of other graphs."""
        return any(tier.compiled is not None for tier in self._tiers)

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling the programs of another graph, at most."""
        found = (other.all_sizes.compile_seconds for other in self._others())
        return max(found, default=0.0)

    @property
    def _tiers(self) -> list[Any]:
        sizes = (other.all_sizes for other in self._others())
        return [tier for one in sizes for tier in one.tiers]

    def program(self, tensors: Sequence[Tensor], numbers: tuple[Any, ...]) -> Any:
        """Return the program for a call, None if there is none.

        Args:
            tensors: Of the call.
            numbers: Beside them.
        """
        call = [tuple(tensor.shape) for tensor in tensors], numbers
        for other in self._others():
            for tier in other.all_sizes.tiers:
                sized = tier.compiled
                if sized is None or sized.is_shared:
                    continue
                recorded = (self.own.recorded, other.recorded)
                found = shared_relation(*recorded, sized.relation, call)
                if found is None:
                    continue
                relation, samples = found
                if other.all_sizes.has_shapes_at(tensors, sized.relation, samples):
                    return sized.shared(relation, self.reference)
        return None

    def _others(self) -> list[Lifted]:
        return [
            one
            for one in self.beside()
            if one is not self.own and one.all_sizes is not None
        ]
