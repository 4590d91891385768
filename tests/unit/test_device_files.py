"""Device files: what they may hold, what is wrong in them, how they are referred to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from magweld.diagnostics import UnsupportedError
from magweld.targets import (
    DeviceEntry,
    Instruction,
    Level,
    LevelKind,
    Peak,
    device,
    device_entry,
    device_names,
    parse_target,
    read_devices,
    target_names,
)
from magweld.targets.catalog import tables
from magweld.targets.writing import device_text

MINE = """
[mine]
target = "nvvm:sm_80"
units = 4
threads = 256
warp = 32
vector_bits = 128
peak_gflops = 1000
sources.units = "counted"

[mine.host]
name = "host"
capacity = 0
bandwidth = 12.5
write_bandwidth = 10.0
transaction = 128
units = 1
kind = "explicit"
sources.bandwidth = "felt"

[[mine.levels]]
name = "global"
capacity = 1024
bandwidth = 100.0
write_bandwidth = 50
transaction = 128
write_transaction = 32
units = 1
kind = "explicit"
sources.capacity = "printed on it"

[[mine.peaks]]
dtype = "f16"
gflops = 2000.0

[[mine.instructions]]
name = "mma"
shape = [16, 8, 16]
operand = "f16"
accumulator = "f32"
gflops = 8000.0
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "my devices.toml"
    path.write_text(MINE, "utf-8")
    return path


def test_a_file_holds_all_of_a_device(mine: Path) -> None:
    entry = device_entry(f"{mine}#mine")
    assert entry.target == "nvvm:sm_80"
    found = entry.device
    assert found.levels == (
        Level("global", 1024, 100.0, 128, 1, LevelKind.EXPLICIT, 50.0, 32),
    )
    assert found.peaks == (Peak("f16", 2000.0),)
    assert (found.peak("f32"), found.peak("f16"), found.peak("f64")) == (1e3, 2e3, None)
    mma = Instruction("mma", (16, 8, 16), "f16", "f32", 8000.0)
    assert found.instructions == (mma,)
    assert found.sharers("global") == 4
    assert entry.sources == {
        "units": "counted",
        "host.bandwidth": "felt",
        "levels.global.capacity": "printed on it",
    }


def test_host_memory_becomes_the_outermost_level(mine: Path) -> None:
    entry = device_entry(f"{mine}#mine+host")
    assert entry.device.name == "mine+host"
    assert entry.device.level_names() == ("host", "global")
    host = entry.device.levels[0]
    assert (host.bandwidth, host.write_rate) == (12.5, 10.0)
    assert host.transfer_seconds(25 * 10**9, 10**10) == 3.0
    assert entry.sources["levels.host.bandwidth"] == "felt"


@pytest.mark.parametrize("name", device_names())
def test_every_shipped_device_has_a_host_of_a_slower_link(name: str) -> None:
    host, outermost, *_ = device(f"{name}+host").levels
    assert host.bandwidth < outermost.bandwidth


@pytest.mark.parametrize("reference", ["cpu+host", "FILE#bare+host"])
def test_there_may_be_no_host_memory(reference: str, mine: Path) -> None:
    before, _, after = MINE.partition("[mine.host]")
    bare = before + after[after.index("[[mine.levels]]") :]
    mine.write_text(bare.replace("mine", "bare"), "utf-8")
    with pytest.raises(UnsupportedError, match="has no memory of a host") as raised:
        device(reference.replace("FILE", str(mine)))
    assert raised.value.id == "no-host-memory"


