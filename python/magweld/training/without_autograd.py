"""Owns graphs that make gradients inside, as graphs without autograd.

The graph is run once without data, below autograd: what the nodes of autograd call are
operators like others.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, fx
from torch._subclasses import FakeTensorMode

from magweld.diagnostics import UnsupportedError
from magweld.importer.capture import AtenRunner
from magweld.importer.nodes import placeholders, results_of
from magweld.importer.observation import undisturbed
from magweld.importer.tracer import Recorder, trace_aten
from magweld.layouts import hand_on_layouts
from magweld.training import refusals
from magweld.training.observation import stand_ins

aten = torch.ops.aten


def without_autograd(
    graph: fx.GraphModule, inputs: Sequence[Tensor], *, grad_enabled: bool
) -> fx.GraphModule:
    """Return a graph that computes the same, gradients inside of it as operators.

    Args:
        graph: A graph at torch level that returns a tuple of tensors; none of them
            needs gradients.
        inputs: One real tensor per placeholder; they are not touched.
        grad_enabled: Grad mode in which the graph begins.

    Raises:
        UnsupportedError: Torch cannot run it without data.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    runner = AtenRunner(graph, {})
    recorder = Recorder(mode, {}, lambda: runner.current)
    try:
        with undisturbed(), torch.set_grad_enabled(grad_enabled):
            fakes = stand_ins(mode, inputs)
            flat = trace_aten(runner.run, fakes, recorder)
    except UnsupportedError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise refusals.JOINT.at("the graph", detail) from error
    _detach_inputs(flat, inputs)
    given = zip(placeholders(graph.graph), placeholders(flat.graph), strict=True)
    made = zip(results_of(graph.graph), results_of(flat.graph), strict=True)
    hand_on_layouts([*given, *made])
    return flat


def _detach_inputs(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> None:
    """Let operators read inputs without their gradients, wherever torch runs them."""
    nodes = placeholders(graph.graph)
    with graph.graph.inserting_after(nodes[-1]):
        for node, tensor in zip(nodes, inputs, strict=True):
            if not tensor.requires_grad:
                continue
            plain = graph.graph.call_function(aten.detach.default, (node,))
            plain.meta["val"] = node.meta["val"].detach()
            for user in [*node.users]:
                if user not in (plain, graph.graph.output_node()):
                    user.replace_input_with(node, plain)
    graph.recompile()
