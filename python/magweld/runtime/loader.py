"""Owns the step from a program's object code to functions that can be called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from llvmlite import binding

from magweld.runtime.errors import ProgramError

# Releases the interpreter lock: kernels of concurrent calls run at the same time.
_LAUNCH_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True)
class Kernels:
    """Launch functions of a program by symbol; each takes the table's address.

    Attributes:
        functions: Callables that run without the interpreter lock.
        code: Keeps the machine code in memory.
    """

    functions: Mapping[str, Callable[[int], object]]
    code: object


def load_kernels(objects: Sequence[bytes], symbols: Sequence[str]) -> Kernels:
    """Load object files and return their launch functions.

    Raises:
        ProgramError: Not object code of this machine, or a symbol is missing.
    """
    if not symbols:
        return Kernels({}, None)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    jit = binding.create_lljit_compiler(machine)
    library = binding.JITLibraryBuilder()
    for data in objects:
        library.add_object_img(data)
    for symbol in symbols:
        library.export_symbol(symbol)
    try:
        code = library.link(jit, uuid4().hex)
    except RuntimeError as error:
        raise ProgramError("bad-object-code", f"cannot load kernels: {error}") from error
    return Kernels({s: _LAUNCH_TYPE(code[s]) for s in symbols}, (jit, code))
