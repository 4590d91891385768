"""Owns the reading of `devices.toml`: device names and targets to descriptions."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from magweld.diagnostics import UnsupportedError
from magweld.targets.device import Device, Level, LevelKind

HOST = "cpu"


@cache
def tables() -> dict[str, Any]:
    """Return `devices.toml` as parsed, one table per device name."""
    text = resources.files(__package__).joinpath("devices.toml").read_text("utf-8")
    return tomllib.loads(text)


def device_names() -> tuple[str, ...]:
    """Return the names of the devices with fixed numbers, sorted."""
    return tuple(sorted(name for name in tables() if name != HOST))


def catalogued_device(name: str) -> Device:
    """Return a device with fixed numbers by its name in `devices.toml`.

    Raises:
        UnsupportedError: `unknown-device`.
    """
    if name not in device_names():
        known = ", ".join([HOST, *device_names()])
        raise UnsupportedError(
            "unknown-device", f"unknown device '{name}'", hint=f"known devices: {known}"
        )
    table = tables()[name]
    return Device(
        name=name,
        levels=tuple(_level(entry) for entry in table["levels"]),
        units=table["units"],
        threads=table["threads"],
        warp=table["warp"],
        vector_bits=table["vector_bits"],
        peak_gflops=table["peak_gflops"],
    )


def device_of_target() -> dict[str, str]:
    """Return which fixed device stands for each cross-compilation target."""
    entries = ((tables()[name].get("target"), name) for name in device_names())
    return {target: name for target, name in entries if target is not None}


def _level(entry: dict[str, Any]) -> Level:
    return Level(
        name=entry["name"],
        capacity=entry["capacity"],
        bandwidth=entry["bandwidth"],
        transaction=entry["transaction"],
        units=entry["units"],
        kind=LevelKind(entry["kind"]),
    )
