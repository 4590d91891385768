"""Owns the step from a program's object code to functions that can be called."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from magweld.artifact import NativeCheck
from magweld.codegen.loader import LoadedObjects, LoadError
from magweld.runtime.address_writer import WRITER_SYMBOL, address_writer
from magweld.runtime.errors import ProgramError
from magweld.runtime.layout import Layout
from magweld.runtime.native_steps import NativeStep
from magweld.runtime.perf_map import write_perf_map
from magweld.runtime.sequence import (
    CONTROL_SYMBOL,
    LOOP_SYMBOL,
    MOVE_WORDS,
    SEQUENCE_SYMBOL,
    sequence_object,
)
from magweld.runtime.whole_calls import WholeCalls, is_whole

_LOG = logging.getLogger(__name__)
_SEQUENCE_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)
_LOOP_TYPE = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p),
    *(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64),
)
_CONTROL_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p),
)
_MEMMOVE = ctypes.cast(ctypes.memmove, ctypes.c_void_p)


class Kernels:
    """The launch functions of a program, in memory as long as this value.

    Args:
        objects: Object files of the host.
        symbols: The launch functions, `void symbol(int64_t* table)`.

    Attributes:
        write_addresses: Writes the addresses of tensors to memory, if native code can.

    Raises:
        ProgramError: Not object code of this machine, or a symbol is missing.
    """

    def __init__(self, objects: Sequence[bytes], symbols: Sequence[str]) -> None:
        self._objects = [*objects, sequence_object()]
        try:
            own = (SEQUENCE_SYMBOL, LOOP_SYMBOL, CONTROL_SYMBOL, WRITER_SYMBOL)
            self._code = LoadedObjects(self._objects, [*symbols, *own])
        except LoadError as error:
            raise ProgramError("bad-object-code", str(error)) from error
        self._run_sequence = _SEQUENCE_TYPE(self._code.address(SEQUENCE_SYMBOL))
        self._run_loop = _LOOP_TYPE(self._code.address(LOOP_SYMBOL))
        self._run_control = _CONTROL_TYPE(self._code.address(CONTROL_SYMBOL))
        self.write_addresses = address_writer(self._code.address(WRITER_SYMBOL))

    def name_for_perf(self, names: Mapping[str, str]) -> None:
        """Name the code for Linux `perf`; a map that cannot be written is no error.

        Args:
            names: What to show for functions, by symbol.
        """
        try:
            write_perf_map(self._objects, self._code.address, names)
        except OSError as error:
            _LOG.warning("kernels have no names in perf: %s", error)

    def launcher(
        self, symbols: Sequence[str], table_address: int
    ) -> Callable[[], object]:
        """Return a function that runs these kernels one after the other.

        It does so without the interpreter lock: kernels of concurrent calls run at
        the same time.

        Args:
            symbols: Some of the launch functions, in order.
            table_address: The table that each of them gets.
        """
        launches = self.launches(symbols)
        return partial(self._run_sequence, launches, len(launches), table_address)

    def looper(
        self, symbols: Sequence[str], table_address: int, trips: int, moves: list[int]
    ) -> Callable[[], object]:
        """Return a function that runs these kernels several times; see `launcher`.

        Args:
            symbols: Some of the launch functions, in order.
            table_address: The table that each of them gets.
            trips: How often.
            moves: What is done to the table each time, three words a move; see
                `sequence_object`.
        """
        launches = self.launches(symbols)
        words = (ctypes.c_int64 * len(moves))(*moves)
        return partial(
            self._run_loop,
            launches,
            *(len(launches), table_address, trips),
            *(words, len(moves) // MOVE_WORDS),
        )

    def address_of(self, symbol: str) -> int:
        """Return the address of a launch function."""
        return self._code.address(symbol)

    def control(self, code: int, place: int, jumps: int) -> int:
        """Carry out instructions as `sequence_object` says.

        Args:
            code: Their address.
            place: The one to begin with.
            jumps: How often they may go back.
        """
        answer: int = self._run_control(code, place, jumps, _MEMMOVE)
        return answer

    def whole_calls(
        self,
        layout: Layout,
        checks: Mapping[int, NativeCheck],
        natives: Mapping[str, NativeStep],
    ) -> WholeCalls | None:
        """Return what makes a program's call one function for a table of addresses.

        None if it cannot be one.

        Args:
            layout: The program.
            checks: Steps that are checks of indices in native code, by step number.
            natives: What runs external steps on addresses, by node.
        """
        if not is_whole(layout, checks, natives):
            return None
        return WholeCalls(layout, self.address_of, checks, natives)

    def launches(self, symbols: Sequence[str]) -> ctypes.Array[ctypes.c_int64]:
        """Return the addresses of launch functions, one after the other."""
        addresses = [self._code.address(symbol) for symbol in symbols]
        return (ctypes.c_int64 * len(addresses))(*addresses)
