"""Owns which operators of a group run as one loop nest, element by element.

What an element-wise operator makes stays in registers where every reader can make each
element when it needs it: if the readers are one nest in which it is the same element
everywhere, or if one or two additions or products make it again in each. What is read
across memory and wanted again and again is stored side by side instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from magweld.passes.tiling.regions import (
    Access,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.passes.tiling.transposed_reads import TransposedRead, transposed_read

if TYPE_CHECKING:
    from magweld.passes.tiling.group import Group

# Operations on an element that are repeated rather than stored and loaded.
MOST_REPEATED = 2
# Iterations that read one element of what was read across memory, from which on it is
# stored side by side: pack-strided-operands makes copies for as many, which stay.
PACKED_READS = 8
# What may compute what it reads.
FUSING_KINDS = frozenset({OperatorKind.ELEMENTWISE, OperatorKind.REDUCTION})

Loops = tuple[LinearIndex, ...]
"""The loops of a node as expressions of those of the root of a nest."""


@dataclass(frozen=True)
class LoopNests:
    """The loop nests of a group; each runs at the place of its root.

    Attributes:
        group: The operators.
        loops: For each node, by the root of each nest that computes it, its loops as
            expressions of the root's. A root has an entry of its own.
    """

    group: Group
    loops: tuple[dict[int, Loops], ...]

    def is_fused(self, node: int) -> bool:
        """Whether readers of a node compute it, and its values stay in registers."""
        return node not in self.loops[node]

    @cached_property
    def members(self) -> dict[int, tuple[int, ...]]:
        """The nodes of the nest of each root, rising, the root last."""
        found: dict[int, list[int]] = {}
        for node, loops in enumerate(self.loops):
            for root in loops:
                found.setdefault(root, []).append(node)
        return {root: tuple(nodes) for root, nodes in found.items()}

    def ending_at(self, root: int) -> tuple[int, ...]:
        """Return the roots of whose reading nests one is the last, rising."""
        return self._ending.get(root, ())

    @cached_property
    def _ending(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for node in self.members:
            readers = self.group.consumers(node)
            if readers:
                last = max(max(self.loops[reader]) for reader in readers)
                found.setdefault(last, []).append(node)
        return {root: tuple(sorted(nodes)) for root, nodes in found.items()}

    def overwritten(self, root: int) -> tuple[int, ...]:
        """Return the nodes whose values a nest may write its own over.

        It reads each element to make the same one, and nothing reads it later. What is
        stored, put into a border or joined with others is made where it goes: what is
        read lies apart there.
        """
        if root not in self._overwritten:
            self._overwritten[root] = tuple(self._find_overwritten(root))
        return self._overwritten[root]

    @cached_property
    def _overwritten(self) -> dict[int, tuple[int, ...]]:
        return {}

    def _find_overwritten(self, root: int) -> Iterator[int]:
        group, model = self.group, self.group.nodes[root]
        stored = {node for node, _ in group.outputs}
        if root in stored or self._is_moved(root) or not _is_identity(model):
            return
        write = model.writes[0]
        for node in self.ending_at(root):
            other = group.nodes[node]
            alike = len(other.writes) == 1 and (
                (other.writes[0].shape, other.writes[0].element_bytes)
                == (write.shape, write.element_bytes)
            )
            if alike and node not in stored and self._reads_alike(root, node):
                yield node

    def _is_moved(self, root: int) -> bool:
        """Whether a tile is a part of another one, or of a tensor."""
        group, readers = self.group, set(self.group.consumers(root))
        return not readers or any(
            read.padded or group.nodes[reader].kind is OperatorKind.CONCATENATION
            for reader in readers
            for read, maker, _ in group.inner_reads[reader]
            if maker == root
        )

    def _reads_alike(self, root: int, made: int) -> bool:
        """Whether a nest reads of what a node makes the element that it makes."""
        index = self.group.nodes[root].writes[0].index
        return all(
            not (read.gathered or read.padded or read.part)
            and _composed(read, self.loops[node][root]) == index
            for node in self.members[root]
            for read, maker, _ in self.group.inner_reads[node]
            if maker == made
        )

    def first_read(self, root: int, node: int, number: int) -> tuple[int, int]:
        """Return the first read, by node and number, of a nest that equals one."""
        return self._first_reads(root).get((node, number), (node, number))

    def transposed_reads(self, root: int) -> tuple[TransposedRead, ...]:
        """Return what a nest reads from outside of the group across its rows.

        Reductions go along the rows that they read, whatever is written.
        """
        if root not in self._transposed:
            self._transposed[root] = tuple(self._find_transposed(root))
        return self._transposed[root]

    @cached_property
    def _transposed(self) -> dict[int, tuple[TransposedRead, ...]]:
        return {}

    def _find_transposed(self, root: int) -> Iterator[TransposedRead]:
        group, model = self.group, self.group.nodes[root]
        if model.kind is not OperatorKind.ELEMENTWISE:
            return
        written = model.writes[0].index
        for node in self.members[root]:
            loops = self.loops[node][root]
            for number, read in enumerate(group.nodes[node].reads):
                inside = group.sources[node][number].producer is not None
                if inside or read.gathered or read.padded:
                    continue
                index = _composed(read, loops)
                found = transposed_read(
                    node, number, index, read.shape, written, model.extents
                )
                if found is not None:
                    yield found

    def _first_reads(self, root: int) -> dict[tuple[int, int], tuple[int, int]]:
        if root not in self._first_reads_of:
            first: dict[object, tuple[int, int]] = {}
            found: dict[tuple[int, int], tuple[int, int]] = {}
            for node in self.members[root] if len(self.members[root]) > 1 else ():
                model, sources = self.group.nodes[node], self.group.sources[node]
                for number, read in enumerate(model.reads):
                    index = _composed(read, self.loops[node][root])
                    # By the argument of one operator, others know a tensor by another.
                    kind = (read.border, read.part, read.kept, read.first)
                    key = (sources[number].tensor, index, kind, read.gathered)
                    found[node, number] = first.setdefault(key, (node, number))
            self._first_reads_of[root] = found
        return self._first_reads_of[root]

    @cached_property
    def _first_reads_of(
        self,
    ) -> dict[int, dict[tuple[int, int], tuple[int, int]]]:
        return {}


def loop_nests(group: Group, kept: frozenset[int] = frozenset()) -> LoopNests:
    """Return the loop nests of a group.

    Args:
        group: The operators.
        kept: Nodes whose values are wanted as tiles in any case.
    """
    once = _Search(group, kept, None).nests()
    # What is made again in several nests is made with all that is fused into it.
    cheap = frozenset(
        node for node in once.members if _is_cheap(once, node, group.nodes[node])
    )
    return _Search(group, kept, once, cheap).nests() if cheap else once


class _Search:
    """Decides from the last node to the first: readers are known before."""

    def __init__(
        self,
        group: Group,
        kept: frozenset[int],
        before: LoopNests | None,
        repeated: frozenset[int] = frozenset(),
    ) -> None:
        """Say what is decided already.

        Args:
            group: The operators.
            kept: Nodes that are roots in any case.
            before: Nests whose nodes stay together.
            repeated: Nodes that may be made in several nests.
        """
        self._group = group
        self._stored = kept.union(node for node, _ in group.outputs)
        self._before = before
        self._repeated = repeated
        self._readers: list[list[tuple[int, Access]]] = [[] for _ in group.nodes]
        for reader, reads in enumerate(group.inner_reads):
            for read, maker, _ in reads:
                self._readers[maker].append((reader, read))
        self._loops: list[dict[int, Loops]] = [{} for _ in group.nodes]

    def nests(self) -> LoopNests:
        """Return the nests."""
        for node in reversed(range(len(self._group.nodes))):
            found = self._fused(node) if self._may_fuse(node) else None
            self._loops[node] = found or {node: _own_loops(self._group.nodes[node])}
        return LoopNests(self._group, tuple(self._loops))

    def _may_fuse(self, node: int) -> bool:
        model = self._group.nodes[node]
        return (
            model.kind is OperatorKind.ELEMENTWISE
            and len(model.writes) == 1
            and not model.reads_results
            and node not in self._stored
            and bool(self._readers[node])
            and all(
                self._group.nodes[reader].kind in FUSING_KINDS
                and not (read.gathered or read.padded or read.part)
                for reader, read in self._readers[node]
            )
        )

    def _fused(self, node: int) -> dict[int, Loops] | None:
        """The loops of a node in the nests of its readers; None to stay a root."""
        found: dict[int, Loops] = {}
        model = self._group.nodes[node]
        for reader, read in self._readers[node]:
            for root, loops in self._loops[reader].items():
                own = _loops_for(model, _composed(read, loops))
                if found.setdefault(root, own) != own:
                    return None  # two elements are wanted at one time
        together = self._before is not None and self._before.is_fused(node)
        if len(found) > 1 and not together and node not in self._repeated:
            return None
        if _packs(model) and any(
            self._reads(root, loops) >= PACKED_READS for root, loops in found.items()
        ):
            return None
        known = all(self._has_bounds(node, r, loops) for r, loops in found.items())
        return found if known else None

    def _reads(self, root: int, loops: Loops) -> int:
        """Return how many iterations of a nest compute one element of a node in it."""
        telling = {loop for expr in loops for loop, _ in expr.terms}
        extents = self._group.nodes[root].extents
        return prod(n for loop, n in enumerate(extents) if loop not in telling)

    def _is_inside(self, node: int, root: int) -> bool:
        """Whether a node is computed within the nest of another."""
        return node != root and root in self._loops[node]

    def _has_bounds(self, node: int, root: int, loops: Loops) -> bool:
        """Whether other operands tell how far the reductions of a nest go."""
        group = self._group
        covered = {e.single_loop for r in group.nodes[node].reads for e in _known(r)}
        open_ = {
            loop
            for number, expr in enumerate(loops)
            if number not in covered
            for loop, _ in expr.terms
        }.intersection(group.nodes[root].reduction)
        if not open_:
            return True
        extents = group.nodes[root].extents
        for other in range(node + 1, root + 1):
            inside = self._loops[other].get(root)
            reads = group.nodes[other].reads if inside else ()
            for read, source in zip(reads, group.sources[other], strict=False):
                maker = source.producer
                if maker == node or inside is None:
                    continue
                told = {e.single_loop for e in _composed(read, inside) if e is not None}
                if maker is not None and self._is_inside(maker, root):
                    # No operand any more. Loops of one iteration are left out instead.
                    told = {n for n in told if n is not None and extents[n] == 1}
                open_ -= told
        return not open_


def _own_loops(model: OperatorModel) -> Loops:
    return tuple(LinearIndex(((loop, 1),)) for loop in range(len(model.extents)))


def _known(access: Access) -> Iterator[LinearIndex]:
    return (expr for expr in access.index if expr is not None)


def _composed(access: Access, loops: Loops) -> tuple[LinearIndex | None, ...]:
    return tuple(None if e is None else e.substitute(loops) for e in access.index)


def _loops_for(model: OperatorModel, index: tuple[LinearIndex | None, ...]) -> Loops:
    """The loops of an element-wise operator that make the element at an index."""
    loops = list(_own_loops(model))
    for expr, at in zip(model.writes[0].index, index, strict=True):
        assert at is not None, "readers that fuse have indices"
        for loop, _ in expr.terms if expr else ():
            loops[loop] = at
    return tuple(loops)


def _is_identity(model: OperatorModel) -> bool:
    """Whether an operator makes one tensor element by element, in its order."""
    if model.kind is not OperatorKind.ELEMENTWISE or len(model.writes) > 1:
        return False
    loops = tuple(expr and expr.single_loop for expr in model.writes[0].index)
    return loops == tuple(range(len(model.extents)))


def _packs(model: OperatorModel) -> bool:
    """Whether an operator reads across memory what it writes side by side."""
    if len(model.reads) != 1:
        return False
    (read,), written = model.reads, model.writes[0]
    moving = [expr for expr in _known(written) if expr.terms]
    last = [dim for dim, extent in enumerate(read.shape) if extent > 1][-1:]
    side_by_side = read.index[last[0]] if last else None
    if not moving or side_by_side is None:
        return False
    inner = moving[-1].single_loop
    reading = {expr.single_loop for expr in _known(read)}
    return inner in reading and side_by_side.single_loop != inner


def _is_cheap(nests: LoopNests, root: int, model: OperatorModel) -> bool:
    """Whether a nest is made of one tensor and numbers of rows or columns.

    By one or two additions or products on each element.
    """
    group = nests.group
    if not _is_identity(model) or not group.consumers(root):
        return False
    extents = model.extents
    made = _varying(model.writes[0].index, extents)
    assert made is not None, "what is made has an index"
    whole: set[object] = set()
    repeated: dict[int, int] = {}
    for node in nests.members[root]:
        counts: list[int] = []
        model = group.nodes[node]
        for number, (read, source) in enumerate(
            zip(model.reads, group.sources[node], strict=True)
        ):
            if source.producer is not None and nests.is_fused(source.producer):
                if repeated[source.producer]:
                    counts.append(_count(model, number))
                continue
            index = _varying(_composed(read, nests.loops[node][root]), extents)
            if index is None:
                return False
            if index == made:
                whole.add(source.tensor)
                counts.append(_count(model, number))
            elif len(index) >= len(made):
                return False
        if 0 in counts:
            return False
        repeated[node] = max(counts, default=0)
    return len(whole) == 1 and 0 < sum(repeated.values()) <= MOST_REPEATED


def _varying(
    index: tuple[LinearIndex | None, ...], extents: tuple[int, ...]
) -> tuple[LinearIndex, ...] | None:
    """Return the expressions of an index that differ between iterations.

    Those of loops with one iteration are left out: an operand that lacks such a
    dimension is as large as one that has it. None where an expression is not known.
    """
    found: list[LinearIndex] = []
    for expr in index:
        if expr is None:
            return None
        if any(extents[loop] > 1 for loop, _ in expr.terms):
            found.append(expr)
    return tuple(found)


def _count(model: OperatorModel, read: int) -> int:
    return model.cheap[read] if read < len(model.cheap) else 0
