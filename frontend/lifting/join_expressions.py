"""Owns what becomes of expressions where two sides of a branch meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.monitor.observer import Held
from magweld.frontend.state.nodes import Kind, slot_of

if TYPE_CHECKING:
    from magweld.frontend.lifting.state import Lifting


@dataclass(frozen=True)
class Noted:
    """Expressions in a frame before an instruction.

    Attributes:
        names: Expressions of local variables, by name.
        stack: Expressions on the value stack, by position.
        depth: Depth of the value stack.
    """

    names: dict[str, Expression]
    stack: dict[int, Expression]
    depth: int

    def positions(self, other: Noted, returns: bool) -> list[tuple[int, int]]:
        """Return which positions of the stack are those of another frame.

        Args:
            other: The same function elsewhere.
            returns: Whether only the value on top matters.
        """
        if returns:
            return [(self.depth - 1, other.depth - 1)]
        return [(n, n) for n in range(min(self.depth, other.depth))]


@dataclass(frozen=True)
class ExpressionJoin:
    """Two branches that lead to one instruction.

    Where they have different expressions in one place, both are pinned: their values
    were the same.

    Attributes:
        lifting: The lifted values of the run.
        mine: What the program goes on with; loses what is pinned.
        other: What it would go on with after the other branch.
    """

    lifting: Lifting
    mine: Noted
    other: Noted

    def check(self, varnames: Sequence[str], values: Held, returns: bool) -> None:
        """Compare the expressions in all places that matter.

        Args:
            varnames: Names of the first slots; what others hold are cells.
            values: Slots, and what they hold after this branch and the other.
            returns: Whether only what the instruction returns matters.
        """
        mine, other = self.mine, self.other
        for slot, left, right in values:
            if 0 <= slot < len(varnames):
                name = varnames[slot]
                if self._differs(mine.names.get(name), other.names.get(name)):
                    mine.names.pop(name, None)
            if left is not right:
                self._content(left, right)
        for position, place in mine.positions(other, returns):
            if self._differs(mine.stack.get(position), other.stack.get(place)):
                mine.stack.pop(position, None)

    def _content(self, left: Any, right: Any) -> None:
        """Compare the expressions in containers that the branches have made."""
        kind, lifting = type(left), self.lifting
        if kind not in (tuple, list, dict) or type(right) is not kind:
            return
        place = Kind.ITEM if kind is dict else Kind.INDEX
        for key in list(left) if kind is dict else range(len(left)):
            mine, other = (lifting.at(obj, place, key) for obj in (left, right))
            if self._differs(mine, other) and mine is not None:
                lifting.put(slot_of(left, place, key), None)
            if left[key] is not right[key]:
                self._content(left[key], right[key])

    def _differs(self, mine: Expression | None, other: Expression | None) -> bool:
        if mine is other:
            return False
        self.lifting.pin(mine)
        self.lifting.pin(other)
        return True
