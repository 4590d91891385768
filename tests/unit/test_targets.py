"""Devices and targets: the catalogue, the host from system files, target text."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from magweld.diagnostics import UnsupportedError
from magweld.targets import (
    Backend,
    Device,
    Level,
    LevelKind,
    device,
    device_names,
    host_device,
    parse_target,
    target_names,
)
from magweld.targets.host import detect_host

NOWHERE = Path("does-not-exist")
LEVEL = Level("dram", 0, 25.0, 64, 1, LevelKind.EXPLICIT)
DEVICE = Device("toy", (LEVEL,), 2, 1, 1, 256, 100.0)


@pytest.mark.parametrize("name", device_names())
def test_catalogued_devices_get_smaller_and_faster_inwards(name: str) -> None:
    levels = device(name).levels
    total = [level.capacity * level.units for level in levels]
    bandwidth = [level.bandwidth for level in levels]
    # Registers of a GPU hold more than its shared memory, so only rates are ordered.
    assert bandwidth == sorted(bandwidth)
    assert total[0] == max(total)


def test_targets_stand_for_their_devices() -> None:
    expected = {
        "nvvm:sm_80": (Backend.NVVM, "sm_80", "a100"),
        "nvvm:sm_90a": (Backend.NVVM, "sm_90a", "h100"),
        "rocdl:gfx90a": (Backend.ROCDL, "gfx90a", "mi250x"),
        "rocdl:gfx942": (Backend.ROCDL, "gfx942", "mi300x"),
        "cpu": (Backend.CPU, "", "cpu"),
    }
    assert set(target_names()) == set(expected)
    for text, (backend, chip, name) in expected.items():
        target = parse_target(text)
        assert (target.backend, target.chip, target.device.name) == (
            backend,
            chip,
            name,
        )
        assert str(target) == text


@pytest.mark.parametrize("text", ["", "gpu", "nvvm", "nvvm:sm_70", "cpu:avx2"])
def test_an_unknown_target_says_which_are_known(text: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        parse_target(text)
    assert raised.value.id == "unknown-target"
    assert repr(text) in raised.value.reason
    assert all(known in raised.value.hint for known in target_names())


@pytest.mark.parametrize("name", ["", "h999", "target"])
def test_an_unknown_device_says_which_are_known(name: str) -> None:
    with pytest.raises(UnsupportedError, match="known devices: cpu, a100") as raised:
        device(name)
    assert raised.value.id == "unknown-device"


def test_levels_are_found_by_name() -> None:
    h100 = device("h100")
    assert h100.level_names() == ("global", "l2", "shared", "register")
    assert h100.level("shared").capacity == 227 * 1024
    assert h100.level_index("shared") == 2
    with pytest.raises(KeyError, match="'h100' has no level 'l1'"):
        h100.level("l1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "a level to have a name"),
        ({"capacity": -1}, "capacity of level 'dram' to be at least 0, got -1"),
        ({"bandwidth": 0.0}, "bandwidth of level 'dram' to be positive"),
        ({"bandwidth": math.nan}, "bandwidth of level 'dram' to be positive"),
        ({"transaction": 0}, "transaction of level 'dram' to be at least 1"),
        ({"units": 0}, "units of level 'dram' to be at least 1"),
    ],
)
def test_impossible_levels_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replace(LEVEL, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "a device to have a name"),
        ({"levels": ()}, "device 'toy' to have a memory level"),
        ({"levels": (LEVEL, LEVEL)}, "got 'dram' twice"),
        ({"units": 0}, "units of device 'toy' to be at least 1, got 0"),
        ({"peak_gflops": math.inf}, "peak_gflops of device 'toy' to be positive"),
    ],
)
def test_impossible_devices_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replace(DEVICE, **changes)  # type: ignore[arg-type]


def _write_cache(folder: Path, level: int, kind: str, size: str, shared: str) -> None:
    folder.mkdir(parents=True)
    files = {"level": str(level), "type": kind, "size": size}
    files |= {"shared_cpu_list": shared, "coherency_line_size": "64"}
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def _write_cpu(root: Path, cpu: int, siblings: str) -> None:
    caches = root / f"cpu{cpu}" / "cache"
    _write_cache(caches / "index0", 1, "Data", "48K", siblings)
    _write_cache(caches / "index1", 1, "Instruction", "32K", siblings)
    _write_cache(caches / "index2", 2, "Unified", "2M", siblings)
    _write_cache(caches / "index3", 3, "Unified", "30M", "0-3")


def test_the_host_is_read_from_system_files(tmp_path: Path) -> None:
    for cpu in range(4):
        _write_cpu(tmp_path, cpu, "0,2" if cpu % 2 == 0 else "1,3")
    frequency = tmp_path / "cpu0" / "cpufreq" / "cpuinfo_max_freq"
    frequency.parent.mkdir()
    frequency.write_text("3000000\n")
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nflags\t\t: fpu sse2 avx avx2 fma\n")
    host = detect_host(tmp_path, cpuinfo, (0, 1, 2, 3))
    assert host.level_names() == ("dram", "l3", "l2", "l1", "register")
    assert host.units == 2  # four hyper-threads
    assert host.vector_bits == 256
    assert host.peak_gflops == 2 * 3.0 * 2 * 512 / 32
    l2, l1 = host.level("l2"), host.level("l1")
    assert (l2.capacity, l2.units) == (2 << 20, 2)
    assert (l1.capacity, l1.units) == (48 << 10, 2)
    assert l1.bandwidth == 64 * 2 * 3.0
    assert host.level("l3").units == 1
    assert host.level("register").capacity == 16 * 32


def test_only_usable_cpus_count(tmp_path: Path) -> None:
    for cpu in range(4):
        _write_cpu(tmp_path, cpu, str(cpu))
    assert detect_host(tmp_path, NOWHERE, (1, 2)).units == 2


def test_a_host_that_tells_nothing_gets_the_defaults() -> None:
    host = detect_host(NOWHERE, NOWHERE, None)
    assert host.level_names() == ("dram", "l3", "l2", "l1", "register")
    assert host.units == 4
    assert host.vector_bits == 128
    assert detect_host(NOWHERE, NOWHERE, (0, 1)).units == 2


def test_a_host_without_a_third_level_has_none(tmp_path: Path) -> None:
    _write_cache(tmp_path / "cpu0" / "cache" / "index0", 1, "Data", "32K", "0")
    host = detect_host(tmp_path, NOWHERE, (0,))
    assert host.level_names() == ("dram", "l1", "register")


def test_the_description_of_the_host_is_constant() -> None:
    assert host_device() is host_device()
    assert host_device().units >= 1
