"""Owns the files of native code that all programs share, and who compiles it.

It is compiled in a worker, so that calls of the program keep the processor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from magweld import env
from magweld.codegen.attention_code import ATTENTION_CODE
from magweld.codegen.host import HostTarget
from magweld.codegen.recurrent_code import RECURRENT_CODE
from magweld.codegen.shared_code import SharedCode
from magweld.codegen.window_code import WINDOW_CODE
from magweld.diagnostics import MagweldError
from magweld.runtime.cache import FileCache, Format
from magweld.runtime.container import seal, unseal_under
from magweld.runtime.fingerprint import compiler_identity, program_key

_KNOWN: Final = {one.name: one for one in (ATTENTION_CODE, RECURRENT_CODE, WINDOW_CODE)}
_TASK: Final = "magweld.native_code:emit"
_VERSION: Final = 1
_MAX_BYTES: Final = 16 << 20

# Runs a task, "module:function", on a payload.
Run = Callable[[str, bytes], bytes]


def encode_code(code: bytes, key: bytes) -> bytes:
    """Return the bytes of an object file under a key."""
    return seal([key, code])


def decode_code(data: bytes, key: bytes) -> bytes:
    """Return the object file of a key.

    Raises:
        ContainerError: Truncated, altered or of another key.
    """
    return unseal_under(data, key)


_FORMAT: Final = Format("cache of shared code", ".code", encode_code, decode_code)


def emit(payload: bytes) -> bytes:
    """Compile shared code for the CPU of this process.

    Args:
        payload: Its name, and the features of the CPU that it is for, line by line.

    Raises:
        MagweldError: This process has other features: the environment has changed.
    """
    name, features = payload.decode().split("\n")
    if features != HostTarget.detect().features:
        raise MagweldError(f"a worker was started for another CPU than '{features}'")
    return _KNOWN[name].emit()


def request(name: str) -> bytes:
    """Return the payload that asks for shared code for the CPU of this process."""
    return f"{name}\n{HostTarget.detect().features}".encode()


@functools.cache
def code_cache() -> FileCache[bytes] | None:
    """Return what earlier processes have compiled, None without a cache on disk."""
    if not env.CACHE.get():
        return None
    directory = env.CACHE_DIR.get() / f"shared-code-v{_VERSION}"
    return FileCache(directory, _MAX_BYTES, _FORMAT)


def obtain(
    code: SharedCode[Any], run: Run, cache: FileCache[bytes] | None = None
) -> bytes:
    """Return the object file of shared code, from the cache or from a worker.

    Raises:
        WorkerError: The worker refused, or did not come back.
    """
    key = program_key(compiler_identity(), "shared code", code.name)
    found = cache.get(key) if cache else None
    if found is None:
        found = run(_TASK, request(code.name))
        if cache:
            cache.put(key, found)
    return found
