"""Owns native code for convolutions of images of any size, and its calls."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from llvmlite import ir

from magweld.codegen.host import HostTarget, emit_object
from magweld.codegen.loader import LoadedObjects
from magweld.codegen.shared_code import SharedCode, WordsFunction
from magweld.codegen.window_filtering import FilteringKernels
from magweld.codegen.window_kernels import WindowKernels, vectors_of
from magweld.codegen.window_maxima import SYMBOL, MaximaKernels
from magweld.codegen.window_products import ProductKernels
from magweld.codegen.window_ranges import WindowRanges
from magweld.codegen.window_rows import RowKernels
from magweld.codegen.window_sizes import WORDS, WindowCall, WindowSizes
from magweld.codegen.window_words import Word


class WindowCode:
    """The native code, in memory as long as this value."""

    @staticmethod
    def emit() -> bytes:
        """Compile it for the CPU of this process; return the object file."""
        module = ir.Module(name="windows")
        for kernels in _kernels_in(module):
            WindowRanges(kernels).define()
        MaximaKernels(module, *_hardware()).define()
        return emit_object([str(module)], HostTarget.detect())

    def __init__(self, code: bytes) -> None:
        """Load an object file."""
        kernels = _kernels_in(ir.Module(name="windows"))
        symbols = [WindowRanges(one).symbol for one in kernels]
        objects = LoadedObjects([code], [*symbols, SYMBOL])
        functions = (WordsFunction(objects, one) for one in symbols)
        self._ways = list(zip(kernels, functions, strict=True))
        self._maxima = WordsFunction(objects, SYMBOL)

    def plan(self, sizes: WindowSizes, threads: int) -> WindowCall:
        """Return the call of a convolution.

        Args:
            sizes: Its sizes.
            threads: At most so many run it.
        """
        kernels, _ = self._way(sizes)
        return WindowCall.plan(sizes, kernels, threads)

    def run(
        self,
        sizes: WindowSizes,
        call: WindowCall,
        addresses: Mapping[Word, int],
        room: int,
    ) -> bool:
        """Run a convolution; return whether all sums are finite numbers.

        Where one is not, results may be others than those of a sum of products.

        Args:
            sizes: Its sizes.
            call: What `plan` returned for them.
            addresses: Words that are addresses, distances in the image, and whether
                results are rectified.
            room: The address of `call.floats` floats.
        """
        words = WORDS.from_buffer_copy(call.words)
        for word, value in addresses.items():
            words[word] = value
        for word, begin in call.rooms.items():
            words[word] = room + begin
        _, function = self._way(sizes)
        function(words)
        return bool(words[Word.IS_FINITE])

    def find_largest(self, call: bytes, addresses: Mapping[Word, int]) -> None:
        """Find the largest elements of windows.

        Args:
            call: The words, without addresses.
            addresses: Those of the image and the result.
        """
        words = WORDS.from_buffer_copy(call)
        for word, value in addresses.items():
            words[word] = value
        self._maxima(words)

    def _way(self, sizes: WindowSizes) -> tuple[WindowKernels, WordsFunction]:
        """Return what computes a convolution."""
        filtering, products, rows = self._ways
        if not sizes.is_deep:
            return rows
        return filtering if sizes.is_filtered else products


@functools.cache
def channel_units() -> tuple[int, int]:
    """Return what channels of images, and of results, have to be multiples of."""
    target = HostTarget.detect()
    lanes = target.float_lanes
    return lanes, vectors_of(target.vector_registers) * lanes


def _kernels_in(module: ir.Module) -> list[WindowKernels]:
    kinds = (FilteringKernels, ProductKernels, RowKernels)
    return [kind(module, *_hardware()) for kind in kinds]


def _hardware() -> tuple[int, int]:
    """Return the floats of a vector of the CPU, and how many vectors it holds."""
    target = HostTarget.detect()
    return target.float_lanes, target.vector_registers


WINDOW_CODE: Final = SharedCode("windows", WindowCode.emit, WindowCode)
