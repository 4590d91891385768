"""Owns the way from a captured graph that needs gradients to its compiled halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from magweld.frontend.capture.operator_graph import OperatorGraph
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
        return TrainingGraph(self.graph, self.facts, self.halves, forward, backward)


def plan_training(graph: OperatorGraph) -> TrainingPlan:
    """Trace a captured graph together with its gradients.

    Raises:
        UnsupportedError: The graph must be left to torch.
    """
    if not graph.grad_enabled:
        raise refusals.GRAD_MODE.at("the graph")
    if torch.is_autocast_enabled("cpu"):
        raise refusals.AUTOCAST.at("the graph")
    if torch.is_anomaly_enabled():
        raise refusals.ANOMALY.at("the graph")
    inputs = list(graph.examples)
    halves = None
    with _without_hooks():
        facts = observe_training(graph.module, inputs)
        if any(form.differentiable for form in facts.values):
            halves = trace_halves(graph.module, inputs, facts)
    return TrainingPlan(graph.module, inputs, facts, halves)


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
