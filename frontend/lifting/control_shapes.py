"""Owns shapes of the results of loops and branches: bodies on symbolic sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx

from magweld.frontend.control.pieces import Piece, origin_of
from magweld.frontend.control.rolling import Rolled
from magweld.frontend.lifting.symbols import NotSymbolicError
from magweld.frontend.operators.kinds import operator_of
from magweld.graphs.control_operators import (
    ForOperator,
    IfOperator,
    WhileOperator,
    joined,
)

if TYPE_CHECKING:
    from magweld.frontend.lifting.symbolic import Replay


@dataclass(frozen=True)
class Collected:
    """A list of tensors of one form each, some of them many times.

    Attributes:
        parts: The tensors, and how often each comes.
    """

    parts: tuple[tuple[Any, Any], ...]

    @property
    def count(self) -> Any:
        """How many there are."""
        return sum(count for _, count in self.parts)


def is_list_operator(node: fx.Node, args: tuple[Any, ...]) -> bool:
    """Return whether an operator takes or makes a list that a loop has filled."""
    return node.target is joined or any(type(arg) is Collected for arg in args)


def run_list_operator(
    node: fx.Node, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return the result of an operator on lists of tensors.

    Raises:
        NotSymbolicError: Its shape is not known.
    """
    if node.target is joined:
        return _joined(*args)
    if node.target is operator.getitem:
        raise NotSymbolicError("an element of a list")
    name = operator_of(node)
    form = _FORMS.get(name)
    tensors, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if form is None or type(tensors) is not Collected or set(kwargs) - {"dim"}:
        raise NotSymbolicError(f"a list taken by {name}")
    if len(args) > 2 or type(dim) is not int:
        raise NotSymbolicError(f"a list taken by {name}")
    return form(tensors, dim)


def _joined(*parts: Any) -> Collected:
    items: list[tuple[Any, Any]] = []
    for part in parts:
        items += part.parts if type(part) is Collected else ((part, 1),)
    return Collected(tuple(items))


def _stack(tensors: Collected, dim: int) -> Any:
    first = _common(tensors)
    rank = first.dim() + 1
    shape = list(first.shape)
    shape.insert(dim % rank, tensors.count)
    return first.new_empty(shape)


def _cat(tensors: Collected, dim: int) -> Any:
    first = _common(tensors)
    dim %= first.dim()
    shape = list(first.shape)
    shape[dim] = sum(item.shape[dim] * count for item, count in tensors.parts)
    return first.new_empty(shape)


def _common(tensors: Collected) -> Any:
    first = tensors.parts[0][0]
    for item, _ in tensors.parts:
        same_form(first, item)
    return first


_FORMS: Final[dict[str, Callable[[Collected, int], Any]]] = {
    "cat": _cat,
    "concat": _cat,
    "concatenate": _cat,
    "stack": _stack,
}


def same_form(left: Any, right: Any) -> None:
    """Demand that two tensors have one shape and type; becomes a guard.

    Raises:
        NotSymbolicError: They have not.
    """
    if left.dtype is not right.dtype or left.dim() != right.dim():
        raise NotSymbolicError("tensors of a list differ")
    pairs = [*zip(left.shape, right.shape, strict=True)]
    pairs += zip(left.stride(), right.stride(), strict=True)
    if not all(bool(a == b) for a, b in pairs):
        raise NotSymbolicError("a tensor of a loop changes its form")


def count_of(start: Any, stop: Any, step: int) -> Any:
    """Return how many numbers a range has that is not empty."""
    if isinstance(step, int) and step > 0:
        return (stop - start + (step - 1)) // step
    if isinstance(step, int) and step < 0:
        return (start - stop + (-step - 1)) // -step
    raise NotSymbolicError("the step of a range")


def loop_results(
    replay: Replay, rolled: Rolled, target: ForOperator, args: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Run one iteration of a loop, and a second on what it left; return its results.

    Args:
        replay: Gets the values of all operators of the iterations.
        args: What the loop takes.

    Raises:
        NotSymbolicError: The form of its tensors changes.
    """
    start, stop, step, *operands = args
    count = count_of(start, stop, step)
    if not bool(count >= 1):
        raise NotSymbolicError("a loop without iterations")
    first = _iterate(replay, rolled, target, operands)
    carried = first.results[: target.carried]
    second = _iterate(replay, rolled, target, [*carried, *operands[target.carried :]])
    single = target.carried + target.last
    for left, right in zip(first.results, second.results, strict=True):
        same_form(left, right)
    iterations = rolled.iterations
    for number, names in enumerate(iterations.names):
        known = second if number else first
        for node, copy in rolled.copies.items():
            replay.values.setdefault(names.get(node, node), known.values[copy])
    # The third and all further ones begin with what the second has left.
    for names, known in zip(iterations.names, (first, second), strict=False):
        for node in iterations.template:
            used = rolled.copies[node].all_input_nodes
            inputs = [known.values[item] for item in used]
            replay.compare(names.get(node, node), inputs)
    lists = [Collected(((item, count),)) for item in second.results[single:]]
    return (*second.results[:single], *lists)


@dataclass(frozen=True)
class _Iteration:
    values: dict[fx.Node, Any]
    results: tuple[Any, ...]


def _iterate(
    replay: Replay, rolled: Rolled, target: ForOperator, operands: Any
) -> _Iteration:
    inputs = iter([rolled.number, *operands])
    values: dict[fx.Node, Any] = {}
    for node in target.step.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(inputs)
        elif node.op == "output":
            return _Iteration(values, fx.map_arg(node.args[0], values.__getitem__))
        else:
            args: Any = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = replay.call(node, *args)
    raise AssertionError("a graph has an output")


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
