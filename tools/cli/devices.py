"""Owns `magweld devices`: the devices that schedules are made for."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from magweld.targets import Device, parse_target, target_names
from magweld.tools.cli.text import bytes_text, columns

_HEADINGS = ("level", "capacity", "GB/s", "transaction", "units", "kind")


def run(options: argparse.Namespace) -> None:
    """Print a table of levels for each device, or all of it as JSON."""
    devices = {name: parse_target(name).device for name in target_names()}
    if options.json:
        data = {name: asdict(device) for name, device in devices.items()}
        print(json.dumps(data, indent=2))
        return
    print("\n\n".join(_table(*item) for item in devices.items()))


def _table(target: str, device: Device) -> str:
    rows = [_HEADINGS]
    rows += [
        (
            level.name,
            bytes_text(level.capacity) if level.capacity else "unbounded",
            f"{level.bandwidth:.5g}",
            f"{level.transaction} B",
            str(level.units),
            str(level.kind),
        )
        for level in device.levels
    ]
    title = (
        f"{target}: {device.name}, {device.units} units, "
        f"{device.peak_gflops:.5g} GFLOP/s in f32"
    )
    return f"{title}\n{columns(rows)}"
