"""Devices and targets as data."""

from magweld.targets.catalog import device_names
from magweld.targets.device import Device, Level, LevelKind
from magweld.targets.host import host_device
from magweld.targets.target import Backend, Target, device, parse_target, target_names

__all__ = [
    "Backend",
    "Device",
    "Level",
    "LevelKind",
    "Target",
    "device",
    "device_names",
    "host_device",
    "parse_target",
    "target_names",
]
