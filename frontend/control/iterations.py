"""Owns the question whether the iterations of a loop are one and the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import fx

from magweld.frontend.control.comparison import DifferenceError, are_isomorphic
from magweld.frontend.control.fors import ForLoop, Head
from magweld.frontend.control.frame_state import Path
from magweld.frontend.expressions.expressions import (
    Expression,
    InductionSource,
    Leaf,
    Literal,
    Operation,
    SizeSource,
    topological,
)
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.graphs.autocast import SWITCHES

if TYPE_CHECKING:
    from magweld.frontend.lifting.state import Lifting

Names = dict[fx.Node, fx.Node]

# With one iteration, its row cannot be told from any other tensor.
_MIN_ROWS: Final = 2
_SWITCHES: Final = frozenset({*SWITCHES, torch._C._set_grad_enabled, setattr})


class Iterations:
    """The iterations of a loop from some number on, all alike.

    Attributes:
        loop: The loop.
        first: Number of the first one.
        pieces: Operators of each.
        own: Operators of the loop, those of earlier iterations included.
        groups: Paths of one tensor that iterations replace.
        names: For each one, which of its nodes stands for one of the last.

    Raises:
        DifferenceError: They are not alike.
    """

    def __init__(
        self, recorder: OperatorRecorder, lifting: Lifting, loop: ForLoop, first: int
    ) -> None:
        self._recorder = recorder
        self._lifting = lifting
        assert lifting.loops is not None, "the loop is one of them"
        self._loops = lifting.loops
        self.loop = loop
        self.first = first
        self.own = {node for piece in loop.pieces for node in piece}
        self.pieces = loop.pieces[first:]
        if not any(self.pieces):
            raise DifferenceError("no operators")
        self.rows = self._rows()
        self._check_states()
        self._check_operators()
        self.groups = self._replaced()
        self.starts = self._starts()
        self.names = [self._match(number) for number in range(len(self.pieces))]

    @property
    def template(self) -> list[fx.Node]:
        """Operators of the last iteration."""
        return self.pieces[-1]

    @property
    def row(self) -> fx.Node | None:
        """The row of a tensor that the last iteration has taken."""
        return self.rows[-1] if self.rows else None

    def _rows(self) -> list[fx.Node]:
        """Return the row that each iteration takes, nothing if it takes none."""
        cut = self.loop.rows
        if cut is None:
            return []
        if len(self.pieces) < _MIN_ROWS or not self._loops.is_read_once(
            self.loop.content
        ):
            raise DifferenceError("the rows of a tensor are looked at")
        rows = {part.args[1]: part for part in cut.users}
        return [rows[self.first + number] for number in range(len(self.pieces))]

    def head(self, number: int) -> Head:
        """Return the state before an iteration, or behind the last one."""
        return self.loop.heads[self.first + number]

    def end(self, path: Path) -> fx.Node:
        """Return the node of a tensor behind the last iteration."""
        node = self.head(len(self.pieces)).state.tensors[path].node
        if node is None:
            raise DifferenceError("a tensor of unknown origin")
        return node

    def collected(self, key: int, number: int) -> list[fx.Node | None]:
        """Return the nodes of what an iteration has appended to a list."""
        target = self.loop.lists[key]
        begin = self.head(number).lengths.get(key)
        end = self.head(number + 1).lengths[key]
        begin = end if begin is None else begin
        return [self._recorder.tensors.find(item) for item in target[begin:end]]

    def depends(self, expression: Expression) -> bool:
        """Return whether a number is another one in each iteration."""
        return any(self._is_inner(part) for part in topological([expression]))

    def _is_inner(self, part: Leaf | Operation) -> bool:
        if not isinstance(part, Leaf):
            return False
        source = part.source
        if isinstance(source, InductionSource):
            return part in self.loop.leaves
        if not isinstance(source, SizeSource):
            return False
        inner = source.of in self.own or source.of in self.starts
        return inner or source.of in self.rows

    def _check_states(self) -> None:
        count = len(self.pieces)
        for number in range(min(1, count - 1), count):
            before, after = self.head(number), self.head(number + 1)
            if not before.state.is_like(after.state):
                raise DifferenceError("the state changes from iteration to iteration")
            if number and before.reads != after.reads:
                raise DifferenceError("an iteration reads what none has read before")

    def _check_operators(self) -> None:
        shapes, valued = self._recorder.tensors.shapes, self._loops.valued
        for node in self.own:
            if node in valued or shapes.is_open(node):
                raise DifferenceError("a value of a tensor decides")
            if node.target in _SWITCHES:
                raise DifferenceError("a mode or a form changes")

    def _replaced(self) -> list[list[Path]]:
        before = self.head(len(self.pieces) - 1).state
        after = self.head(len(self.pieces)).state
        groups: dict[Path, list[Path]] = {}
        for path, first in after.partition().items():
            if before.tensors[path].tensor is not after.tensors[path].tensor:
                groups.setdefault(first, []).append(path)
            elif self._varies(path):
                raise DifferenceError("a tensor stays that was replaced before")
        return list(groups.values())

    def _varies(self, path: Path) -> bool:
        heads = (self.head(n) for n in range(1, len(self.pieces) + 1))
        return len({id(head.state.tensors[path].tensor) for head in heads}) > 1

    def _starts(self) -> dict[fx.Node, Path]:
        """Return the replaced tensors before the last iteration."""
        state = self.head(len(self.pieces) - 1).state
        starts: dict[fx.Node, Path] = {}
        for group in self.groups:
            node = state.tensors[group[0]].node
            if node is not None and node not in self.own:
                raise DifferenceError("what it begins with cannot be told apart")
            if node is not None:
                starts[node] = group[0]
        return starts

    def start_of(self, number: int, path: Path) -> fx.Node | None:
        """Return the node of a replaced tensor before an iteration.

        Raises:
            DifferenceError: There is no such tensor, or it is two.
        """
        tensors = self.head(number).state.tensors
        group = next(group for group in self.groups if group[0] == path)
        found = {id(tensors[p].tensor) if p in tensors else None for p in group}
        if len(found) != 1 or path not in tensors:
            raise DifferenceError("a variable without a tensor")
        return self._recorder.tensors.known_node(tensors[path].tensor)

    def used(self) -> dict[fx.Node, Path]:
        """Return the replaced tensors that an iteration uses."""
        inputs = {n for node in self.template for n in node.all_input_nodes}
        inputs |= {self.end(group[0]) for group in self.groups}
        last = len(self.pieces) - 1
        for key in self.loop.lists:
            inputs |= {node for node in self.collected(key, last) if node is not None}
        return {node: path for node, path in self.starts.items() if node in inputs}

    def _match(self, number: int) -> Names:
        names: Names = {}
        for node, path in self.used().items():
            start = self.start_of(number, path)
            if start is None:
                raise DifferenceError("a tensor of unknown origin")
            names[node] = start
        if self.row is not None:
            names[self.row] = self.rows[number]
        piece = self.pieces[number]
        if len(piece) != len(self.template):
            raise DifferenceError("the iterations differ")
        template = set(self.template) | self._stable()
        for mine, other in zip(self.template, piece, strict=True):
            self._name_numbers(mine, number, names)
            self._check_inputs(mine, template)
            if not are_isomorphic([mine], [other], names):
                raise DifferenceError("the iterations differ")
        self._check_results(number, names)
        return names

    def _stable(self) -> set[fx.Node]:
        """Return the tensors of earlier iterations that no later one replaces."""
        inner = {node for piece in self.pieces for node in piece}
        before = self.head(len(self.pieces) - 1).state.tensors
        after = self.head(len(self.pieces)).state.tensors
        kept = (p.node for path, p in after.items() if before[path].tensor is p.tensor)
        return {node for node in kept if node is not None} - inner

    def _check_inputs(self, node: fx.Node, template: set[fx.Node]) -> None:
        for used in node.all_input_nodes:
            if used in self.own and used not in template and used not in self.starts:
                raise DifferenceError("a tensor of an earlier iteration")

    def _check_results(self, number: int, names: Names) -> None:
        state = self.head(number + 1).state
        for group in self.groups:
            mine = self.end(group[0])
            if mine not in self.own:
                raise DifferenceError("a variable that iterations set once")
            if names.get(mine, mine) is not state.tensors[group[0]].node:
                raise DifferenceError("the iterations differ")
        last = len(self.pieces) - 1
        for key in self.loop.lists:
            mine_all = self.collected(key, last)
            others = self.collected(key, number)
            if len(mine_all) != 1 or mine_all[0] is None or len(others) != 1:
                raise DifferenceError("not one tensor is appended to a list")
            if names.get(mine_all[0], mine_all[0]) is not others[0]:
                raise DifferenceError("the iterations differ")

    # Numbers.

    def _name_numbers(self, node: fx.Node, number: int, names: Names) -> None:
        for used in node.all_input_nodes:
            expression = self._lifting.scalars.expressions.get(used)
            if expression is None or used in names or not self.depends(expression):
                continue
            other = self._substitute(expression, number, names)
            found = None if other is None else self._lifting.scalars.find(other)
            if found is None:
                raise DifferenceError("numbers that are not alike")
            names[used] = found

    def _substitute(
        self, expression: Expression, number: int, names: Names
    ) -> Expression | None:
        """Return the number that another iteration has in the place of one."""
        make = self._lifting.make
        if isinstance(expression, Literal) or not self.depends(expression):
            return expression
        if isinstance(expression, Operation):
            operands = [self._substitute(o, number, names) for o in expression.operands]
            known = [operand for operand in operands if operand is not None]
            if len(known) < len(operands):
                return None
            return make.find(expression.function, known)
        source = expression.source
        if isinstance(source, SizeSource):
            return make.find_leaf(SizeSource(names.get(source.of), source.dim))
        leaves = self.loop.leaves
        return leaves[self.first + number] if expression is leaves[-1] else None
