"""Owns products of small matrices of any size, whose sums wait in registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from llvmlite import ir

from magweld.codegen.emitter import FLOAT, POINTER, WORD, Emitter, define
from magweld.codegen.vector_kernels import VectorKernels

# Rows of a block, and vectors of each by the number of vector registers: they hold the
# sums, a row of the right matrix and an element of the left one.
_ROWS: Final = (6, 4, 2, 1)
_VECTORS: Final = {16: (2, 1), 32: (4, 2, 1)}


class Matrix(NamedTuple):
    """Where a matrix is.

    Attributes:
        address: Of its first element.
        pitch: Floats from one row to the next one.
    """

    address: Any
    pitch: Any


@dataclass(frozen=True)
class BlockProducts(VectorKernels):
    """Defines the kernels in a module."""

    def emit(
        self,
        code: Emitter,
        factors: tuple[Matrix, Matrix],
        sums: tuple[Matrix, Matrix],
        shape: tuple[Any, Any, Any],
    ) -> None:
        """Emit sums of products.

        Args:
            code: Emits.
            factors: The left and the right matrix.
            sums: What is added to the products, and where their sums go.
            shape: Rows, vectors of a row of sums, and summands of each.
        """
        left, right = factors
        rows, vectors, depth = shape
        for count, row in pieces(code, rows, _ROWS):
            for width, vector in pieces(code, vectors, _VECTORS[self.registers]):
                column = code.product(vector, self.lanes)
                arguments = [
                    code.at(left.address, code.product(row, left.pitch)),
                    left.pitch,
                    code.at(right.address, column),
                    right.pitch,
                ]
                for one in sums:
                    place = code.product(row, one.pitch)
                    arguments += [code.at(one.address, place, column), one.pitch]
                function = self.blocks[count, width]
                code.builder.call(function, [*map(code.word, arguments), depth])

    @cached_property
    def blocks(self) -> dict[tuple[int, int], ir.Function]:
        """By rows and vectors: address and pitch of four matrices, and summands."""
        return {
            (rows, vectors): self._block(rows, vectors)
            for rows in _ROWS
            for vectors in _VECTORS[self.registers]
        }

    def _block(self, rows: int, vectors: int) -> ir.Function:
        kinds = (*[POINTER, WORD] * 4, WORD)
        function = define(self.module, f"products_{rows}x{vectors}", *kinds)
        code = Emitter(function, self.lanes)
        left, pitch, right, step, first, first_pitch, into, into_pitch, depth = (
            code.arguments
        )
        places = [number * self.lanes for number in range(vectors)]
        sums = [
            [
                code.variable(code.load(first, code.product(first_pitch, row), place))
                for place in places
            ]
            for row in range(rows)
        ]
        with code.loop(0, depth) as number:
            own = code.at(right, code.product(number, step))
            values = [code.load(own, place) for place in places]
            for row, line in enumerate(sums):
                address = code.at(left, code.product(pitch, row), number)
                factor = code.spread(code.builder.load(address, typ=FLOAT, align=4))
                for one, value in zip(line, values, strict=True):
                    before = code.builder.load(one, typ=code.vector)
                    code.builder.store(code.fma(factor, value, before), one)
        for row, line in enumerate(sums):
            for place, one in zip(places, line, strict=True):
                value = code.builder.load(one, typ=code.vector)
                code.store(value, into, code.product(into_pitch, row), place)
        code.builder.ret_void()
        return function


def pieces(
    code: Emitter, total: Any, sizes: tuple[int, ...]
) -> Iterator[tuple[int, Any]]:
    """Emit loops over pieces of a range from zero, around what is emitted for each.

    Args:
        code: Emits.
        total: Where the range ends.
        sizes: Of the pieces, largest first; the last is one.

    Yields:
        The size of a piece, and the first number of one.
    """
    done = code.word(0)
    for size in sizes:
        left = code.builder.sub(code.word(total), done)
        whole = code.builder.udiv(left, code.word(size))
        end = code.sum(done, code.product(whole, size))
        with code.loop(done, end, size) as first:
            yield size, first
        done = end
