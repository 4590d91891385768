"""Owns the description of a streamed dimension and of the blocks it is walked in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magweld.passes.tiling.regions import STREAM, Interval, LinearIndex

if TYPE_CHECKING:
    from magweld.passes.tiling.group import Group


@dataclass(frozen=True)
class Rescaling:
    """How a sum of exponentials follows a maximum that rises.

    Attributes:
        maximum: The node that takes the maximum.
        reference: The node that is subtracted before the exponential: the maximum, or
            something that is made of it.
        rows: For each dim of what is subtracted the dim of the sum along which it
            goes; None for a dim of extent one.
    """

    maximum: int
    reference: int
    rows: tuple[int | None, ...]


@dataclass(frozen=True)
class Stream:
    """A dimension of a group that is walked in blocks.

    Attributes:
        extent: Its extent.
        loops: For each node its loop over the dimension, None where there is none.
        after: Nodes without such a loop that need what is reduced over it.
        rescaled: Pairs of a node that sums exponentials, and how.
        differences: Pairs of a node that subtracts for an exponential, and the node
            whose running maximum it subtracts meanwhile.
    """

    extent: int
    loops: tuple[int | None, ...]
    after: frozenset[int] = frozenset()
    rescaled: tuple[tuple[int, Rescaling], ...] = ()
    differences: tuple[tuple[int, int], ...] = ()

    @property
    def subtracted(self) -> tuple[int, ...]:
        """The nodes whose running maximum is subtracted."""
        return tuple(sorted({top for _, top in self.differences}))

    def accumulates(self, group: Group, node: int) -> bool:
        """Return whether a node reduces over the dimension."""
        return self.loops[node] in group.nodes[node].reduction

    def accumulators(self, group: Group) -> tuple[int, ...]:
        """Return the nodes that reduce over the dimension."""
        nodes = range(len(self.loops))
        return tuple(node for node in nodes if self.accumulates(group, node))

    def is_block(self, group: Group, node: int) -> bool:
        """Return whether of what a node makes one block exists at a time."""
        return self.loops[node] is not None and not self.accumulates(group, node)


@dataclass(frozen=True)
class Blocks:
    """A streamed dimension and the size of the blocks that it is walked in.

    The last block is smaller where the size does not divide the extent.
    """

    stream: Stream
    size: int

    @property
    def count(self) -> int:
        """How many blocks there are, a smaller last one among them."""
        return -(-self.stream.extent // self.size)

    def along(self, node: int) -> tuple[int, int, int] | None:
        """Return the loop of a node that is streamed, its extent and the blocks."""
        loop = self.stream.loops[node]
        return None if loop is None else (loop, self.stream.extent, self.size)

    def of_node(self, node: int, box: tuple[Interval, ...]) -> tuple[Interval, ...]:
        """Return a box of iterations with its streamed loop at one block."""
        streamed = self.stream.loops[node]
        block = Interval(LinearIndex(((STREAM, 1),)), self.size)
        return tuple(
            block if loop == streamed else interval for loop, interval in enumerate(box)
        )
