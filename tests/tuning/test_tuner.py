"""The course of tuning with a compiler and a race that do as they are told."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from magweld.artifact import Program
from magweld.runtime.cache import DiskCache
from magweld.runtime.container import decode_parts, decode_request, encode_program
from magweld.runtime.errors import TaskFailedError, WorkerDiedError, WorkerError
from magweld.runtime.plans import MeasuredPlan, plan_cache
from magweld.runtime.service import CompileService
from magweld.tuning.contest import Contest, Contestant
from magweld.tuning.options import TuneOptions
from magweld.tuning.outcome import would_stay
from magweld.tuning.tuner import (
    COMPILE_ALTERNATIVE,
    COMPILE_PLANNED,
    FIND_ALTERNATIVES,
    FIND_UNITS,
    Tuner,
)

EMPTY = Program((), (), (), arena_bytes=0)


class FakeCompiler:
    """Units, alternatives and programs as a table says.

    Args:
        units: Structure and predicted seconds of each unit of the graph.
        alternatives: Labels of the plans of a structure.
        broken: Tasks or labels that end in an error.
    """

    def __init__(
        self,
        units: Sequence[tuple[str, float]],
        alternatives: dict[str, list[str]],
        broken: dict[str, WorkerError] | None = None,
    ) -> None:
        self._units = units
        self._alternatives = alternatives
        self._broken = broken or {}
        self.asked: list[str] = []
        self.compiled: list[str] = []
        self.applied: list[list[str]] = []

    def run(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        answers: dict[str, Callable[[bytes], bytes]] = {
            FIND_UNITS: self._find_units,
            FIND_ALTERNATIVES: self._find_alternatives,
            COMPILE_ALTERNATIVE: self._compile_alternative,
            COMPILE_PLANNED: self._compile_planned,
        }
        self._fail(target)
        return answers[target](payload)

    def prestart(self) -> None:
        pass

    def _fail(self, name: str) -> None:
        if name in self._broken:
            raise self._broken[name]

    def _find_units(self, payload: bytes) -> bytes:
        assert decode_request(payload) == ("settings", "module")
        units = [{"structure": s, "seconds": t} for s, t in self._units]
        return json.dumps({"graph": "graph", "units": units}).encode()

    def _find_alternatives(self, payload: bytes) -> bytes:
        settings, count, structure = (part.decode() for part in decode_parts(payload))
        assert settings == "settings"
        self.asked.append(structure)
        labels = self._alternatives[structure][: int(count)]
        found = [{"label": x, "text": f"plan {x}", "seconds": 1.0} for x in labels]
        return json.dumps(found).encode()

    def _compile_alternative(self, payload: bytes) -> bytes:
        _, text = decode_request(payload)
        self.compiled.append(text)
        self._fail(text)
        return encode_program(EMPTY)

    def _compile_planned(self, payload: bytes) -> bytes:
        settings, graph, *plans = (part.decode() for part in decode_parts(payload))
        assert (settings, graph) == ("settings", "graph")
        self.applied.append(plans)
        for plan in plans:
            self._fail(f"apply {plan}")
        return encode_program(EMPTY)


class FakeContest(Contest):
    """The last plan wins, or what else it is told."""

    def __init__(self, result: Callable[[list[Contestant]], Any] | None = None) -> None:
        object.__setattr__(self, "result", result)
        object.__setattr__(self, "held", [])

    held: list[tuple[list[str], float]]
    result: Callable[[list[Contestant]], Any] | None

    def prepare(self) -> None:
        pass

    def hold(
        self, contestants: Sequence[Contestant], seconds: float, identity: str
    ) -> MeasuredPlan | None:
        self.held.append(([c.label for c in contestants], seconds))
        if self.result is not None:
            found: MeasuredPlan | None = self.result(list(contestants))
            return found
        return last_of(contestants, identity)


def last_of(contestants: Sequence[Contestant], identity: str = "") -> MeasuredPlan:
    last = contestants[-1]
    times = {c.label: 2.0 - i for i, c in enumerate(contestants)}
    return MeasuredPlan(last.text, last.label, identity, times)


UNITS = [("one", 1.0), ("two", 1.5), ("one", 1.0)]
PLANS = {"one": ["1a", "1b"], "two": ["2a", "2b"]}


def tuner(compiler: FakeCompiler, contest: Contest, **more: Any) -> Tuner:
    return Tuner(compiler, contest, "digest", **{"clock": lambda: 0.0, **more})


def test_equal_units_are_tuned_once() -> None:
    compiler, contest = FakeCompiler(UNITS, PLANS), FakeContest()
    program = tuner(compiler, contest).compile("module", "settings")
    # "one" stands twice in the graph and takes longest together.
    assert compiler.asked == ["one", "two"]
    assert compiler.compiled == ["plan 1a", "plan 2a", "plan 1b", "plan 2b"]
    assert [labels for labels, _ in contest.held] == [["1a", "1b"], ["2a", "2b"]]
    assert compiler.applied == [["plan 1b", "plan 2b"]]
    assert program.report["tuning"] == [
        {
            "units": 2,
            "plan": "measured",
            "chosen": "1b",
            "seconds": 1.0,
            "seconds_of_prediction": 2.0,
            "measured": {"1a": 2.0, "1b": 1.0},
        },
        {
            "units": 1,
            "plan": "measured",
            "chosen": "2b",
            "seconds": 1.0,
            "seconds_of_prediction": 2.0,
            "measured": {"2a": 2.0, "2b": 1.0},
        },
    ]


def test_plans_come_from_the_cache(tmp_path: Path) -> None:
    cache = plan_cache(tmp_path)
    first = FakeCompiler(UNITS, PLANS)
    tuner(first, FakeContest(), cache=cache).compile("module", "settings")
    second, contest = FakeCompiler(UNITS, PLANS), FakeContest()
    program = tuner(second, contest, cache=cache).compile("module", "settings")
    assert second.asked == []
    assert contest.held == []
    assert second.applied == first.applied
    assert [unit["plan"] for unit in program.report["tuning"]] == ["cache", "cache"]
    # Another machine or number of threads has plans of its own.
    third = FakeCompiler(UNITS, PLANS)
    other = dataclasses.replace(tuner(third, FakeContest(), cache=cache), digest="x")
    other.compile("module", "settings")
    assert third.asked == ["one", "two"]


def test_a_damaged_plan_is_measured_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = plan_cache(tmp_path)
    tuner(FakeCompiler(UNITS, PLANS), FakeContest(), cache=cache).compile(
        "module", "settings"
    )
    for key in cache.keys():
        cache.path(key).write_bytes(b"rubbish")
    again = FakeCompiler(UNITS, PLANS)
    tuner(again, FakeContest(), cache=cache).compile("module", "settings")
    assert again.asked == ["one", "two"]
    assert "is not usable" in caplog.text


def test_a_plan_that_crashes_the_compiler_is_left_out() -> None:
    plans = {"one": ["1a", "1b", "1c"], "two": ["2a"]}
    compiler = FakeCompiler(UNITS, plans, {"plan 1b": WorkerDiedError("as told")})
    contest = FakeContest()
    program = tuner(compiler, contest).compile("module", "settings")
    assert [labels for labels, _ in contest.held] == [["1a", "1c"]]
    assert compiler.applied == [["plan 1c"]]
    assert program.report["tuning"][1] == {
        "units": 1,
        "plan": "prediction",
        "reason": "there is one plan only",
    }


@pytest.mark.parametrize(
    ("broken", "result", "reason"),
    [
        pytest.param(
            "plan 1a", None, "the predicted plan does not compile", id="predicted"
        ),
        pytest.param("plan 1b", None, "no other plan compiles", id="others"),
        pytest.param(
            FIND_ALTERNATIVES, None, "its plans could not be found", id="none"
        ),
        pytest.param(
            "",
            lambda contestants: None,
            "the noise was larger than the gain",
            id="noise",
        ),
    ],
)
def test_the_prediction_stays(
    broken: str, result: Any, reason: str, tmp_path: Path
) -> None:
    compiler = FakeCompiler(
        UNITS[:1], PLANS, {broken: TaskFailedError("Error", "as told", "")}
    )
    cache = plan_cache(tmp_path)
    program = tuner(compiler, FakeContest(result), cache=cache).compile(
        "module", "settings"
    )
    assert compiler.applied == [[]]
    assert program.report["tuning"][0]["reason"] == reason
    assert cache.keys() == []


def test_the_prediction_stays_where_measuring_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    compiler = FakeCompiler(UNITS[:1], PLANS)
    with caplog.at_level(logging.WARNING):
        program = tuner(compiler, FakeContest(crash)).compile("module", "settings")
    assert program.report["tuning"][0]["reason"] == "measuring failed"
    assert "as told" in caplog.text


def test_what_there_is_no_time_for_is_predicted() -> None:
    now = iter(range(1000))
    compiler, contest = FakeCompiler(UNITS, PLANS), FakeContest()
    program = tuner(
        compiler,
        contest,
        clock=lambda: float(next(now)),
        options=TuneOptions(seconds=3.0),
    ).compile("module", "settings")
    assert len(compiler.compiled) < 4
    assert contest.held == []
    reasons = {unit["reason"] for unit in program.report["tuning"]}
    assert reasons == {"the time was over"}


def no_winner(contestants: list[Contestant]) -> None:
    """The noise is too large."""


def test_noise_is_measured_once_more() -> None:
    results: list[Callable[[list[Contestant]], Any]] = [no_winner, last_of, last_of]
    contest = FakeContest(lambda contestants: results.pop(0)(contestants))
    program = tuner(FakeCompiler(UNITS, PLANS), contest).compile("module", "settings")
    held = [labels for labels, _ in contest.held]
    assert held == [["1a", "1b"], ["2a", "2b"], ["1a", "1b"]]
    origins = [unit["plan"] for unit in program.report["tuning"]]
    assert origins == ["measured", "measured"]


def test_plans_are_kept_as_soon_as_they_are_measured(tmp_path: Path) -> None:
    def end(contestants: list[Contestant]) -> None:
        raise RuntimeError("the process ends")

    results: list[Callable[[list[Contestant]], Any]] = [last_of, end]
    contest = FakeContest(lambda contestants: results.pop(0)(contestants))
    cache = plan_cache(tmp_path)
    with pytest.raises(RuntimeError, match="the process ends"):
        tuner(FakeCompiler(UNITS, PLANS), contest, cache=cache).compile(
            "module", "settings"
        )
    again = FakeCompiler(UNITS, PLANS)
    tuner(again, FakeContest(), cache=cache).compile("module", "settings")
    assert again.asked == ["two"]


def crash(contestants: list[Contestant]) -> None:
    raise WorkerDiedError("as told")


@pytest.mark.parametrize(
    ("broken", "result", "tick", "is_open"),
    [
        pytest.param("", None, 0.0, False, id="measured"),
        pytest.param("", no_winner, 0.0, True, id="noise"),
        pytest.param("", None, 1.0, True, id="no time"),
        pytest.param("plan 1a", None, 0.0, False, id="the predicted plan fails"),
        pytest.param("plan 1b", None, 0.0, False, id="other plans fail"),
        pytest.param(FIND_ALTERNATIVES, None, 0.0, False, id="no plans"),
        pytest.param("", crash, 0.0, False, id="measuring fails"),
        pytest.param("apply plan 1b", None, 0.0, False, id="a plan is refused"),
    ],
)
def test_another_process_does_not_tune_again(
    broken: str, result: Any, tick: float, is_open: bool, tmp_path: Path
) -> None:
    """However tuning ends: a program is open for who gives more time, and kept."""

    def compilations(seconds: float) -> int:
        compiler = FakeCompiler(
            UNITS, PLANS, {broken: TaskFailedError("Error", "as told", "")}
        )
        process = tuner(
            compiler,
            FakeContest(result),
            cache=plan_cache(tmp_path),
            clock=partial(next, itertools.count(0.0, tick)),
            options=TuneOptions(seconds=seconds),
        )
        programs = DiskCache(tmp_path, 1 << 20)
        service = CompileService("", compiler, programs, identity=lambda: "")
        service.compile(
            "module",
            "settings",
            lambda: process.compile("module", "settings"),
            suffices=partial(would_stay, seconds=seconds),
        )
        return service.statistics.misses

    assert compilations(3.0) == 1
    assert compilations(3.0) == compilations(2.0) == 0
    assert compilations(4.0) == int(is_open)
    assert compilations(4.0) == compilations(3.0) == 0


def test_plans_that_the_compiler_refuses_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = {"apply plan 1b": TaskFailedError("Error", "as told", "")}
    compiler = FakeCompiler(UNITS, PLANS, dict(broken))
    with caplog.at_level(logging.WARNING):
        tuner(compiler, FakeContest()).compile("module", "settings")
    assert compiler.applied == [["plan 1b", "plan 2b"], []]
    assert "without its plans" in caplog.text


def test_a_graph_that_the_compiler_refuses_is_an_error() -> None:
    failed = TaskFailedError("Error", "as told", "")
    for task in (FIND_UNITS, COMPILE_PLANNED):
        compiler = FakeCompiler(UNITS, PLANS, {task: failed})
        with pytest.raises(TaskFailedError):
            tuner(compiler, FakeContest()).compile("module", "settings")


def test_who_computes_them_is_no_part_of_results() -> None:
    with ThreadPoolExecutor(1) as executor:
        elsewhere = TuneOptions(executor=executor, progress=True)
    assert elsewhere.text() == TuneOptions().text()
    others = (TuneOptions(), TuneOptions(seconds=5.0), TuneOptions(candidates=2))
    assert len({one.text() for one in others}) == 3


def test_options() -> None:
    for wrong in ({"seconds": 0.0}, {"seconds": float("nan")}, {"candidates": 0}):
        with pytest.raises(ValueError, match="expected"):
            TuneOptions(**wrong)  # type: ignore[arg-type]