def test_files_of_the_environment_are_known_by_name(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = mine.with_name("other.toml")
    other.write_text(MINE.replace("mine", "other"), "utf-8")
    monkeypatch.setenv("MAGWELD_DEVICES", f"{mine}{os.pathsep}{other}")
    assert {"mine", "other", "a100"} <= set(device_names())
    assert device("mine") == replace(device("other"), name="mine")
    # What is shipped stands for a target before what is not.
    assert parse_target("nvvm:sm_80").device.name == "a100"


def test_an_environment_may_not_rename_what_is_known(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.write_text(MINE.replace("mine", "a100"), "utf-8")
    monkeypatch.setenv("MAGWELD_DEVICES", str(mine))
    with pytest.raises(UnsupportedError, match="a100: expected a name that no other"):
        device_names()
    monkeypatch.delenv("MAGWELD_DEVICES")
    assert device(f"{mine}#a100").units == 4


def test_a_device_of_a_file_may_bring_a_target(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.write_text(MINE.replace("nvvm:sm_80", "nvvm:sm_86"), "utf-8")
    monkeypatch.setenv("MAGWELD_DEVICES", str(mine))
    assert "nvvm:sm_86" in target_names()
    found = parse_target("nvvm:sm_86")
    assert (found.chip, found.device.name, found.reference) == ("sm_86", "mine", "mine")


def test_a_target_may_be_planned_for_another_device(mine: Path) -> None:
    found = parse_target(f"nvvm:sm_80@{mine}#mine")
    assert found.device.name == "mine"
    assert device(found.reference) == found.device
    assert str(found) == "nvvm:sm_80"
    assert parse_target("nvvm:sm_80@h100+host").device.name == "h100+host"


@pytest.mark.parametrize("name", device_names())
def test_what_is_written_reads_back(name: str, tmp_path: Path) -> None:
    entry = device_entry(name)
    path = tmp_path / "written.toml"
    path.write_text(device_text(name, entry), "utf-8")
    assert read_devices(path) == {name: entry}


def _numbers(table: object, path: str) -> Iterator[str]:
    """The dotted path of each table in a device with a number and no source for it."""
    if isinstance(table, list) and any(isinstance(item, dict) for item in table):
        for index, item in enumerate(table):
            yield from _numbers(item, f"{path}[{index}]")
    elif isinstance(table, dict):
        for key, value in table.items():
            if key == "sources":
                continue
            yield from _numbers(value, f"{path}.{key}")
            number = isinstance(value, int | float)
            if number and key not in table.get("sources", {}):
                yield f"{path}.{key}"


@pytest.mark.parametrize("name", device_names())
def test_every_shipped_number_has_its_source(name: str) -> None:
    assert list(_numbers(tables()[name], name)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("units = 4", "", "mine.units: expected a whole number of at least 1"),
        ("units = 4", "units = 0", "mine.units: expected a whole number of at least 1"),
        ("units = 4", "units = true", "at least 1, got True"),
        ("warp = 32", "warp = 1.5", "mine.warp: expected a whole number"),
        ("peak_gflops = 1000", "peak_gflops = nan", "mine.peak_gflops: expected a pos"),
        ("peak_gflops = 1000", "peak_gflops = '1'", "a positive number, got '1'"),
        ("threads = 256", "threads = 256\nthread = 1", "mine.thread: expected one of"),
        ('target = "nvvm:sm_80"', "target = 7", "mine.target: expected a text"),
        ("capacity = 1024", "capacity = -1", "mine.levels[0].capacity: expected a"),
        ("write_bandwidth = 50", "write_bandwidth = 0", "levels[0].write_bandwidth"),
        ("write_transaction = 32", "write_transaction = 0", "[0].write_transaction"),
        ("capacity = 1024", "capacity = 9223372036854775808", "capacity: expected a"),
        ("bandwidth = 100.0", f"bandwidth = {10**400}", "levels[0].bandwidth: expec"),
        ("bandwidth = 100.0", "bandwidth = inf", "levels[0].bandwidth: expected a"),
        ('name = "global"', 'name = ""', "mine.levels[0].name: expected a text"),
        ('dtype = "f16"', 'dtype = "f32"', "distinct dtypes of peaks, got 'f32' twice"),
        ("gflops = 2000.0", "gflops = -1", "mine.peaks[0].gflops: expected a positive"),
        ("[16, 8, 16]", "[16, 8]", "mine.instructions[0].shape: expected three whole"),
        ("[16, 8, 16]", "[16, 0, 8]", "mine.instructions[0].shape: expected three"),
        ("bandwidth = 12.5", "bandwidth = '12'", "mine.host.bandwidth: expected a pos"),
        ('"felt"', "1", "mine.host.sources.bandwidth: expected a text"),
        ("sources.units", "sources.unit", "mine.sources.unit: expected a key of the"),
        ("[mine]", "['my.own']", "my.own: expected a name of letters"),
        ("[mine]", "mine = 3\n[yours]", "expected a TOML file"),
    ],
)
def test_a_wrong_field_is_named(mine: Path, old: str, new: str, message: str) -> None:
    assert old in MINE
    mine.write_text(MINE.replace(old, new, 1), "utf-8")
    with pytest.raises(UnsupportedError) as raised:
        read_devices(mine)
    assert raised.value.id == "invalid-device-file"
    assert message in raised.value.reason
    assert all(line.startswith(f"{mine}: ") for line in raised.value.reason.split("\n"))


def test_all_wrong_fields_are_told_at_once(mine: Path) -> None:
    broken = MINE.replace("warp = 32", "warp = 0").replace('"explicit"', '"big"')
    mine.write_text(broken, "utf-8")
    with pytest.raises(UnsupportedError) as raised:
        read_devices(mine)
    assert raised.value.reason.split("\n") == [
        f"{mine}: mine.warp: expected a whole number of at least 1, got 0",
        f"{mine}: mine.levels[0].kind: expected one of explicit, cache, got 'big'",
        f"{mine}: mine.host.kind: expected one of explicit, cache, got 'big'",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected at least one device"),
        ("mine = 3", "mine: expected a table, got 3"),
        ("[mine]\nlevels = 3", "mine.levels: expected tables [[mine.levels]], got 3"),
        ("[mine]\nlevels = [3]", "mine.levels[0]: expected a table, got 3"),
        ("[mine]\nhost = 3", "mine.host: expected a table, got 3"),
        ("[mine]\nsources = 3", "mine.sources: expected a table of texts, got 3"),
        ("[mine", "expected a TOML file"),
    ],
)
def test_a_file_of_another_form_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(UnsupportedError) as raised:
        read_devices(path)
    assert message in raised.value.reason


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="expected a TOML file: "):
        device(f"{tmp_path / 'none.toml'}#mine")


def test_an_entry_without_the_device_says_which_there_are(mine: Path) -> None:
    with pytest.raises(UnsupportedError, match="known devices: mine") as raised:
        device(f"{mine}#yours")
    assert raised.value.id == "unknown-device"


def test_sources_are_empty_unless_stated() -> None:
    assert DeviceEntry(device("a100")).sources == {}


def test_a_pipe_is_no_device_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    with pytest.raises(UnsupportedError, match="no regular file"):
        read_devices(pipe)
