"""Owns the finished operator graph: what is needed, in the form a backend gets."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from magweld.frontend.expressions.expressions import Expression, Literal
from magweld.frontend.operators.edges import end_at, nodes_behind
from magweld.frontend.operators.effects import needed
from magweld.frontend.operators.put_back import UNKNOWN, Failing, failing
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.targets import warn_in_place
from magweld.frontend.operators.tensors import GraphInput
from magweld.frontend.operators.torch_state import has_forward_gradients
from magweld.graphs.autocast import SWITCHES, switches_autocast
from magweld.graphs.checkpoints import outline_parts
from magweld.graphs.control_operators import all_nodes, bodies_of
from magweld.graphs.cuts import leave_to_torch
from magweld.graphs.gradients import inner_gradients, switches_gradients
from magweld.graphs.lazy_code import LazyGraphModule
from magweld.graphs.numbers import without_numbers
from magweld.graphs.unroll import has_loops, iterations_in, unroll
from magweld.layouts import (
    creation_of,
    keep_final_layout,
    layout_of,
    note_creation,
    note_layout,
    noted_layout,
)
from magweld.storages import storage_of


@dataclass(frozen=True)
class OperatorGraph:
    """The graph of a run.

    Attributes:
        module: torch-level graph; takes the inputs, returns a tuple of tensors.
        inputs: Tensors that it takes, in order.
        trains: Whether a gradient may flow through it.
        torch_only: Why no backend may have it, an id of the catalogue; "" if one may.
        is_cut: Whether a backend that cuts may have it all the same: the nodes that it
            must leave to torch say so, see `magweld.graphs.cuts`.
        makes_gradients: Whether the program has asked for gradients inside of it.
        grad_enabled: Grad mode when the run began.
        scalars: Numbers that it takes behind the tensors.
        examples: The tensors that it read in the run.
        failing: What becomes of it when one of its operators raises.
    """

    module: fx.GraphModule
    inputs: tuple[GraphInput, ...]
    trains: bool
    torch_only: str
    grad_enabled: bool
    scalars: tuple[Expression, ...] = ()
    examples: tuple[torch.Tensor, ...] = ()
    failing: Failing = UNKNOWN
    is_cut: bool = False
    makes_gradients: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute."""
        nodes = self.module.graph.nodes
        return all(node.op in ("placeholder", "output") for node in nodes)


def build_graph(
    recorder: OperatorRecorder,
    outputs: list[fx.Node],
    grad_enabled: bool,
    scalars: Mapping[fx.Node, Expression],
) -> OperatorGraph:
    """Cut the recorded graph down to outputs and effects.

    Args:
        outputs: Nodes whose tensors a hit needs.
        scalars: Nodes of the recorded graph that stand for numbers.

    Raises:
        StopRecordingError: What it does to memory could not be put back.
    """
    nodes = list(recorder.graph.nodes)
    makes_gradients = any(node.target is inner_gradients for node in nodes)
    trains = _trains(recorder, nodes, grad_enabled)
    keeps_off = trains and _keeps_gradients_off(recorder, nodes, outputs, grad_enabled)
    trains = trains and not keeps_off
    if makes_gradients:
        keeps = _keeps_grad_mode(nodes, grad_enabled)
        trains = trains and not (keeps and _is_closed(recorder, outputs))
    elif not (trains or keeps_off) and _keeps_grad_mode(nodes, grad_enabled):
        for node in nodes:
            if switches_gradients(node):
                node.meta["effect"] = False
    kept = needed(reversed(nodes), outputs)
    inputs = tuple(
        item
        for item in recorder.inputs
        if item.placeholder in kept or item.placeholder in outputs
    )
    _note_results(recorder, outputs, inputs, grad_enabled)
    graph = fx.Graph()
    mapping: dict[fx.Node, Any] = _copies_of_inputs(graph, inputs)
    numbers = _take_numbers(graph, mapping, scalars, kept)
    for node in nodes:
        if node in kept and node not in mapping:
            mapping[node] = graph.node_copy(node, mapping.__getitem__)
    graph.output(tuple(mapping[node] for node in outputs))
    graph.lint()
    leaves = _makes_leaves(recorder, kept, outputs, trains)
    torch_only = "new-leaf" if leaves else _torch_only(recorder, graph)
    # An autograd graph must not be cut.
    whole = leaves or trains or makes_gradients or has_forward_gradients()
    may_cut = bool(torch_only) and not whole
    is_cut = may_cut and _cut(recorder, graph, mapping)
    if trains:
        outline_parts(graph, mapping)
    module = without_numbers(_without_fixed_loops(LazyGraphModule({}, graph)))
    _forget_origins(module)
    return OperatorGraph(
        module,
        inputs,
        trains,
        torch_only or _keeps_loops(module, numbers),
        grad_enabled,
        tuple(numbers),
        examples=tuple(item.node.obj for item in inputs),
        failing=failing(nodes, inputs),
        is_cut=is_cut,
        makes_gradients=makes_gradients,
    )


