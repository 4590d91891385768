"""Owns the cut of a joint graph: what the forward half keeps for the backward half."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import fx
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._ops import OpOverload

from magweld.importer.nodes import (
    RUNS_FOR_ITSELF,
    operand,
    output_of,
    placeholders,
    results_of,
    values_of,
)
from magweld.importer.observation import TensorFacts, observe

aten = torch.ops.aten

Saved = tuple[tuple[str, int], ...]

# Marks a copy of a result that shares memory with another one or with an argument.
_SEPARATES: Final = "separates"


def cut(
    joint: fx.GraphModule, computed: int, written: int, gradients: int
) -> tuple[fx.GraphModule, fx.GraphModule, Saved, tuple[str, ...]]:
    """Cut a joint graph where least must be kept.

    Args:
        joint: Takes primals and tangents; returns the results of the forward half, then
            copies of what nobody reads, then gradients.
        computed: How many results the forward half has that are no written inputs.
            They were copied for the tracing alone.
        written: How many written inputs it returns behind them.
        gradients: How many gradients there are, None among them.

    Returns:
        Forward half, backward half, what the backward half takes first, and the names
        of its arguments for tangents. No two results of a half share memory, but that
        a gradient may be a tangent or stand for several inputs.
    """
    count = len(results_of(joint.graph)) - gradients
    forward, backward = min_cut_rematerialization_partition(
        joint, None, num_fwd_outputs=count
    )
    _drop_copies(forward, computed)
    tangents = tuple(
        node.name for node in placeholders(backward.graph) if "tangents" in node.name
    )
    origin = _save_bases(forward, backward, tangents)
    saved = _bind((forward, backward), origin, count)
    saved = _drop_unread(forward, range(computed + written, count), saved)
    separate(forward, may_repeat=False)
    separate(backward, may_repeat=True)
    for half in (forward, backward):
        _loosen_views(half)
    return forward, backward, saved, tangents


def _drop_unread(forward: fx.GraphModule, unread: range, saved: Saved) -> Saved:
    """Return nothing that nobody reads; what makes it runs all the same.

    Returns:
        `saved` with the new positions of the results.
    """
    results = results_of(forward.graph)
    read = {number for kind, number in saved if kind == "result"}
    left = [
        number
        for number in range(len(results))
        if number not in unread or number in read
    ]
    output_of(forward.graph).args = (tuple(results[number] for number in left),)
    for number in set(unread) - read:
        _keep(results[number])
    forward.recompile()
    return tuple(
        (kind, left.index(number) if kind == "result" else number)
        for kind, number in saved
    )


def _keep(node: fx.Node) -> None:
    """Mark the operator behind a copy that nobody reads as one that runs for itself."""
    while node.target in (aten.clone.default, aten.detach.default, operator.getitem):
        source = operand(node)
        if not node.users:
            node.graph.erase_node(node)
        node = source
    node.meta[RUNS_FOR_ITSELF] = True


def _drop_copies(forward: fx.GraphModule, count: int) -> None:
    """Return what was copied for the tracing alone."""
    results = results_of(forward.graph)
    for number, node in enumerate(results[:count]):
        if node.target is aten.clone.default:
            results[number] = node.args[0]
    output_of(forward.graph).args = (tuple(results),)


def _loosen_views(half: fx.GraphModule) -> None:
    """Let views be copies: a backend's operators may have results of other strides."""
    for node in half.graph.nodes:
        if node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default
    half.recompile()


