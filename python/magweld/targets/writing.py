"""Owns the writing of a device as TOML, in the form that `reading` takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from magweld.targets.device import Instruction, Level, LibraryRate, Peak
from magweld.targets.reading import DeviceEntry

_NUMBERS = (
    *("units", "threads", "warp", "vector_bits", "peak_gflops"),
    "launch_seconds",
)
# Of devices whose threads share tiles.
_PASSES = (
    *("window_passes", "half_window_passes", "shared_sum_passes"),
    "product_slots",
)


def device_text(name: str, entry: DeviceEntry) -> str:
    """Return an entry as TOML.

    Args:
        name: Of the table; only letters, digits, `_`, `-`.
        entry: What to write.
    """
    device, sources = entry.device, entry.sources
    own: dict[str, Any] = {"target": entry.target} if entry.target else {}
    keys = (*_NUMBERS, *_PASSES) if device.threads > 1 else _NUMBERS
    own |= {key: getattr(device, key) for key in keys}
    lines = [*_table(f"[{name}]", own, "", sources)]
    if entry.host is not None:
        lines += _part(f"[{name}.host]", entry.host, "host.", sources)
    for level in device.levels:
        prefix = f"levels.{level.name}."
        lines += _part(f"[[{name}.levels]]", level, prefix, sources)
    for peak in device.peaks:
        prefix = f"peaks.{peak.dtype}."
        lines += _part(f"[[{name}.peaks]]", peak, prefix, sources)
    for instruction in device.instructions:
        prefix = f"instructions.{instruction.name}."
        lines += _part(f"[[{name}.instructions]]", instruction, prefix, sources)
    for library in device.libraries:
        prefix = f"libraries.{library.name}."
        lines += _part(f"[[{name}.libraries]]", library, prefix, sources)
    return "\n".join(lines).rstrip("\n") + "\n"


def _part(
    heading: str,
    part: Level | Peak | Instruction | LibraryRate,
    prefix: str,
    sources: Mapping[str, str],
) -> Iterator[str]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    stated = {key: value for key, value in values.items() if value is not None}
    return _table(heading, stated, prefix, sources)


def _table(
    heading: str, values: Mapping[str, Any], prefix: str, sources: Mapping[str, str]
) -> Iterator[str]:
    yield heading
    # TOML writes numbers, texts and arrays of numbers as JSON does.
    yield from (f"{key} = {json.dumps(value)}" for key, value in values.items())
    for key in values:
        if prefix + key in sources:
            yield f"sources.{key} = {json.dumps(sources[prefix + key])}"
    yield ""
