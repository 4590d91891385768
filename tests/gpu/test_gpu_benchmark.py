"""The script for a first run on a GPU, as far as it goes without one."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hosted_gpu import HostedGpu, MockDriver, compile_interpreted

import magweld
from magweld.aot.compile import import_call
from magweld.aot.sources import captured
from magweld.api import options_for
from magweld.compiler_options import CompileOptions

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]

cases = importlib.import_module("gpu_cases")
device_cases = importlib.import_module("device_cases")
gpu = importlib.import_module("gpu")
processes = importlib.import_module("gpu_processes")
reports = importlib.import_module("reports")
outcomes = importlib.import_module("gpu_outcomes")
worker = importlib.import_module("gpu_worker")

# Loading goes without whatever only the compiler needs.
LOAD = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import magweld
artifact = magweld.load({file!r})
assert artifact.program.launches, artifact
assert artifact.signature
"""
PACKAGES = {"torch_mlir", "llvmlite", "platformdirs", "jinja2", "rich", "packaging"}


def options(folder: Path, **others: Any) -> argparse.Namespace:
    chosen = {
        "folder": folder,
        "cases": ["add-norm", "double-conv"],
        "dtypes": ["f32"],
        "targets": ["nvvm:sm_80"],
        "output": folder,
        "libraries": ["auto"],
        "modes": [],
        "sanitize": [],
        "processes": 2,
        "seconds": 60.0,
    }
    return argparse.Namespace(**{**chosen, **others})


def test_a_pack_is_compiled_and_read_again(tmp_path: Path) -> None:
    gpu.pack(options(tmp_path))
    _, packed = gpu.read_pack(tmp_path)
    assert [one.case for one in packed] == ["add-norm", "double-conv"]
    assert all(one.kernels and not one.problem for one in packed)
    assert not packed[1].externals
    for one in packed:
        assert magweld.load(tmp_path / one.file).target == one.target
    file = str(tmp_path / packed[0].file)
    script = LOAD.format(packages=PACKAGES, file=file)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu.run(options(tmp_path)) == 2
    assert "torch sees no GPU" in capsys.readouterr().err


def outcome_of(function: Callable[..., Any], name: str = "add-norm") -> Any:
    case = cases.work(name, "f32", "cpu")
    outcome = gpu.Outcome(gpu.Packed(name, "f32", "nvvm:sm_80", "a.mw", 1))
    worker.check(outcome, function, case)
    return outcome


def test_results_are_compared_with_double_precision() -> None:
    function = gpu.SMALL["add-norm"].function
    right = outcome_of(function)
    assert right.error == right.torch_error < 1e-5
    assert not right.problems

    def wrong(*arguments: torch.Tensor) -> Any:
        result = function(*arguments)
        first = worker.tensors_of(result)[0]
        first.view(-1)[7] = float("nan")
        return result

    assert outcome_of(wrong).problems == ["error inf"]
    assert "types" in outcome_of(lambda *a: tuple(
        t.double() for t in worker.tensors_of(function(*a))
    )).problems[0]  # fmt: skip


def test_what_fails_is_a_row(tmp_path: Path) -> None:
    outcome = outcome_of(gpu.SMALL["add-norm"].function)

    def failing() -> None:
        raise RuntimeError("CUDA error: an illegal memory access")

    assert worker.attempt(outcome, "graph", failing) is None
    outcome.times.update({"magweld": 20.0, "magweld-graph": 10.0})
    outcome.times.update({"eager": 60.0, "eager-graph": 20.0})
    assert "graph: RuntimeError: CUDA error" in gpu.row(outcome)
    assert gpu.ratios([outcome]) == {
        "eager": pytest.approx(3.0),
        "eager-graph": pytest.approx(2.0),
    }
    gpu.write(options(tmp_path), {"machine": "none"}, [outcome])
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert written["results"][0]["problems"] == outcome.problems
    report = reports.read_report(tmp_path / "gpu.json")
    assert report.facts == {"machine": "none"}
    assert report.rows[0].name.startswith("add-norm ")
    assert report.rows[0].speed("eager") == pytest.approx(3.0)


FAKE = """
import sys
for line in {lines!r}:
    print(line, flush=True)
if {ready}:
    print("ready", flush=True)
    sys.stdin.readline()
    for line in {timed!r}:
        print(line, flush=True)
raise SystemExit({code})
"""


def packed_of(*dtypes: str) -> list[Any]:
    return [
        gpu.Packed("add-norm", dtype, "nvvm:sm_80", f"{dtype}.mw", 1)
        for dtype in dtypes
    ]


def lines_of(packed: list[Any], **fields: Any) -> list[str]:
    return [json.dumps(asdict(gpu.Outcome(one, error=0.0, **fields))) for one in packed]


def fake_worker(
    packed: list[Any], said: int, *, timed: int = 0, ready: bool = False, code: int = 0
) -> Any:
    """Return a process that tells of the first artifacts, and times fewer."""
    script = FAKE.format(
        lines=lines_of(packed[:said]),
        ready=ready,
        timed=lines_of(packed[:timed], times={"eager": 5.0}),
        code=code,
    )
    return processes.Worker([sys.executable, "-c", script], packed)


def measured(*workers: Any) -> list[tuple[Any, list[Any], str]]:
    now = time.monotonic()
    return list(processes.check_and_measure(workers, now + 60, now + 60))


