"""Owns the way from a captured graph that needs gradients to its compiled halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, fx

from magweld.cut_graph import MIN_OPERATORS, CutGraph
from magweld.diagnostics import UnsupportedError
from magweld.frontend.capture.operator_graph import OperatorGraph
from magweld.graphs.gradients import switches_gradients
from magweld.tiers import tier_of
from magweld.training import refusals
from magweld.training.backward import BackwardStage, CompileHalf, Report
from magweld.training.joint import Halves, trace_halves
from magweld.training.observation import TrainingFacts, observe_training
from magweld.training.step import TrainingGraph, top_hooks


@dataclass(frozen=True)
class TrainingPlan:
    """A graph that needs gradients, ready to be compiled.

    Attributes:
        graph: The captured graph.
        inputs: Its example inputs.
        facts: What eager torch does with it.
        halves: Its halves; None if no output needs gradients after all.
    """

    graph: fx.GraphModule
    inputs: list[Tensor]
    facts: TrainingFacts
    halves: Halves | None

    def compile(self, compile_half: CompileHalf, report: Report) -> Callable[..., Any]:
        """Return a callable on the inputs; gradients flow through what it returns.

        Args:
            compile_half: Compiles a graph that needs no gradients.
            report: Gets what `compile_half` raises for the backward half, later.

        Raises:
            Exception: What `compile_half` raises for the forward half.
        """
        with torch.no_grad():
            if self.halves is None:
                return torch.no_grad()(compile_half(self.graph, self.inputs))
            forward = compile_half(self.halves.forward, self.inputs)
        backward = tuple(
            BackwardStage(stage, compile_half, report) for stage in self.halves.stages
        )
        tier = tier_of(forward)
        if tier is not None and tier.is_pending:
            # Who waits for the program waits for these as well.
            for stage in backward:
                stage.compile_ahead()
        reference = self.graph.forward
        return TrainingGraph(reference, self.facts, self.halves, forward, backward)


@dataclass(frozen=True)
class CutPlan:
    """A graph that needs gradients and of which torch runs some operators.

    Attributes:
        graph: The captured graph.
        cuts: Names of these operators, with the reason. Torch makes gradients for them.
    """

    graph: fx.GraphModule
    cuts: Mapping[str, str]

    def compile(self, compile_half: CompileHalf, report: Report) -> CutGraph:
        """Return a callable on the inputs; see `TrainingPlan.compile`.

        What lies between the operators gets halves for each form of its inputs.
        """

        def compile_piece(piece: fx.GraphModule, inputs: Sequence[Tensor]) -> Any:
            return _plan(piece, list(inputs)).compile(compile_half, report)

        return CutGraph(self.graph, self.cuts, compile_piece)


def plan_captured(graph: OperatorGraph) -> TrainingPlan | CutPlan:
    """Trace a captured graph with its gradients, without operators that are refused.

    Raises:
        UnsupportedError: The graph must be left to torch.
    """
    nodes = graph.module.graph.nodes
    try:
        _refuse_sparse(graph)
        return plan_training(graph)
    except UnsupportedError as refused:
        named = {node.name: node.target for node in nodes if node.name in refused.nodes}
        every = refused.id == refusals.SPARSE.id
        alike = [n.name for n in nodes if not every and n.target in named.values()]
        cuts = dict.fromkeys([*named, *alike], refused.id)
        left = [n for n in nodes if n.op.startswith("call") and n.name not in cuts]
        # A piece must not end in another mode than it begins in.
        switches = any(map(switches_gradients, nodes))
        if not cuts or switches or len(left) < MIN_OPERATORS:
            raise
        return CutPlan(graph.module, cuts)


def plan_training(graph: OperatorGraph) -> TrainingPlan:
    """Trace a captured graph together with its gradients.

    Raises:
        UnsupportedError: The graph must be left to torch.
    """
    if not graph.grad_enabled:
        raise refusals.GRAD_MODE.at("the graph")
    return _plan(graph.module, list(graph.examples))


def _plan(graph: fx.GraphModule, inputs: list[Tensor]) -> TrainingPlan:
    if torch.is_autocast_enabled("cpu"):
        raise refusals.AUTOCAST.at("the graph")
    if torch.is_anomaly_enabled():
        raise refusals.ANOMALY.at("the graph")
    halves = None
    with _without_hooks():
        facts = observe_training(graph, inputs)
        if any(form.differentiable for form in facts.values):
            halves = trace_halves(graph, inputs, facts)
    return TrainingPlan(graph, inputs, facts, halves)


# Where these take the table, and where they are told to make sparse gradients of it.
_LOOK_UPS: Final[dict[Any, tuple[int, int]]] = {
    F.embedding: (1, 6),
    F.embedding_bag: (1, 7),
    torch.embedding: (0, 4),
    torch.embedding_bag: (0, 5),
}


def _refuse_sparse(graph: OperatorGraph) -> None:
    """Refuse look-ups with sparse gradients, which no half has for a result.

    Raises:
        UnsupportedError: There are some.
    """
    nodes = graph.module.graph.nodes
    inputs = (node for node in nodes if node.op == "placeholder")
    given = dict(zip(inputs, graph.examples, strict=False))
    found = []
    for node in nodes:
        table, place = _LOOK_UPS.get(node.target, (0, len(node.args)))
        positional = len(node.args) > place
        sparse = node.args[place] if positional else node.kwargs.get("sparse")
        if node.target not in _LOOK_UPS or not sparse:
            continue
        source = given.get(node.args[table]) if len(node.args) > table else None
        if source is None or source.requires_grad:
            found.append(node)
    if found:
        raise refusals.SPARSE.at("the graph", nodes=found)


@contextmanager
def _without_hooks() -> Iterator[None]:
    """Keep the user's hooks on kept tensors away from tensors without data."""
    hooks = []
    while (top := top_hooks(True)) is not None:
        hooks.append(top)
        torch._C._autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        for pack, unpack in reversed(hooks):
            torch._C._autograd._push_saved_tensors_default_hooks(pack, unpack)
