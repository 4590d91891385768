"""Owns the cut of a captured graph at results that other results follow from.

What follows from such a result reads it as a further input of the graph. So a gradient
comes back for it, to which autograd adds what comes from outside of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch._subclasses import FakeTensorMode

from magweld.frontend.operators.edges import edge_of, edges_behind
from magweld.frontend.operators.watch import OperatorWatch
from magweld.graphs.gradients import has_inner_gradients
from magweld.importer.observation import GraphRunner
from magweld.storages import storage_of
from magweld.training import refusals
from magweld.training.observation import (
    Form,
    TrainingFacts,
    run_with_gradients,
    stand_ins,
)


@dataclass(frozen=True)
class Intermediate:
    """A computed output that another one follows from.

    Attributes:
        number: Which of the computed outputs.
        form: Its form.
        nodes: Those that return it.
        place: Position of the node behind which nothing writes to its memory.
        made: The last one of `nodes` up to there.
    """

    number: int
    form: Form
    nodes: frozenset[fx.Node]
    place: int
    made: fx.Node

    def stand_in(self, mode: FakeTensorMode) -> Tensor:
        """Return a leaf without data in its place."""
        form = self.form
        with mode:
            made = torch.empty_strided(
                form.shape, form.stride, dtype=form.dtype, device=form.device
            )
        return made.requires_grad_()


def find_intermediates(
    graph: fx.GraphModule, inputs: Sequence[Tensor], facts: TrainingFacts
) -> tuple[Intermediate, ...]:
    """Return the outputs that others follow from, in the order of their places.

    Args:
        graph: A graph at torch level that returns a tuple of tensors.
        inputs: One real tensor per placeholder; they are not touched.
        facts: What eager torch does with it.

    Raises:
        UnsupportedError: The graph cannot be cut there.
    """
    if not facts.intermediate:
        return ()
    if has_inner_gradients(graph):
        # With a result as an input, what it was made of has no gradient by it.
        raise refusals.INTERMEDIATE.at("the graph", "which makes gradients inside")
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    runner = _Places(graph)
    results = run_with_gradients(runner, mode, runner.watch, stand_ins(mode, inputs))
    found = [
        runner.intermediate(number, facts.values[number], results)
        for number in facts.intermediate
    ]
    found.sort(key=lambda one: one.place)
    _check_apart(with_results_as_inputs(graph, found), inputs, found)
    return tuple(found)


def with_results_as_inputs(
    graph: fx.GraphModule, intermediates: Sequence[Intermediate]
) -> fx.GraphModule:
    """Return a graph that reads results of its own from further inputs.

    Args:
        graph: The graph.
        intermediates: The results; there is one more input for each, in this order.
    """
    made = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.find_nodes(op="placeholder"):
        copies[node] = made.node_copy(node)
    pending = {one: made.placeholder(f"result_{one.number}") for one in intermediates}
    results: dict[fx.Node, fx.Node] = {}
    for place, node in enumerate(graph.graph.nodes):
        for one in [one for one in pending if one.place < place]:
            results.update(dict.fromkeys(one.nodes, copies[one.made]))
            placeholder = pending.pop(one)
            copies.update({n: placeholder for n in one.nodes if n in copies})
        if node.op == "output":
            copies.update(results)
        if node.op != "placeholder":
            copies[node] = made.node_copy(node, copies.__getitem__)
    return fx.GraphModule(graph, made)


class _Places(GraphRunner):
    """Notes what the nodes of a graph return, and to which memory they write."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.watch = OperatorWatch()
        # All that is made is kept, so that no memory comes twice.
        self._returned: dict[fx.Node, Any] = {}
        self._written: list[set[int]] = []

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; see `GraphRunner.run_node`."""
        self.watch.reset()
        self._returned[n] = super().run_node(n)
        self._written.append(self.watch.written)
        return self._returned[n]

    def intermediate(
        self, number: int, form: Form, results: Sequence[Tensor]
    ) -> Intermediate:
        """Return where a result is what it is in the end."""
        result = results[form.position]
        nodes = [node for node, value in self._returned.items() if value is result]
        order = {node: place for place, node in enumerate(self._returned)}
        storage = storage_of(result)
        writes = [place for place, at in enumerate(self._written) if storage in at]
        place = max([order[nodes[0]], *writes])
        made = [node for node in nodes if order[node] <= place][-1]
        return Intermediate(number, form, frozenset(nodes), place, made)


def _check_apart(
    cut: fx.GraphModule, inputs: Sequence[Tensor], found: Sequence[Intermediate]
) -> None:
    """Raise if something reads a result before its place, or by a view from there."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = [*stand_ins(mode, inputs), *(one.stand_in(mode) for one in found)]
    results = run_with_gradients(GraphRunner(cut), mode, OperatorWatch(), given)
    edges = edges_behind(results)
    for one in found:
        if edge_of(results[one.form.position]) in edges:
            raise refusals.INTERMEDIATE.at(
                f"output {one.form.position}", "before it is written, or by a view"
            )
