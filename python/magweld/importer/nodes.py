"""Owns typed reading of the nodes of a functional ATen graph."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

RECORDED: Final = "recorded"
"""Key of `node.meta`: the name of the recorded node that a node comes from."""

RUNS_FOR_ITSELF: Final = "runs_for_itself"
"""Key of `node.meta` where the recorded node is one that `runs_for_itself`."""


REASON: Final = "reason"
"""Key of `node.meta` where an operator is left to torch: an id and why."""


def operand(node: fx.Node, position: int = 0) -> fx.Node:
    """Return an argument that is a node."""
    found = node.args[position]
    assert isinstance(found, fx.Node), f"argument {position} of {node} is no node"
    return found


def values_of(node: fx.Node) -> Any:
    """Return the tensors without data that a node stands for, as it returns them."""
    return node.meta.get("val")


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    """Return the tensors without data that a node results in, in order."""
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def positions_read(node: fx.Node) -> tuple[int, ...] | None:
    """Return which parts of a node's result are read, None if it has no parts.

    What nobody reads may be a tensor in a run without data and None in a real one.
    """
    if not isinstance(values_of(node), tuple | list):
        return None
    read: set[Any] = set()
    for user in node.users:
        assert user.target is operator.getitem, f"{user} reads no part of {node}"
        read.add(user.args[1])
    return tuple(sorted(read))


def argument(node: fx.Node, name: str) -> Any:
    """Return an argument by its name in the operator's schema, default included.

    Raises:
        KeyError: The schema has no such name.
    """
    assert isinstance(node.target, OpOverload), f"no operator: {node.target}"
    return argument_of(node.target, node.args, node.kwargs, name)


def argument_of(
    target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], name: str
) -> Any:
    """Return an argument of a call, as `argument` does."""
    for position, entry in enumerate(target._schema.arguments):
        if entry.name == name:
            if position < len(args):
                return args[position]
            return kwargs.get(name, entry.default_value)
    raise KeyError(name)


def placeholders(graph: fx.Graph) -> list[fx.Node]:
    """Return the arguments of a graph, in order."""
    return [node for node in graph.nodes if node.op == "placeholder"]


def output_of(graph: fx.Graph) -> fx.Node:
    """Return the output node of a graph."""
    node: fx.Node
    (node,) = graph.find_nodes(op="output")
    return node


def results_of(graph: fx.Graph) -> list[Any]:
    """Return the leaves of what a graph returns: nodes, numbers or None."""
    return list(pytree.tree_leaves(output_of(graph).args[0]))


# Operators of the dispatcher's tag for random numbers that draw some for dropout alone.
_DROPPING: frozenset[object] = frozenset(
    {
        torch.ops.aten._scaled_dot_product_attention_math.default,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
    }
)


def is_random(node: fx.Node) -> bool:
    """Tell whether a node draws random numbers."""
    target = node.target
    return isinstance(target, OpOverload) and draws(target, node.args, node.kwargs)


def draws(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Tell whether a call of an operator draws random numbers."""
    if target in _DROPPING and argument_of(target, args, kwargs, "dropout_p") == 0:
        return False
    return torch.Tag.nondeterministic_seeded in target.tags


def is_check(node: fx.Node) -> bool:
    """Tell whether a node is there only for the error that it may raise."""
    return (
        isinstance(node.target, OpOverload)
        and not node.target._schema.returns
        # Its arguments were known, and held, when the graph was traced.
        and node.target is not torch.ops.aten._assert_tensor_metadata.default
    )


def runs_for_itself(node: fx.Node) -> bool:
    """Tell whether a recorded operator runs although nothing reads its results.

    The front end keeps those only that may raise, or do more than make their results.
    """
    return RUNS_FOR_ITSELF in node.meta or (
        node.op.startswith("call") and not node.users and RECORDED not in node.meta
    )


def insert_before(
    node: fx.Node, target: Any, arguments: tuple[Any, ...], values: Any
) -> fx.Node:
    """Add a call before a node, whose origin it has.

    Args:
        node: The node.
        target: What is called.
        arguments: Of the call.
        values: Tensors without data, as the call returns them.
    """
    with node.graph.inserting_before(node):
        inserted = node.graph.call_function(target, arguments)
    inserted.meta = {**node.meta, "val": values}
    return inserted


def replace_by(node: fx.Node, other: fx.Node) -> None:
    """Let the users of a node read another, and remove the node."""
    node.replace_all_uses_with(other)
    node.graph.erase_node(node)


def replace_parts_by(node: fx.Node, other: fx.Node) -> None:
    """Let the readers of all parts of a result read another node instead."""
    for part in list(node.users):
        replace_by(part, other)
    node.graph.erase_node(node)


def absorbed_operator(node: fx.Node) -> Any:
    """Return what makes an operand within an external that has absorbed its node."""
    aten = torch.ops.aten
    # What was a view of a copy may be none without it.
    reshapes = node.target is aten.view.default
    return aten.reshape.default if reshapes else node.target
