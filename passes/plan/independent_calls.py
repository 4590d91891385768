"""Owns the search for calls of which none waits for another, and their joining.

What becomes one launch is found here: sets of calls that are independent at one time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from magweld.bindings import func, ir
from magweld.dialects.tile_graph import EXTERNAL, OPERATORS
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import Declarations, callee_of

# Operators that a remark names.
_SHOWN_OPERATORS = 6


@dataclass
class Calls:
    """The operations of a function in order, and what they wait for.

    Attributes:
        operations: All but the terminator.
        readers: For each the positions of those that have to run behind it.
        waits: How many operations each waits for.
        levels: For each the most calls that wait for each other up to it, itself
            included if it is one.
    """

    operations: list[Any]
    readers: list[list[int]]
    waits: list[int]
    levels: list[int]

    @classmethod
    def read(cls, function: Any, functions: Mapping[str, Any]) -> Calls:
        """Read the body of a function."""
        *operations, _ = (op.operation for op in function.entry_block.operations)
        positions = {op: position for position, op in enumerate(operations)}
        levels: list[int] = []
        readers: list[list[int]] = [[] for _ in operations]
        waits = [0] * len(operations)
        external = -1
        for position, op in enumerate(operations):
            makers = {positions[m] for m in _makers(op) if m in positions}
            callee = called_by(op)
            if callee and EXTERNAL in functions[callee].attributes:
                # What torch runs may have effects of its own: random numbers.
                makers |= {external} - {-1}
                external = position
            for maker in makers:
                readers[maker].append(position)
            waits[position] = len(makers)
            level = max((levels[maker] for maker in makers), default=0)
            levels.append(level + bool(callee))
        return cls(operations, readers, waits, levels)


@dataclass
class Search:
    """Finds sets of independent calls of one kind.

    It runs through a function as far as values allow, and waits with the calls of which
    there are more of a kind: those that wait at one time are independent. The kind of
    which no more can come goes first, else the one of which most wait.

    Attributes:
        calls: All operations.
        kinds: The kind of each call that may be in a set, by its position.
        minimum: Fewest members of a set.
        most: Most members by kind, 0 for no limit.
        depth: Most levels between members, 0 for no limit.
        found: The sets.
        deep: Calls that the depth keeps apart.
    """

    calls: Calls
    kinds: Mapping[int, str]
    minimum: int
    most: Mapping[str, int]
    depth: int = 0
    found: list[list[int]] = field(init=False, default_factory=list)
    deep: set[int] = field(init=False, default_factory=set)
    _left: Counter[str] = field(init=False)
    _waiting: dict[str, list[int]] = field(init=False, default_factory=dict)
    _free: deque[int] = field(init=False, default_factory=deque)

    def run(self) -> list[list[int]]:
        """Return the sets, their members in order."""
        self._left = Counter(self.kinds.values())
        waits = list(self.calls.waits)
        for position, count in enumerate(waits):
            if not count:
                self._arrive(position)
        while self._free or self._waiting:
            done = [self._free.popleft()] if self._free else self._leave()
            for position in done:
                for reader in self.calls.readers[position]:
                    waits[reader] -= 1
                    if not waits[reader]:
                        self._arrive(reader)
        return self.found

    def _arrive(self, position: int) -> None:
        kind = self.kinds.get(position)
        if kind is None or self._left[kind] < self.minimum:
            self._free.append(position)
        else:
            self._waiting.setdefault(kind, []).append(position)

    def _leave(self) -> list[int]:
        """Let the calls of one kind run, as sets if they are enough."""
        kind = min(self._waiting, key=self._rank)
        members = sorted(self._waiting.pop(kind))
        self._left[kind] -= len(members)
        near = self._near(members)
        for one in near:
            if len(near) > 1 and len(one) < self.minimum:
                self.deep.update(one)
            size = self.most[kind] or len(one)
            sets = [one[i : i + size] for i in range(0, len(one), size)]
            self.found += [s for s in sets if len(s) >= self.minimum]
        return members

    def _near(self, members: list[int]) -> list[list[int]]:
        """Part calls so that the levels of each part are within the depth."""
        if not self.depth:
            return [members]
        level = self.calls.levels
        parts: list[list[int]] = []
        for member in sorted(members, key=lambda m: (level[m], m)):
            if parts and level[member] - level[parts[-1][0]] <= self.depth:
                parts[-1].append(member)
            else:
                parts.append([member])
        return [sorted(part) for part in parts]

    def _rank(self, kind: str) -> tuple[bool, int]:
        here = len(self._waiting[kind])
        return here < self._left[kind], -here


def called_by(op: Any) -> str:
    """Return the name of the function that an operation calls, "" if it is no call."""
    return callee_of(op) if op.name == "func.call" else ""


def bring_together(function: Any, calls: Calls, found: Sequence[Sequence[int]]) -> None:
    """Bring the members of each set side by side; the rest moves as little as it can.

    A set has the place of its last member. Of what may run, the first goes first.
    """
    place = list(range(len(calls.operations)))
    for members in found:
        for member in members:
            place[member] = members[-1]
    members_at: dict[int, list[int]] = {}
    for position, at in enumerate(place):
        members_at.setdefault(at, []).append(position)
    waits = {at: sum(calls.waits[m] for m in ms) for at, ms in members_at.items()}
    ready = [at for at, count in waits.items() if not count]
    heapify(ready)
    *_, terminator = function.entry_block.operations
    while ready:
        for position in members_at[heappop(ready)]:
            calls.operations[position].move_before(terminator.operation)
            for reader in calls.readers[position]:
                waits[place[reader]] -= 1
                if not waits[place[reader]]:
                    heappush(ready, place[reader])


def join_calls(
    module: Any, calls: Sequence[Any], prefix: str, attribute: tuple[str, Any]
) -> None:
    """Replace calls, side by side, by one of a new declaration.

    Its operands are those of one call after another, then the destinations of all. What
    the calls compute is told as a list for each.

    Args:
        module: Where the declaration goes.
        calls: Calls whose last operands are the destinations of their results.
        prefix: How its name begins.
        attribute: Name and value of what the declaration stands for.
    """
    owns = [len(call.operands) - len(call.results) for call in calls]
    both = [(list(call.operands), own) for call, own in zip(calls, owns, strict=True)]
    operands = [value for values, own in both for value in values[:own]]
    operands += [value for values, own in both for value in values[own:]]
    results = [value for call in calls for value in call.results]
    types = [v.type for v in operands], [v.type for v in results]
    with calls[-1].location:
        declared = Declarations(module).add(prefix, *types)
    key, value = attribute
    declared.attributes[key] = value
    with ir.InsertionPoint(calls[-1]), calls[-1].location:
        made = func.CallOp(declared, operands)
    made.attributes[OPERATORS] = ir.ArrayAttr.get(
        [call.attributes[OPERATORS] for call in calls]
    )
    for before, after in zip(results, made.results, strict=True):
        before.replace_all_uses_with(after)
    for call in calls:
        call.erase()


def shown(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _SHOWN_OPERATORS
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(names[:_SHOWN_OPERATORS]) + rest


def _makers(op: Any) -> Iterator[Any]:
    for value in op.operands:
        producer = defining_op(value)
        if producer is not None:
            yield producer.operation
