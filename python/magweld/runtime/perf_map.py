"""Owns the map by which Linux `perf` names generated code: /tmp/perf-PID.map.

Object files tell where in its section each function is, and how long; the loader tells
where some of them have come to. A section is loaded as it is, so that gives the others.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

# `perf` looks here, whatever TMPDIR says.
_FOLDER: Final = Path("/tmp")
_MODE: Final = 0o600
# Of the ELF format for 64 bits, little endian.
_SECTIONS_AT: Final = struct.Struct("<40xQ10xHH2x")
_SECTION: Final = struct.Struct("<4xI16xQQI12xQ")
_SYMBOL: Final = struct.Struct("<IBxHQQ")
_SYMBOL_TABLE: Final = 2
_FUNCTION: Final = 2


class _Symbol(NamedTuple):
    """A function in an object file: its section, offset and size in bytes."""

    name: str
    section: int
    offset: int
    size: int


def write_perf_map(
    objects: Sequence[bytes],
    address_of: Callable[[str], int],
    names: Mapping[str, str],
) -> None:
    """Add the functions of some object files to the map of this process.

    Args:
        objects: ELF files for 64 bits, as they were loaded.
        address_of: Where a function is that the names name; KeyError if it is not
            known.
        names: What to show for functions, by symbol. Others are shown by their symbol.

    Raises:
        OSError: The map cannot be written.
    """
    lines = [
        f"{address:x} {symbol.size:x} {names.get(symbol.name, symbol.name)}\n"
        for data in objects
        for address, symbol in _placed(list(_functions(data)), address_of)
    ]
    # Others write to the map, too: CPython its trampolines, threads their kernels.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(_FOLDER / f"perf-{os.getpid()}.map", flags, _MODE)
    try:
        os.write(file, "".join(lines).encode())
    finally:
        os.close(file)


def _placed(
    functions: Sequence[_Symbol], address_of: Callable[[str], int]
) -> Iterator[tuple[int, _Symbol]]:
    """Yield the functions of one object file with their addresses."""
    begins: dict[int, int] = {}
    for one in functions:
        try:
            begins.setdefault(one.section, address_of(one.name) - one.offset)
        except KeyError:
            continue  # only what programs call is known by name
    for one in functions:
        if one.section in begins:
            yield begins[one.section] + one.offset, one


def _functions(data: bytes) -> Iterator[_Symbol]:
    """Yield the functions that an object file defines."""
    start, size, count = _SECTIONS_AT.unpack_from(data)
    sections = [_SECTION.unpack_from(data, start + i * size) for i in range(count)]
    for kind, offset, length, link, entry in sections:
        if kind != _SYMBOL_TABLE:
            continue
        texts = sections[link][1]
        for at in range(offset, offset + length, entry):
            name_at, info, section, value, extent = _SYMBOL.unpack_from(data, at)
            if info & 0xF == _FUNCTION and section and extent:
                begin = texts + name_at
                name = data[begin : data.index(b"\0", begin)].decode()
                yield _Symbol(name, section, value, extent)
