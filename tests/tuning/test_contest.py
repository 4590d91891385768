"""Contests with workers that answer, crash, hang and talk nonsense."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from magweld.artifact import Program
from magweld.runtime.container import decode_parts, decode_program
from magweld.runtime.errors import (
    WorkerDiedError,
    WorkerError,
    WorkerProtocolError,
    WorkerTimeoutError,
)
from magweld.tuning.contest import MOST_SECONDS, Contest, Contestant

# What a fake worker does with the names of programs.
Answer = Callable[[list[str]], bytes]


class FakeWorker:
    """Gets the names of programs; programs are known by their reports."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[tuple[list[str], float]] = []

    def run(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        header, *programs = decode_parts(payload)
        names = [decode_program(p).report["name"] for p in programs]
        self.requests.append((names, json.loads(header)["seconds"]))
        return self._answer(names)

    def prestart(self) -> None:
        pass


def contestant(name: str) -> Contestant:
    program = Program((), (), (), arena_bytes=0, report={"name": name})
    return Contestant(name, f"plan {name}", program)


def times(seconds: dict[str, float | None]) -> Answer:
    def answer(names: list[str]) -> bytes:
        found = [seconds[name] for name in names]
        return json.dumps([t and (t, t) for t in found]).encode()

    return answer


ABC = [contestant(name) for name in "abc"]


def test_the_fastest_wins() -> None:
    worker = FakeWorker(times({"a": 3.0, "b": 2.0, "c": 1.0}))
    plan = Contest(worker, 2).hold(ABC, 100.0, "identity")
    assert plan is not None
    assert (plan.label, plan.text, plan.identity) == ("c", "plan c", "identity")
    assert plan.measured == {"a": 3.0, "b": 2.0, "c": 1.0}
    assert worker.requests == [(["a", "b", "c"], MOST_SECONDS)]


def test_other_results_are_out_however_fast() -> None:
    worker = FakeWorker(times({"a": 3.0, "b": None, "c": 2.0}))
    plan = Contest(worker, 2).hold(ABC, 1.0, "")
    assert plan is not None
    assert plan.label == "c"
    assert list(plan.measured) == ["a", "c"]


def test_noise_decides_nothing() -> None:
    worker = FakeWorker(lambda names: b"[[1.0, 2.0], [0.9, 0.9], [3.0, 3.0]]")
    assert Contest(worker, 2).hold(ABC, 1.0, "") is None


@pytest.mark.parametrize("error", [WorkerDiedError, WorkerTimeoutError])
def test_one_that_crashes_is_left_out(error: type[WorkerError]) -> None:
    usual = times({"a": 3.0, "c": 1.0})

    def answer(names: list[str]) -> bytes:
        if "b" in names:
            raise error("as told")
        return usual(names)

    worker = FakeWorker(answer)
    plan = Contest(worker, 2).hold(ABC, 1.0, "")
    assert plan is not None
    assert plan.measured == {"a": 3.0, "c": 1.0}
    assert [names for names, _ in worker.requests] == [
        ["a", "b", "c"],
        ["a"],
        ["b"],
        ["c"],
        ["a", "c"],
    ]


def test_nothing_to_compare_with_is_an_error() -> None:
    usual = times({"b": 3.0, "c": 1.0})

    def answer(names: list[str]) -> bytes:
        if "a" in names:
            raise WorkerDiedError("as told")
        return usual(names)

    with pytest.raises(WorkerDiedError):
        Contest(FakeWorker(answer), 2).hold(ABC, 1.0, "")


@pytest.mark.parametrize("answer", [b"", b"[1, 2, 3]", b"[[1.0, 1.0]]", b"{"])
def test_nonsense_is_an_error(answer: bytes) -> None:
    with pytest.raises(WorkerProtocolError):
        Contest(FakeWorker(lambda names: answer), 2).hold(ABC, 1.0, "")
