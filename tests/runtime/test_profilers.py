"""What a program runs, by name: in torch's profilers and in the map for perf."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.artifact import (
    DeviceLaunch,
    KernelStep,
    Program,
    TiledStep,
    TileRun,
)
from magweld.runtime import perf_map
from magweld.runtime.frame import RunExternal
from magweld.runtime.loader import Kernels
from magweld.runtime.machine import kernel_symbols
from magweld.runtime.names import kernel_names
from magweld.runtime.program import LoadedProgram

SHAPE = (4, 8)
REPORT = {
    "groups": [
        {"kernel": "kernel_0", "operators": ["generic_0"]},
        {"kernel": "kernel_1", "operators": ["matmul_0", "generic_1", "generic_2"]},
        {"kernel": "kernel_1", "operators": ["matmul_1", "generic_3", "generic_4"]},
    ],
    "graphs": [
        {
            "steps": [
                {
                    "name": "subgraph_1",
                    "operators": [
                        {"name": "matmul_0", "nodes": ["mm_3"]},
                        {"name": "generic_1", "nodes": ["gelu_1", "gelu_2"]},
                        {"name": "generic_2", "nodes": ["add"]},
                    ],
                },
                {"name": "sort", "operators": []},
            ]
        }
    ],
}


@pytest.fixture
def program(chain_program: Program) -> Program:
    return replace(chain_program, report=REPORT)


def profiled(loaded: LoadedProgram, inputs: list[Tensor], calls: int = 1) -> Any:
    with torch.profiler.profile() as profile:
        for _ in range(calls):
            loaded(inputs)
    return profile


def ours(profile: Any) -> Counter[str]:
    return Counter(e.name for e in profile.events() if e.name.startswith("magweld"))


def test_kernels_have_the_names_of_what_they_compute(program: Program) -> None:
    assert kernel_names(program) == {
        "first": "magweld::generic",
        "first_range": "magweld::generic",
        "kernel_0": "magweld::generic",
        "triple": "magweld::mm+gelu+add",
        "triple_range": "magweld::mm+gelu+add",
        "kernel_1": "magweld::mm+gelu+add",
        "last": "magweld::matmul+generic",
        "last_range": "magweld::matmul+generic",
    }


def test_long_names_are_cut(program: Program) -> None:
    names = [f"{letter}_1" for letter in "abcdefghij"]
    long = replace(program, report={"groups": [{"kernel": "k", "operators": names}]})
    assert kernel_names(long)["first"] == "magweld::a+b+c+d+e+f and 4 more"
    # Of the others nothing is known.
    assert kernel_names(long)["last"] == "magweld::last"


def test_kernels_of_gpus_are_named_by_the_nodes_they_compute(program: Program) -> None:
    launch = DeviceLaunch("last", "k", (0,), (1,) * 3, (1,) * 3, 0, (), ("mul_7",))
    assert kernel_names(replace(program, launches=(launch,)))["last"] == "magweld::mul"


def test_each_kernel_is_a_range(program: Program, no_externals: RunExternal) -> None:
    loaded, x = LoadedProgram(program, no_externals), torch.randn(SHAPE)
    (expected,) = loaded([x])
    with torch.profiler.profile() as profile:
        (result,) = loaded([x])
        loaded([x])
    assert ours(profile) == {
        "magweld::generic": 2,
        "magweld::mm+gelu+add": 2,
        "magweld::matmul+generic": 2,
    }
    assert torch.equal(result, expected)


@pytest.mark.parametrize("kineto", [True, False])
def test_other_profilers_of_torch(
    kineto: bool, program: Program, no_externals: RunExternal
) -> None:
    loaded = LoadedProgram(program, no_externals)
    with torch.autograd.profiler.profile(use_kineto=kineto) as profile:
        loaded([torch.randn(SHAPE)])
    assert "magweld::generic" in {event.name for event in profile.function_events}


def test_without_a_profiler_kernels_stay_one_call(
    program: Program, no_externals: RunExternal
) -> None:
    loaded, x = LoadedProgram(program, no_externals), torch.randn(SHAPE)
    loaded([x])
    (bound,) = loaded._frames._idle[""]
    assert len(bound.actions) == 1
    assert bound.named is None
    profiled(loaded, [x])
    assert len(bound.named or ()) == 3
    assert ours(profiled(loaded, [x])) != {}
    with torch.profiler.profile() as profile:
        pass
    loaded([x])
    assert ours(profile) == {}


def test_calls_of_torch_are_inside_of_the_ranges(matmul_program: Program) -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (torch.sub(tensors[0], tensors[1]),)

    loaded = LoadedProgram(matmul_program, run)
    events = profiled(loaded, [torch.ones(4, 4)]).events()
    parents = {e.name: e.cpu_parent.name for e in events if e.cpu_parent is not None}
    assert parents["aten::mm"] == "magweld::matmul (library)"
    assert parents["aten::sub"] == "magweld::mm (torch)"


def test_steps_of_tiles_are_inside_of_their_range(
    program: Program, no_externals: RunExternal
) -> None:
    whole = replace(
        program,
        steps=(TiledStep((0,), (3,), (TileRun(0, (0,), ((0, 0),), (0, 0)),), 256),),
        parts=(replace(program, objects=(), report={}),),
        arena_bytes=1024,
    )
    loaded, x = LoadedProgram(whole, no_externals), torch.randn(SHAPE)
    events = [e for e in profiled(loaded, [x]).events() if e.name.startswith("magw")]
    assert [event.name for event in events] == [
        "magweld::tiles",
        "magweld::generic",
        "magweld::mm+gelu+add",
        "magweld::matmul+generic",
    ]
    torch.testing.assert_close(loaded([x])[0], 3 * (2 * x + 1) + x)


@pytest.fixture
def map_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[tuple[int, int, str]]]:
    """Return the lines of the map of this process, which is in a folder of its own."""
    monkeypatch.setattr(perf_map, "_FOLDER", tmp_path)
    path = tmp_path / f"perf-{os.getpid()}.map"

    def lines() -> list[tuple[int, int, str]]:
        if not path.exists():
            return []
        parts = (line.split(" ", 2) for line in path.read_text().splitlines())
        return [(int(at, 16), int(size, 16), name) for at, size, name in parts]

    return lines


def test_the_map_has_the_code_of_each_function(
    program: Program, map_file: Callable[[], list[tuple[int, int, str]]]
) -> None:
    kernels = Kernels(program.objects, kernel_symbols(program))
    kernels.name_for_perf({"first": "the first", "triple": "the second"})
    found = {name: (at, size) for at, size, name in map_file()}
    assert {"the first", "the second", "last"} <= found.keys()
    for symbol, name in (("first", "the first"), ("last", "last")):
        assert found[name][0] == kernels._code.address(symbol)
    ends = sorted((at, at + size) for at, size in found.values())
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))


def test_functions_that_only_kernels_call_are_found_by_their_section(
    program: Program, map_file: Callable[[], list[tuple[int, int, str]]]
) -> None:
    kernels = Kernels(program.objects, kernel_symbols(program))

    def address_of(symbol: str) -> int:
        return {"last": kernels._code.address("last")}[symbol]

    perf_map.write_perf_map(program.objects, address_of, {})
    addresses = {name: at for at, _, name in map_file()}
    assert addresses == {
        name: kernels._code.address(name) for name in ("first", "triple", "last")
    }


def test_the_map_is_written_if_it_is_asked_for(
    program: Program,
    no_externals: RunExternal,
    map_file: Callable[[], list[tuple[int, int, str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAGWELD_PERF", "0")
    LoadedProgram(program, no_externals)
    assert map_file() == []
    monkeypatch.setenv("MAGWELD_PERF", "1")
    LoadedProgram(program, no_externals)
    once = map_file()
    assert "magweld::mm+gelu+add" in [name for _, _, name in once]
    LoadedProgram(program, no_externals)
    assert len(map_file()) == 2 * len(once)


def test_a_map_that_cannot_be_written_is_no_error(
    program: Program,
    no_externals: RunExternal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(perf_map, "_FOLDER", tmp_path / "missing")
    monkeypatch.setenv("MAGWELD_PERF", "1")
    x = torch.randn(SHAPE)
    (result,) = LoadedProgram(program, no_externals)([x])
    torch.testing.assert_close(result, 3 * (2 * x + 1) + x)
    assert "no names in perf" in caplog.text


def test_a_link_in_place_of_the_map_is_not_followed(
    program: Program, no_externals: RunExternal, tmp_path: Path, map_file: Any
) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / f"perf-{os.getpid()}.map").symlink_to(target)
    Kernels(program.objects, kernel_symbols(program)).name_for_perf({})
    assert target.read_text() == ""


def test_a_kernel_without_a_report_has_its_symbol(program: Program) -> None:
    bare = replace(program, report={"groups": [{"kernel": "k", "bytes": 1}]})
    assert kernel_names(bare)["first"] == "magweld::first"
    assert [s.symbol for s in bare.steps if isinstance(s, KernelStep)] == [
        "first",
        "triple",
        "last",
    ]
