"""Owns functions of torch's libraries that native code calls, by their addresses."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Final

import torch

CPU_LIBRARY: Final = "libtorch_cpu.so"
PYTHON_LIBRARY: Final = "libtorch_python.so"


@functools.cache
def torch_library(name: str) -> ctypes.CDLL | None:
    """Return a library that torch has loaded; None if it is not there."""
    path = Path(torch.__file__).parent / "lib" / name
    # It is loaded: this counts a reference and runs nothing.
    return ctypes.CDLL(str(path)) if path.exists() else None


def torch_address(library: str, function: str) -> int:
    """Return the address of a function of a library; 0 if there is none."""
    found = getattr(torch_library(library), function, None)
    return 0 if found is None else ctypes.cast(found, ctypes.c_void_p).value or 0
