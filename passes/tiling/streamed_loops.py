"""Owns the search for dimensions that a group could be streamed along."""

from __future__ import annotations

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.regions import Access, LinearIndex

Loop = tuple[int, int]
"""A node and one of its loops."""


def streamed_loops(group: Group) -> list[tuple[Loop, ...]]:
    """Return sets of loops over one dimension of tensors inside of a group.

    Those that some node reduces, that index no tensor that is stored, and that every
    node knows once at most. Some tensor has to be more than values in registers.
    """
    if any(read.padded for node in group.nodes for read in node.reads):
        return []  # the place of a border is computed once for a tile
    joined = _JoinedLoops(group)
    return [
        loops
        for loops in joined.classes()
        if any(loop in group.nodes[node].reduction for node, loop in loops)
        and any(
            loop in group.nodes[node].parallel and not group.stays_in_registers(node)
            for node, loop in loops
        )
        and len({node for node, _ in loops}) == len(loops)
    ]


class _JoinedLoops:
    """Loops of all nodes, joined where they index one dimension of a tensor."""

    def __init__(self, group: Group) -> None:
        self._above: dict[Loop, Loop] = {}
        self._fixed: list[Loop] = [
            (len(group.nodes) - 1, loop) for loop in group.root.parallel
        ]
        for position, result in group.outputs:
            self._fix(position, *group.nodes[position].writes[result].index)
        for consumer, node in enumerate(group.nodes):
            for read, source in zip(node.reads, group.sources[consumer], strict=True):
                if source.producer is not None:
                    write = group.nodes[source.producer].writes[source.result]
                    self._join(consumer, read, source.producer, write)

    def classes(self) -> list[tuple[Loop, ...]]:
        """Return the classes of several loops of which none is fixed."""
        found: dict[Loop, list[Loop]] = {}
        for loop in sorted(self._above):
            found.setdefault(self._top(loop), []).append(loop)
        fixed = {self._top(loop) for loop in self._fixed}
        return [tuple(loops) for top, loops in found.items() if top not in fixed]

    def _top(self, loop: Loop) -> Loop:
        while loop in self._above and self._above[loop] != loop:
            loop = self._above[loop]
        return loop

    def _join(self, consumer: int, read: Access, producer: int, write: Access) -> None:
        for there, here in zip(read.index, write.index, strict=True):
            a, b = single_loop(there), single_loop(here)
            if a is None or b is None:
                self._fix(consumer, there)
                self._fix(producer, here)
                continue
            for loop in ((consumer, a), (producer, b)):
                self._above.setdefault(loop, loop)
            self._above[self._top((consumer, a))] = self._top((producer, b))

    def _fix(self, node: int, *index: LinearIndex | None) -> None:
        for expr in index:
            self._fixed.extend((node, loop) for loop, _ in (expr.terms if expr else ()))


def single_loop(expr: LinearIndex | None) -> int | None:
    """Return the loop that an index is, if it is nothing but one."""
    return None if expr is None else expr.single_loop
