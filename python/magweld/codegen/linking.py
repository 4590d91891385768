"""Owns the linking of object files to one image that needs no linker to be loaded.

It takes what LLVM makes of position-independent code of the small code model for
x86-64: no data that is written, no thread-local data. The format is that of the System
V ABI, AMD64 supplement.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from magweld.codegen.host import CodegenError
from magweld.codegen.launch import PARALLEL_SYMBOL

PAGE = 4096
# What an image may call, beside what it defines: nothing else is in every C library.
IMPORTS = frozenset(
    {
        *("memcpy", "memmove", "memset", "malloc", "free", PARALLEL_SYMBOL),
        *("pow", "powf", "fmod", "fmodf"),
    }
)

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_RELOCATABLE, _X86_64 = 1, 62
_SYMTAB, _RELA, _NOBITS, _UNWIND = 2, 4, 8, 0x70000001
_WRITE, _ALLOC, _EXECUTE, _THREAD = 1, 2, 4, 0x400
_UNDEFINED = 0
_LOCAL, _WEAK = 0, 2

# Kinds of relocations.
_RELATIVE_32 = (2, 4)  # PC32, PLT32
_RELATIVE_64 = 24
_THROUGH_SLOT = (9, 41, 42)  # GOTPCREL and its forms that a linker may relax

# jmp *[rip + distance], then int3 up to the next stub
_STUB = struct.Struct("<2si2s")


@dataclass(frozen=True)
class Image:
    """Code and constants as they are in memory, but for addresses of imports.

    Attributes:
        data: The bytes; they are placed at an address that is a multiple of `PAGE`.
        text_bytes: Bytes that are code, a multiple of `PAGE`; the rest is read only
            once it is loaded.
        imports: Where the address of each imported function goes, with its name.
        symbols: Where its functions are.
    """

    data: bytes = field(repr=False)
    text_bytes: int
    imports: tuple[tuple[int, str], ...]
    symbols: dict[str, int] = field(repr=False)


def link(objects: Sequence[bytes]) -> Image:
    """Link object files.

    Raises:
        CodegenError: They have data that is written, an import that is none of
            `IMPORTS`, or what this linker does not know.
    """
    return _Linker([_Object.parse(data) for data in objects]).image()


@dataclass(frozen=True)
class _Section:
    number: int
    flags: int
    data: bytes
    alignment: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: int
    value: int
    binding: int


@dataclass(frozen=True)
class _Relocation:
    section: int
    offset: int
    kind: int
    symbol: _Symbol
    addend: int


@dataclass(frozen=True)
class _Object:
    sections: tuple[_Section, ...]
    symbols: tuple[_Symbol, ...]
    relocations: tuple[_Relocation, ...]

    @staticmethod
    def parse(data: bytes) -> _Object:
        header = _HEADER.unpack_from(data)
        ident, kind, machine, start, count = (header[i] for i in (0, 1, 2, 6, 12))
        if ident[:6] != b"\x7fELF\x02\x01" or (kind, machine) != (
            _RELOCATABLE,
            _X86_64,
        ):
            raise CodegenError("cannot link: no relocatable object file for x86-64")
        rows = [
            _SECTION.unpack_from(data, start + number * _SECTION.size)
            for number in range(count)
        ]
        (table,) = (row for row in rows if row[1] == _SYMTAB)
        symbols = tuple(_symbols(data, table, rows[table[6]]))
        return _Object(
            tuple(_sections(data, rows)),
            symbols,
            tuple(_relocations(data, rows, symbols)),
        )


def _sections(data: bytes, rows: Sequence[tuple[int, ...]]) -> list[_Section]:
    found = []
    for number, row in enumerate(rows):
        _, kind, flags, _, offset, size, _, _, alignment, _ = row
        # Unwinding: nothing is thrown through this code.
        if not flags & _ALLOC or kind == _UNWIND or not size:
            continue
        if flags & (_WRITE | _THREAD) or kind == _NOBITS:
            raise CodegenError("cannot link: the code has data that is written")
        content = data[offset : offset + size]
        found.append(_Section(number, flags, content, max(alignment, 1)))
    return found


def _symbols(
    data: bytes, table: tuple[int, ...], strings: tuple[int, ...]
) -> list[_Symbol]:
    found = []
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, info, _, section, value, _ = _SYMBOL.unpack_from(data, at)
        begin = strings[4] + name
        text = data[begin : data.index(b"\0", begin)].decode()
        found.append(_Symbol(text, section, value, info >> 4))
    return found


def _relocations(
    data: bytes, rows: Sequence[tuple[int, ...]], symbols: Sequence[_Symbol]
) -> list[_Relocation]:
    found = []
    for _, kind, _, _, offset, size, _, target, _, _ in rows:
        if kind != _RELA or rows[target][1] == _UNWIND or not rows[target][2] & _ALLOC:
            continue
        for at in range(offset, offset + size, _RELOCATION.size):
            place, info, addend = _RELOCATION.unpack_from(data, at)
            symbol = symbols[info >> 32]
            number = info & 0xFFFFFFFF
            found.append(_Relocation(target, place, number, symbol, addend))
    return found


class _Linker:
    """Places sections: code, stubs of imports, constants, slots of imports."""

    def __init__(self, objects: Sequence[_Object]) -> None:
        self._objects = objects
        self._places: dict[tuple[int, int], int] = {}
        self._data = bytearray()
        self._place(executable=True)
        self._globals = self._find_globals()
        imported = self._imported()
        self._stubs = {name: self._reserve(_STUB.size) for name in imported}
        self._text_bytes = self._align(PAGE)
        self._place(executable=False)
        self._slots = {name: self._reserve(8) for name in imported}
        self._align(PAGE)

    def image(self) -> Image:
        for name, at in self._stubs.items():
            distance = self._slots[name] - (at + 6)
            _STUB.pack_into(self._data, at, b"\xff\x25", distance, b"\xcc\xcc")
        for number, one in enumerate(self._objects):
            for relocation in one.relocations:
                self._apply(number, relocation)
        imports = tuple((slot, name) for name, slot in self._slots.items())
        return Image(bytes(self._data), self._text_bytes, imports, self._globals)

    def _align(self, alignment: int) -> int:
        self._data += bytes(-len(self._data) % alignment)
        return len(self._data)

    def _reserve(self, size: int) -> int:
        at = self._align(size)
        self._data += bytes(size)
        return at

    def _place(self, *, executable: bool) -> None:
        for number, one in enumerate(self._objects):
            for section in one.sections:
                if bool(section.flags & _EXECUTE) == executable:
                    at = self._align(section.alignment)
                    self._places[number, section.number] = at
                    self._data += section.data

    def _find_globals(self) -> dict[str, int]:
        """Return where functions are that other objects may call."""
        found: dict[str, int] = {}
        weak: dict[str, int] = {}
        for number, one in enumerate(self._objects):
            for symbol in one.symbols:
                place = self._places.get((number, symbol.section))
                if symbol.binding == _LOCAL or place is None:
                    continue
                if symbol.binding == _WEAK:
                    weak.setdefault(symbol.name, place + symbol.value)
                elif symbol.name in found:
                    raise CodegenError(f"cannot link: two functions '{symbol.name}'")
                else:
                    found[symbol.name] = place + symbol.value
        return {**weak, **found}

    def _imported(self) -> list[str]:
        names = {
            relocation.symbol.name
            for one in self._objects
            for relocation in one.relocations
            if relocation.symbol.section == _UNDEFINED
        } - self._globals.keys()
        unknown = sorted(names - IMPORTS)
        if unknown:
            raise CodegenError(
                f"cannot link: the code calls {', '.join(unknown)}, which is not in "
                "every C library"
            )
        return sorted(names)

    def _apply(self, number: int, relocation: _Relocation) -> None:
        at = self._places[number, relocation.section] + relocation.offset
        target = self._target(number, relocation) + relocation.addend
        if relocation.kind == _RELATIVE_64:
            struct.pack_into("<q", self._data, at, target - at)
            return
        try:
            struct.pack_into("<i", self._data, at, target - at)
        except struct.error as error:
            raise CodegenError("cannot link: the code is larger than 2 GiB") from error

    def _target(self, number: int, relocation: _Relocation) -> int:
        symbol = relocation.symbol
        if relocation.kind in _THROUGH_SLOT and symbol.name in self._slots:
            return self._slots[symbol.name]
        if relocation.kind not in (*_RELATIVE_32, _RELATIVE_64):
            raise CodegenError(f"cannot link: relocation of kind {relocation.kind}")
        if symbol.binding != _LOCAL and symbol.name in self._globals:
            return self._globals[symbol.name]
        if symbol.section == _UNDEFINED:
            return self._stubs[symbol.name]
        place = self._places.get((number, symbol.section))
        if place is None:
            raise CodegenError(f"cannot link: symbol '{symbol.name}'")
        return place + symbol.value