def _save_bases(
    forward: fx.GraphModule, backward: fx.GraphModule, tangents: Sequence[str]
) -> dict[fx.Node, fx.Node]:
    """Let the backward half make views of what is kept instead of keeping views.

    Two tensors of one memory would otherwise be kept and returned, unknown to each
    other: a write to the one that the user holds would go unnoticed.

    Returns:
        The node of the forward half for each placeholder that is no tangent.
    """
    nodes = {node.name: node for node in forward.graph.nodes}
    origin = {
        node: nodes[node.name]
        for node in placeholders(backward.graph)
        if node.name not in tangents
    }
    known = {node: placeholder for placeholder, node in origin.items()}
    body = next(node for node in backward.graph.nodes if node.op != "placeholder")
    for placeholder, node in list(origin.items()):
        chain = _views(node)
        if not chain:
            continue
        base = chain[-1].all_input_nodes[0]
        if base not in known:
            with backward.graph.inserting_before(placeholder):
                known[base] = backward.graph.placeholder(base.name)
            known[base].meta = dict(base.meta)
            origin[known[base]] = base
        value = known[base]
        with backward.graph.inserting_before(body):
            for view in reversed(chain):
                taken = {view.all_input_nodes[0]: value}
                value = backward.graph.node_copy(view, taken.__getitem__)
        placeholder.replace_all_uses_with(value)
        backward.graph.erase_node(placeholder)
        del origin[placeholder]
    return origin


def _views(node: fx.Node) -> list[fx.Node]:
    """Return the views that lead to a node, the last one first."""
    chain = []
    while _is_view(node):
        chain.append(node)
        node = node.all_input_nodes[0]
    return chain


def _is_view(node: fx.Node) -> bool:
    if not isinstance(node.target, OpOverload) or len(node.all_input_nodes) != 1:
        return False
    returns = node.target._schema.returns
    if len(returns) != 1 or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    alias = returns[0].alias_info
    return alias is not None and not alias.is_write


def _bind(
    halves: tuple[fx.GraphModule, fx.GraphModule],
    origin: dict[fx.Node, fx.Node],
    count: int,
) -> tuple[tuple[str, int], ...]:
    """Make the forward half return what is to be kept, each once.

    Returns:
        Where each leading argument of the backward half comes from.
    """
    forward, backward = halves
    inputs = placeholders(forward.graph)
    results = results_of(forward.graph)[:count]
    saved: list[tuple[str, int]] = []
    for placeholder in placeholders(backward.graph):
        node = origin.get(placeholder)
        if node is None:
            continue
        if node in inputs:
            saved.append(("input", inputs.index(node)))
            continue
        if node not in results:
            results.append(node)
        saved.append(("result", results.index(node)))
    output_of(forward.graph).args = (tuple(results),)
    for half in halves:
        half.graph.eliminate_dead_code()
        half.recompile()
    return tuple(saved)


def separate(half: fx.GraphModule, *, may_repeat: bool) -> None:
    """Copy results that share memory with an argument or an earlier result.

    Args:
        half: Changed in place.
        may_repeat: Whether one tensor may stand for several results.
    """
    arguments = [_empty(values_of(node)) for node in placeholders(half.graph)]
    observation = observe(half, arguments)
    taken = {facts.storage for facts in observation.inputs}
    results = results_of(half.graph)
    made: list[Any] = []
    for node, facts in zip(results, observation.outputs, strict=True):
        if not isinstance(facts, TensorFacts):
            made.append(node)
            continue
        repeats = node in made or node.op == "placeholder"
        shared = facts.storage in taken
        taken.add(facts.storage)
        made.append(
            _copy(half, node) if shared and not (repeats and may_repeat) else node
        )
    output_of(half.graph).args = (tuple(made),)
    half.graph.lint()
    half.recompile()


def _copy(half: fx.GraphModule, node: fx.Node) -> fx.Node:
    with half.graph.inserting_before(output_of(half.graph)):
        made: fx.Node = half.graph.call_function(aten.clone.default, (node,))
    made.meta["val"] = values_of(node).clone()
    made.meta[_SEPARATES] = True
    return made


def viewed_argument(result: fx.Node) -> tuple[fx.Node | None, list[fx.Node]]:
    """Return the argument of which a result is a view, and the views that lead to it.

    Args:
        result: Of a half whose results were separated.

    Returns:
        The argument itself or None, and the last view first.
    """
    chain = _views(operand(result) if _SEPARATES in result.meta else result)
    base = chain[-1].all_input_nodes[0] if chain else result
    return (base, chain) if base.op == "placeholder" else (None, chain)


def _empty(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(
        value.shape, value.stride(), dtype=value.dtype, device=value.device
    )
