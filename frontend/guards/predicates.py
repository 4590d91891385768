"""Owns the guards of predicates; each takes what earlier ones have computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from magweld.frontend.expressions.expressions import (
    Condition,
    Expression,
    Literal,
    is_of_sizes,
)
from magweld.frontend.guards.builder import Builder
from magweld.frontend.guards.guard import Category
from magweld.frontend.operators.predicates import (
    Predicate,
    is_liftable,
    same_value,
    text_of_predicate,
)
from magweld.frontend.operators.recorder import OperatorRecorder


def guard_predicates(
    builder: Builder,
    recorder: OperatorRecorder,
    numbers: Mapping[fx.Node, Expression],
) -> None:
    """Guard the values of tensors that a run has read, in the order of the reads.

    A loop that ends as soon as a tensor is small has a predicate for each iteration,
    which follows from all iterations before.

    Args:
        builder: Builds the guards.
        recorder: Has the values.
        numbers: The final form of the lifted numbers that operators take.
    """
    shared = SharedSteps(recorder.predicates)
    for predicate in recorder.predicates:
        nodes = recorder.tensors_of(predicate)
        taken = [_number(builder, node, numbers) for node in predicate.numbers]
        path = text_of_predicate(predicate, nodes, builder.paths)
        step = shared.step(predicate)
        builder.external(
            Category.PREDICATE,
            path,
            f"== {predicate.value!r}",
            step or _whole(predicate),
            nodes,
            predicate.compute,
            (path, type(predicate.value)) if is_liftable(predicate) else None,
            numbers=taken,
            shares=step is not None,
        )


def _number(
    builder: Builder, node: fx.Node, numbers: Mapping[fx.Node, Expression]
) -> Expression:
    """Return a lifted number; one that does not follow from sizes must be as it was."""
    recorded = Literal(node.meta["number"])
    number = numbers.get(node, recorded)
    if isinstance(number, Literal) or is_of_sizes(number):
        return number
    builder.expressions.condition(Condition(number, recorded.value, None))
    return recorded


def _whole(predicate: Predicate) -> Callable[..., bool]:
    compute, expected = predicate.compute, predicate.value

    def holds(*taken: Any) -> bool:
        return same_value(compute(*taken), expected)

    return holds


class SharedSteps:
    """Makes tests of predicates that compute no operator of the recorded graph twice.

    What they compute they append to a list that all tests of one call get in turn.
    """

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        """Take note of the operators that several predicates need."""
        uses = Counter(
            node for one in predicates for node in _origins(one) if not one.copies
        )
        self._several = {node for node, count in uses.items() if count > 1}
        # Where in the list the value of an operator is.
        self._at: dict[fx.Node, int] = {}
        # The last of these in the recorded graph that has changed a value in its place.
        self._change: fx.Node | None = None

    def step(self, predicate: Predicate) -> Callable[..., bool] | None:
        """Return the test of a predicate; None if it has nothing in common with others.

        None as well if it needs operators that the recorded run has called before a
        value was changed that is in the list. Tests have to run in the order in which
        they were made. A test takes the list, and the tensors and numbers of the
        predicate.
        """
        if predicate.copies or self._several.isdisjoint(_origins(predicate)):
            return None
        source, origins = predicate.module.graph, predicate.origins
        made = [
            node
            for node in source.nodes
            if node in origins and origins[node] not in self._at
        ]
        called = [origins[node] for node in made]
        if self._change is not None and any(one < self._change for one in called):
            return None
        self._change = max(filter(_changes, called), default=self._change)
        used = dict.fromkeys(arg for node in made for arg in node.all_input_nodes)
        kept = [node for node in used if origins.get(node) in self._at]
        graph = fx.Graph()
        mapping = {
            node: graph.placeholder(node.name)
            for node in (*kept, *source.find_nodes(op="placeholder"))
        }
        for node in made:
            mapping[node] = graph.node_copy(node, mapping.__getitem__)
        graph.output([mapping[node] for node in made])
        places = [self._at[origins[node]] for node in kept]
        for node in made:
            self._at[origins[node]] = len(self._at)
        (read,) = source.output_node().args
        assert isinstance(read, fx.Node), "a predicate is the value of an operator"
        return _step(
            fx.GraphModule({}, graph), places, self._at[origins[read]], predicate.value
        )


def _changes(node: fx.Node) -> bool:
    return "changes" in node.meta or bool(node.meta.get("writes"))


def _origins(predicate: Predicate) -> set[fx.Node]:
    return set(predicate.origins.values())


def _step(
    module: fx.GraphModule, places: Sequence[int], at: int, expected: Any
) -> Callable[..., bool]:
    """Return a test that adds values to a list and compares one of the list.

    Args:
        module: Computes the values from earlier ones, and from tensors and numbers.
        places: Of the earlier values in the list.
        at: Place of the value to compare.
        expected: What it must be.
    """

    def holds(values: list[Any], *taken: Any) -> bool:
        with torch.no_grad():
            values += module.forward(*[values[place] for place in places], *taken)
        return same_value(values[at], expected)

    return holds
