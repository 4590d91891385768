"""Owns shapes of the results of branches: all sides with symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from magweld.frontend.control.pieces import Piece, origin_of
from magweld.frontend.lifting.loop_shapes import Values, same_form
from magweld.frontend.lifting.symbols import NotSymbolicError
from magweld.graphs.control_operators import IfOperator, WhileOperator


def is_branch(node: fx.Node) -> bool:
    """Return whether an operator is a branch, or a loop that a tensor ends."""
    return isinstance(node.target, IfOperator | WhileOperator)


class BranchShapes:
    """Runs every side of a branch; their results must have one form.

    A branch runs as it was recorded, with operators of which only sizes were used.

    Args:
        call: Runs an operator with the given arguments.
        compare: Compares the result of an operator, given what it took, with the run.
        number: Gives the value of a number of the recorded graph, None for a tensor.
        values: Values of the operators of the recorded graph so far; gets all others.
    """

    def __init__(
        self,
        call: Callable[[fx.Node, Any, Any], Any],
        compare: Callable[[fx.Node, list[Any]], None],
        number: Callable[[fx.Node], Any],
        values: Values,
    ) -> None:
        self._call = call
        self._compare = compare
        self._number = number
        self._values = values

    def run(
        self, node: fx.Node, value: Callable[[fx.Node], Any] | None = None
    ) -> tuple[Any, ...]:
        """Return the results of a branch or loop.

        Args:
            value: Gives the values of what it takes, if they are not known by name.

        Raises:
            NotSymbolicError: They may have several forms.
        """
        branches: list[tuple[Any, ...]] = []
        target, operands = node.target, node.args
        if isinstance(target, WhileOperator):
            carried: Any = operands[1 : 1 + target.carried]
            branches.append(tuple(map(value or self._value, carried)))
            self._values.update(zip(node.meta["starts"], branches[0], strict=True))
        branches += [
            self._branch(piece, outputs) for piece, outputs in node.meta["branches"]
        ]
        for other, mine in node.meta.get("stands", {}).items():
            self._values[other] = self._values[mine]
        for left, right in zip(branches[0], branches[1], strict=False):
            _same_memory_form(left, right)
        return tuple(map(_fresh, branches[0]))

    def _value(self, node: fx.Node) -> Any:
        # Numbers may follow from sizes that only the branch knows.
        return self._values[node] if node in self._values else self._number(node)

    def _branch(self, piece: Piece, outputs: Sequence[fx.Node]) -> tuple[Any, ...]:
        graph, operands = piece.whole(outputs)
        originals = iter(operands)
        known: dict[fx.Node, fx.Node] = {}

        def value(node: fx.Node) -> Any:
            return self._value(known[node])

        for node in graph.nodes:
            if node.op == "placeholder":
                known[node] = next(originals)
            elif node.op == "output":
                results: tuple[Any, ...] = fx.map_arg(node.args[0], value)
                return results
            else:
                origin = known[node] = origin_of(node)
                self._values[origin] = self._result(node, value)
                self._compare(origin, [value(used) for used in node.all_input_nodes])
        raise AssertionError("a graph has an output")

    def _result(self, node: fx.Node, value: Callable[[fx.Node], Any]) -> Any:
        if is_branch(node):
            return self.run(node, value)
        args, kwargs = fx.map_arg(node.args, value), fx.map_arg(node.kwargs, value)
        return self._call(node, args, kwargs)


def _same_memory_form(left: Any, right: Any) -> None:
    same_form(left, right)
    if not bool(left.storage_offset() == right.storage_offset()):
        raise NotSymbolicError("branches end with other parts of memory")


def _fresh(tensor: Any) -> Any:
    # What a branch passes through must not be taken for its operand.
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
