"""Owns the measuring of the host: rates of every memory level and of arithmetic."""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from magweld.codegen.probes import Probes
from magweld.targets.catalog import HOST
from magweld.targets.device import Device, Level, LevelKind, Peak
from magweld.targets.host import detected_host, measured_path
from magweld.targets.launching import measured_launch_seconds
from magweld.targets.reading import DeviceEntry
from magweld.targets.writing import device_text

_LOG = logging.getLogger(__name__)

# The best of several samples is what the machine can do; the others were disturbed.
_SAMPLES = 7
_SAMPLE_SECONDS = 0.02
# What is streamed from main memory is this many times what all caches hold.
_BEYOND_CACHES = 4
_LEAST_BEYOND = 64 << 20
# An FMA is two operations and has three operands.
_REGISTER_BYTES_PER_OPERATION = 3 * 4 / 2
# Threads that get less than this of a single thread's rate share cores with others.
_IDLE_SHARE = 0.6
_DTYPES = {"float": "f32", "double": "f64"}


@dataclass(frozen=True)
class Probe:
    """One measurement.

    Attributes:
        kind: "read", "write", or the element type of FMAs, "float" or "double".
        threads: How many threads do it at once.
        nbytes: Bytes that each thread streams over; 0 for arithmetic.
    """

    kind: str
    threads: int
    nbytes: int = 0


Rate = Callable[[Probe], float]


def measure_host() -> Path:
    """Measure this machine, keep the numbers for later processes, return the file."""
    detected = detected_host()
    entry = measured_entry(
        detected, _Meter(Probes()).rate, measured_launch_seconds(_SAMPLES)
    )
    path = measured_path(detected)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Never half a file, whoever reads while it is written.
    temporary = path.with_name(f"{path.stem}-{uuid4().hex}.tmp")
    temporary.write_text(device_text(HOST, entry), "utf-8")
    os.replace(temporary, path)
    return path


def measured_entry(
    detected: Device, rate: Rate, launch: float | None = None
) -> DeviceEntry:
    """Return a detected host with measured rates and how they were found.

    Args:
        detected: What the system tells.
        rate: Measures: GB/s or GFLOP/s of all threads together.
        launch: Seconds of a launch, None if they are not known.
    """
    counts = thread_counts(detected.units)
    sources: dict[str, str] = {}

    def best(key: str, kind: str, nbytes: Callable[[int], int]) -> float:
        rates = [rate(Probe(kind, count, nbytes(count))) for count in counts]
        found = ", ".join(f"{value:.4g}" for value in rates)
        if kind in _DTYPES and rates[-1] < _IDLE_SHARE * counts[-1] * rates[0]:
            _LOG.warning("the machine is busy, measure again: %s GFLOP/s", found)
        sources[key] = f"measured with {_listed(counts)} threads: {found}"
        return round(max(rates), 1)

    peaks = {
        dtype: best(key, element, lambda _: 0)
        for element, dtype in _DTYPES.items()
        for key in ("peak_gflops" if dtype == "f32" else f"peaks.{dtype}.gflops",)
    }
    levels = []
    for level in detected.levels[:-1]:
        size = working_set(detected, level)
        key = f"levels.{level.name}."
        levels.append(
            replace(
                level,
                bandwidth=best(f"{key}bandwidth", "read", size),
                write_bandwidth=best(f"{key}write_bandwidth", "write", size),
            )
        )
    last = detected.levels[-1]
    operands = round(peaks["f32"] * _REGISTER_BYTES_PER_OPERATION, 1)
    sources[f"levels.{last.name}.bandwidth"] = "computed: three operands of each FMA"
    device = replace(
        detected,
        levels=(*levels, replace(last, bandwidth=operands)),
        peak_gflops=peaks["f32"],
        peaks=(Peak("f64", peaks["f64"]),),
    )
    if launch is not None:
        device = replace(device, launch_seconds=launch)
        sources["launch_seconds"] = "measured: a parallel region of no work"
    return DeviceEntry(device, sources=sources)


def thread_counts(units: int) -> tuple[int, ...]:
    """Return how many threads are tried: powers of two below all, and all."""
    powers = [1 << n for n in range(units.bit_length()) if 1 << n < units]
    return (*powers, units)


def working_set(device: Device, level: Level) -> Callable[[int], int]:
    """Return, for a number of threads, the bytes that each streams to use a level.

    Half of what the level has for a thread, and more than the next one holds; of
    main memory several times what is in all caches.
    """
    caches = [lvl for lvl in device.levels if lvl.kind is LevelKind.CACHE]
    if level.kind is not LevelKind.CACHE:
        held = sum(cache.capacity * cache.units for cache in caches)
        beyond = max(_BEYOND_CACHES * held, _LEAST_BEYOND)
        return lambda threads: beyond // threads
    inner = [lvl.capacity for lvl in device.levels[device.levels.index(level) + 1 : -1]]
    # The same for few threads as for all, so that their rates can be compared.
    share = level.capacity // 2 // device.sharers(level.name)
    nbytes = max(share, 2 * max(inner, default=0))
    return lambda _: nbytes


def _listed(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts))


class _Meter:
    """Runs probes on this machine."""

    def __init__(self, probes: Probes) -> None:
        self._probes = probes

    def rate(self, probe: Probe) -> float:
        """Return 1e9 bytes or operations per second of all threads together."""
        work = self._arithmetic if probe.kind in _DTYPES else self._stream
        made = [work(probe) for _ in range(probe.threads)]
        once = made[0][1]
        repeats = self._repeats(made[0][0])
        runs = [run for run, _ in made]
        seconds = min(_together(runs, repeats) for _ in range(_SAMPLES))
        return once * repeats * probe.threads / seconds / 1e9

    def _repeats(self, run: Callable[[int], object]) -> int:
        """How often something is done so that a sample takes long enough."""
        run(1)
        repeats, seconds = 1, 0.0
        while seconds < _SAMPLE_SECONDS:
            repeats *= 2
            seconds = _together([run], repeats)
        return repeats

    def _stream(self, probe: Probe) -> tuple[Callable[[int], object], int]:
        blocks = max(1, probe.nbytes // self._probes.block)
        nbytes = blocks * self._probes.block
        # Anonymous memory begins on a page; the closure keeps it.
        memory = mmap.mmap(-1, nbytes)
        buffer = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(buffer)
        kernel = self._probes.stream(probe.kind)
        # Written once: pages that never were are all one page of zeros.
        self._probes.stream("write")(address, blocks, 1)
        kept = (memory, buffer)
        return lambda repeats: (kernel(address, blocks, repeats), kept), nbytes

    def _arithmetic(self, probe: Probe) -> tuple[Callable[[int], object], int]:
        kernel = self._probes.fma(probe.kind)
        turns = 1000
        operations = 2 * self._probes.chains[probe.kind] * turns
        # Values that stay finite and far from denormal.
        return lambda repeats: kernel(turns * repeats, 0.5, 1.0), operations


def _together(runs: list[Callable[[int], object]], repeats: int) -> float:
    """Return the seconds from the first start to the last end of threads."""
    barrier = threading.Barrier(len(runs))
    spans: dict[int, tuple[float, float]] = {}

    def work(number: int) -> None:
        barrier.wait()
        start = time.perf_counter()
        runs[number](repeats)
        spans[number] = (start, time.perf_counter())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _span(spans)


def _span(spans: Mapping[int, tuple[float, float]]) -> float:
    starts = [start for start, _ in spans.values()]
    return max(end for _, end in spans.values()) - min(starts)
