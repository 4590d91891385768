"""Products of warpgroups that are under way while the rest of a block is computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu_memory import RaceError
from test_matrix_instructions import objects_of, ptxas_says
from test_register_streams import (
    Case,
    Run,
    causal,
    changed,
    check,
    fused,
    interpret,
    lowered,
    without,
)
from torch import Tensor

from magweld.bindings import func, gpu, ir
from magweld.codegen.device_tools import find_ptxas
from magweld.device_kernels import compile_kernel
from magweld.passes.ir.utils import operations_of
from magweld.targets.target import Target

TARGET = "nvvm:sm_90a"
CASES = {
    "wide": Case(fused, keys=192, size=128, value=128, block=64),
    # Two fragments of each warpgroup.
    "tall": Case(fused, queries=128, keys=96, size=64, value=64, rows=128),
    "causal": Case(causal, queries=128, size=64, value=64, rows=128),
    # What is left of the stream is a smaller block.
    "edges": Case(fused, queries=128, keys=104, size=64, value=64),
    "overlapping": Case(fused, queries=197, keys=197, size=64, value=64, rows=128),
    "two": Case(fused, queries=128, keys=160, size=64, value=64, block=64),
}
_WAIT = re.compile(r"(?<=wgmma\.wait_group\.sync\.aligned )\d+")
_PHASE = re.compile(r"mbarrier\.try_wait\.parity %\w+, (%\w+),")
_COPIES = re.compile(r"(?<=cp\.async\.wait\.group )\d+")


def with_stages(count: int, run: Run) -> Run:
    """Return what runs a kernel whose rings have so many slots."""

    def limited(kernel: func.FuncOp, target: Target, values: list[Tensor]) -> None:
        number = ir.IntegerType.get_signless(64)
        stages = ir.IntegerAttr.get(number, count)
        kernel.attributes["tile_graph.copy_stages"] = stages
        run(kernel, target, values)

    return limited


@pytest.mark.sample(4)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_interpreted_attention_is_torchs(name: str, stages: int, whole: bool) -> None:
    if not whole and stages != (3 if name in ("edges", "wide") else 2):
        pytest.skip("one of those of `--whole`")
    check(CASES[name], "bf16", TARGET, with_stages(stages, interpret))


@pytest.mark.parametrize("name", ["wide", "tall"])
def test_products_are_in_flight(name: str) -> None:
    """Sums are waited for in the next iteration, scores beside them."""
    found: list[str] = []

    def run(kernel: func.FuncOp, target: Target, values: list[Tensor]) -> None:
        loop = str(lowered(kernel, target)).partition("scf.for")[2]
        found.extend(_WAIT.findall(loop))
        interpret(kernel, target, values)

    check(CASES[name], "bf16", TARGET, run)
    # Two are behind the loop.
    assert found == ["0", str(CASES[name].rows // 64), "0", "0"]


def loosened(pattern: re.Pattern[str], number: int) -> Callable[[str], str]:
    """Return what lets one wait leave one group more under way."""

    def change(text: str) -> str:
        found = list(pattern.finditer(text))
        assert len(found) > number
        start, end = found[number].span()
        return f"{text[:start]}{int(found[number][0]) + 1}{text[end:]}"

    return change


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(5))
def test_waits_for_products_are_as_they_have_to_be(number: int) -> None:
    """Of the first scores, of sums and scores in the loop, of the last two sums."""
    run = with_stages(3, changed(loosened(_WAIT, number)))
    with pytest.raises(AssertionError):
        check(CASES["wide"], "bf16", TARGET, run)


@pytest.mark.sample(2)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("number", range(4))
def test_waits_for_copies_are_as_they_have_to_be(number: int, stages: int) -> None:
    """Of the first block, of those in the loop, of the last values, of what is left."""
    run = with_stages(stages, changed(loosened(_COPIES, number), boxes=False))
    with pytest.raises(RaceError):
        check(CASES["edges"], "bf16", TARGET, run)


@pytest.mark.parametrize("number", range(4))
def test_threads_have_to_meet(number: int) -> None:
    run = with_stages(2, changed(without(number), boxes=False))
    with pytest.raises(RaceError):
        check(CASES["edges"], "bf16", TARGET, run)


def test_streams_are_right_where_threads_copy() -> None:
    run = with_stages(2, changed(lambda text: text, boxes=False))
    check(CASES["edges"], "bf16", TARGET, run)


def of_phase_before(number: int) -> Callable[[str], str]:
    """Return what lets one wait be for the phase before."""

    def change(text: str) -> str:
        lines = text.split("\n")
        places = [n for n, line in enumerate(lines) if _PHASE.search(line)]
        assert len(places) > number
        at = places[number]
        phase = _PHASE.search(lines[at])
        assert phase is not None
        lines[at] = lines[at].replace(f"{phase[1]},", "%before,", 1)
        more = (
            f"%one = arith.constant 1 : i32 %before = arith.xori {phase[1]}, %one : i32"
        )
        return "\n".join([*lines[:at], more, *lines[at:]])

    return change


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(6))
def test_waits_for_boxes_are_as_they_have_to_be(number: int) -> None:
    """Of the first keys, of both in the loop, of the last values, of what is left."""
    run = with_stages(2, changed(of_phase_before(number)))
    with pytest.raises(AssertionError):
        check(CASES["edges"], "bf16", TARGET, run)


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_ptxas_takes_them_without_spills(tmp_path: Path) -> None:
    said: list[str] = []

    def run(kernel: func.FuncOp, target: Target, values: list[Tensor]) -> None:
        compiled = compile_kernel(kernel, target)
        (binary,) = operations_of(compiled.operation, gpu.BinaryOp)
        (assembly,) = objects_of(binary, "Assembly")
        said.append(ptxas_says(assembly, tmp_path))
        interpret(kernel, target, values)

    case = Case(fused, queries=256, keys=192, size=128, value=128, rows=128, block=64)
    check(case, "bf16", TARGET, run)
    assert "0 bytes spill stores, 0 bytes spill loads" in said[0]
    # Products that wait for each other.
    assert "serialized" not in said[0]
    assert "C75" not in said[0]
