"""Owns the files that tell whether compiled code of a graph was faster than torch."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict
from typing import Final

from magweld import env
from magweld.runtime.cache import FileCache, Format
from magweld.runtime.container import ContainerError, seal, unseal_under
from magweld.tiers import Verdict


def encode_verdict(verdict: Verdict, key: bytes) -> bytes:
    """Return the bytes of a verdict under a key."""
    return seal([key, json.dumps(asdict(verdict)).encode()])


def decode_verdict(data: bytes, key: bytes) -> Verdict:
    """Return the verdict of a key.

    Raises:
        ContainerError: Truncated, altered or of another key.
    """
    content = unseal_under(data, key)
    try:
        found = json.loads(content)
        return Verdict(float(found["compiled_seconds"]), float(found["torch_seconds"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ContainerError(f"no verdict: {error}") from error


_FORMAT: Final = Format("verdict cache", ".verdict", encode_verdict, decode_verdict)
_VERSION: Final = 1
_MAX_BYTES: Final = 16 << 20


@functools.cache
def verdict_cache() -> FileCache[Verdict] | None:
    """Return what earlier processes have measured, None without a cache on disk."""
    if not env.CACHE.get():
        return None
    directory = env.CACHE_DIR.get() / f"verdicts-v{_VERSION}"
    return FileCache(directory, _MAX_BYTES, _FORMAT)
