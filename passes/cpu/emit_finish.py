"""Owns the emission of what is made of totals while they are in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from magweld.bindings import ir
from magweld.passes.cpu.emit_body import emit_body
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_cursor import Cursor, Fetcher
from magweld.passes.cpu.emit_index import Index
from magweld.passes.cpu.emit_prefetch import NEAREST, fetch_line, is_far

# Steps of a reduction for each operand that is fetched, so that products come first.
STEPS = 16


@dataclass
class Finish:
    """An operation that runs element by element on the totals of a nest.

    Attributes:
        block: Its body, which reads no output.
        inputs: Its inputs, addressed in the loops of the nest; None for the total.
        outputs: Its outputs, likewise.
        used: Whether the body reads each input.
        keeps: Whether the nest stores the totals as well.
    """

    block: ir.Block
    inputs: Sequence[Operand | None]
    outputs: Sequence[FlatBuffer]
    used: Sequence[bool]
    keeps: bool
    _fetcher: Fetcher | None = field(default=None, init=False)

    def fetch(self, cursor: Cursor, points: Sequence[Mapping[int, int]]) -> None:
        """Fetch what comes from far away while a register tile is summed up.

        Rows of an operand are far apart, pieces of a line or two in pages of their own:
        prefetchers of processors do not find them, and all would be waited for behind
        the sums.

        Args:
            cursor: Where the register tile is.
            points: Those of the tile.
        """
        far = [
            buffer
            for buffer, used in zip(self.inputs, self.used, strict=True)
            if used and isinstance(buffer, FlatBuffer) and _comes_from_far(buffer)
        ]
        steps = prod(cursor.nest.extents[d] for d in cursor.reductions)
        rows = [b for b in far if cursor.vector_stride(b) == 1]
        for buffer in rows if steps >= STEPS * len(rows) else ():
            for position in points:
                fetch_line(buffer, cursor.index(buffer, position), NEAREST)

    def begin(self, cursor: Cursor, parallel: Sequence[int]) -> None:
        """Start with a register tile, for which every input is loaded once."""
        operands = [operand for operand in self.inputs if operand is not None]
        self._fetcher = Fetcher(cursor, operands, parallel)

    def emit(self, position: Mapping[int, int], total: ir.Value, lanes: int) -> None:
        """Emit the operation at one point of the register tile."""
        fetcher = self._fetcher
        assert fetcher is not None, "a register tile has begun"
        values: list[ir.Value | None] = []
        number = 0
        for operand, used in zip(self.inputs, self.used, strict=True):
            if operand is None:
                values.append(total)
                continue
            values.append(fetcher.fetch(number, position, lanes) if used else None)
            number += 1
        nothing = [None] * len(self.outputs)
        results = emit_body(self.block, [*values, *nothing], lambda _: (Index(), 1))
        for buffer, result in zip(self.outputs, results, strict=True):
            fetcher.cursor.store(buffer, result, position, lanes)


def _comes_from_far(buffer: FlatBuffer) -> bool:
    return buffer.unit == 1 and is_far(buffer.view)
