"""Owns writing bytecode: instructions, location tables, exception tables."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

UNIT: Final = 2  # bytes of one code unit
# By number up to 3.12, then by name.
_CACHES: Final[Any] = getattr(dis, "_inline_cache_entries", ())
_HAS_PRECALL: Final = sys.version_info < (3, 12)


class Region(NamedTuple):
    """One entry of an exception table; offsets in bytes.

    Attributes:
        start: First covered byte.
        end: First byte behind.
        target: Offset of the handler.
        depth: Values that stay on the stack.
        lasti: Whether the offset of the raising instruction is pushed as well.
    """

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


class Writer:
    """Bytecode in the making.

    Attributes:
        code: The bytes so far.
    """

    def __init__(self) -> None:
        self.code = bytearray()

    @property
    def offset(self) -> int:
        """Offset of the next instruction."""
        return len(self.code)

    def emit(self, name: str, arg: int = 0) -> None:
        """Append an instruction with its prefixes and caches."""
        opcode = dis.opmap[name]
        for shift in (24, 16, 8):
            if arg >> shift:
                self.code += bytes((dis.EXTENDED_ARG, arg >> shift & 0xFF))
        self.code += bytes((opcode, arg & 0xFF))
        self.code += bytes(UNIT * _caches(name))

    def emit_call(self) -> None:
        """Append a call without arguments of a callable beside an empty slot."""
        if _HAS_PRECALL:
            self.emit("PRECALL", 0)
        self.emit("CALL", 0)


def _caches(name: str) -> int:
    """Return the number of cache entries behind an instruction."""
    if isinstance(_CACHES, dict):
        return int(_CACHES.get(name, 0))
    return int(_CACHES[dis.opmap[name]])


def size_of(name: str, arg: int) -> int:
    """Return the number of bytes of an instruction."""
    writer = Writer()
    writer.emit(name, arg)
    return writer.offset


def location_table(prelude: int, jump: int, line: int, old: bytes, tail: int) -> bytes:
    """Return the location table of code with a prelude and a tail.

    Args:
        prelude: Bytes before the final jump of the prelude.
        jump: Bytes of this jump.
        line: Line of the prelude, relative to the first line of the function.
        old: Table of the original code, which follows.
        tail: Bytes behind the original code; they get no line.
    """
    table = location_entries(prelude, line) + location_entries(jump, -line) + old
    return table + location_entries(tail, None)


_NO_COLUMNS: Final = 13
_NO_LOCATION: Final = 15
_LONGEST: Final = 8  # code units of one entry


def location_entries(size: int, line: int | None) -> bytes:
    """Return the part of a location table for code that has one line, or none.

    Args:
        size: Bytes of the code.
        line: Its line, relative to the one before.
    """
    result = bytearray()
    units = size // UNIT
    while units > 0:
        length = min(units, _LONGEST)
        kind = _NO_LOCATION if line is None else _NO_COLUMNS
        result.append(0x80 | kind << 3 | length - 1)
        if line is not None:
            result += _signed(line)
            line = 0
        units -= length
    return bytes(result)


def _signed(value: int) -> bytes:
    value = -value << 1 | 1 if value < 0 else value << 1
    result = bytearray()
    while value >= 0x40:
        result.append(0x40 | value & 0x3F)
        value >>= 6
    result.append(value)
    return bytes(result)


def exception_table(regions: Iterable[Region]) -> bytes:
    """Return an exception table; the regions must not overlap."""
    result = bytearray()
    for region in sorted(regions):
        fields = (
            region.start // UNIT,
            (region.end - region.start) // UNIT,
            region.target // UNIT,
            region.depth << 1 | region.lasti,
        )
        for index, field in enumerate(fields):
            result += _big_endian(field, first=index == 0)
    return bytes(result)


def _big_endian(value: int, first: bool) -> bytes:
    parts = [value & 0x3F]
    while value := value >> 6:
        parts.append(0x40 | value & 0x3F)
    parts.reverse()
    if first:
        parts[0] |= 0x80
    return bytes(parts)


def cut_regions(regions: Iterable[Region], offsets: Iterable[int]) -> list[Region]:
    """Take single instruction units out of the regions that cover them."""
    result = list(regions)
    for offset in offsets:
        pieces: list[Region] = []
        for region in result:
            if not region.start <= offset < region.end:
                pieces.append(region)
                continue
            if region.start < offset:
                pieces.append(region._replace(end=offset))
            if offset + UNIT < region.end:
                pieces.append(region._replace(start=offset + UNIT))
        result = pieces
    return result