def test_processes_check_and_measure() -> None:
    packed = packed_of("f32", "f16")
    workers = [
        fake_worker(packed, 2, timed=2, ready=True),
        fake_worker(packed, 2, timed=1, ready=True),
    ]
    (_, first, _), (_, second, _) = measured(*workers)
    assert [one.times for one in first] == [{"eager": 5.0}] * 2
    assert [one.times for one in second] == [{"eager": 5.0}, {}]
    assert all(one.error == 0.0 for one in (*first, *second))


def test_a_process_that_ends_early_tells_of_what_it_has_checked() -> None:
    packed = packed_of("f32", "f16", "bf16")
    ((worker, found, said),) = measured(fake_worker(packed, 1, code=3))
    assert worker.packed == packed
    assert [one.packed.dtype for one in found] == ["f32"]
    assert said.startswith("its process ended (3)")


def test_a_process_that_is_not_ready_is_ended() -> None:
    packed = packed_of("f32")
    worker = processes.Worker(
        [sys.executable, "-c", "import time; time.sleep(600)"], packed
    )
    now = time.monotonic()
    ((_, found, said),) = processes.check_and_measure([worker], now, now)
    assert not found
    assert said.startswith("its process ended (-9)")


def test_what_is_left_is_checked_alone() -> None:
    (packed,) = packed_of("f32")
    script = FAKE.format(lines=lines_of([packed]), ready=False, timed=[], code=0)
    command = [sys.executable, "-c", script]
    assert not processes.check_alone(command, packed, 60).problems
    failing = [sys.executable, "-c", "raise SystemExit(7)"]
    outcome = processes.check_alone(failing, packed, 60)
    assert outcome.problems[0].startswith("its process ended (7)")
    endless = [sys.executable, "-c", "import time; time.sleep(600)"]
    outcome = processes.check_alone(endless, packed, 1)
    assert outcome.problems == ["not done in 1 s"]


@dataclass
class OnHost:
    """A GPU in the memory of the host: its driver hands launches to the interpreter."""

    hosted: HostedGpu
    device = "cpu"

    def load(self, path: Path) -> Any:
        return replace(magweld.load(path), machine=self.hosted, unusable="")

    def synchronize(self) -> None:
        self.hosted.wait()

    def streams(self) -> Sequence[Callable[[], AbstractContextManager[object]]]:
        return [partial(self._on, number) for number in (1, 2)]

    @contextmanager
    def _on(self, number: int) -> Iterator[None]:
        kept, self.hosted.stream = self.hosted.stream, number
        yield
        self.hosted.stream = kept

    def captured(self, call: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        results = worker.tensors_of(call())

        def replay() -> None:
            for old, new in zip(results, worker.tensors_of(call()), strict=True):
                old.copy_(new)

        return replay, results

    def microseconds(self, call: Callable[[], Any], rounds: int = 1) -> float:
        call()
        return 1.0


def launches_of(packed: Any) -> Any:
    """Return the kernels of an artifact of a pack for the interpreter."""
    case = cases.work(packed.case, packed.dtype, "cpu")
    imported = import_call(captured(case.function, case.tensors), packed.target)
    wanted = CompileOptions(library=packed.library)
    chosen = options_for(packed.target, wanted, None)
    return compile_interpreted(imported.imported, packed.target, chosen)[2]


def interpreted_case(name: str) -> Any:
    """Return a subgraph; each launch of the interpreter takes seconds for more rows."""
    case = device_cases.SUBGRAPHS[name]
    if name == "linear-add-norm":
        case = replace(case, shapes=((16, 32), (32, 32), (32,), (16, 32), (32,), (32,)))
    return case


# A stream in registers, and a product that a library computes as well.
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "dtype", "calls"),
    [("long-attention", "f16", "batch_matmul"), ("linear-add-norm", "f32", "matmul")],
)
def test_a_pack_runs_on_a_mock_driver(
    name: str,
    dtype: str,
    calls: str,
    tmp_path: Path,
    mock: MockDriver,
    hosted: HostedGpu,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(cases.SMALL, name, interpreted_case(name))
    chosen = {"cases": [name], "dtypes": [dtype], "libraries": ["never", "always"]}
    gpu.pack(options(tmp_path, **chosen))
    _, packed = gpu.read_pack(tmp_path)
    assert [one.library for one in packed] == ["never", "always"]
    assert [set(one.calls) for one in packed] == [set(), {calls}]
    for one in packed:
        mock.kernels = dict(launches_of(one))
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.StringIO("go\n"))
        asked = {"files": [one.file], "time": True, "modes": [], "seconds": 60.0}
        worker.run(argparse.Namespace(folder=tmp_path, **asked), OnHost(hosted))
        *_, ready, last = capsys.readouterr().out.splitlines()
        assert ready == "ready"
        outcome = outcomes.outcome_of(last)
        assert not outcome.problems
        assert set(outcome.times) == {"magweld", "magweld-graph"}


def test_what_is_fastest_of_several_choices_is_reported() -> None:
    found = []
    for library, taken in (("auto", 20.0), ("never", 10.0)):
        packed = gpu.Packed("mlp", "f32", "nvvm:sm_80", "a.mw", 1, library=library)
        found.append(gpu.Outcome(packed, times={"magweld-graph": taken}))
    found.append(gpu.Outcome(gpu.Packed("scores", "f32", "nvvm:sm_80", "b.mw", 1)))
    (choice,) = outcomes.choices(found)
    assert choice["times"] == {"auto": 20.0, "never": 10.0}
    assert (choice["case"], choice["fastest"]) == ("mlp", "never")
