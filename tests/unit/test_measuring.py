"""Measuring a host: what the kernels compute, what becomes of rates, where they go."""

from __future__ import annotations

import ctypes
import logging
from pathlib import Path

import pytest

from magweld.codegen.probes import CHAINS, Probes
from magweld.targets import Device, Level, LevelKind, measuring, read_devices
from magweld.targets.catalog import HOST
from magweld.targets.host import (
    detected_host,
    host_device,
    host_entry,
    measured_path,
)
from magweld.targets.launching import measured_launch_seconds
from magweld.targets.measuring import (
    Probe,
    measure_host,
    measured_entry,
    thread_counts,
    working_set,
)

KIB = 1024
TOY = Device(
    name=HOST,
    levels=(
        Level("dram", 0, 40.0, 64, 1, LevelKind.EXPLICIT),
        Level("l2", 512 * KIB, 160.0, 64, 2, LevelKind.CACHE),
        Level("l1", 32 * KIB, 320.0, 64, 4, LevelKind.CACHE),
        Level("register", 1024, 960.0, 32, 4, LevelKind.EXPLICIT),
    ),
    units=4,
    threads=1,
    warp=1,
    vector_bits=256,
    peak_gflops=100.0,
)


@pytest.fixture(scope="module")
def probes() -> Probes:
    return Probes()


def test_streams_touch_every_byte(probes: Probes) -> None:
    words = probes.block // 8
    memory = (ctypes.c_int64 * (3 * words + words))()
    # The kernels want the alignment of a vector.
    address = -(-ctypes.addressof(memory) // 64) * 64
    first = (address - ctypes.addressof(memory)) // 8
    written = probes.stream("write")(address, 3, 2)
    # The number of turns so far; later turns overwrote the earlier ones.
    assert written == 6
    per_block = [memory[first + words * block] for block in range(3)]
    assert per_block == [4, 5, 6]
    assert set(memory[first : first + words]) == {4}
    assert list(memory[first + 3 * words :]) == [0] * (words - first)
    assert probes.stream("read")(address, 2, 5) == 5


@pytest.mark.parametrize("element", ["float", "double"])
def test_fmas_are_fmas(probes: Probes, element: str) -> None:
    # x = 0, 3, 9, 21 by x * 2 + 3, in each chain.
    assert probes.fma(element)(3, 2.0, 3.0) == CHAINS * 21


def test_a_meter_gives_positive_rates(probes: Probes) -> None:
    meter = measuring._Meter(probes)
    for probe in (Probe("read", 2, 64 * KIB), Probe("double", 1)):
        assert 0 < meter.rate(probe) < float("inf")


@pytest.mark.parametrize(
    ("units", "counts"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))]
)
def test_thread_counts(units: int, counts: tuple[int, ...]) -> None:
    assert thread_counts(units) == counts


def test_working_sets_stay_in_their_level() -> None:
    dram, l2, l1, _ = TOY.levels
    assert working_set(TOY, l1)(4) == 16 * KIB
    # Two cores share an l2: a quarter each, and the rest for what else is there.
    assert working_set(TOY, l2)(4) == working_set(TOY, l2)(1) == 128 * KIB
    assert working_set(TOY, dram)(4) * 4 >= 4 * (2 * 512 + 4 * 32) * KIB


def test_measured_rates_replace_the_detected_ones() -> None:
    base = {"read": 10.0, "write": 5.0, "float": 100.0, "double": 50.0}
    entry = measured_entry(TOY, lambda probe: base[probe.kind] * probe.threads)
    found = entry.device
    assert (found.peak("f32"), found.peak("f64")) == (400.0, 200.0)
    for level in found.levels[:-1]:
        assert (level.bandwidth, level.write_rate) == (40.0, 20.0)
    # Three operands of four bytes for two operations.
    assert found.level("register").bandwidth == 400.0 * 6
    assert [lvl.capacity for lvl in found.levels] == [
        lvl.capacity for lvl in TOY.levels
    ]
    assert entry.sources["levels.l2.bandwidth"] == (
        "measured with 1, 2, 4 threads: 10, 20, 40"
    )


def test_a_launch_is_measured_where_there_are_threads() -> None:
    seconds = measured_launch_seconds(1)
    assert seconds is None or 0 < seconds < 1
    known = measured_entry(TOY, lambda probe: 10.0, 4e-6)
    assert known.device.launch_seconds == 4e-6
    assert known.sources["launch_seconds"].startswith("measured")
    unknown = measured_entry(TOY, lambda probe: 10.0)
    assert unknown.device.launch_seconds == TOY.launch_seconds


def test_a_busy_machine_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        measured_entry(TOY, lambda probe: 10.0)
    assert "the machine is busy" in caplog.text


def test_what_is_measured_is_used_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAGWELD_CACHE_DIR", str(tmp_path / "cache"))
    detected = detected_host()
    assert host_entry.__wrapped__().device == detected
    monkeypatch.setattr(measuring, "Probes", lambda: None)
    monkeypatch.setattr(measuring._Meter, "rate", lambda self, probe: 7.0)
    path = measure_host()
    assert path == measured_path(detected)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    entry = host_entry.__wrapped__()
    assert entry == read_devices(path)[HOST]
    assert {level.bandwidth for level in entry.device.levels[:-1]} == {7.0}
    # Another machine, or fewer cores, has a file of its own.
    assert measured_path(TOY) != path


@pytest.mark.parametrize("text", ["[cpu]", "[other]", "no toml"])
def test_a_file_that_does_not_fit_is_not_used(
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("MAGWELD_CACHE_DIR", str(tmp_path))
    path = measured_path(detected_host())
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    assert host_entry.__wrapped__().device == detected_host()
    assert f"{path} is not used" in caplog.text


def test_the_description_does_not_change_within_a_process() -> None:
    assert host_device() is host_entry().device
