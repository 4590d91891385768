"""Owns convolutions whose tiles are single results: sums become these in registers."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from llvmlite import ir

from magweld.codegen.emitter import POINTER, WORD
from magweld.codegen.window_kernels import SUMMANDS, WindowKernels
from magweld.codegen.window_results import Results
from magweld.codegen.window_words import WindowWords


@dataclass(frozen=True)
class SingleKernels(WindowKernels, ABC):
    """Defines the kernels of one way to compute such convolutions."""

    layers: ClassVar[int] = 1

    @cached_property
    def chunk(self) -> ir.Function:
        """(words, tile, count, block, tiles, weights, sums): results of some tiles."""
        kinds = (POINTER, WORD, WORD, WORD, POINTER, POINTER, POINTER)
        function, code = self.begin("chunk", *kinds)
        address, tile, count, block, tiles, weights, _ = code.arguments
        filters = code.product(block, self.filters)

        def multiply(product: ir.Function, number: Any) -> None:
            own = code.at(tiles, code.product(number, self.lanes))
            first = code.sum(tile, number)
            code.builder.call(product, [address, own, weights, first, filters])

        self.in_blocks(code, count, self._finished, multiply)
        code.builder.ret_void()
        return function

    @cached_property
    def _finished(self) -> dict[int, ir.Function]:
        """By their number of tiles, (words, tiles, weights, tile, filters).

        They make the results of tiles from one on, for filters from one on.
        """
        return {tiles: self._finish(tiles) for tiles in self.products}

    def _finish(self, tiles: int) -> ir.Function:
        kinds = (POINTER, POINTER, POINTER, WORD, WORD)
        function, code = self.begin(f"finished_{tiles}", *kinds)
        address, source, weights, tile, filters = code.arguments
        words = WindowWords(code, address)
        sizes = [words[one] for one in SUMMANDS]
        sums = self.sums(code, tiles, (source, weights), sizes)
        results = Results.begin(code, words, filters, self.vectors)
        results.note_numbers([value for row in sums for value in row])
        results.store(tile, sums)
        results.end()
        code.builder.ret_void()
        return function
