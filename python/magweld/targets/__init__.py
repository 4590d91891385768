"""Devices and targets as data."""

from magweld.targets.catalog import device_names
from magweld.targets.device import (
    Device,
    Instruction,
    Level,
    LevelKind,
    LibraryRate,
    Peak,
)
from magweld.targets.host import host_device
from magweld.targets.reading import DeviceEntry, read_devices
from magweld.targets.target import (
    Backend,
    Target,
    device,
    device_entry,
    parse_target,
    target_names,
)

__all__ = [
    "Backend",
    "Device",
    "DeviceEntry",
    "Instruction",
    "Level",
    "LevelKind",
    "LibraryRate",
    "Peak",
    "Target",
    "device",
    "device_entry",
    "device_names",
    "host_device",
    "parse_target",
    "read_devices",
    "target_names",
]
