"""Owns the reading of device tables: every field checked, every wrong one reported."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from magweld.diagnostics import UnsupportedError
from magweld.targets.device import (
    HALF_WINDOW_PASSES,
    LAUNCH_SECONDS,
    LIBRARY_OPERATIONS,
    PRODUCT_SLOTS,
    SHARED_SUM_PASSES,
    WINDOW_PASSES,
    Device,
    Instruction,
    Level,
    LevelKind,
    LibraryRate,
    Peak,
)

# `#`, `+` and `@` mean something in the references to devices, `.` in TOML.
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SOURCES = "sources"
# Numbers travel as 64 bits in the IR.
_LIMIT = 1 << 63


@dataclass(frozen=True)
class DeviceEntry:
    """A device as a file describes it.

    Attributes:
        device: What plans are made for.
        target: Target text of the code that runs on it, "" if none is generated.
        host: The memory outside of the device, None if the entry states none.
        sources: Where each number comes from: "levels.l2.capacity" -> text.
    """

    device: Device
    target: str = ""
    host: Level | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Field:
    """What a key of a table has to hold."""

    expected: str
    holds: Callable[[Any], bool]
    required: bool = True


def _is_count(value: Any, least: int = 1) -> bool:
    return type(value) is int and least <= value < _LIMIT


def _is_rate(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < _LIMIT


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_count, value))


_KINDS = [str(kind) for kind in LevelKind]
_TEXT = _Field("a text that is not empty", lambda v: isinstance(v, str) and v != "")
_COUNT = _Field("a whole number of at least 1", _is_count)
_RATE = _Field("a positive number", _is_rate)
_LEVEL: Mapping[str, _Field] = {
    "name": _TEXT,
    "capacity": _Field(
        "a whole number of bytes, 0 if unbounded", lambda v: _is_count(v, 0)
    ),
    "bandwidth": _RATE,
    "transaction": _COUNT,
    "units": _COUNT,
    "kind": _Field(f"one of {', '.join(_KINDS)}", lambda v: v in _KINDS),
    "write_bandwidth": _Field(_RATE.expected, _is_rate, required=False),
    "write_transaction": _Field(_COUNT.expected, _is_count, required=False),
}
_PEAK: Mapping[str, _Field] = {"dtype": _TEXT, "gflops": _RATE}
_INSTRUCTION: Mapping[str, _Field] = {
    "name": _TEXT,
    "shape": _Field("three whole numbers of at least 1: m, n, k", _is_shape),
    "operand": _TEXT,
    "accumulator": _TEXT,
    "gflops": _RATE,
}
_LIBRARY: Mapping[str, _Field] = {
    "name": _TEXT,
    "operation": _Field(
        f"one of {', '.join(LIBRARY_OPERATIONS)}", lambda v: v in LIBRARY_OPERATIONS
    ),
    "operand": _TEXT,
    "gflops": _RATE,
}
# What devices need not state of threads that share tiles.
_PASSES = {
    "window_passes": WINDOW_PASSES,
    "half_window_passes": HALF_WINDOW_PASSES,
    "shared_sum_passes": SHARED_SUM_PASSES,
    "product_slots": PRODUCT_SLOTS,
}
_DEVICE: Mapping[str, _Field] = {
    "units": _COUNT,
    "threads": _COUNT,
    "warp": _COUNT,
    "vector_bits": _COUNT,
    "peak_gflops": _RATE,
    "launch_seconds": _Field(_RATE.expected, _is_rate, required=False),
    **{key: _Field(_RATE.expected, _is_rate, required=False) for key in _PASSES},
    "target": _Field(_TEXT.expected, _TEXT.holds, required=False),
}
# Arrays of tables in a device: their fields, and the field that names one.
_PARTS: Mapping[str, tuple[Mapping[str, _Field], str]] = {
    "levels": (_LEVEL, "name"),
    "peaks": (_PEAK, "dtype"),
    "instructions": (_INSTRUCTION, "name"),
    "libraries": (_LIBRARY, "name"),
}


def read_devices(path: Path) -> dict[str, DeviceEntry]:
    """Return the devices of a TOML file by name.

    Raises:
        UnsupportedError: `invalid-device-file`; the reason has a line for each field
            that is wrong, with the file, the key and what was expected.
    """
    if path.exists() and not path.is_file():
        # Reading a pipe that nobody writes to would never end.
        raise _invalid([f"{path}: expected a TOML file: it is no regular file"])
    try:
        text = path.read_text("utf-8")
        tables = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _invalid([f"{path}: expected a TOML file: {error}"]) from error
    return entries_of(tables, str(path))


def entries_of(tables: Mapping[str, Any], file: str) -> dict[str, DeviceEntry]:
    """Return the devices of parsed TOML by name.

    Args:
        tables: One table for each device.
        file: Name of the file, for errors.

    Raises:
        UnsupportedError: `invalid-device-file`.
    """
    reader = _Reader(file)
    entries = {name: reader.device(name, table) for name, table in tables.items()}
    if not entries:
        reader.problems.append(f"{file}: expected at least one device")
    if reader.problems:
        raise _invalid(reader.problems)
    return {name: entry for name, entry in entries.items() if entry is not None}


def _invalid(problems: list[str]) -> UnsupportedError:
    return UnsupportedError(
        "invalid-device-file",
        "\n".join(problems),
        hint="docs/devices.md describes every key",
    )


@dataclass
class _Reader:
    """Reads the tables of one file and collects what is wrong in it."""

    file: str
    problems: list[str] = field(default_factory=list)

    def device(self, name: str, table: Any) -> DeviceEntry | None:
        """Return the entry of a table, None if anything in it is wrong."""
        before = len(self.problems)
        if not _NAME.fullmatch(name):
            self._problem(name, "expected a name of letters, digits, '_', '-'")
        if not isinstance(table, dict):
            self._problem(name, f"expected a table, got {table!r}")
            return None
        sources: dict[str, str] = {}
        own = {k: v for k, v in table.items() if k not in (*_PARTS, "host")}
        values = self._fields(own, _DEVICE, name, "", sources)
        parts = {key: self._parts(table, key, name, sources) for key in _PARTS}
        host = self._host(table, name, sources)
        if len(self.problems) > before:
            return None
        target = values.pop("target", "")
        try:
            device = _device(name, values, parts)
        except ValueError as error:
            self._problem(name, str(error))
            return None
        return DeviceEntry(device, target, host, MappingProxyType(sources))

    def _parts(
        self, table: dict[str, Any], key: str, name: str, sources: dict[str, str]
    ) -> list[dict[str, Any]]:
        items = table.get(key, [])
        path = f"{name}.{key}"
        if not isinstance(items, list) or (key == "levels" and not items):
            self._problem(path, f"expected tables [[{path}]], got {items!r}")
            return []
        fields, naming = _PARTS[key]
        found = []
        for index, item in enumerate(items):
            place = f"{path}[{index}]"
            if not isinstance(item, dict):
                self._problem(place, f"expected a table, got {item!r}")
                continue
            prefix = f"{key}.{item.get(naming)}."
            found.append(self._fields(item, fields, place, prefix, sources))
        return found

    def _host(
        self, table: dict[str, Any], name: str, sources: dict[str, str]
    ) -> Level | None:
        if "host" not in table:
            return None
        item, place = table["host"], f"{name}.host"
        if not isinstance(item, dict):
            self._problem(place, f"expected a table, got {item!r}")
            return None
        before = len(self.problems)
        values = self._fields(item, _LEVEL, place, "host.", sources)
        return _level(values) if len(self.problems) == before else None

    def _fields(
        self,
        table: dict[str, Any],
        fields: Mapping[str, _Field],
        place: str,
        prefix: str,
        sources: dict[str, str],
    ) -> dict[str, Any]:
        """Return the values of a table whose fields are right; note their sources."""
        values = {}
        for key, wanted in fields.items():
            if key not in table:
                if wanted.required:
                    self._problem(f"{place}.{key}", f"expected {wanted.expected}")
            elif wanted.holds(table[key]):
                values[key] = table[key]
            else:
                got = f"expected {wanted.expected}, got {table[key]!r}"
                self._problem(f"{place}.{key}", got)
        known = [*fields, _SOURCES]
        for key in (key for key in table if key not in known):
            expected = f"expected one of the keys {', '.join(known)}"
            self._problem(f"{place}.{key}", expected)
        self._sources(table.get(_SOURCES, {}), fields, place, prefix, sources)
        return values

    def _sources(
        self,
        table: Any,
        fields: Mapping[str, _Field],
        place: str,
        prefix: str,
        sources: dict[str, str],
    ) -> None:
        path = f"{place}.{_SOURCES}"
        if not isinstance(table, dict):
            self._problem(path, f"expected a table of texts, got {table!r}")
            return
        for key, text in table.items():
            if key not in fields:
                self._problem(f"{path}.{key}", "expected a key of the table it is in")
            elif not _TEXT.holds(text):
                got = f"expected {_TEXT.expected}, got {text!r}"
                self._problem(f"{path}.{key}", got)
            else:
                sources[prefix + key] = text

    def _problem(self, place: str, text: str) -> None:
        self.problems.append(f"{self.file}: {place}: {text}")


def _device(
    name: str, values: dict[str, Any], parts: dict[str, list[dict[str, Any]]]
) -> Device:
    return Device(
        name=name,
        levels=tuple(_level(level) for level in parts["levels"]),
        units=values["units"],
        threads=values["threads"],
        warp=values["warp"],
        vector_bits=values["vector_bits"],
        peak_gflops=float(values["peak_gflops"]),
        peaks=tuple(Peak(p["dtype"], float(p["gflops"])) for p in parts["peaks"]),
        instructions=tuple(_instruction(entry) for entry in parts["instructions"]),
        libraries=tuple(_library(entry) for entry in parts["libraries"]),
        launch_seconds=float(values.get("launch_seconds", LAUNCH_SECONDS)),
        **{key: float(values.get(key, known)) for key, known in _PASSES.items()},
    )


def _instruction(entry: dict[str, Any]) -> Instruction:
    rows, columns, depth = entry["shape"]
    return Instruction(
        name=entry["name"],
        shape=(rows, columns, depth),
        operand=entry["operand"],
        accumulator=entry["accumulator"],
        gflops=float(entry["gflops"]),
    )


def _library(entry: dict[str, Any]) -> LibraryRate:
    rate = float(entry["gflops"])
    return LibraryRate(entry["name"], entry["operation"], entry["operand"], rate)


def _level(entry: dict[str, Any]) -> Level:
    written = entry.get("write_bandwidth")
    return Level(
        name=entry["name"],
        capacity=entry["capacity"],
        bandwidth=float(entry["bandwidth"]),
        transaction=entry["transaction"],
        units=entry["units"],
        kind=LevelKind(entry["kind"]),
        write_bandwidth=None if written is None else float(written),
        write_transaction=entry.get("write_transaction"),
    )
