"""Owns how operators behind a loop take its results instead of its operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import fx

from magweld.frontend.control.merge import DifferenceError
from magweld.frontend.operators.kinds import operator_of
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.graphs.control_operators import joined

# Operators that take a list of tensors of any length.
JOINERS: Final = frozenset({"cat", "concat", "concatenate", "stack"})


@dataclass(frozen=True)
class Rewiring:
    """How operators behind a loop take its results.

    Attributes:
        inner: Operators that go.
        finals: Which result stands for one of them.
        runs: Which result stands for the elements of a list that they are.
    """

    inner: set[fx.Node]
    finals: dict[fx.Node, int]
    runs: dict[tuple[fx.Node, ...], int]

    def check(self, recorder: OperatorRecorder) -> None:
        """Refuse what takes something else of the loop.

        Raises:
            DifferenceError: Something does.
        """
        for node in recorder.graph.nodes:
            if node not in self.inner and self.inner & set(node.all_input_nodes):
                self._check_user(node)
        assert recorder.operands is not None, "the loop is a lifted one"
        for query in recorder.operands.queries:
            for arg in (*query.args, *query.kwargs.values()):
                if isinstance(arg, (tuple, list)) and self.inner & set(_nodes_in(arg)):
                    raise DifferenceError("a question about a list")

    def check_list(self, items: Sequence[fx.Node]) -> None:
        """Refuse a list that holds something else of the loop.

        Raises:
            DifferenceError: It does.
        """
        found = self._run_in(items)
        if found is None or self.inner & set(self._outside(items)) - set(self.finals):
            raise DifferenceError("a list with other tensors of the loop")

    def _check_user(self, node: fx.Node) -> None:
        known = self.finals.keys()
        name = operator_of(node)
        lists = 0

        def allowed(arg: Any) -> bool:
            nonlocal lists
            if isinstance(arg, list) and self._run_in(arg) is not None:
                lists += 1
                return all(allowed(rest) for rest in self._outside(arg))
            if isinstance(arg, (list, tuple)):
                return all(map(allowed, arg))
            used = set(_nodes_in(arg)) & self.inner
            return used <= known

        args = [list(node.args)] if node.target is joined else node.args
        if not all(map(allowed, (*args, *node.kwargs.values()))):
            raise DifferenceError("a tensor of an iteration is used")
        if lists and name not in JOINERS and node.target is not joined:
            raise DifferenceError(f"a list is taken by {name}")

    def _run_in(self, items: Sequence[Any]) -> tuple[int, int, int] | None:
        """Return begin, end and result of a run of collected tensors in a list."""
        for run, result in self.runs.items():
            for begin in range(len(items) - len(run) + 1):
                if all(a is b for a, b in zip(items[begin:], run, strict=False)):
                    return begin, begin + len(run), result
        return None

    def _outside(self, items: Sequence[Any]) -> list[Any]:
        found = self._run_in(items)
        return (
            list(items) if found is None else [*items[: found[0]], *items[found[1] :]]
        )

    def content(self, items: Sequence[Any], parts: Sequence[fx.Node]) -> list[Any]:
        """Return elements of a list with the results in place."""
        found = self._run_in(items)
        if found is None:
            return [parts[self.finals[i]] if i in self.finals else i for i in items]
        begin, end, result = found
        before, behind = items[:begin], items[end:]
        return [
            *self.content(before, parts),
            parts[result],
            *self.content(behind, parts),
        ]

    def apply(self, recorder: OperatorRecorder, parts: Sequence[fx.Node]) -> None:
        """Let all users take the results."""
        for node in list(recorder.graph.nodes):
            if node not in self.inner and self.inner & set(node.all_input_nodes):
                if node.target is joined:
                    node.args = tuple(self.content(node.args, parts))
                    continue
                replace = self._replacement(recorder, node, parts)
                node.args = tuple(map(replace, node.args))
                node.kwargs = {key: replace(arg) for key, arg in node.kwargs.items()}

    def _replacement(
        self, recorder: OperatorRecorder, user: fx.Node, parts: Sequence[fx.Node]
    ) -> Callable[[Any], Any]:
        def replace(arg: Any) -> Any:
            if isinstance(arg, list) and self._run_in(arg) is not None:
                content = self.content(arg, parts)
                with recorder.graph.inserting_before(user):
                    return recorder.graph.call_function(joined, tuple(content))
            if isinstance(arg, (list, tuple)):
                return type(arg)(map(replace, arg))
            return fx.map_arg(
                arg, lambda n: parts[self.finals[n]] if n in self.finals else n
            )

        return replace


def _nodes_in(arg: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.map_arg(arg, found.append)
    return found
