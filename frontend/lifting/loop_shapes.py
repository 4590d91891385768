"""Owns shapes of the results of loops: one iteration on tensors with symbolic sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from torch import fx

from magweld.frontend.control.rolling import Rolled
from magweld.frontend.lifting.symbols import NotSymbolicError
from magweld.frontend.operators.kinds import name_of
from magweld.graphs.control_operators import ForOperator, joined

Values = dict[fx.Node, Any]


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
    name = node.target if isinstance(node.target, str) else name_of(node.target)
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


class LoopShapes:
    """Runs one iteration of a loop, and a second on what it left.

    Args:
        call: Runs an operator with the given arguments.
        compare: Compares the result of an operator, given what it took, with the run.
    """

    def __init__(
        self,
        rolled: Rolled,
        call: Callable[[fx.Node, Any, Any], Any],
        compare: Callable[[fx.Node, list[Any]], None],
    ) -> None:
        self._rolled = rolled
        self._call = call
        self._compare = compare

    def run(
        self, target: ForOperator, args: tuple[Any, ...], values: Values
    ) -> tuple[Any, ...]:
        """Return the results of a loop.

        Args:
            values: Gets the values of all operators of the iterations.

        Raises:
            NotSymbolicError: The form of its tensors changes.
        """
        start, stop, step, *operands = args
        count = count_of(start, stop, step)
        if not bool(count >= self._rolled.least):
            raise NotSymbolicError("a loop without iterations")
        first = self._iteration(target, operands)
        carried = first.results[: target.carried]
        second = self._iteration(target, [*carried, *operands[target.carried :]])
        single = target.carried + target.last
        for left, right in zip(first.results, second.results, strict=True):
            same_form(left, right)
        for number, names in enumerate(self._rolled.iterations.names):
            known = second if number else first
            for node, copy in self._rolled.copies.items():
                values.setdefault(names.get(node, node), known.values[copy])
        # The third and all further ones begin with what the second has left.
        for names, known in zip(
            self._rolled.iterations.names, (first, second), strict=False
        ):
            self._compare_iteration(names, known)
        lists = [Collected(((item, count),)) for item in second.results[single:]]
        return (*second.results[:single], *lists)

    def _compare_iteration(
        self, names: Mapping[fx.Node, fx.Node], known: _Iteration
    ) -> None:
        for node in self._rolled.iterations.template:
            copy = self._rolled.copies[node]
            inputs = [known.values[used] for used in copy.all_input_nodes]
            self._compare(names.get(node, node), inputs)

    def _iteration(self, target: ForOperator, operands: Any) -> _Iteration:
        inputs = iter([self._rolled.number, *operands])
        values: Values = {}
        for node in target.step.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(inputs)
            elif node.op == "output":
                return _Iteration(values, fx.map_arg(node.args[0], values.__getitem__))
            else:
                args = fx.map_arg(node.args, values.__getitem__)
                kwargs = fx.map_arg(node.kwargs, values.__getitem__)
                values[node] = self._call(node, args, kwargs)
        raise AssertionError("a graph has an output")


@dataclass(frozen=True)
class _Iteration:
    values: Values
    results: tuple[Any, ...]
