"""Owns targets: what code is generated for, and the device that it is planned for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from magweld.diagnostics import UnsupportedError
from magweld.targets.catalog import HOST, catalogued_device, device_of_target
from magweld.targets.device import Device
from magweld.targets.host import host_device


class Backend(StrEnum):
    """Family of code generators."""

    CPU = "cpu"
    NVVM = "nvvm"
    ROCDL = "rocdl"


@dataclass(frozen=True)
class Target:
    """What to generate code for.

    Attributes:
        backend: Family of code generators.
        chip: Chip name as LLVM spells it, e.g. "sm_80"; "" for the host.
        device: Device that decisions are made for.
    """

    backend: Backend
    chip: str
    device: Device

    def __str__(self) -> str:
        return f"{self.backend}:{self.chip}" if self.chip else str(self.backend)


def device(name: str) -> Device:
    """Return a device by name; "cpu" is the host.

    Raises:
        UnsupportedError: `unknown-device`.
    """
    return host_device() if name == HOST else catalogued_device(name)


def target_names() -> tuple[str, ...]:
    """Return the text of every target that `parse_target` knows."""
    return (HOST, *sorted(device_of_target()))


def parse_target(text: str) -> Target:
    """Return the target for "cpu", "nvvm:sm_90a", "rocdl:gfx942", ...

    Raises:
        UnsupportedError: `unknown-target`.
    """
    if text == HOST:
        return Target(Backend.CPU, "", host_device())
    devices = device_of_target()
    if text not in devices:
        raise UnsupportedError(
            "unknown-target",
            f"unknown target '{text}'",
            hint=f"known targets: {', '.join(target_names())}",
        )
    backend, _, chip = text.partition(":")
    return Target(Backend(backend), chip, catalogued_device(devices[text]))
