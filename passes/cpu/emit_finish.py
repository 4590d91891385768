"""Owns the emission of what is made of totals while they are in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from magweld.bindings import ir
from magweld.passes.cpu.emit_body import emit_body
from magweld.passes.cpu.emit_buffer import FlatBuffer, Operand
from magweld.passes.cpu.emit_cursor import Cursor, Fetcher
from magweld.passes.cpu.emit_index import Index


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

    @property
    def reads(self) -> list[FlatBuffer]:
        """Buffers that the body reads beside the total."""
        return [
            buffer
            for buffer, used in zip(self.inputs, self.used, strict=True)
            if used and isinstance(buffer, FlatBuffer)
        ]

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
