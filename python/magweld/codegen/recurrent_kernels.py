"""Owns the kernels of a layer of an LSTM, over any number of steps and sequences.

What gates have of the input is there for all steps. The weights of the state are copied
once a call, w[unit / lanes, from, gate, unit % lanes], so that a few sequences have
their four gates for a vector of units in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cached_property
from typing import Any, ClassVar, Final

from llvmlite import ir

from magweld.codegen.activations import sigmoid, tanh
from magweld.codegen.emitter import FLOAT, POINTER, WORD, Emitter, define
from magweld.codegen.shared_ranges import SharedRanges, Words
from magweld.codegen.vector_kernels import VectorKernels
from magweld.codegen.window_transforms import transposed

GATES: Final = 4
# Sequences of a block by the number of vector registers: all but those for the weights
# of four gates, and one for an element of a state, hold sums.
_BLOCKS: Final = {16: (2, 1), 32: (6, 4, 2, 1)}
# Elements of a state that a turn of the loop over them takes.
_UNROLLED: Final = 4


class Word(IntEnum):
    """Addresses, then numbers.

    `GIVEN` is [steps, sequences, 4 * units], `WEIGHT` [4 * units, units], `STATE` and
    `CELL` [sequences, units], `RESULT` [steps, sequences, units]; cells are written
    over. `PACKED` is memory for a copy of the weights. `STRIDE` leads from one step of
    the result to the next, and to `GIVEN` of it four times as far; `FIRST` is the step
    that comes first.
    """

    GIVEN = 0
    WEIGHT = auto()
    STATE = auto()
    CELL = auto()
    RESULT = auto()
    PACKED = auto()
    STEPS = auto()
    SEQUENCES = auto()
    UNITS = auto()
    BLOCKS = auto()
    FIRST = auto()
    STRIDE = auto()
    THREADS = auto()


@dataclass(frozen=True)
class RecurrentKernels(VectorKernels):
    """Defines the kernels in a module."""

    symbol: ClassVar[str] = "magweld_lstm_layer"

    def define(self) -> None:
        """Define `symbol`, which runs a layer by its words."""
        shared = SharedRanges(self.module, self.lanes, "lstm")
        pack = shared.region("pack", self._pack, Word.BLOCKS)
        steps = shared.region("steps", self._steps, Word.SEQUENCES)
        shared.entry(self.symbol, [pack, steps], Word.THREADS)

    def _pack(self, code: Emitter, address: Any, own: tuple[Any, Any, Any]) -> None:
        """Emit the copy of the weights of some blocks of units."""
        _, low, high = own
        words = Words(code, address)
        units, weight = words[Word.UNITS], words.pointer(Word.WEIGHT)
        with code.loop(low, high) as block:
            into = code.at(words.pointer(Word.PACKED), self._packed(code, units, block))
            with code.loop(0, GATES) as gate:
                first = code.sum(
                    code.product(gate, units), code.product(block, self.lanes)
                )
                rows = code.at(weight, code.product(first, units))
                with code.loop(0, units, self.lanes) as start:
                    vectors = [
                        code.load(rows, start, code.product(units, number))
                        for number in range(self.lanes)
                    ]
                    place = code.product(start, GATES * self.lanes)
                    own_gate = code.product(gate, self.lanes)
                    for number, value in enumerate(transposed(code, vectors)):
                        step = number * GATES * self.lanes
                        code.store(value, into, place, own_gate, step)

    def _packed(self, code: Emitter, units: Any, block: Any) -> Any:
        return code.product(block, units, GATES * self.lanes)

    def _steps(self, code: Emitter, address: Any, own: tuple[Any, Any, Any]) -> None:
        """Emit all steps of some sequences."""
        _, low, high = own
        words = Words(code, address)
        stride, time = words[Word.STRIDE], words[Word.FIRST]
        result = words.pointer(Word.RESULT)
        state = code.variable(words.pointer(Word.STATE))
        # In floats; steps go back where the last one is the first.
        place = code.variable(
            code.product(time, words[Word.SEQUENCES], words[Word.UNITS])
        )
        with code.loop(0, words[Word.STEPS]):
            here = code.builder.load(place, typ=WORD)
            before = code.builder.load(state, typ=POINTER)
            target = code.at(result, here)
            given = code.at(words.pointer(Word.GIVEN), code.product(here, GATES))
            with code.loop(0, words[Word.BLOCKS]) as block:
                places = (before, target, given)
                self._block(code, words, (block, low, high), places)
            code.builder.store(target, state)
            code.builder.store(code.sum(here, stride), place)

    def _block(
        self,
        code: Emitter,
        words: Words,
        own: tuple[Any, Any, Any],
        places: Sequence[Any],
    ) -> None:
        """Emit a step of some sequences for a vector of units.

        Args:
            code: Emits.
            words: Of the call.
            own: The number of the vector, the first sequence and their end.
            places: Addresses of the states before and behind, and of what is given.
        """
        block, low, high = own
        before, target, given = places
        units = words[Word.UNITS]
        unit = code.product(block, self.lanes)
        weights = code.at(words.pointer(Word.PACKED), self._packed(code, units, block))
        done = low
        for count, cells in self.cells.items():
            left = code.builder.sub(high, done)
            whole = code.builder.udiv(left, code.word(count))
            end = code.sum(done, code.product(whole, count))
            with code.loop(done, end, count) as sequence:
                row = code.product(sequence, units)
                arguments = [
                    weights,
                    code.at(given, code.product(row, GATES), unit),
                    code.at(before, row),
                    code.at(words.pointer(Word.CELL), row, unit),
                    code.at(target, row, unit),
                    units,
                ]
                code.builder.call(cells, arguments)
            done = end

    @cached_property
    def cells(self) -> dict[int, ir.Function]:
        """By how many sequences: (weights, given, state, cell, result, units)."""
        return {count: self._cells(count) for count in _BLOCKS[self.registers]}

    def _cells(self, count: int) -> ir.Function:
        kinds = (*[POINTER] * 5, WORD)
        function = define(self.module, f"lstm_cells_{count}", *kinds)
        code = Emitter(function, self.lanes)
        weights, given, state, cell, result, units = code.arguments
        rows = [code.product(units, number) for number in range(count)]
        sums = [
            [
                code.variable(
                    code.load(
                        given, code.product(row, GATES), code.product(units, gate)
                    )
                )
                for gate in range(GATES)
            ]
            for row in rows
        ]
        with code.loop(0, units, _UNROLLED) as start:
            of = code.at(weights, code.product(start, GATES * self.lanes))
            states = [code.at(state, row, start) for row in rows]
            for number in range(_UNROLLED):
                own = code.at(of, number * GATES * self.lanes)
                self._add_products(
                    code, sums, own, [code.at(s, number) for s in states]
                )
        for row, gates in zip(rows, sums, strict=True):
            values = [code.builder.load(one, typ=code.vector) for one in gates]
            self._activate(code, values, code.at(cell, row), code.at(result, row))
        code.builder.ret_void()
        return function

    def _add_products(
        self, code: Emitter, sums: Sequence[Any], weights: Any, states: Sequence[Any]
    ) -> None:
        """Emit the products with one element of each state."""
        row = [code.load(weights, gate * self.lanes) for gate in range(GATES)]
        for state, gates in zip(states, sums, strict=True):
            value = code.spread(code.builder.load(state, typ=FLOAT, align=4))
            for one, weight in zip(gates, row, strict=True):
                before = code.builder.load(one, typ=code.vector)
                code.builder.store(code.fma(value, weight, before), one)

    def _activate(
        self, code: Emitter, gates: Sequence[Any], cell: Any, result: Any
    ) -> None:
        builder = code.builder
        taken, kept, new, shown = gates
        old = builder.fmul(sigmoid(code, kept), code.load(cell, 0))
        value = code.fma(sigmoid(code, taken), tanh(code, new), old)
        code.store(value, cell, 0)
        code.store(builder.fmul(sigmoid(code, shown), tanh(code, value)), result, 0)
