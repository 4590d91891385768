"""Owns the loading of object code into this process and its link to OpenMP."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import llvmlite.binding as llvm

from magweld.codegen.host import HostTarget, emit_object
from magweld.diagnostics import MagweldError

_LOG = logging.getLogger(__name__)
_MAPS = Path("/proc/self/maps")
# Files of the runtimes that define GNU OpenMP's entry points.
_RUNTIMES = ("libgomp", "libiomp5", "libomp")
_RUNTIME_SYMBOLS = ("GOMP_parallel", "omp_get_num_threads", "omp_get_thread_num")
_ELF = b"\x7fELF"

# Stands in for a runtime that the process does not have: one thread runs it all.
_SERIAL_RUNTIME = """
define void @GOMP_parallel(ptr %region, ptr %data, i32 %threads, i32 %flags) {
  call void %region(ptr %data)
  ret void
}
define i32 @omp_get_num_threads() { ret i32 1 }
define i32 @omp_get_thread_num() { ret i32 0 }
"""


class LoadError(MagweldError):
    """Object code that cannot be used in this process."""


class LoadedObjects:
    """Object code in memory; its functions live as long as this value.

    Attributes:
        parallel: Whether kernels run on several threads. A runtime of our own beside
            the one of the process would be a second pool of threads that spins for
            the same cores, so without one they run on the calling thread.
    """

    def __init__(self, objects: Sequence[bytes], symbols: Sequence[str]) -> None:
        """Load object files and link them to the OpenMP runtime of the process.

        Args:
            objects: Relocatable object files.
            symbols: The functions whose addresses are wanted.

        Raises:
            LoadError: An object file is damaged, or a symbol is not defined.
        """
        runtime = find_openmp()
        self.parallel = runtime is not None
        target = HostTarget.detect()
        library = llvm.JITLibraryBuilder().add_current_process()
        if runtime is None:
            _LOG.warning("no OpenMP runtime in the process: kernels run on one thread")
            objects = [*objects, emit_object([_SERIAL_RUNTIME], target)]
        for name, address in (runtime or {}).items():
            library.import_symbol(name, address)
        for data in objects:
            if not data.startswith(_ELF):
                raise LoadError("cannot load kernels: the object code is no ELF file")
            library.add_object_img(data)
        for symbol in symbols:
            library.export_symbol(symbol)
        # The compiler must outlive what it linked.
        self._compiler = llvm.create_lljit_compiler(target.machine())
        try:
            self._code = library.link(self._compiler, uuid4().hex)
        except RuntimeError as error:
            raise LoadError(f"cannot load kernels: {error}") from error

    def address(self, symbol: str) -> int:
        """Return the address of one of the wanted functions.

        Raises:
            KeyError: It is none of them.
        """
        return int(self._code[symbol])


def find_openmp() -> Mapping[str, int] | None:
    """Return the addresses of the OpenMP entry points that the process has loaded.

    The library is looked for among the files mapped into the process, since one that
    came with an extension module is not visible to a global lookup.
    """
    for library in _loaded_libraries():
        found = {name: _address(library, name) for name in _RUNTIME_SYMBOLS}
        if all(found.values()):
            return found
    return None


def _loaded_libraries() -> Iterator[ctypes.CDLL]:
    lines = _MAPS.read_text().splitlines() if _MAPS.exists() else []
    paths = dict.fromkeys(line.split(maxsplit=5)[-1] for line in lines)
    for path in paths:
        if Path(path).name.startswith(_RUNTIMES):
            # It is loaded: this counts a reference and runs nothing.
            yield ctypes.CDLL(path)
    yield ctypes.CDLL(None)


def _address(library: ctypes.CDLL, name: str) -> int:
    function = getattr(library, name, None)
    return (ctypes.cast(function, ctypes.c_void_p).value or 0) if function else 0
