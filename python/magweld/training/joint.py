"""Owns the tracing of forward and backward together, and their cut into two halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import fx
from torch._functorch.aot_autograd import aot_export_joint_simple
from torch._subclasses import FakeTensorMode
from torch.fx import traceback as fx_traceback
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import CheckpointPolicy

from magweld.diagnostics import UnsupportedError
from magweld.graphs.checkpoints import CheckpointOperator
from magweld.importer.capture import AtenRunner
from magweld.importer.nodes import (
    is_random,
    operand,
    placeholders,
    positions_read,
    replace_by,
    results_of,
    runs_for_itself,
    values_of,
)
from magweld.importer.observation import undisturbed
from magweld.importer.row_gradients import replace_bag_gradients
from magweld.importer.substitutions import SUBSTITUTIONS
from magweld.layouts import hand_on_layouts
from magweld.training import refusals
from magweld.training.cut import cut
from magweld.training.intermediates import (
    Intermediate,
    find_intermediates,
    with_results_as_inputs,
)
from magweld.training.observation import (
    Form,
    TrainingFacts,
    elements_of,
    stand_ins,
)
from magweld.training.stages import Stage, split

aten = torch.ops.aten

# What keeps the order of random numbers. The other replacements serve inference:
# torch's own backward of these functions takes fewer passes.
_RANDOM_ONLY: Final = {
    key: function
    for key, function in SUBSTITUTIONS.items()
    if key
    not in (
        F.batch_norm,
        F.scaled_dot_product_attention,
        torch.batch_norm,
        aten.batch_norm.default,
        aten.scaled_dot_product_attention.default,
    )
}

# They draw in the order of elements; eager torch writes in the order of memory.
_FILLS: Final = frozenset(
    {
        aten.bernoulli.p,
        aten.cauchy.default,
        aten.exponential.default,
        aten.geometric.default,
        aten.log_normal.default,
        aten.normal_functional.default,
        aten.random.default,
        getattr(aten.random, "from"),
        aten.random.to,
        aten.uniform.default,
    }
)


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise refusals.DECOMPOSITION.at("the graph", "multilabel_margin_loss")


# Its last result is the workspace.
_LAYER: Final = aten.mkldnn_rnn_layer.default
_WORKSPACE: Final = 3

# Above autograd torch takes it apart, and takes labels behind the first -1 as well.
_REFUSED: Final = {F.multilabel_margin_loss: _refuse}


@dataclass(frozen=True)
class Halves:
    """A graph as functional ATen graphs.

    Attributes:
        forward: Takes the inputs; returns the computed outputs, the values to write
            to inputs, and whatever else the backward half needs.
        stages: The backward half; what they keep is ("input", position) or ("result",
            number of a result of the forward half).
        references: For each stage the captured graph, which takes the results
            `Stage.results` as further inputs.
    """

    forward: fx.GraphModule
    stages: tuple[Stage, ...]
    references: tuple[fx.GraphModule, ...]


def trace_halves(
    graph: fx.GraphModule, inputs: Sequence[torch.Tensor], facts: TrainingFacts
) -> Halves:
    """Trace a graph with its gradients and cut it where least must be kept.

    Args:
        graph: A graph at torch level that returns a tuple of tensors.
        inputs: One real tensor per placeholder; they are not touched.
        facts: What eager torch does with it.

    Raises:
        UnsupportedError: There are no halves that do the same.
    """
    intermediates = find_intermediates(graph, inputs, facts)
    joint = _trace_joint(graph, inputs, facts, intermediates)
    draws = [node.name for node in joint.graph.nodes if is_random(node)]
    count = len(inputs) + len(intermediates)
    forward, backward, saved, tangents = cut(
        joint, len(facts.values), len(facts.written), count
    )
    _check_forms(forward, facts.values)
    _check_draws(forward, backward, draws, facts)
    _hand_on_layouts(graph, forward, facts.values)
    numbers = [n for n, form in enumerate(facts.values) if form.differentiable]
    by_name = dict(zip(tangents, numbers, strict=True))
    by_number = {one.number: one for one in intermediates}
    stages = split(backward, saved, by_name, len(inputs), tuple(by_number))
    references = tuple(
        with_results_as_inputs(graph, [by_number[n] for n in stage.results])
        if stage.results
        else graph
        for stage in stages
    )
    return Halves(forward, stages, references)


def _trace_joint(
    graph: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    facts: TrainingFacts,
    intermediates: Sequence[Intermediate],
) -> fx.GraphModule:
    positions = [form.position for form in facts.values]
    if intermediates:
        graph = with_results_as_inputs(graph, intermediates)

    def run(*arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = list(arguments)
        for number in facts.written:
            values[number] = values[number].clone()
        runner = _JointRunner(graph)
        results = runner.run(*values)
        # Tracing takes no views for results; copies that are not needed go later.
        computed = [results[position].clone() for position in positions]
        written = [values[number] for number in facts.written]
        return (*computed, *written, *runner.unread)

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = (
        *stand_ins(mode, inputs),
        *(one.stand_in(mode) for one in intermediates),
    )
    try:
        with undisturbed(), torch.enable_grad():
            joint: Any = aot_export_joint_simple(
                run, fakes, trace_joint=True, decompositions={}
            )
    except UnsupportedError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise refusals.JOINT.at("the graph", detail) from error
    plain = _plain(joint)
    _refuse_workspaces(plain)
    replace_bag_gradients(plain)
    _read_results(plain, len(inputs), intermediates)
    return plain


def _refuse_workspaces(joint: fx.GraphModule) -> None:
    """Refuse recurrent layers whose gradients read what the layer has left of its work.

    A run without data gives that no elements, and the layer does not make it while
    torch records no gradients, as in the forward half.

    Raises:
        UnsupportedError: There are some.
    """
    layers = joint.graph.find_nodes(op="call_function", target=_LAYER)
    read = [node for node in layers if _WORKSPACE in (positions_read(node) or ())]
    if read:
        raise refusals.WORKSPACE.at("the graph", nodes=read)


def _read_results(
    joint: fx.GraphModule, inputs: int, intermediates: Sequence[Intermediate]
) -> None:
    """Let what follows from a result read the result, not an input in its place.

    Raises:
        UnsupportedError: It comes before the result.
    """
    results = results_of(joint.graph)
    order = {node: place for place, node in enumerate(joint.graph.nodes)}
    given = placeholders(joint.graph)[inputs : inputs + len(intermediates)]
    for one, placeholder in zip(intermediates, given, strict=True):
        copied = results[one.number]
        result = operand(copied) if copied.target is aten.clone.default else copied
        if any(order[user] < order[result] for user in placeholder.users):
            raise refusals.INTERMEDIATE.at(
                f"output {one.form.position}", "and is only then what it is in the end"
            )
        replace_by(placeholder, result)
    joint.recompile()


class _JointRunner(AtenRunner):
    """Runs a graph for tracing forward and backward.

    Attributes:
        unread: Copies of what nobody reads and what is computed all the same. As
            results they outlive the tracing, which drops what has no user.
    """

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph, {**_RANDOM_ONLY, **_REFUSED})
        self.unread: list[torch.Tensor] = []
        self._parts = 0

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; see `GraphRunner.run_node`."""
        result = super().run_node(n)
        if runs_for_itself(n):
            tensors = filter(torch.is_tensor, pytree.tree_leaves(result))
            self.unread += [tensor.detach().clone() for tensor in tensors]
        return result

    def call_function(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a function; of a checkpoint only random numbers are kept."""
        if not isinstance(target, CheckpointOperator):
            return super().call_function(target, args, kwargs)
        self._parts += 1
        runner = _JointRunner(_made_anew(target.body, self._parts))
        with fx_traceback.preserve_node_meta():
            result = runner.run(*args)
        self.unread += runner.unread
        return result


def _made_anew(body: fx.GraphModule, part: int) -> fx.GraphModule:
    """Return a checkpointed part whose nodes say so, as torch's partitioner reads it.

    Args:
        part: Its number; what one part hands to the next is kept.
    """
    said = {"recompute": CheckpointPolicy.MUST_RECOMPUTE, "ac_graph_id": part}
    marked = fx.Graph()
    marked.output(marked.graph_copy(body.graph, {}))
    for node in marked.nodes:
        # Random numbers are drawn once, in the order of the program.
        node.meta = {} if node.meta.get("draws") else dict(said)
    return fx.GraphModule(body, marked)


def _plain(joint: fx.GraphModule) -> fx.GraphModule:
    """Take away the conventions of a call in Python: arguments are a flat list."""
    joint.graph.set_codegen(fx.graph.CodeGen())
    joint.recompile()
    return joint


def _hand_on_layouts(
    graph: fx.GraphModule, forward: fx.GraphModule, forms: Sequence[Form]
) -> None:
    """Note at the forward half what the captured run has noted."""
    inputs = zip(placeholders(graph.graph), placeholders(forward.graph), strict=True)
    results = results_of(graph.graph)
    made = zip(forms, results_of(forward.graph), strict=False)
    # The others are placed behind the half: the backward half reads what it makes.
    alike = ((results[x.position], node) for x, node in made if x.is_all_memory)
    hand_on_layouts([*inputs, *alike])


def _check_forms(forward: fx.GraphModule, forms: Sequence[Form]) -> None:
    for node, form in zip(results_of(forward.graph), forms, strict=False):
        value = values_of(node)
        stride = tuple(value.stride()) if form.is_all_memory else form.stride
        found = (value.dtype, tuple(value.shape), stride)
        if found != (form.dtype, form.shape, form.stride):
            raise refusals.OTHER_FORM.at(f"output {form.position}", found)


def _check_draws(
    forward: fx.GraphModule,
    backward: fx.GraphModule,
    names: Sequence[str],
    facts: TrainingFacts,
) -> None:
    drawn = [node for node in forward.graph.nodes if is_random(node)]
    if [node.name for node in drawn] != list(names):
        raise refusals.RANDOM_NUMBERS.at("the graph", "another order")
    if any(map(is_random, backward.graph.nodes)):
        raise refusals.RANDOM_NUMBERS.at("the graph", "draws in the backward half")
    counts = tuple(elements_of(values_of(node)) for node in drawn)
    if counts != facts.draws:
        raise refusals.RANDOM_NUMBERS.at("the graph", "other counts")
    for node in drawn:
        values = map(values_of, node.all_input_nodes)
        if node.target in _FILLS and not all(value.is_contiguous() for value in values):
            raise refusals.RANDOM_NUMBERS.at(node.name, "another order of memory")
