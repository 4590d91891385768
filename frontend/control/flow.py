"""Owns the control flow of a code object: where branches join, which slots live."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from magweld.frontend.monitor.code_table import CodeTable, Row
from magweld.frontend.segments.liveness import Liveness

_EXITS: Final = ("RETURN_VALUE", "RETURN_CONST")


@dataclass(frozen=True)
class Join:
    """Where the two branches of a conditional jump meet.

    Attributes:
        ends: Offsets of the instructions before which the branches end.
        returns: Whether the branches end by returning from the function.
        tests: Offsets of comparisons that end them when they test their results.
    """

    ends: frozenset[int]
    returns: bool
    tests: frozenset[int] = frozenset()


class FlowGraph:
    """Successors, joins and live slots of one code object."""

    def __init__(self, table: CodeTable) -> None:
        self.code = table.code
        self.rows = {row.offset: row for row in table.rows if row is not None}
        self._starts = {at * 2: row.offset for at, row in _indexed(table)}
        self._after = {at: self._known(row.normal) for at, row in self.rows.items()}
        self._caught = {at: self._known(row.handlers) for at, row in self.rows.items()}
        self._exits = frozenset(
            at for at, row in self.rows.items() if row.opname in _EXITS
        )
        self._dominators = self._post_dominators()
        self._liveness = Liveness(self.code)

    def successors(self, row: Row) -> tuple[int, ...]:
        """Return the offsets that may follow when no exception is raised."""
        return self._after[row.offset]

    def is_exit(self, row: Row) -> bool:
        """Return whether an instruction returns from the function."""
        return row.offset in self._exits

    def only_raises(self, start: int) -> bool:
        """Return whether every way from an instruction ends with an exception.

        One that the same function handles is none.
        """
        region = self.between((self.real_offset(start),), frozenset())
        ends = [row.opname for row in region if not self._after[row.offset]]
        return (
            bool(ends)
            and all(name == "RAISE_VARARGS" for name in ends)
            and not any(row.handlers for row in region)
        )

    def settle(self, offset: int, moves: tuple[str, ...]) -> int:
        """Return the first instruction from `offset` on that does something.

        Args:
            moves: Names of instructions that only go on elsewhere.
        """
        seen = set()
        while self.rows[offset].opname in moves and offset not in seen:
            seen.add(offset)
            offset = self._after[offset][0]
        return offset

    def real_offset(self, offset: int) -> int:
        """Return the offset of the instruction whose prefixes begin at `offset`."""
        return self._starts.get(offset, offset)

    def join(self, row: Row) -> Join | None:
        """Return where all ways from a conditional jump meet, None if nowhere."""
        # The nearest of the instructions that every way passes is dominated by all.
        candidates = self._dominators[row.offset] & ~self._bit(row.offset)
        for at in self.rows:
            mine = self._bit(at)
            if candidates & mine and candidates == self._dominators[at] & candidates:
                if self._exits == {at}:
                    return Join(self._exits, True)
                return Join(frozenset({at}), False)
        return Join(self._exits, True) if self._exits else None

    def live(self, offset: int) -> frozenset[int]:
        """Return the slots that may be read before they are written again."""
        return self._liveness.at(offset)

    def live_after(self, row: Row) -> frozenset[int]:
        """Return the slots that may be read after an instruction that is running."""
        result: frozenset[int] = frozenset()
        for at in (*self._after[row.offset], *self._caught[row.offset]):
            result |= self.live(at)
        return result

    def between(self, starts: tuple[int, ...], ends: frozenset[int]) -> list[Row]:
        """Return the instructions on the ways from some instructions to the ends."""
        seen: set[int] = set()
        work = [at for at in starts if at not in ends]
        while work:
            at = work.pop()
            if at not in seen:
                seen.add(at)
                work += [after for after in self._after[at] if after not in ends]
        return [self.rows[at] for at in sorted(seen)]

    def _known(self, offsets: frozenset[int]) -> tuple[int, ...]:
        real = (self.real_offset(at) for at in sorted(offsets))
        return tuple(at for at in real if at in self.rows)

    def _bit(self, offset: int) -> int:
        return 1 << (offset // 2)

    def _post_dominators(self) -> dict[int, int]:
        everything = (1 << (len(self.code.co_code) // 2 + 1)) - 1
        result = dict.fromkeys(self.rows, everything)
        changed = True
        while changed:
            changed = False
            for at in reversed(self.rows):
                common = 0 if at in self._exits else everything
                for after in self._after[at]:
                    common &= result[after]
                common |= self._bit(at)
                if common != result[at]:
                    result[at], changed = common, True
        return result


def _indexed(table: CodeTable) -> list[tuple[int, Row]]:
    return [(at, row) for at, row in enumerate(table.rows) if row is not None]


@functools.lru_cache(maxsize=1024)
def flow_of(table: CodeTable) -> FlowGraph:
    """Return the flow of a code object; it depends on nothing but the code."""
    return FlowGraph(table)
