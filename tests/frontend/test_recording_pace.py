"""How often programs are recorded whose calls keep missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace
from magweld.frontend.records import pace
from magweld.frontend.records.pace import FREE, RecordingPace


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Hits:
    """A record, as far as a pace looks at it."""

    def __init__(self, number: int, hits: int) -> None:
        self.number, self.hits = number, hits


def waits(clock: Clock, tempo: RecordingPace) -> float:
    """Let time pass until the next recording; return how much."""
    begun = clock.now
    while not tempo.allows(FREE):
        clock.now += 1
    return clock.now - begun


def record_again(clock: Clock, tempo: RecordingPace, hits: Iterator[int]) -> float:
    tempo.note(1.0, Hits(FREE, next(hits)))  # type: ignore[arg-type]
    return waits(clock, tempo)


def test_the_first_recordings_are_free() -> None:
    tempo = RecordingPace(Clock())
    for recorded in range(FREE):
        tempo.note(1.0, Hits(recorded, 0))  # type: ignore[arg-type]
        assert tempo.allows(recorded + 1)


def test_records_that_nobody_hits_come_ever_more_seldom() -> None:
    clock = Clock()
    tempo = RecordingPace(clock)
    found = [record_again(clock, tempo, iter([0])) for _ in range(5)]
    assert found == [40, 80, 160, 320, 640]


def test_recordings_that_were_worth_it_take_a_twentieth() -> None:
    clock = Clock()
    tempo = RecordingPace(clock)
    hits = iter([0, 100, 100, 3, 100])
    found = [record_again(clock, tempo, hits) for _ in range(5)]
    # The first waits as if the one before had not been hit: there is none.
    assert found == [40, 80, 20, 20, 40]


def program(x: Tensor, name: str) -> Tensor:
    return x * 2 if name == "double" else x + name.count("a")


def test_calls_that_miss_between_hits_run_eagerly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "_APART", 1e6)
    fast = trace(program, backend="eager")
    calls = 4 * FREE
    for number in range(calls):
        x = torch.randn(3)
        name = "double" if number % 2 else f"name {number}"
        assert torch.equal(fast(x, name), program(x, name))
    done = fast.stats()
    # One more than is free: its time tells how long to wait.
    assert done["graphs"] == FREE + 1
    assert done["hits"] == calls // 2 - 1, "the record of what comes back stays"
    assert [item.id for item in fast.breaks] == ["many-records"]