def _take_numbers(
    graph: fx.Graph,
    mapping: dict[fx.Node, Any],
    scalars: Mapping[fx.Node, Expression],
    kept: Container[fx.Node],
) -> list[Expression]:
    """Make those numbers inputs of a graph that it uses and that are not fixed."""
    numbers: list[Expression] = []
    for node, expression in scalars.items():
        if isinstance(expression, Literal):
            mapping[node] = expression.value
        elif node in kept:
            mapping[node] = graph.placeholder(node.name)
            numbers.append(expression)
    return numbers


def _note_results(
    recorder: OperatorRecorder,
    outputs: Sequence[fx.Node],
    inputs: Sequence[GraphInput],
    grad_enabled: bool,
) -> None:
    """Note at nodes what their tensors are at the end of the run."""
    given = [item.node.obj for item in inputs]
    views = {storage_of(tensor) for tensor in given if tensor._is_view()}
    for node in outputs:
        tensor = recorder.tensors.tensor(node)
        keep_final_layout(node, tensor)
        # A view of a view has its restrictions, which are no matter of the graph.
        if tensor is not None and storage_of(tensor) not in views:
            note_creation(node, creation_of(tensor, grad_enabled=grad_enabled))


def _copies_of_inputs(
    graph: fx.Graph, inputs: Sequence[GraphInput]
) -> dict[fx.Node, Any]:
    copies = {}
    for item in inputs:
        # Its own name: what it is recorded under may be that of another input.
        copy = copies[item.placeholder] = graph.placeholder(item.placeholder.name)
        if noted_layout(item.placeholder) == layout_of(item.node.obj):
            note_layout(copy, item.node.obj)
    return copies


def _forget_origins(module: fx.GraphModule) -> None:
    """Let go of the recorded graph; what has warned is to warn at the same lines."""
    for node in all_nodes(module):
        warn_in_place(node)
        for name in ("origin", "starts", "stands", "branches", "checkpoint"):
            node.meta.pop(name, None)


def _without_fixed_loops(module: fx.GraphModule) -> fx.GraphModule:
    """Write out loops whose numbers of iterations have turned out to be fixed."""
    if not iterations_in(module):
        return module
    flat = unroll(module)
    plain = flat.pattern == tuple(range(len(flat.pattern)))
    return flat.module if plain else module


def _keeps_loops(module: fx.GraphModule, numbers: Sequence[Expression]) -> str:
    return "not-lifted" if has_loops(module) and not numbers else ""


def _torch_only(recorder: OperatorRecorder, graph: fx.Graph) -> str:
    if recorder.tensors.shapes:
        return "dynamic-shape"  # a backend would bake in the shapes of the example
    if has_forward_gradients():
        return "training-graph"
    if switches_autocast(graph):
        return "autocast-region"
    if any(node.meta.get("warns") for node in graph.nodes):
        return "operator-warned"  # compiled code does not
    if any(node.meta.get("checks") for node in graph.nodes):
        return "tensor-value"  # compiled code takes any value
    if any(node.target is setattr for node in graph.nodes):
        return "tensor-write"  # memory that changes hands is not to be seen by ATen
    return ""


