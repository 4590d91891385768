"""Owns making an operator of a loop: the recorded iterations give way to one node."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from torch import fx

from magweld.frontend.control.comparison import DifferenceError
from magweld.frontend.control.fors import ForLoop, Loops
from magweld.frontend.control.frame_state import Path
from magweld.frontend.control.iterations import Iterations
from magweld.frontend.control.loop_body import Body, Rewiring
from magweld.frontend.control.pieces import effects_of
from magweld.frontend.expressions.expressions import (
    Expression,
    Literal,
    topological,
)
from magweld.frontend.operators.effects import has_effects
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.graphs.control_operators import ForOperator, joined

if TYPE_CHECKING:
    from magweld.frontend.lifting.state import Lifting

# Iterations that do not belong to the operator, at most.
_MAX_PEELED: Final = 1
_MIN_ITERATIONS: Final = 2
# List of nodes that make the elements of a list of the program.
Contents = dict[int, list[fx.Node]]


@dataclass(frozen=True)
class Rolled:
    """A loop that has become an operator.

    Attributes:
        iterations: Its iterations, whose operators are no longer in the graph.
        copies: What stands for their operators in the graph of one iteration.
        number: Of the first iteration, in the recorded run.
    """

    iterations: Iterations
    copies: dict[fx.Node, fx.Node]
    number: int


def trip_count(start: int, stop: int, step: int) -> int:
    """Return how many numbers a range has."""
    return len(range(start, stop, step))


def roll_loops(recorder: OperatorRecorder, lifting: Lifting, found: Loops) -> None:
    """Make operators of the loops of a finished run where that is possible.

    What becomes none stays as it was recorded, with its number of iterations pinned.
    """
    loops = found.all
    if not loops:
        return
    impure = has_effects(recorder.graph)
    contents = _contents(recorder, loops)
    for loop in loops:
        pairs = pairwise(loop.heads)
        loop.pieces = [recorder.between(a.mark, b.mark) for a, b in pairs]
    # The first to be pinned are those that are no operators for certain.
    for loop in sorted(loops, key=lambda loop: loop.closed and not loop.failure):
        try:
            if impure:
                raise DifferenceError("there are effects")
            _roll(recorder, lifting, loop, contents)
        except DifferenceError as difference:
            loop.failure = str(difference)
            _leave_unrolled(recorder, lifting, loop)
    for key, nodes in contents.items():
        _bind_list(recorder, loops, key, nodes)


def _contents(recorder: OperatorRecorder, loops: Sequence[ForLoop]) -> Contents:
    contents: Contents = {}
    for loop in loops:
        if loop.failure or not loop.closed:
            continue
        for key, target in loop.lists.items():
            nodes = [recorder.tensors.find(item) for item in target]
            contents[key] = [node for node in nodes if node is not None]
            if len(contents[key]) < len(nodes):
                loop.failure = "a list with other elements"
    return contents


def _leave_unrolled(
    recorder: OperatorRecorder, lifting: Lifting, loop: ForLoop
) -> None:
    parts = [part for part in loop.parts if part is not None]
    if loop.closed and len(loop.heads) <= _MIN_ITERATIONS:
        # A call with more iterations may tell whether there is an operator.
        lifting.undecided.update(
            leaf for leaf in topological(parts) if leaf not in lifting.pinned
        )
    for expression in (*parts, *loop.leaves):
        lifting.pin(expression)
        lifting.scalars.shaping.discard(expression)
    _forget_shapes(lifting, loop)


def _forget_shapes(lifting: Lifting, loop: ForLoop) -> None:
    leaves = set(loop.leaves)
    operands = lifting.operands
    for group in (lifting.scalars.shaping, operands.risky):
        group -= {e for e in group if leaves & set(topological([e]))}
    for expression in [*operands.bounded]:
        if leaves & set(topological([expression])):
            del operands.bounded[expression]


def _roll(
    recorder: OperatorRecorder, lifting: Lifting, loop: ForLoop, contents: Contents
) -> None:
    if loop.failure or not loop.closed:
        raise DifferenceError(loop.failure or "it is left early")
    if len(loop.heads) <= _MIN_ITERATIONS:
        raise DifferenceError("too few iterations")
    _check_numbers(lifting, loop)
    difference = DifferenceError("")
    for first in range(_MAX_PEELED + 1):
        try:
            iterations = Iterations(recorder, lifting, loop, first)
            rolling = _Rolling(recorder, lifting, iterations, contents)
            rolling.plan()
        except DifferenceError as found:
            difference = found
            continue
        rolling.apply()
        return
    raise difference


def _check_numbers(lifting: Lifting, loop: ForLoop) -> None:
    simplify = lifting.simplifier()
    parts = [part for part in loop.parts if part is not None]
    if all(isinstance(simplify(part), Literal) for part in parts):
        raise DifferenceError("its number of iterations is needed elsewhere")
    leaves = set(loop.leaves)
    for expression in lifting.demanded():
        if leaves & set(topological([expression])):
            raise DifferenceError("its number decides")


@dataclass
class _Rolling:
    """One loop on its way to an operator."""

    recorder: OperatorRecorder
    lifting: Lifting
    iterations: Iterations
    contents: Contents
    carried: list[Path] = field(default_factory=list)
    last: list[Path] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def plan(self) -> None:
        """Find out what the operator takes and gives, without changing anything.

        Raises:
            DifferenceError: There is no operator for the loop.
        """
        iterations = self.iterations
        used = iterations.used()
        self.carried = list(used.values())
        paths = [group[0] for group in iterations.groups]
        self.last = [path for path in paths if path not in self.carried]
        self.keys = list(iterations.loop.lists)
        self._body = Body(self.lifting, iterations, list(used))
        ends = [iterations.end(path) for path in (*self.carried, *self.last)]
        final = len(iterations.pieces) - 1
        appended = (iterations.collected(key, final)[0] for key in self.keys)
        ends += [node for node in appended if node is not None]
        self._module = self._body.finish(ends)
        self._starts = [iterations.start_of(0, path) for path in self.carried]
        self._bounds = self._range()
        self._rewiring = Rewiring(self._inner(), self._finals(), self._runs())
        self._rewiring.check(self.recorder)
        for key in self.keys:
            self._rewiring.check_list(self.contents[key])
        self._check_numbers()

    def _inner(self) -> set[fx.Node]:
        return {node for piece in self.iterations.pieces for node in piece}

    def _check_numbers(self) -> None:
        iterations = self.iterations
        leaves = set(iterations.loop.leaves[iterations.first :])
        inner = self._inner()
        for node, expression in self.lifting.scalars.expressions.items():
            if leaves & set(topological([expression])) and set(node.users) - inner:
                raise DifferenceError("its number is used behind it")

    def _range(self) -> list[Any]:
        loop = self.iterations.loop
        values = [loop.range.start, loop.range.stop, loop.range.step]
        parts: list[Expression] = [
            Literal(value) if part is None else part
            for part, value in zip(loop.parts, values, strict=True)
        ]
        if self.iterations.first:
            if not isinstance(parts[0], Literal) or not isinstance(parts[2], Literal):
                raise DifferenceError("the first iteration differs")
            parts[0] = Literal(loop.range[self.iterations.first :].start)
        return parts

    def _finals(self) -> dict[fx.Node, int]:
        """Return which result stands for a tensor behind the loop."""
        state = self.iterations.head(len(self.iterations.pieces)).state
        finals: dict[fx.Node, int] = {}
        for index, path in enumerate((*self.carried, *self.last)):
            node = state.tensors[path].node
            assert node is not None, "the iterations have made it"
            finals.setdefault(node, index)
        return finals

    def _runs(self) -> dict[tuple[fx.Node, ...], int]:
        """Return which result stands for the elements of a list."""
        runs: dict[tuple[fx.Node, ...], int] = {}
        count = len(self.carried) + len(self.last)
        for index, key in enumerate(self.keys):
            numbers = range(len(self.iterations.pieces))
            found = [self.iterations.collected(key, number)[0] for number in numbers]
            run = tuple(node for node in found if node is not None)
            telling = self._inner().intersection(run) - self._finals().keys()
            if len(set(run)) < len(run) or not telling:
                # Such a list could as well have been made otherwise.
                raise DifferenceError("a list that cannot be told apart")
            runs.setdefault(run, count + index)
        return runs

    def apply(self) -> None:
        """Put the operator in the place of the iterations."""
        recorder, iterations = self.recorder, self.iterations
        loop = iterations.loop
        count = self.lifting.make.apply(
            trip_count, self._bounds, len(iterations.pieces)
        )
        enough = self.lifting.make.apply(operator.ge, (count, Literal(1)), True)
        self.lifting.truth(enough, True)
        numbers = [self.lifting.scalars.node_of(part) for part in self._bounds]
        target = ForOperator(self._module, len(self.carried), len(self.last))
        nodes = [node for piece in iterations.pieces for node in piece]
        with recorder.graph.inserting_after(nodes[-1]):
            made = recorder.graph.call_function(
                target, (*numbers, *self._starts, *self._body.inputs)
            )
        made.meta.update(effects_of(nodes), where=nodes[-1].meta.get("where", ""))
        parts = self._parts(made)
        self._rewiring.apply(recorder, parts)
        for key, content in self.contents.items():
            self.contents[key] = self._rewiring.content(content, parts)
        recorder.tensors.forget(nodes)
        state = iterations.head(len(iterations.pieces)).state
        for index, path in enumerate((*self.carried, *self.last)):
            recorder.tensors.replace(state.tensors[path].tensor, parts[index])
        number = loop.range[iterations.first]
        self.lifting.operands.rolled[made] = Rolled(
            iterations, self._body.copies, number
        )
        for node in reversed(nodes):
            recorder.graph.erase_node(node)
        self._drop_numbers()

    def _parts(self, made: fx.Node) -> list[fx.Node]:
        graph, parts, behind = self.recorder.graph, [], made
        for index in range(len(self.carried) + len(self.last) + len(self.keys)):
            with graph.inserting_after(behind):
                behind = graph.call_function(operator.getitem, (made, index))
            parts.append(behind)
        return parts

    def _drop_numbers(self) -> None:
        leaves = set(self.iterations.loop.leaves[self.iterations.first :])
        for node, expression in list(self.lifting.scalars.expressions.items()):
            if leaves & set(topological([expression])):
                self.lifting.scalars.drop(node)
        _forget_shapes(self.lifting, self.iterations.loop)
        for leaf in self.iterations.loop.leaves[: self.iterations.first]:
            self.lifting.pin(leaf)


def _bind_list(
    recorder: OperatorRecorder, loops: Sequence[ForLoop], key: int, nodes: list[fx.Node]
) -> None:
    rolled = [loop for loop in loops if key in loop.lists and not loop.failure]
    if rolled:
        node = recorder.graph.call_function(joined, tuple(nodes))
        recorder.tensors.bind(rolled[0].lists[key], node)
