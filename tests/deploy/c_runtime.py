"""The C runtime as Python sees it through ctypes; built with a C compiler if any."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SOURCES = Path(str(resources.files("magweld.deploy")))
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
CODES = {"float32": 1, "float64": 2, "int64": 5, "int32": 6, "bool": 10}
NAMES = {code: name for name, code in CODES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8),
    ]


class Options(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int32), ("level", ctypes.c_int32)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 256)]


class RuntimeFailure(Exception):
    def __init__(self, error: Error, status: int) -> None:
        assert error.status == status
        super().__init__(error.text.decode())
        self.status = status


def compilers() -> list[str]:
    return [name for name in ("clang", "gcc", "cc") if shutil.which(name)]


def build(output: Path, *arguments: object, compiler: str = "") -> bool:
    """Compile; skip the test without a compiler, return whether it has the flags."""
    compiler = compiler or next(iter(compilers()), "cc")
    if not shutil.which(compiler):
        pytest.skip("no C compiler: cc, gcc or clang")
    command = [compiler, *STRICT, *arguments, "-o", output, "-lm", "-pthread"]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    sanitized = any("sanitize" in str(argument) for argument in arguments)
    missing = sanitized and "cannot find" in run.stderr
    assert missing or run.returncode == 0, run.stderr
    return not missing


def tensor_of(array: np.ndarray[Any, Any]) -> Tensor:
    """Describe an array; its memory stays its own."""
    strides = [stride // array.itemsize for stride in array.strides]
    return Tensor(
        array.ctypes.data,
        CODES[str(array.dtype)],
        array.ndim,
        (ctypes.c_int64 * 8)(*array.shape),
        (ctypes.c_int64 * 8)(*strides),
    )


class Model:
    """A loaded model of the C runtime."""

    def __init__(
        self,
        library: ctypes.CDLL,
        path: Path,
        threads: int = 2,
        level: int = 0,
        public_key: Path | None = None,
    ) -> None:
        load, names = library.magweld_load, [path]
        if public_key is not None:
            load, names = library.magweld_load_verified, [path, public_key]
        self._library = library
        self._model = ctypes.c_void_p()
        options, error = Options(threads, level), Error()
        status = load(
            *(str(name).encode() for name in names),
            ctypes.byref(options),
            ctypes.byref(self._model),
            ctypes.byref(error),
        )
        if status:
            assert not self._model
            raise RuntimeFailure(error, status)

    def close(self) -> None:
        self._library.magweld_free(self._model)

    def number(self, function: str) -> int:
        return int(getattr(self._library, function)(self._model))

    def names(self, kind: str) -> list[str]:
        name = getattr(self._library, f"magweld_{kind}_name")
        name.restype = ctypes.c_char_p
        count = self.number(f"magweld_{kind}_count")
        assert name(self._model, ctypes.c_size_t(count)) is None
        return [name(self._model, ctypes.c_size_t(i)).decode() for i in range(count)]

    def describe(self, kind: str, form: int, number: int) -> tuple[str, list[int]]:
        found = Tensor()
        function = getattr(self._library, f"magweld_describe_{kind}")
        status = function(
            self._model,
            ctypes.c_size_t(form),
            ctypes.c_size_t(number),
            ctypes.byref(found),
        )
        assert status == 0
        return NAMES[found.dtype], list(found.shape[: found.rank])

    def run(
        self,
        inputs: Sequence[np.ndarray[Any, Any]],
        outputs: Sequence[np.ndarray[Any, Any] | None] = (),
    ) -> list[np.ndarray[Any, Any]]:
        """Run; outputs that are not given are allocated by the runtime and copied."""
        count = self.number("magweld_output_count")
        given = (Tensor * max(len(inputs), 1))(*map(tensor_of, inputs))
        found = (Tensor * count)()
        for number, array in enumerate(outputs):
            if array is not None:
                found[number] = tensor_of(array)
        error = Error()
        status = self._library.magweld_run(
            self._model, given, found, ctypes.byref(error)
        )
        if status:
            raise RuntimeFailure(error, status)
        results = []
        for number, one in enumerate(found):
            mine = number < len(outputs) and outputs[number] is not None
            results.append(self._array(one))
            if not mine:
                self._library.magweld_release(ctypes.byref(one))
        return results

    @staticmethod
    def _array(one: Tensor) -> np.ndarray[Any, Any]:
        dtype, shape = np.dtype(NAMES[one.dtype]), list(one.shape[: one.rank])
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        assert one.data % 64 % dtype.itemsize == 0
        return np.frombuffer(ctypes.string_at(one.data, count), dtype).reshape(shape)
