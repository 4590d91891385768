"""Owns the judgement what of a group of a graph a library computes faster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from magweld.passes.tile.alike_merges import Members
from magweld.passes.tile.merger import Merger
from magweld.passes.tiling.propagation import Refusal

# What a library has to gain by the model, which knows neither of the two to a few
# percent; a call takes longer to be queued than a kernel does.
MARGIN = 0.1


@dataclass(frozen=True)
class Candidate:
    """A call of a library that may replace operators.

    Attributes:
        members: Their positions, rising; the first is the product or convolution.
        seconds: Predicted time of the call.
    """

    members: Members
    seconds: float


@dataclass(frozen=True)
class LibraryGroups:
    """Compares groups with calls of a library and kernels for what is left of them.

    Attributes:
        merger: Prices groups.
        candidates: Calls, by the position of the product or convolution.
    """

    merger: Merger
    candidates: Mapping[int, Candidate]

    def chosen(self, groups: Iterable[Members]) -> list[Candidate]:
        """Return the calls that make groups faster."""
        return [one for members in groups for one in self._of(members)]

    def _of(self, members: Members) -> tuple[Candidate, ...]:
        """Return the calls for a group: all, one, or what else pays beside the best."""
        inside = set(members)
        possible = [
            self.candidates[member]
            for member in members
            if member in self.candidates
            and inside.issuperset(self.candidates[member].members)
        ]
        best: tuple[Candidate, ...] = ()
        least = self.merger.seconds(members) * (1 - MARGIN)
        trials = [tuple(possible), *((one,) for one in possible)]
        while trials:
            found, best_trial = min(
                ((self._seconds(members, trial), trial) for trial in trials if trial),
                key=lambda one: one[0],
                default=(least, ()),
            )
            if found >= least:
                break
            least, best = found, best_trial
            left = [one for one in possible if one not in best]
            trials = [(*best, one) for one in left]
        return best

    def _seconds(self, members: Members, calls: Collection[Candidate]) -> float:
        """Return the time of some calls, and of kernels for the rest of a group."""
        library = {member for call in calls for member in call.members}
        parts = self._rest(members, library)
        return sum(call.seconds for call in calls) + sum(map(self._part, parts))

    def _part(self, members: Members) -> float:
        merger = self.merger
        alone = len(members) == 1
        if alone or not merger.group(members).outputs:
            if alone or not isinstance(merger.plan(members), Refusal):
                return merger.seconds(members)
        return sum(merger.seconds((member,)) for member in members)

    def _rest(self, members: Members, library: Collection[int]) -> Iterator[Members]:
        """Yield what can run together of the operators that no library computes.

        Values join them, and none runs before a call that another one runs behind.
        """
        depth: dict[int, int] = {}
        root: dict[int, int] = {}

        def find(member: int) -> int:
            while root[member] != member:
                member = root[member]
            return member

        inside = set(members)
        for member in members:
            root[member] = member
            read = [
                edge.producer
                for edge in self.merger.body.edges_to[member]
                if edge.producer in inside
            ]
            behind = (depth[one] + (one in library) for one in read)
            depth[member] = max(behind, default=0)
            for one in read:
                alike = depth[one] == depth[member]
                if alike and not {one, member} & set(library):
                    root[find(one)] = find(member)
        found: dict[int, list[int]] = {}
        for member in members:
            if member not in library:
                found.setdefault(find(member), []).append(member)
        yield from map(tuple, found.values())
