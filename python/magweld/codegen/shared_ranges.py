"""Owns how threads share out the numbers of a range, and words of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from magweld.codegen.emitter import INT, POINTER, VOID, WORD, Emitter, define

# (words, number of the thread, first, end)
_RANGE: Final = (POINTER, WORD, WORD, WORD)

# Takes what emits a function, the address of its words, and the thread's number, the
# first number of its share and their end.
EmitRange = Callable[[Emitter, Any, tuple[Any, Any, Any]], None]


@dataclass(frozen=True)
class Words:
    """The words of a call, as the code of a kernel reads them."""

    code: Emitter
    address: Any

    def __getitem__(self, word: int) -> Any:
        """Return a number."""
        return self.code.builder.load(self.slot(word), typ=WORD)

    def set(self, word: int, value: Any) -> None:
        """Write a number."""
        self.code.builder.store(value, self.slot(word))

    def slot(self, word: int) -> Any:
        """Return where a word is."""
        number = [self.code.word(int(word))]
        return self.code.builder.gep(self.address, number, source_etype=WORD)

    def pointer(self, word: int) -> Any:
        """Return an address."""
        return self.code.builder.inttoptr(self[word], POINTER)

    def is_set(self, word: int) -> Any:
        """Return whether a number is not zero."""
        return self.code.builder.icmp_unsigned("!=", self[word], self.code.word(0))


@dataclass(frozen=True)
class SharedRanges:
    """Defines functions that threads of the process's OpenMP runtime run.

    Attributes:
        module: Where they are defined.
        lanes: Floats of a vector.
        name: What names of functions begin with.
    """

    module: ir.Module
    lanes: int
    name: str

    def region(self, name: str, emit: EmitRange, total: int) -> ir.Function:
        """Return what each thread runs: its share of a range.

        Args:
            name: Of the range.
            emit: Emits what is done with a share.
            total: The word that tells where the range, from zero, ends.
        """
        function = define(self.module, f"{self.name}_{name}_range", *_RANGE)
        code = Emitter(function, self.lanes)
        address, *own = code.arguments
        emit(code, address, (own[0], own[1], own[2]))
        code.builder.ret_void()
        region = define(self.module, f"{self.name}_{name}_region", POINTER)
        code = Emitter(region, self.lanes)
        (address,) = code.arguments
        number, count = (
            code.builder.zext(code.builder.call(self._number(name), []), WORD)
            for name in ("omp_get_thread_num", "omp_get_num_threads")
        )
        whole = Words(code, address)[total]
        bounds = [
            code.builder.udiv(code.product(one, whole), count)
            for one in (number, code.sum(number, 1))
        ]
        code.builder.call(function, [address, number, *bounds])
        code.builder.ret_void()
        return region

    def entry(
        self, symbol: str, regions: Sequence[ir.Function], threads: int
    ) -> ir.Function:
        """Define a function that starts regions one after another by its words.

        Args:
            symbol: Its name.
            regions: What threads run.
            threads: The word that tells how many there are.
        """
        function = ir.Function(self.module, ir.FunctionType(VOID, [POINTER]), symbol)
        code = Emitter(function, self.lanes)
        (address,) = code.arguments
        words = Words(code, address)
        for region in regions:
            self.start(words, region, threads)
        code.builder.ret_void()
        return function

    def start(self, words: Words, region: Any, threads: int) -> None:
        """Emit the start of a region.

        Args:
            words: Of the call.
            region: What the threads run.
            threads: The word that tells how many there are.
        """
        kind = ir.FunctionType(VOID, [POINTER, POINTER, INT, INT])
        function = self._runtime("GOMP_parallel", kind)
        builder = words.code.builder
        count = builder.trunc(words[threads], INT)
        builder.call(function, [region, words.address, count, ir.Constant(INT, 0)])

    def _number(self, name: str) -> ir.Function:
        return self._runtime(name, ir.FunctionType(INT, []))

    def _runtime(self, name: str, kind: ir.FunctionType) -> ir.Function:
        return self.module.globals.get(name) or ir.Function(self.module, kind, name)
