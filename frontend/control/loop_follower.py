"""Owns what instructions report about loops; nothing follows them without operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magweld.frontend.expressions.expressions import Expression, Leaf
from magweld.frontend.state.nodes import Node

if TYPE_CHECKING:
    from magweld.frontend.lifting.shadow import Shadow


class LoopFollower:
    """Follows no loop.

    Attributes:
        all: The loops, in the order in which they began.
        valued: Operators whose values have decided about the run.
    """

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.valued: set[Any] = set()

    def follow(
        self, iterator: Any, source: range, parts: tuple[Expression | None, ...]
    ) -> bool:
        """Take note of an iterator over a range whose parts are lifted.

        Returns:
            Whether it is followed, so that the parts need not be pinned.
        """
        return False

    def follow_rows(self, iterator: Any) -> bool:
        """Take note of an iterator over the rows of a tensor of lifted size.

        Returns:
            Whether it is followed.
        """
        return False

    def arrive(self, shadow: Shadow, iterator: Any) -> None:
        """Take note that the next number of an iterator is about to be taken."""

    def item(self, iterator: int, item: Any) -> Leaf | None:
        """Return what stands for the number that an iterator, by its id, gave."""
        return None

    def close(self, iterator: int) -> None:
        """Take note that an iterator is exhausted."""

    def is_read_once(self, content: Any) -> bool:
        """Return whether nothing but one loop has looked at a tuple of rows."""
        return False

    def note_append(self, target: Any) -> None:
        """Take note that a comprehension has taken an element."""

    def note_branch(self) -> None:
        """Take note that the value of a tensor decides within the open loops."""

    def note_change(self, node: Node) -> None:
        """Take note that an object is about to change."""

    def forget_change(self) -> None:
        """Take note that a change that was about to happen does not."""

    def note_tail(self, node: Node) -> None:
        """Take note that elements are about to be appended to a list."""

    def note_read(self, obj: Any) -> None:
        """Take note that the content of a container is looked at."""

    def note_whole_use(self, obj: Any) -> bool:
        """Take note that an operator takes all elements of a list.

        Returns:
            Whether that is no reason to read it.
        """
        return False
