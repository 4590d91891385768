"""Owns the loading of object code into this process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding as llvm

from magweld.codegen.host import HostTarget
from magweld.diagnostics import MagweldError

_OPENMP_SYMBOLS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
_MAPS = Path("/proc/self/maps")


class LoadError(MagweldError):
    """Object code that cannot be used in this process."""


class LoadedObjects:
    """Object code in memory; its functions live as long as this value.

    Attributes:
        parallel: Whether kernels run on several threads; without an OpenMP runtime
            in the process they run on the calling thread.
    """

    def __init__(self, objects: Sequence[bytes]) -> None:
        """Load object files and link them to the OpenMP runtime of the process.

        Raises:
            LoadError: An object file is damaged or needs an unknown symbol.
        """
        runtime = openmp_symbols()
        self.parallel = runtime is not None
        # A runtime of our own beside another would be a second pool of threads
        # that spins for the same cores.
        self._serial = None if runtime is not None else _SerialRuntime()
        symbols = runtime or self._serial.symbols()
        for name, address in symbols.items():
            llvm.add_symbol(name, address)
        machine = HostTarget.detect().machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        for data in objects:
            self._add(data)
        self._engine.finalize_object()

    def _add(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF":
            raise LoadError("the object code is no ELF file")
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))

    def address(self, symbol: str) -> int:
        """Return the address of a function.

        Raises:
            LoadError: No loaded object defines it.
        """
        address = int(self._engine.get_function_address(symbol))
        if not address:
            raise LoadError(f"the object code does not define '{symbol}'")
        return address
