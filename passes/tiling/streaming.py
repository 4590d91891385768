"""Owns which dimension of a group can be streamed, and what has to be rescaled then.

A producer need not be there whole for its consumer's reduction: the dimension that
the reduction runs over is walked in blocks, of which one exists at a time. Sums over
it accumulate. Exponentials of differences to a maximum over it are taken to the
maximum so far, and what was summed of them is rescaled whenever that rises (online
softmax: Milakov and Gimelshein 2018; attention: Dao et al. 2022).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from magweld.passes.tiling.group import Group
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.regions import (
    Access,
    BodyForm,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.stream import Rescaling, Stream
from magweld.passes.tiling.streamed_loops import single_loop, streamed_loops


def streams(group: Group) -> tuple[Stream | Refusal, ...]:
    """Return every way to stream a dimension of a group, or why it cannot be."""
    found = []
    for loops in streamed_loops(group):
        extent = group.nodes[loops[0][0]].extents[loops[0][1]]
        of_node = dict(loops)
        plain = Stream(extent, tuple(map(of_node.get, range(len(group.nodes)))))
        found.append(_Algebra(group, plain).run())
    return tuple(found)


@dataclass
class _Algebra:
    """Follows the streamed dimension through a group, node by node.

    Attributes:
        group: The operators.
        stream: Their streamed loops.
        differences: Nodes that subtract something from what a maximum is taken of.
        scaled: Streamed nodes whose values are exponentials of such differences, or
            roundings of these: the node that subtracts.
        rescaled: Sums of these.
        after: Nodes that are computed when the stream is over.
    """

    group: Group
    stream: Stream
    differences: dict[int, int] = field(default_factory=dict)
    scaled: dict[int, int] = field(default_factory=dict)
    rescaled: dict[int, Rescaling] = field(default_factory=dict)
    after: set[int] = field(default_factory=set)

    def run(self) -> Stream | Refusal:
        for position in range(len(self.group.nodes)):
            if self.stream.loops[position] is None:
                refusal = self._fixed(position)
            else:
                refusal = self._streamed(position)
            if refusal is not None:
                return refusal
        unfinished = set(self.differences) - set(self.scaled.values())
        if unfinished:
            return self._needs_whole(min(unfinished), "what a maximum is taken of")
        return replace(
            self.stream,
            after=frozenset(self.after),
            rescaled=tuple(self.rescaled.items()),
            differences=tuple(self.differences.items()),
        )

    def _fixed(self, position: int) -> Refusal | None:
        """A node without the streamed dimension waits for what is reduced over it."""
        producers = self._producers(position)
        if any(self._is_late(producer) for producer in producers):
            self.after.add(position)
        return None

    def _is_late(self, producer: int | None) -> bool:
        if producer is None:
            return False
        return producer in self.after or self.stream.accumulates(self.group, producer)

    def _streamed(self, position: int) -> Refusal | None:
        node = self.group.nodes[position]
        if len(node.writes) != 1 or not node.tileable:
            return self._needs_whole(position, "its operands")
        late = [p for p in self._producers(position) if self._is_late(p)]
        if late:
            return self._difference(position, late)
        found = [self._mark(p) for p in self._producers(position)]
        marks = [mark for mark in found if mark is not None]
        if self.stream.accumulates(self.group, position):
            return self._accumulate(position, marks)
        if not marks:
            return None
        direct = self._producers(position)[0] in self.differences
        wanted = BodyForm.EXPONENTIAL if direct else BodyForm.CAST
        if node.form is wanted and _is_identity(node):
            self.scaled[position] = marks[0]
            return None
        return self._needs_whole(position, "an exponential")

    def _mark(self, producer: int | None) -> int | None:
        """The difference that a streamed value is or is made of."""
        if producer is None:
            return None
        return producer if producer in self.differences else self.scaled.get(producer)

    def _accumulate(self, position: int, marks: list[int]) -> Refusal | None:
        node = self.group.nodes[position]
        if node.form is BodyForm.MAXIMUM and not marks:
            return None
        # Products of halves take part for exponentials, which were rounded to them.
        sums = (BodyForm.SUM, *([BodyForm.WIDENED_SUM] if marks else []))
        if node.form not in sums or len(marks) > 1:
            return self._needs_whole(position, "its operands")
        if not marks:
            return None
        producers = self._producers(position)
        scaled = next(i for i, p in enumerate(producers) if self._mark(p) is not None)
        source = self.group.sources[position][scaled].producer
        rows = self._rows(position, node.reads[scaled], marks[0])
        maximum = self.differences[marks[0]]
        top = self.group.nodes[maximum].writes[0]
        same_type = top.element_bytes == node.writes[0].element_bytes
        if rows is None or source not in self.scaled or not same_type:
            return self._needs_whole(position, "its operands")
        reference = self.group.sources[marks[0]][1].producer
        assert reference is not None, "what is subtracted is made in the group"
        self.rescaled[position] = Rescaling(maximum, reference, rows)
        return None

    def _rows(
        self, position: int, read: Access, difference: int
    ) -> tuple[int | None, ...] | None:
        """For each dim of what is subtracted the dim of a sum that it goes along."""
        write = self.group.nodes[position].writes[0]
        place = {single_loop(expr): dim for dim, expr in enumerate(write.index)}
        node = self.group.nodes[difference]
        dim_of = {single_loop(expr): i for i, expr in enumerate(node.writes[0].index)}
        rows: list[int | None] = []
        for expr in node.reads[1].index:
            if expr is not None and not expr.terms:
                rows.append(None)
                continue
            dim = dim_of.get(single_loop(expr))
            loop = None if dim is None else single_loop(read.index[dim])
            if loop is None or loop not in place:
                return None
            rows.append(place[loop])
        return tuple(rows)

    def _difference(self, position: int, late: list[int | None]) -> Refusal | None:
        """`x - y`, where y is for every row and some maximum of x is known."""
        node, sources = self.group.nodes[position], self.group.sources[position]
        names = self.group.nodes
        is_difference = (
            node.form is BodyForm.DIFFERENCE
            and len(node.reads) == 2
            and late == [sources[1].producer]
            and self._mark(sources[0].producer) is None
        )
        if is_difference:
            for maximum in self._maxima_before(late[0]):
                if self._is_of(maximum, position):
                    self.differences[position] = maximum
                    return None
        producer = next(p for p in late if p is not None)
        return self._needs_whole(position, names[producer].name)

    def _maxima_before(self, node: int | None) -> list[int]:
        """Maxima over the stream that a node is made from."""
        seen: list[int | None] = [node]
        for current in seen:
            if current is not None and current in self.after:
                seen += [p for p in self._producers(current) if p not in seen]
        return [
            p
            for p in seen
            if p is not None
            and p not in self.after
            and self.group.nodes[p].form is BodyForm.MAXIMUM
            and self.stream.accumulates(self.group, p)
        ]

    def _is_of(self, maximum: int, difference: int) -> bool:
        """Whether a maximum is that of the rows of a difference's first operand."""
        top, node = self.group.nodes[maximum], self.group.nodes[difference]
        (source,), minuend = (
            self.group.sources[maximum],
            self.group.sources[difference][0],
        )
        same_loops = top.extents == node.extents and _is_identity(node)
        return (
            (source.tensor, source.producer) == (minuend.tensor, minuend.producer)
            and same_loops
            and top.reads[0].index == node.reads[0].index
            and top.writes[0].shape == node.reads[1].shape
            and _loops_of(top.writes[0]) == _loops_of(node.reads[1])
        )

    def _producers(self, position: int) -> list[int | None]:
        return [source.producer for source in self.group.sources[position]]

    def _needs_whole(self, position: int, what: str) -> Refusal:
        name = self.group.nodes[position].name
        return Refusal("needs-whole", f"{name} needs {what} whole")


def _is_identity(node: OperatorModel) -> bool:
    """Whether elements of the first operand and of the result correspond."""
    loops = [single_loop(expr) for expr in node.writes[0].index]
    elementwise = node.kind is OperatorKind.ELEMENTWISE
    same = node.reads[0].index == node.writes[0].index
    return elementwise and same and loops == list(range(len(loops)))


def _loops_of(access: Access) -> list[int]:
    """The loops that index a tensor, dimensions of extent one left out."""
    return list(
        itertools.chain.from_iterable(
            (loop for loop, _ in expr.terms) if expr else () for expr in access.index
        )
    )
