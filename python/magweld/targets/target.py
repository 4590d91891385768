"""Owns targets: what code is generated for, and the device that it is planned for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from magweld.diagnostics import UnsupportedError
from magweld.targets.catalog import (
    HOST,
    WITH_HOST,
    catalogued_entry,
    device_of_target,
    with_host_memory,
)
from magweld.targets.device import Device
from magweld.targets.host import host_device, host_entry
from magweld.targets.reading import DeviceEntry

# Stands between a target and the device that it is planned for.
_FOR_DEVICE = "@"


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
        reference: Text that `device` takes for it.
    """

    backend: Backend
    chip: str
    device: Device
    reference: str

    @property
    def has_async_copies(self) -> bool:
        """Whether threads go on while they copy to shared memory.

        cp.async of all NVIDIA chips that are a target. What AMD's have in its place
        copies 4 bytes of each lane to neighbouring words.
        """
        return self.backend is Backend.NVVM

    @property
    def has_warpgroups(self) -> bool:
        """Whether four subgroups compute products together, by `wgmma`."""
        return self.backend is Backend.NVVM and self.chip == "sm_90a"

    @property
    def has_bulk_copies(self) -> bool:
        """Whether the tensor memory accelerator copies boxes of tensors."""
        return self.backend is Backend.NVVM and self.chip == "sm_90a"

    @property
    def launch_bytes(self) -> int:
        """Most bytes of pointers that one launch takes, 0 for no limit.

        CUDA C++ Programming Guide, "Function Parameters": 32764 bytes from CUDA 12.1
        on. AMD's have the arguments of a launch in memory; the same bounds them here.
        """
        return 0 if self.backend is Backend.CPU else 32764

    @property
    def pointer_alignment(self) -> int:
        """Bytes that the pointers of a kernel are multiples of.

        A thread of a GPU reads and writes up to 16 bytes at a time, aligned to these.
        """
        return 1 if self.backend is Backend.CPU else 16

    def __str__(self) -> str:
        return f"{self.backend}:{self.chip}" if self.chip else str(self.backend)


def device(reference: str) -> Device:
    """Return a device: "cpu" is the host, "a100" a name, "my.toml#mine" of a file.

    `+host` at the end adds the memory of the machine around it as outermost level.

    Raises:
        UnsupportedError: `unknown-device`, `invalid-device-file`, `no-host-memory`.
    """
    return device_entry(reference).device


def device_entry(reference: str) -> DeviceEntry:
    """Return a device with its sources; see `device`.

    Raises:
        UnsupportedError: `unknown-device`, `invalid-device-file`, `no-host-memory`.
    """
    base = reference.removesuffix(WITH_HOST)
    entry = host_entry() if base == HOST else catalogued_entry(base)
    return entry if base == reference else with_host_memory(entry)


def target_names() -> tuple[str, ...]:
    """Return the text of every target that `parse_target` knows."""
    return (HOST, *sorted(device_of_target()))


def parse_target(text: str) -> Target:
    """Return the target for "cpu", "nvvm:sm_90a", "rocdl:gfx942", ...

    `nvvm:sm_80@my.toml#mine` is code for sm_80 that is planned for another device.

    Raises:
        UnsupportedError: `unknown-target`, and those of `device`.
    """
    if text == HOST:
        return Target(Backend.CPU, "", host_device(), HOST)
    base, other, reference = text.partition(_FOR_DEVICE)
    devices = device_of_target()
    if base not in devices:
        raise UnsupportedError(
            "unknown-target",
            f"unknown target '{text}'",
            hint=f"known targets: {', '.join(target_names())}",
        )
    backend, _, chip = base.partition(":")
    reference = reference if other else devices[base]
    return Target(Backend(backend), chip, device(reference), reference)
