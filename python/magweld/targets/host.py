"""Owns the detection of the host: cores, caches and vector width from the system."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from magweld import env
from magweld.diagnostics import UnsupportedError
from magweld.targets.catalog import HOST, tables
from magweld.targets.device import Device, Level, LevelKind
from magweld.targets.reading import DeviceEntry, read_devices

_LOG = logging.getLogger(__name__)
_SYSTEM_CPU = Path("/sys/devices/system/cpu")
_CPUINFO = Path("/proc/cpuinfo")
# Widest first. Names are those of /proc/cpuinfo on x86-64 and AArch64.
_VECTOR_BITS_OF_FLAG = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("asimd", 128))
# Widest vectors of each `env.CPU_CAPABILITY`.
_VECTOR_BITS = {"default": 512, "avx2": 256}
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class _Cache:
    """A data cache: bytes of one instance, and the CPUs of each instance."""

    capacity: int
    line: int
    instances: frozenset[str]


def host_device() -> Device:
    """Return the machine that this process runs on; see `host_entry`."""
    return host_entry().device


@cache
def host_entry() -> DeviceEntry:
    """Return the machine that this process runs on, with its sources.

    Its numbers are those that `magweld devices --measure` has found here. Without
    them they are what the system tells, and `devices.toml` tells the rest. The
    description does not change within a process; only CPUs this process may run on
    count.
    """
    detected = detected_host()
    found = _measured(measured_path(detected), detected)
    return found or DeviceEntry(detected, sources=_detected_sources(detected))


def detected_host() -> Device:
    """Return the machine that this process runs on without what was measured."""
    return detect_host(_SYSTEM_CPU, _CPUINFO, _usable_cpus())


def measured_path(detected: Device) -> Path:
    """Return where the measured numbers of a machine are kept."""
    models = [
        line for line in _read(_CPUINFO).splitlines() if line.startswith("model name")
    ]
    facts = repr((detected, sorted(set(models))))
    digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return env.CACHE_DIR.get() / "devices" / f"{HOST}-{digest}.toml"


def _measured(path: Path, detected: Device) -> DeviceEntry | None:
    if not path.exists():
        return None
    try:
        entry = read_devices(path).get(HOST)
    except UnsupportedError as error:
        _LOG.warning("%s is not used: %s", path, error)
        return None
    if entry is None or entry.device.level_names() != detected.level_names():
        _LOG.warning("%s is not used: it does not describe this machine", path)
        return None
    return entry


def _detected_sources(detected: Device) -> dict[str, str]:
    system, table = "told by the system", "default of devices.toml"
    computed = "computed: bytes per clock of devices.toml x cores x clock"
    sources = {
        "units": system,
        "vector_bits": system,
        "peak_gflops": "computed: two vector FMAs per clock x cores x clock",
        "launch_seconds": table,
    }
    for level in detected.levels:
        cached = level.kind is LevelKind.CACHE
        sources[f"levels.{level.name}.capacity"] = system if cached else table
        first = level is detected.levels[0]
        sources[f"levels.{level.name}.bandwidth"] = table if first else computed
    return sources


def detect_host(
    system_cpu: Path, cpuinfo: Path, cpus: tuple[int, ...] | None
) -> Device:
    """Describe a host from its system files.

    Args:
        system_cpu: Folder in the form of `/sys/devices/system/cpu`.
        cpuinfo: File in the form of `/proc/cpuinfo`.
        cpus: Numbers of the usable CPUs, None if unknown.

    Returns:
        A device with the levels dram, the caches that exist, and register.
    """
    defaults: Mapping[str, Any] = tables()[HOST]
    caches = _read_caches(system_cpu, cpus or ())
    cores = _count_cores(caches, cpus, defaults["cores"])
    vector_bits = _read_vector_bits(cpuinfo) or defaults["vector_bits"]
    clock_ghz = _read_clock_ghz(system_cpu) or defaults["clock_ghz"]
    levels = (
        Level(
            "dram",
            0,
            defaults["dram_bandwidth"],
            defaults["cache_line"],
            1,
            LevelKind.EXPLICIT,
        ),
        *_cache_levels(caches or _default_caches(defaults, cores), cores, clock_ghz),
        _register_level(defaults, cores, clock_ghz, vector_bits),
    )
    # Narrow vectors cannot fill the pipes, two of which every core here has.
    fma_bits = min(defaults["fma_bits_per_clock"], 2 * vector_bits)
    return Device(
        name=HOST,
        levels=levels,
        units=cores,
        threads=1,
        warp=1,
        vector_bits=vector_bits,
        peak_gflops=round(cores * clock_ghz * 2 * fma_bits / 32, 1),
        launch_seconds=defaults["launch_seconds"],
    )


def _usable_cpus() -> tuple[int, ...] | None:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    count = os.cpu_count()
    return None if count is None else tuple(range(count))


def _count_cores(
    caches: Mapping[int, _Cache], cpus: tuple[int, ...] | None, default: int
) -> int:
    # Hyper-threads share their core's first-level cache.
    if 1 in caches:
        return len(caches[1].instances)
    return len(cpus) if cpus else default


def _read_caches(system_cpu: Path, cpus: tuple[int, ...]) -> dict[int, _Cache]:
    found: dict[int, _Cache] = {}
    for cpu in cpus:
        for folder in sorted((system_cpu / f"cpu{cpu}" / "cache").glob("index*")):
            if _read(folder / "type") not in ("Data", "Unified"):
                continue
            level, capacity = _number(folder / "level"), _bytes(folder / "size")
            line = _number(folder / "coherency_line_size")
            shared = _read(folder / "shared_cpu_list")
            if not (level and capacity and line and shared):
                continue
            known = found.get(level, _Cache(capacity, line, frozenset()))
            # Cores of different kinds: plan for the smallest cache.
            found[level] = _Cache(
                min(capacity, known.capacity), line, known.instances | {shared}
            )
    return dict(sorted(found.items()))


def _default_caches(defaults: Mapping[str, Any], cores: int) -> dict[int, _Cache]:
    private = frozenset(str(core) for core in range(cores))
    line = defaults["cache_line"]
    return {
        1: _Cache(defaults["l1_capacity"], line, private),
        2: _Cache(defaults["l2_capacity"], line, private),
        3: _Cache(defaults["l3_capacity"], line, frozenset({"all"})),
    }


def _cache_levels(
    caches: dict[int, _Cache], cores: int, clock_ghz: float
) -> list[Level]:
    defaults = tables()[HOST]
    levels = []
    for number, found in reversed(caches.items()):
        # A fourth level exists on few machines; it is no faster than the third.
        per_clock = defaults[f"l{min(number, 3)}_bytes_per_clock"]
        levels.append(
            Level(
                name=f"l{number}",
                capacity=found.capacity,
                bandwidth=round(per_clock * cores * clock_ghz, 1),
                transaction=found.line,
                units=len(found.instances),
                kind=LevelKind.CACHE,
            )
        )
    return levels


def _register_level(
    defaults: Mapping[str, Any], cores: int, clock_ghz: float, vector_bits: int
) -> Level:
    # 32 vector registers come with AVX-512 (and AArch64), 16 before it.
    registers = defaults["register_count"] // (1 if vector_bits == 512 else 2)
    return Level(
        name="register",
        capacity=registers * vector_bits // 8,
        bandwidth=round(defaults["register_bytes_per_clock"] * cores * clock_ghz, 1),
        transaction=vector_bits // 8,
        units=cores,
        kind=LevelKind.EXPLICIT,
    )


def _read_vector_bits(cpuinfo: Path) -> int | None:
    lines = _read(cpuinfo).splitlines()
    flags = next(
        (line for line in lines if line.startswith(("flags", "Features"))), ""
    ).split()
    most = _VECTOR_BITS[env.CPU_CAPABILITY.get()]
    there = (bits for flag, bits in _VECTOR_BITS_OF_FLAG if flag in flags)
    return next((bits for bits in there if bits <= most), None)


def _read_clock_ghz(system_cpu: Path) -> float | None:
    # The maximum is constant; the current frequency would make plans irreproducible.
    khz = _number(system_cpu / "cpu0" / "cpufreq" / "cpuinfo_max_freq")
    return None if khz is None else khz / 1e6


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _read(path)
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _bytes(path: Path) -> int | None:
    text = _read(path)
    unit = _SUFFIXES.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * unit if digits.isdecimal() else None
