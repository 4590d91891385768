"""Owns predicate guards: tensor values that decide about a run, re-evaluated later."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.operators.effects import has_effect
from magweld.frontend.state.nodes import Node
from magweld.frontend.state.paths import Paths
from magweld.frontend.state.values import same_scalar
from magweld.graphs.autocast import switches_autocast

# A predicate is computed on every later call, before anything else runs.
MAX_OPERATORS: Final = 48

# Operators that ask where in its storage a tensor is.
_PLACED: Final = ("as_strided", "as_strided_", torch.as_strided)
_SCALARS: Final = (bool, int, float, complex)
_SEQUENCES: Final = (list, tuple, torch.Size)


@dataclass(frozen=True)
class Predicate:
    """A Python value computed from graph inputs.

    Attributes:
        module: Computes it from tensors, then numbers; no effects, no random numbers.
        placeholders: Nodes of the recorded graph whose tensors it takes, in order.
        value: What it was in the recorded run.
        where: The user's file:line of the read.
        name: The torch call that made the value.
        copies: Whether it works on copies, of tensors that the run has written.
        needed: Operators of the recorded graph that have made the value.
        numbers: Lifted numbers that it takes behind the tensors.
        origins: The operator of the recorded graph for each operator of the module.
    """

    module: fx.GraphModule
    placeholders: tuple[fx.Node, ...]
    value: Any
    where: str
    name: str
    copies: bool = False
    needed: frozenset[fx.Node] = frozenset()
    numbers: tuple[fx.Node, ...] = ()
    origins: Mapping[fx.Node, fx.Node] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def compute(self) -> Callable[..., Any]:
        """Function that computes the value for other tensors and numbers."""
        return functools.partial(_compute, self.module)


def _compute(module: fx.GraphModule, *taken: Any) -> Any:
    with torch.no_grad():
        return module.forward(*taken)


@dataclass(frozen=True)
class Memory:
    """What the nodes of a recorded graph do to memory.

    Attributes:
        storage: Storage behind the tensor of a node, None if it has no tensor.
        stale: Whether the tensor of a placeholder was written before.
        dense: Whether a copy of the tensor of a node has the same strides.
    """

    storage: Callable[[fx.Node], int | None]
    stale: Callable[[fx.Node], bool]
    dense: Callable[[fx.Node], bool]


def is_value(value: Any) -> bool:
    """Return whether a predicate can have this value."""
    if type(value) in _SEQUENCES:
        return all(map(is_value, value))
    return type(value) in _SCALARS


def same_value(left: Any, right: Any) -> bool:
    """Return whether two values agree in types and in every bit."""
    if type(left) in _SEQUENCES:
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(map(same_value, left, right))
        )
    return same_scalar(left, right)


def text_of_predicate(predicate: Predicate, nodes: Iterable[Node], paths: Paths) -> str:
    """Return a predicate as the user knows it.

    Args:
        nodes: The inputs that it takes.
        paths: How these are reached.
    """
    return f"{predicate.name}({', '.join(map(paths.of, nodes))})"


def is_liftable(predicate: Predicate) -> bool:
    """Return whether a hit can take the value anew instead of testing it."""
    return type(predicate.value) in (int, float) and not predicate.numbers


def build_predicate(
    graph: fx.Graph, read: fx.Node, value: Any, memory: Memory
) -> Predicate | None:
    """Cut the computation of a value out of a recorded graph.

    Args:
        read: The node that makes the value.
        value: What it made.
        memory: What the nodes did to memory.

    Returns:
        The predicate, without placeholders for a value that is always the same if
        numbers are as they were; None if it is too large or has effects. A truth that
        follows from state that the run has written is computed on copies of it; other
        values are not, they would differ on every call.
    """
    needed = slice_of(graph, read, memory)
    if switches_autocast(graph) or _may_share(graph, needed, memory):
        return None
    copied = {node for node in _placeholders(needed) if memory.stale(node)}
    effects = list(filter(has_effect, needed))
    if (copied or effects) and not (
        type(value) is bool
        and _can_be_copied(copied, needed, memory)
        and _write_only(effects, {memory.storage(node) for node in copied})
    ):
        return None
    numbers = [n for n in graph.nodes if n in needed and "number" in n.meta]
    placeholders = [
        node
        for node in graph.nodes
        if node in _placeholders(needed) and node not in numbers
    ]
    if placeholders and len(needed) > MAX_OPERATORS + len(placeholders):
        return None
    copy = fx.Graph()
    mapping = {n: copy.placeholder(n.name) for n in (*placeholders, *numbers)}
    for node in copied:
        mapping[node] = copy.call_method("clone", (mapping[node],))
    origins: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        if node in needed and node not in mapping:
            mapping[node] = copy.node_copy(node, mapping.__getitem__)
            origins[mapping[node]] = node
    copy.output(mapping[read])
    where = read.meta.get("where", "")
    module = fx.GraphModule({}, copy)
    return Predicate(
        module,
        tuple(placeholders),
        value,
        where,
        name=str(read.target),
        copies=bool(copied),
        needed=frozenset(needed),
        numbers=tuple(numbers),
        origins=origins,
    )


def is_constant(graph: fx.Graph, read: fx.Node, memory: Memory) -> bool:
    """Return whether a value follows from nothing but the program.

    Args:
        read: The node that makes the value.
        memory: What the nodes did to memory.
    """
    needed = slice_of(graph, read, memory)
    if switches_autocast(graph) or _may_share(graph, needed, memory):
        return False
    return not any(node.op == "placeholder" or has_effect(node) for node in needed)


def _may_share(graph: fx.Graph, needed: set[fx.Node], memory: Memory) -> bool:
    """Return whether a tensor without a storage may show memory that was written."""
    hidden = any((memory.storage(node) or 0) < 0 for node in needed)
    return hidden and any(node.meta.get("writes") for node in graph.nodes)


def _can_be_copied(copied: set[fx.Node], needed: set[fx.Node], memory: Memory) -> bool:
    """Return whether copies of tensors can take the place of the tensors."""
    storages = [memory.storage(node) for node in _placeholders(needed)]
    alone = all(storages.count(memory.storage(node)) == 1 for node in copied)
    return alone and all(map(memory.dense, copied))


def _write_only(nodes: list[fx.Node], storages: set[int | None]) -> bool:
    """Return whether operators do nothing but write to some storages."""
    return all(
        "draws" not in node.meta
        and node.target not in _PLACED
        and node.meta.get("writes")
        and node.meta["writes"] <= storages
        for node in nodes
    )


def slice_of(graph: fx.Graph, read: fx.Node, memory: Memory) -> set[fx.Node]:
    """Return what a value depends on, writes to the memory of its inputs included."""
    needed = {read}
    storages: set[int | None] = set()
    while True:
        count = len(needed)
        for node in reversed(graph.nodes):
            changed = node.meta.get("changes") in needed
            written = node.meta.get("writes", frozenset()) & storages
            if node in needed or changed or written:
                needed.add(node)
                needed.update(node.all_input_nodes)
                storages.update(map(memory.storage, node.all_input_nodes))
        if len(needed) == count:
            return needed


def _placeholders(nodes: set[fx.Node]) -> set[fx.Node]:
    return {node for node in nodes if node.op == "placeholder"}
