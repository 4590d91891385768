"""Owns the description of a device: memory levels and processing units as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LevelKind(StrEnum):
    """Who decides what a memory level holds."""

    EXPLICIT = "explicit"  # the program places data, as in shared memory
    CACHE = "cache"  # the hardware keeps what was used recently


@dataclass(frozen=True)
class Level:
    """One memory level of a device.

    Attributes:
        name: E.g. "dram", "l2", "shared", "register"; unique in a device.
        capacity: Bytes of one unit that a program may use; 0 if unbounded.
        bandwidth: GB/s (1e9 bytes per second) of all units together.
        transaction: Bytes that the smallest transfer from this level moves.
        units: How many separate memories of this level the device has.
        kind: Explicitly placed, or a cache.

    Raises:
        ValueError: A number that no memory can have, or an empty name.
    """

    name: str
    capacity: int
    bandwidth: float
    transaction: int
    units: int
    kind: LevelKind

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("expected a level to have a name")
        _require(f"capacity of level '{self.name}'", self.capacity, least=0)
        _require(f"transaction of level '{self.name}'", self.transaction, least=1)
        _require(f"units of level '{self.name}'", self.units, least=1)
        _require_positive(f"bandwidth of level '{self.name}'", self.bandwidth)


@dataclass(frozen=True)
class Device:
    """A processor with its memory levels.

    Attributes:
        name: Key in `devices.toml`.
        levels: Memory levels, outermost first.
        units: Processing units: cores of a CPU, multiprocessors of a GPU.
        threads: Most threads that work on one tile together; 1 on a CPU.
        warp: Threads that execute in lockstep; 1 on a CPU.
        vector_bits: Width of the widest load of one thread.
        peak_gflops: 1e9 f32 operations per second of all units together, an FMA
            counted as two, without matrix instructions.

    Raises:
        ValueError: Numbers that no device can have, or levels of the same name.
    """

    name: str
    levels: tuple[Level, ...]
    units: int
    threads: int
    warp: int
    vector_bits: int
    peak_gflops: float

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("expected a device to have a name")
        for field in ("units", "threads", "warp", "vector_bits"):
            _require(f"{field} of device '{self.name}'", getattr(self, field), least=1)
        _require_positive(f"peak_gflops of device '{self.name}'", self.peak_gflops)
        if not self.levels:
            raise ValueError(f"expected device '{self.name}' to have a memory level")
        names = self.level_names()
        repeated = next((n for n in names if names.count(n) > 1), None)
        if repeated is not None:
            raise ValueError(f"expected distinct level names, got '{repeated}' twice")

    def level_names(self) -> tuple[str, ...]:
        """Return the names of the levels, outermost first."""
        return tuple(level.name for level in self.levels)

    def level(self, name: str) -> Level:
        """Return a level by name.

        Raises:
            KeyError: The device has no such level.
        """
        return self.levels[self.level_index(name)]

    def level_index(self, name: str) -> int:
        """Return how many levels lie outside of the named one.

        Raises:
            KeyError: The device has no such level.
        """
        names = self.level_names()
        if name not in names:
            raise KeyError(f"device '{self.name}' has no level '{name}'")
        return names.index(name)


def _require(what: str, value: int, *, least: int) -> None:
    if value < least:
        raise ValueError(f"expected {what} to be at least {least}, got {value}")


def _require_positive(what: str, value: float) -> None:
    # Written so that NaN fails as well.
    if not 0 < value < float("inf"):
        raise ValueError(f"expected {what} to be positive and finite, got {value}")
