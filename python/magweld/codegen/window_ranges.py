"""Owns what each thread does of a convolution, and its start.

Either threads share out blocks of tiles, whose transforms then stay in a core's caches,
and the weights of all filters are transformed before; or they share out blocks of
filters, whose weights do, and all tiles are transformed before. Images with few
channels are copied with a border first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from llvmlite import ir

from magweld.codegen.emitter import POINTER, VOID, Emitter
from magweld.codegen.shared_ranges import SharedRanges
from magweld.codegen.window_kernels import CHUNK, WindowKernels
from magweld.codegen.window_results import emit_terms
from magweld.codegen.window_words import WindowWords, Word


@dataclass(frozen=True)
class WindowRanges:
    """Defines the functions that run kernels.

    Attributes:
        kernels: The kernels.
    """

    kernels: WindowKernels

    @property
    def symbol(self) -> str:
        """Name of the function that runs a convolution by its words."""
        return f"magweld_{self.kernels.name}"

    def define(self) -> None:
        """Define that function and what it calls."""
        kernels = self.kernels
        shared = SharedRanges(kernels.module, kernels.lanes, kernels.name)
        first = [self._region(shared, one) for one in (_image, _weights)]
        second = [self._region(shared, one) for one in (_filters, _tiles)]
        kind = ir.FunctionType(VOID, [POINTER])
        function = ir.Function(kernels.module, kind, self.symbol)
        code = Emitter(function, kernels.lanes)
        (address,) = code.arguments
        words = WindowWords(code, address)
        emit_terms(code, words)
        if kernels.border is not None:
            region = self._region(shared, _border)
            shared.start(words, region, Word.THREADS)
        by_filters = words.is_set(Word.BY_FILTERS)
        for one, other in (first, second):
            region = code.builder.select(by_filters, one, other)
            shared.start(words, region, Word.THREADS)
        code.builder.ret_void()

    def _region(self, shared: SharedRanges, emit: Any) -> ir.Function:
        """Return what threads run of a part of the convolution."""
        total = _TOTALS.get(emit, Word.SECOND_TOTAL)
        name = emit.__name__.lstrip("_")
        return shared.region(name, partial(emit, self.kernels), total)


def _border(kernels: WindowKernels, code: Emitter, address: Any, own: Any) -> None:
    """Emit the copies of some rows of images."""
    _, low, high = own
    code.builder.call(kernels.border, [address, low, high])


def _image(kernels: WindowKernels, code: Emitter, address: Any, own: Any) -> None:
    """Emit the transforms of some tiles."""
    _, low, high = own
    tiles = WindowWords(code, address).pointer(Word.TILES)
    into = code.at(tiles, code.product(low, kernels.lanes))
    count = code.builder.sub(high, low)
    code.builder.call(kernels.image, [address, low, count, into])


def _weights(kernels: WindowKernels, code: Emitter, address: Any, own: Any) -> None:
    """Emit the transforms of the weights of some blocks of filters."""
    _, low, high = own
    words = WindowWords(code, address)
    with code.loop(low, high) as block:
        into = _weights_of(kernels, code, words, block)
        code.builder.call(kernels.weights, [address, block, into])


def _filters(kernels: WindowKernels, code: Emitter, address: Any, own: Any) -> None:
    """Emit the results of some blocks of filters for all tiles."""
    thread, low, high = own
    words = WindowWords(code, address)
    tiles = words.pointer(Word.TILES)
    weights = _weights_of(kernels, code, words, thread)
    with code.loop(low, high) as block:
        code.builder.call(kernels.weights, [address, block, weights])
        operands = (tiles, weights)
        own = (0, words[Word.COUNT])
        _multiply(kernels, code, words, (thread, block), operands, own)


def _tiles(kernels: WindowKernels, code: Emitter, address: Any, own: Any) -> None:
    """Emit the results of some blocks of tiles for all filters."""
    thread, low, high = own
    words = WindowWords(code, address)
    layers = code.product(words[Word.TILE_LAYER], kernels.layers)
    tiles = code.at(words.pointer(Word.TILES), code.product(thread, layers))
    size, all_tiles = words[Word.BLOCK], words[Word.COUNT]
    blocks = code.builder.udiv(words[Word.FILTERS], code.word(kernels.filters))
    with code.loop(low, high) as number:
        first = code.product(number, size)
        count = code.least(size, code.builder.sub(all_tiles, first))
        code.builder.call(kernels.image, [address, first, count, tiles])
        with code.loop(0, blocks) as block:
            operands = (tiles, _weights_of(kernels, code, words, block))
            _multiply(kernels, code, words, (thread, block), operands, (first, count))


def _weights_of(
    kernels: WindowKernels, code: Emitter, words: WindowWords, number: Any
) -> Any:
    """Return the address of transformed weights, of a block or a thread."""
    layers = code.product(words[Word.WEIGHT_LAYER], kernels.layers)
    return code.at(words.pointer(Word.WEIGHTS), code.product(number, layers))


def _multiply(
    kernels: WindowKernels,
    code: Emitter,
    words: WindowWords,
    who: tuple[Any, Any],
    operands: Sequence[Any],
    own: tuple[Any, Any],
) -> None:
    """Emit the results of tiles in chunks.

    Args:
        kernels: The kernels.
        code: Emits.
        words: Of the call.
        who: The number of the thread, and the block of filters.
        operands: The addresses of transformed tiles and weights.
        own: The first of the tiles, and how many there are.
    """
    thread, block = who
    tiles, weights = operands
    first, count = own
    room = code.product(thread, kernels.sum_layer * kernels.layers)
    sums = code.at(words.pointer(Word.SUMS), room)
    with code.loop(0, count, CHUNK) as begin:
        some = code.least(CHUNK, code.builder.sub(count, begin))
        of = code.at(tiles, code.product(begin, kernels.lanes))
        tile = code.sum(first, begin)
        arguments = [words.address, tile, some, block, of, weights, sums]
        code.builder.call(kernels.chunk, arguments)


# What threads share out before they compute results.
_TOTALS: Final[dict[Any, Word]] = {
    _border: Word.BORDERED_ROWS,
    _image: Word.FIRST_TOTAL,
    _weights: Word.FIRST_TOTAL,
}
