"""Owns which devices are known: those of `devices.toml` and of the user's files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any

from magweld import env
from magweld.diagnostics import UnsupportedError
from magweld.targets.reading import DeviceEntry, entries_of, read_devices

HOST = "cpu"
# What stands between the parts of a reference: `FILE#NAME+host`.
IN_FILE = "#"
WITH_HOST = "+host"
_SHIPPED = "devices.toml"
# Entry points whose values are paths of device files.
ENTRY_POINT_GROUP = "magweld.devices"


@cache
def tables() -> dict[str, Any]:
    """Return `devices.toml` as parsed, one table per device name."""
    text = resources.files(__package__).joinpath(_SHIPPED).read_text("utf-8")
    return tomllib.loads(text)


def device_names() -> tuple[str, ...]:
    """Return the names of the devices with fixed numbers, sorted.

    Those of the files that `MAGWELD_DEVICES` names, and of the files that installed
    packages bring by entry points, are among them.
    """
    return tuple(sorted(_known()))


def catalogued_entry(reference: str) -> DeviceEntry:
    """Return a device with fixed numbers.

    Args:
        reference: Its name, or `FILE#NAME` for one of a file.

    Raises:
        UnsupportedError: `unknown-device`, `invalid-device-file`.
    """
    file, in_file, name = reference.rpartition(IN_FILE)
    if not in_file:
        return _named(reference, _known(), [HOST])
    return _named(name, read_devices(Path(file).expanduser()), [])


def with_host_memory(entry: DeviceEntry) -> DeviceEntry:
    """Return a device whose outermost level is the memory of the machine around it.

    Raises:
        UnsupportedError: `no-host-memory`.
    """
    device, host = entry.device, entry.host
    if host is None:
        raise UnsupportedError(
            "no-host-memory",
            f"device '{device.name}' has no memory of a host around it",
            hint=f"a table [{device.name}.host] in its file states one",
        )
    moved = {
        f"levels.{host.name}{key.removeprefix('host')}" if _is_host(key) else key: text
        for key, text in entry.sources.items()
    }
    return replace(
        entry,
        device=replace(
            device, name=device.name + WITH_HOST, levels=(host, *device.levels)
        ),
        host=None,
        sources=MappingProxyType(moved),
    )


def device_of_target() -> dict[str, str]:
    """Return which fixed device stands for each cross-compilation target."""
    return {e.target: name for name, e in reversed(_known().items()) if e.target}


@cache
def _shipped() -> Mapping[str, DeviceEntry]:
    fixed = {name: table for name, table in tables().items() if name != HOST}
    return MappingProxyType(entries_of(fixed, _SHIPPED))


def _known() -> dict[str, DeviceEntry]:
    found = dict(_shipped())
    for path in (*_installed(), *env.DEVICES.get()):
        for name, entry in read_devices(path).items():
            if name == HOST or name in found:
                raise UnsupportedError(
                    "invalid-device-file",
                    f"{path}: {name}: expected a name that no other device has",
                    hint=f"rename it, or refer to it as {path}{IN_FILE}{name}",
                )
            found[name] = entry
    return found


@cache
def _installed() -> tuple[Path, ...]:
    """Return the device files that installed packages bring, by their entry points."""
    found = []
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP)):
        try:
            found.append(Path(point.load()))
        except Exception as error:  # whatever a package raises while it is imported
            raise UnsupportedError(
                "invalid-device-file",
                f"the entry point '{point.name} = {point.value}' in "
                f"{ENTRY_POINT_GROUP} is no path of a device file: {error}",
                hint="repair or remove the package that brings it",
            ) from error
    return tuple(found)


def _is_host(key: str) -> bool:
    """Whether the key of a source is about the memory of the host."""
    return key.startswith("host.")


def _named(
    name: str, entries: Mapping[str, DeviceEntry], others: list[str]
) -> DeviceEntry:
    if name not in entries:
        known = ", ".join([*others, *sorted(entries)])
        raise UnsupportedError(
            "unknown-device", f"unknown device '{name}'", hint=f"known devices: {known}"
        )
    return entries[name]