def _makes_leaves(
    recorder: OperatorRecorder,
    kept: Iterable[fx.Node],
    outputs: Sequence[fx.Node],
    trains: bool,
) -> bool:
    """Return whether new leaves of the autograd graph, or parameters, are needed.

    A compiled graph has plain tensors for results, and gradients for its inputs only.
    """
    tensors = [*map(recorder.tensors.tensor, outputs)]
    if trains and any(node.meta.get("leaf") for node in kept):
        if not _follow_from_inputs(recorder, tensors):
            return True
    return any(
        type(tensor) is torch.nn.Parameter
        or (tensor.requires_grad and not trains and not _shows_input(recorder, tensor))
        for tensor in tensors
        if tensor is not None
    )


def _follow_from_inputs(
    recorder: OperatorRecorder, results: Sequence[torch.Tensor | None]
) -> bool:
    """Return whether each result that needs gradients gives some to an input.

    Then leaves that the program makes inside of it, and drops, are no matter.
    """
    given = [item.node.obj for item in recorder.inputs if item.node.obj.requires_grad]
    try:
        ends = {end_at(x) for x in given}
        return all(
            x is not None
            and (not x.requires_grad or not ends.isdisjoint(nodes_behind([x])))
            for x in results
        )
    except RuntimeError:
        return False  # torch would make a node of a view only now


def _shows_input(recorder: OperatorRecorder, tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a view that has the gradient flag from an input.

    A view that is taken without grad mode has it, and a hit takes the view again.
    """
    base = tensor._base
    return (
        base is not None and base.requires_grad and id(base) in recorder.tensors.inputs
    )


def _cut(
    recorder: OperatorRecorder, graph: fx.Graph, mapping: Mapping[fx.Node, Any]
) -> bool:
    """Mark the operators that must be left to torch; return False if all must."""
    nodes = list(graph.nodes)
    if any(node.target is setattr or bodies_of(node) for node in nodes):
        return False
    for node, copy in mapping.items():
        if recorder.tensors.shapes.is_open(node):
            leave_to_torch(copy, "dynamic-shape")
    for node in nodes:
        for note, reason in (("warns", "operator-warned"), ("checks", "tensor-value")):
            if node.meta.get(note):
                leave_to_torch(node, reason)
        # What is between is compiled, and cast, in the modes that these leave behind.
        if node.target in SWITCHES:
            leave_to_torch(node, "autocast-region")
    return True


def _is_closed(recorder: OperatorRecorder, outputs: Sequence[fx.Node]) -> bool:
    """Return whether gradients stay inside: no result needs any, nor what is written.

    Leaves are written to where no gradients are recorded.
    """
    written = [
        item.node.obj
        for item in recorder.inputs
        if storage_of(item.node.obj) in recorder.written
    ]
    results = map(recorder.tensors.tensor, outputs)
    return not any(x is None or x.requires_grad for x in results) and all(
        x.is_leaf for x in written
    )


def _trains(
    recorder: OperatorRecorder, nodes: list[fx.Node], grad_enabled: bool
) -> bool:
    if not recorder.differentiates:
        return False
    return grad_enabled or any(
        switches_gradients(node) and node.args[0] is True for node in nodes
    )


def _keeps_gradients_off(
    recorder: OperatorRecorder,
    nodes: list[fx.Node],
    outputs: Sequence[fx.Node],
    grad_enabled: bool,
) -> bool:
    """Return whether all operators on what requires gradients run while these are off.

    The program switches them off itself. What it writes to and returns must not be
    memory of a tensor that requires gradients: torch looks at the mode of the hit then.
    """
    tensors = recorder.tensors
    if tensors.makes_differentiable or not _keeps_grad_mode(nodes, grad_enabled):
        return False
    if any(map(bodies_of, nodes)):
        return False  # who runs bodies does not switch the mode
    given = [item.node.obj for item in recorder.inputs if item.node.obj.requires_grad]
    memory = {storage_of(tensor) for tensor in given}
    results = map(tensors.tensor, outputs)
    shown = {storage_of(tensor) for tensor in results if tensor is not None}
    return memory.isdisjoint(shown) and memory.isdisjoint(recorder.written)


def _keeps_grad_mode(nodes: list[fx.Node], grad_enabled: bool) -> bool:
    switches = [node.args[0] for node in nodes if switches_gradients(node)]
    return not switches or switches[-1] is grad_enabled
