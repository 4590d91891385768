"""The course of tuning with a compiler and a race that do as they are told."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from magweld.artifact import Program
from magweld.runtime.container import decode_parts, decode_request, encode_program
from magweld.runtime.errors import TaskFailedError, WorkerDiedError, WorkerError
from magweld.runtime.plans import MeasuredPlan, plan_cache
from magweld.tuning.contest import Contest, Contestant
from magweld.tuning.options import TuneOptions
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
        last = contestants[-1]
        times = {c.label: 2.0 - i for i, c in enumerate(contestants)}
        return MeasuredPlan(last.text, last.label, identity, times)


UNITS = [("one", 1.0), ("two", 1.5), ("one", 1.0)]
PLANS = {"one": ["1a", "1b"], "two": ["2a", "2b"]}


def tuner(compiler: FakeCompiler, contest: Contest, **more: Any) -> Tuner:
    return Tuner(compiler, contest, "digest", **{"clock": lambda: 0.0, **more})


def test_equal_units_are_tuned_once() -> None:
    compiler, contest = FakeCompiler(UNITS, PLANS), FakeContest()
    program, is_final = tuner(compiler, contest).compile("module", "settings")
    assert is_final
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
    program, is_final = tuner(second, contest, cache=cache).compile(
        "module", "settings"
    )
    assert is_final
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
    program, is_final = tuner(compiler, contest).compile("module", "settings")
    assert is_final
    assert [labels for labels, _ in contest.held] == [["1a", "1c"]]
    assert compiler.applied == [["plan 1c"]]
    assert program.report["tuning"][1] == {
        "units": 1,
        "plan": "prediction",
        "reason": "there is one plan only",
    }


@pytest.mark.parametrize(
    ("broken", "result", "reason", "is_final"),
    [
        pytest.param(
            "plan 1a", None, "the predicted plan does not compile", True, id="predicted"
        ),
        pytest.param(
            FIND_ALTERNATIVES, None, "its plans could not be found", True, id="none"
        ),
        pytest.param(
            "",
            lambda contestants: None,
            "the noise was larger than the gain",
            False,
            id="noise",
        ),
    ],
)
def test_the_prediction_stays(
    broken: str, result: Any, reason: str, is_final: bool, tmp_path: Path
) -> None:
    compiler = FakeCompiler(
        UNITS[:1], PLANS, {broken: TaskFailedError("Error", "as told", "")}
    )
    cache = plan_cache(tmp_path)
    program, final = tuner(compiler, FakeContest(result), cache=cache).compile(
        "module", "settings"
    )
    assert final is is_final
    assert compiler.applied == [[]]
    assert program.report["tuning"][0]["reason"] == reason
    assert cache.keys() == []


def test_the_prediction_stays_where_measuring_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def crash(contestants: list[Contestant]) -> None:
        raise WorkerDiedError("as told")

    compiler = FakeCompiler(UNITS[:1], PLANS)
    with caplog.at_level(logging.WARNING):
        program, _ = tuner(compiler, FakeContest(crash)).compile("module", "settings")
    assert program.report["tuning"][0]["reason"] == "measuring failed"
    assert "as told" in caplog.text


def test_what_there_is_no_time_for_is_predicted() -> None:
    now = iter(range(1000))
    compiler, contest = FakeCompiler(UNITS, PLANS), FakeContest()
    program, is_final = tuner(
        compiler,
        contest,
        clock=lambda: float(next(now)),
        options=TuneOptions(seconds=3.0),
    ).compile("module", "settings")
    assert not is_final
    assert len(compiler.compiled) < 4
    assert contest.held == []
    reasons = {unit["reason"] for unit in program.report["tuning"]}
    assert reasons == {"the time was over"}


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


def test_options() -> None:
    for wrong in ({"seconds": 0.0}, {"seconds": float("nan")}, {"candidates": 0}):
        with pytest.raises(ValueError, match="expected"):
            TuneOptions(**wrong)  # type: ignore[arg-type]
