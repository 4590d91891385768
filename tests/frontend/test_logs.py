"""What a traced callable logs, by topic, from real programs."""

from __future__ import annotations

import copy
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn

from magweld import api
from magweld.diagnostics import MagweldError
from magweld.frontend import trace
from magweld.tiers import Race, Tiers, Verdict, Work

Lines = Callable[[str], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Return the lines of a topic so far; all topics are logged."""
    caplog.set_level(logging.DEBUG, "magweld")

    def of(topic: str) -> list[str]:
        name = f"magweld.{topic}"
        return [item.getMessage() for item in caplog.records if item.name == name]

    return of


class Scaled(nn.Module):
    """A linear map and a factor that is a Python number."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, factor: str = "one") -> Tensor:
        return self.linear(x) * len(factor)


def with_a_break(x: Tensor) -> Tensor:
    y = x * 2
    os.getpid()
    return y.sin() + 1


def test_a_record_is_a_line_with_times(lines: Lines) -> None:
    trace(Scaled(), backend="eager")(torch.ones(2, 4))
    (line,) = lines("records")
    assert line.startswith("Scaled: record 0: 2 operators, 3 inputs, ")
    assert re.search(r"observed in [\d.]+ [mµn]?s, handed to the backend in ", line)
    assert lines("recompiles") == lines("breaks") == lines("fallbacks") == []


def test_each_guard_of_a_record_is_a_line(lines: Lines) -> None:
    fast = trace(Scaled(), backend="eager")
    fast(torch.ones(2, 4))
    begin = "Scaled: record 0: "
    assert lines("guards") == [f"{begin}{guard}" for guard in fast.records[0].guards]


def test_a_miss_names_the_guard_that_failed(lines: Lines) -> None:
    fast = trace(Scaled(), backend="eager", dynamic=False)
    fast(torch.ones(2, 4))
    fast(torch.ones(2, 4), "one")
    fast(torch.ones(2, 4), "three")
    first, second, third = lines("recompiles")
    assert first.startswith("Scaled: call 2 does not fit record 0: len(args): ")
    assert second.startswith("Scaled: call 3 does not fit record 1: args[1]: ")
    assert "'one'" in second
    assert "'three'" in second
    assert third.startswith("Scaled: call 3 does not fit record 0: ")


def test_a_tensor_that_does_not_fit_is_named_with_the_reason(lines: Lines) -> None:
    fast = trace(Scaled(), backend="eager", dynamic=False)
    fast(torch.ones(2, 4))
    fast(torch.ones(3, 4))
    (line,) = lines("recompiles")
    begin, _, text = line.partition("record 0: ")
    assert begin == "Scaled: call 2 does not fit "
    assert re.match(r"tensor 'args\[0\]' .*expected 2, actual 3", text)
    assert "_parameters" not in text


def test_a_hit_logs_nothing(lines: Lines, caplog: pytest.LogCaptureFixture) -> None:
    fast = trace(Scaled(), backend="eager")
    fast(torch.ones(2, 4))
    caplog.clear()
    fast(torch.ones(2, 4))
    assert fast.stats()["hits"] == 1
    assert caplog.records == []


def test_a_break_and_what_lies_behind_it(lines: Lines) -> None:
    fast = trace(with_a_break, backend="eager")
    fast(torch.ones(3))
    (line,) = lines("breaks")
    assert line == f"with_a_break: {fast.breaks[0]}"
    assert "native-call at " in line
    first, second = lines("records")
    assert re.search(r"; ends before .*test_logs.py:\d+ in with_a_break$", first)
    assert re.match(r"with_a_break behind .*test_logs.py:\d+ in with_a_b", second)
    fast(torch.ones(3, dtype=torch.float64))
    inner = lines("recompiles")[-1]
    assert re.match(r"with_a_break behind .* does not fit record 0: ", inner)


def run_nothing() -> None:
    """Run a graph of nothing."""


class Nothing:
    """Compiled code of a graph of nothing."""

    held_bytes = 0

    def report(self) -> dict[str, Any]:
        return {}


def refuse(graph: fx.GraphModule, inputs: list[Tensor]) -> Any:
    raise RuntimeError("no such code")


@pytest.mark.filterwarnings("ignore:backend-failed")
def test_a_backend_that_raises_is_a_fallback(lines: Lines) -> None:
    fast = trace(Scaled(), backend=refuse)
    fast(torch.ones(2, 4))
    (line,) = lines("fallbacks")
    assert line == f"Scaled: {fast.records[0].breaks[0]}"
    assert "backend-failed" in line
    assert "no such code" in line


@pytest.mark.filterwarnings("ignore:backend-failed")
def test_a_size_that_the_backend_refuses_is_a_fallback(lines: Lines) -> None:
    fast = trace(lambda x: x * 2 + 1, backend=refuse)
    for size in (2, 3, 4, 5, 5, 5, 5):
        fast(torch.ones(size))
    assert "sizes or numbers stay with torch: RuntimeError('no such code')" in lines(
        "fallbacks"
    )


def test_a_compilation_and_its_plan(
    lines: Lines,
) -> None:
    fast = trace(with_a_break, compile="now")
    fast(torch.ones(3))
    told = lines("compiles")
    name = "with_a_break: graph of 2 operators, from .*test_logs.py:[0-9]+ on: "
    assert re.fullmatch(f"{name}compiling in the call", told[-3])
    assert re.fullmatch(
        r"program [0-9a-f]{12}: (compiled|from the disk cache).* s", told[-2]
    )
    assert re.fullmatch(rf"{name}ready after [0-9.]+ s", told[-1])
    _, plan = lines("plans")
    assert re.match(f"{name.strip()}\ntile graph for cpu: 1 generated\n", plan)
    assert "sin, add" in plan.splitlines()[-1]


def sorted_in_half_precision(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
    return torch.sort(y.float() * 2).values + 1


def test_operators_that_torch_runs_are_fallbacks(lines: Lines) -> None:
    fast = trace(sorted_in_half_precision, compile="now")
    for _ in range(2):
        fast(torch.ones(4, 4))
    cut = next(line for line in lines("fallbacks") if "set_autocast" in line)
    begin = "sorted_in_half_precision: graph of "
    assert re.match(rf"{begin}\d+ operators, .*: torch runs .*\(autocast-region\)", cut)
    assert cut.endswith(" more")
    (external,) = (line for line in lines("fallbacks") if "sort'" in line)
    assert re.search(r"torch runs .*node 'sort' \(.*test_logs\.py:\d+\)", external)


def test_a_compilation_that_fails(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> Any:
        raise MagweldError("no such instruction")

    monkeypatch.setattr(api, "compile_imported", fail)
    fast = trace(with_a_break, compile="now")
    with pytest.warns(UserWarning, match="no such instruction"):
        fast(torch.ones(3))
    assert lines("compiles")[-1].endswith(" s: no such instruction")
    assert "backend-failed" in lines("fallbacks")[-1]


def test_who_wins_the_race(lines: Lines) -> None:
    for ours, theirs, topic in ((1.0, 3.0, "compiles"), (3.0, 1.0, "fallbacks")):
        work = Work(Nothing, Race(Verdict(ours, theirs)))
        tiers = Tiers(in_background=False, races=True)
        graph = tiers.graph(run_nothing, partial(copy.copy, work), name="g")
        assert lines(topic)[-1] == f"g: {graph.describe()}"
    assert len(lines("compiles")) == len(lines("fallbacks")) == 1


def test_the_variable_works_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAGWELD_LOGS", "records,recompiels")
    program = (
        "import torch\n"
        "from magweld.frontend import trace\n"
        "fast = trace(lambda x: x + 1, backend='eager')\n"
        "fast(torch.ones(2)), fast(torch.ones(2))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("magweld.records: <lambda>: record 0: 1 operators") == 1
    assert done.stderr.count("did you mean 'recompiles'?") == 1
    assert "magweld.guards" not in done.stderr


def test_python_chooses_topics_by_the_means_of_logging() -> None:
    program = (
        "import logging, torch\n"
        "from magweld.frontend import trace\n"
        "logging.basicConfig(format='%(name)s|%(message)s')\n"
        "logging.getLogger('magweld.records').setLevel(logging.INFO)\n"
        "fast = trace(lambda x: x + 1, backend='eager')\n"
        "fast(torch.ones(2)), fast(torch.ones(3))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    names = [line.partition("|")[0] for line in done.stderr.splitlines()]
    assert names == ["magweld.records"] * 2
