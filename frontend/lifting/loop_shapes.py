"""Owns shapes of the results of loops: one iteration on tensors with symbolic sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torch import fx

from magweld.frontend.control.rolling import Rolled
from magweld.frontend.lifting.symbols import NotSymbolicError
from magweld.frontend.operators.kinds import operator_of
from magweld.graphs.control_operators import ForOperator, joined

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
