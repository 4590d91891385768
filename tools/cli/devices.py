"""Owns `magweld devices`: the devices that schedules are made for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from magweld.columns import bytes_text, columns
from magweld.targets import (
    Device,
    DeviceEntry,
    Level,
    device_entry,
    device_names,
    read_devices,
)
from magweld.targets.catalog import HOST
from magweld.targets.writing import device_text

_LEVELS = ("level", "capacity", "GB/s", "transaction", "memories", "shared by", "kind")
_INSTRUCTIONS = ("instruction", "m x n x k", "factors", "result", "GFLOP/s")
_LIBRARIES = ("library", "operation", "factors", "GFLOP/s")


def run(options: argparse.Namespace) -> None:
    """Print levels, arithmetic and sources of devices, as text, JSON or TOML."""
    if options.measure:
        # Only this needs a code generator.
        from magweld.targets.measuring import measure_host

        path = measure_host()
        print(f"written to {path}")
        print(_text(read_devices(path)[HOST]))
        return
    entries = _chosen(options.names, options.file)
    if options.toml:
        print("\n".join(device_text(_key(n), e) for n, e in entries.items()), end="")
    elif options.json:
        data = {name: _data(entry) for name, entry in entries.items()}
        print(json.dumps(data, indent=2))
    else:
        print("\n\n".join(map(_text, entries.values())))


def _chosen(names: list[str], file: str | None) -> dict[str, DeviceEntry]:
    if file is None:
        found = {name: device_entry(name) for name in names or [HOST, *device_names()]}
    else:
        names = names or list(read_devices(Path(file)))
        found = {name: device_entry(f"{file}#{name}") for name in names}
    return {entry.device.name: entry for entry in found.values()}


def _key(name: str) -> str:
    """The name of a table for a device: a `+` may not be in one."""
    return name.replace("+", "-")


def _data(entry: DeviceEntry) -> dict[str, object]:
    host = None if entry.host is None else asdict(entry.host)
    own = {"target": entry.target, "host": host, "sources": dict(entry.sources)}
    return {**asdict(entry.device), **own}


def _text(entry: DeviceEntry) -> str:
    device = entry.device
    named = f"{device.name} ({entry.target})" if entry.target else device.name
    lines = [
        f"{named}: {device.units} units, {device.threads} threads a tile, "
        f"{device.warp} in lockstep, {device.vector_bits}-bit vectors",
        columns([_LEVELS, *(_level(device, level) for level in device.levels)]),
        f"GFLOP/s: {_peaks(device)}",
        f"a launch: {device.launch_seconds * 1e6:.3g} us",
    ]
    if device.instructions:
        lines.append(columns([_INSTRUCTIONS, *_instructions(device)]))
    if device.libraries:
        lines.append(columns([_LIBRARIES, *_libraries(device)]))
    if entry.host is not None:
        rate = f"{_rates(entry.host)} GB/s"
        lines.append(f"with {device.name}+host: {entry.host.name}, {rate}")
    lines += [f"  {key}: {text}" for key, text in entry.sources.items()]
    return "\n".join(lines)


def _level(device: Device, level: Level) -> tuple[str, ...]:
    sizes = dict.fromkeys((level.transaction, level.to_write))
    return (
        level.name,
        bytes_text(level.capacity) if level.capacity else "unbounded",
        _rates(level),
        "/".join(map(str, sizes)) + " B",
        str(level.units),
        str(device.sharers(level.name)),
        str(level.kind),
    )


def _rates(level: Level) -> str:
    """Rates of reads and writes, one if they are the same."""
    rates = dict.fromkeys((level.bandwidth, level.write_rate))
    return "/".join(f"{rate:.5g}" for rate in rates)


def _peaks(device: Device) -> str:
    stated = {"f32": device.peak_gflops, **{p.dtype: p.gflops for p in device.peaks}}
    return ", ".join(f"{dtype} {gflops:.7g}" for dtype, gflops in stated.items())


def _instructions(device: Device) -> Iterator[tuple[str, ...]]:
    for instruction in device.instructions:
        shape = " x ".join(map(str, instruction.shape))
        rate = f"{instruction.gflops:.7g}"
        types = (instruction.operand, instruction.accumulator)
        yield (instruction.name, shape, *types, rate)


def _libraries(device: Device) -> Iterator[tuple[str, ...]]:
    for library in device.libraries:
        rate = f"{library.gflops:.7g}"
        yield (library.name, library.operation, library.operand, rate)
