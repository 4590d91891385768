"""Owns shapes of the results of branches: all sides with symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from magweld.frontend.control.pieces import Piece, origin_of
from magweld.frontend.lifting.loop_shapes import same_form
from magweld.frontend.lifting.symbols import NotSymbolicError
from magweld.graphs.control_operators import IfOperator, WhileOperator

if TYPE_CHECKING:
    from magweld.frontend.lifting.symbolic import Replay


def is_branch(node: fx.Node) -> bool:
    """Return whether an operator is a branch, or a loop that a tensor ends."""
    return isinstance(node.target, IfOperator | WhileOperator)


def branch_results(
    replay: Replay, node: fx.Node, value: Callable[[fx.Node], Any] | None = None
) -> tuple[Any, ...]:
    """Run every side of a branch or loop; return the results, which have one form.

    A branch runs as it was recorded, with operators of which only sizes were used.

    Args:
        replay: Gets the values of the operators.
        value: Gives the values of what it takes, if they are not known by name.

    Raises:
        NotSymbolicError: The results may have several forms.
    """
    values = replay.values
    branches: list[tuple[Any, ...]] = []
    target, operands = node.target, node.args
    if isinstance(target, WhileOperator):
        carried: Any = operands[1 : 1 + target.carried]
        given = (value(item) if value else _value(replay, item) for item in carried)
        branches.append(tuple(given))
        values.update(zip(node.meta["starts"], branches[0], strict=True))
    branches += [_side(replay, *branch) for branch in node.meta["branches"]]
    for other, mine in node.meta.get("stands", {}).items():
        values[other] = values[mine]
    for left, right in zip(branches[0], branches[1], strict=False):
        _same_memory_form(left, right)
    return tuple(map(_fresh, branches[0]))


def _value(replay: Replay, node: fx.Node) -> Any:
    # Numbers may follow from sizes that only the branch knows.
    return replay.values[node] if node in replay.values else replay.number(node)


def _side(replay: Replay, piece: Piece, outputs: Sequence[fx.Node]) -> tuple[Any, ...]:
    """Run one side of a branch; return its results."""
    graph, operands = piece.whole(outputs)
    originals = iter(operands)
    known: dict[fx.Node, fx.Node] = {}

    def value(node: fx.Node) -> Any:
        return _value(replay, known[node])

    for node in graph.nodes:
        if node.op == "placeholder":
            known[node] = next(originals)
        elif node.op == "output":
            results: tuple[Any, ...] = fx.map_arg(node.args[0], value)
            return results
        else:
            origin = known[node] = origin_of(node)
            if is_branch(node):
                replay.values[origin] = branch_results(replay, node, value)
            else:
                args: Any = fx.map_arg((node.args, node.kwargs), value)
                replay.values[origin] = replay.call(node, *args)
            replay.compare(origin, [value(used) for used in node.all_input_nodes])
    raise AssertionError("a graph has an output")


def _same_memory_form(left: Any, right: Any) -> None:
    same_form(left, right)
    if not bool(left.storage_offset() == right.storage_offset()):
        raise NotSymbolicError("branches end with other parts of memory")


def _fresh(tensor: Any) -> Any:
    # What a branch passes through must not be taken for its operand.
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
