"""Plans for GPUs are chosen by measuring: calls of libraries against kernels."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hosted_gpu import HostedGpu, MockDriver
from torch import Tensor, fx

import magweld
from magweld import TuneOptions
from magweld.api import options_for
from magweld.artifact import KernelStep, LibraryStep, Program
from magweld.compiler_options import CompileOptions
from magweld.diagnostics import UnsupportedError
from magweld.importer.importer import import_graph
from magweld.runtime import measuring
from magweld.runtime.container import decode_program, encode_parts, encode_request
from magweld.tuning import tasks
from magweld.tuning.contest import Contest
from magweld.tuning.entry import plan_identity
from magweld.tuning.tuner import Tuner

TARGET = "nvvm:sm_80"
SETTINGS = f"{TARGET}\n{CompileOptions().text()}"
BF16 = torch.bfloat16


def product(x: Tensor, w: Tensor) -> Tensor:
    return x @ w


def linear(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.linear(x, w, b).relu()


def text_of(function: Callable[..., Any], *inputs: Tensor) -> str:
    graph = fx.symbolic_trace(function)
    return import_graph(graph, inputs, device=torch.device("cuda", 0)).text


def units_of(text: str) -> list[str]:
    answer = json.loads(tasks.find_units(encode_request(SETTINGS, text)))
    return [unit["structure"] for unit in answer["units"]]


def alternatives_of(unit: str) -> list[dict[str, Any]]:
    payload = encode_parts([part.encode() for part in (SETTINGS, "8", unit)])
    found: list[dict[str, Any]] = json.loads(tasks.find_alternatives(payload))
    return found


def calls_of(program: Program) -> list[str]:
    return [step.op for step in program.steps if isinstance(step, LibraryStep)]


def test_a_call_and_kernels_are_alternatives() -> None:
    text = text_of(product, torch.randn(64, 48), torch.randn(48, 32))
    (unit,) = units_of(text)
    found = {
        calls: decode_program(
            tasks.compile_alternative(encode_request(SETTINGS, one["text"]))
        )
        for one in alternatives_of(unit)
        for calls in ["library" in one["label"]]
    }
    assert calls_of(found[True]) == ["matmul"]
    assert [type(step) for step in found[False].steps] == [KernelStep]
    assert {program.target for program in found.values()} == {TARGET}


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_call_of_halves_is_applied_with_what_rounds_its_sums(with_bias: bool) -> None:
    """Plans leave the structure of a graph alone: select-libraries folds the rest."""
    x, w, b = (torch.randn(shape).to(BF16) for shape in ((64, 48), (32, 48), (32,)))
    if with_bias:
        text = text_of(linear, x, w, b)
    else:
        text = text_of(product, x, w.t().contiguous())
    graph = json.loads(tasks.find_units(encode_request(SETTINGS, text)))["graph"]
    (unit,) = units_of(text)
    plan = next(
        one["text"] for one in alternatives_of(unit) if "library" in one["label"]
    )
    payload = [part.encode() for part in (SETTINGS, graph, plan)]
    program = decode_program(tasks.compile_planned(encode_parts(payload)))
    assert calls_of(program) == ["addmm" if with_bias else "matmul"]
    kernels = [step for step in program.steps if isinstance(step, KernelStep)]
    assert len(kernels) == with_bias


class InProcess:
    """Runs tasks here."""

    def run(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        module, _, name = target.partition(":")
        found: bytes = getattr(import_module(module), name)(payload)
        return found

    def prestart(self) -> None:
        pass


def multiply(seconds: float, parameters: Any) -> None:
    """Compute a product of 64 x 48 by 48 x 32 as a kernel that takes a while."""
    cells = [ctypes.c_uint64.from_address(parameters[n]).value for n in range(3)]
    x, w, y = (
        np.frombuffer((ctypes.c_float * (m * n)).from_address(cell), np.float32)
        for cell, (m, n) in zip(cells, ((64, 48), (48, 32), (64, 32)), strict=True)
    )
    time.sleep(seconds)
    y.reshape(64, 32)[:] = x.reshape(64, 48) @ w.reshape(48, 32)


@pytest.mark.parametrize("is_slow", [False, True])
def test_the_faster_of_a_kernel_and_a_call_is_taken(
    mock: MockDriver,
    hosted: HostedGpu,
    monkeypatch: pytest.MonkeyPatch,
    is_slow: bool,
) -> None:
    text = text_of(product, torch.randn(64, 48), torch.randn(48, 32))
    mock.kernels["kernel_0_kernel"] = lambda cells: multiply(0.02 * is_slow, cells)
    asked: list[str] = []

    def machine(target: str) -> HostedGpu:
        asked.append(target)
        return hosted

    monkeypatch.setattr(measuring, "machine_for", machine)
    if not is_slow:
        exact = torch.mm

        def slow(*args: Any, **more: Any) -> Any:
            time.sleep(0.02)
            return exact(*args, **more)

        monkeypatch.setattr(torch, "mm", slow)
    runner = InProcess()
    options = TuneOptions(seconds=120.0, candidates=4)
    tuner = Tuner(runner, Contest(runner, torch.get_num_threads()), "digest", options)
    program = tuner.compile(text, SETTINGS)
    assert set(asked) == {TARGET}
    assert calls_of(program) == (["matmul"] if is_slow else [])
    (report,) = program.report["tuning"]
    assert report["plan"] == "measured"
    assert any("library" in label for label in report["measured"])


def test_plans_belong_to_a_gpu() -> None:
    assert (
        len({plan_identity(1), plan_identity(1, "one"), plan_identity(1, "two")}) == 3
    )


def test_without_a_gpu_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(UnsupportedError, match="torch sees none") as refused:
        options_for(TARGET, CompileOptions(), tune=True)
    assert refused.value.id == "tune-target"
    # What the environment asks for is for graphs that can be measured.
    monkeypatch.setenv("MAGWELD_TUNE", "1")
    x = torch.randn(8, 8)
    artifact = magweld.compile(torch.relu, (x,), TARGET)
    assert "tuning" not in artifact.report()
