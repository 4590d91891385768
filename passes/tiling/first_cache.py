"""Owns the shape of a core's first cache, which decides what meets in its sets."""

from __future__ import annotations

# Bytes of a line, sets, and ways of a set: of the defaults for processors in
# devices.toml (32 KiB in lines of 64 bytes). Larger first caches have more ways.
LINE_BYTES, SETS, WAYS = 64, 64, 8
