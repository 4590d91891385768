"""How often programs are recorded whose calls keep missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace
from magweld.frontend.records import pace
from magweld.frontend.records.pace import FREE, FREE_IN_VAIN, RecordingPace


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


def test_recordings_of_no_worth_wait_sooner() -> None:
    clock = Clock()
    tempo = RecordingPace(clock)
    for in_vain in range(1, FREE_IN_VAIN):
        tempo.note(1.0, None, in_vain)
        assert tempo.allows(0, in_vain)
    for wait in (40, 80, 160):
        tempo.note(1.0, None, FREE_IN_VAIN)
        assert not tempo.allows(0, FREE_IN_VAIN)
        assert tempo.allows(0, 1), "another cache does not wait"
        clock.now += wait
        assert tempo.allows(0, FREE_IN_VAIN)


@pytest.mark.parametrize(("times", "records"), [(1, FREE_IN_VAIN), (2, FREE + 1)])
def test_calls_that_miss_between_hits_run_eagerly(
    monkeypatch: pytest.MonkeyPatch, times: int, records: int
) -> None:
    monkeypatch.setattr(pace, "_APART", 1e6)
    fast = trace(program, backend="eager")
    names, hits = 2 * FREE, 0
    for number in range(names):
        for _ in range(times):
            for name in (f"name {number}", "double"):
                x = torch.randn(3)
                before = fast.stats()["hits"]
                assert torch.equal(fast(x, name), program(x, name))
                hits += name == "double" and fast.stats()["hits"] > before
    done = fast.stats()
    # Without hits fewer are free. The time of the last tells how long to wait.
    assert done["graphs"] == records
    assert hits == times * names - 1, "the record of what comes back stays"
    assert [item.id for item in fast.breaks] == ["many-records"]


def test_calls_that_always_raise_are_not_recorded_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "_APART", 1e6)
    tried = []

    def checked(x: Tensor, name: str) -> Tensor:
        tried.append(name)
        if name == "wrong":
            raise ValueError(name)
        return x * 2

    fast = trace(checked, backend="eager")
    x = torch.ones(3)
    for number in range(40):
        if number % 2:
            with pytest.raises(ValueError, match="wrong"):
                fast(x, "wrong")
        else:
            assert torch.equal(fast(x, "right"), x * 2)
    done = fast.stats()
    assert tried.count("wrong") == 20
    assert (done["graphs"], done["hits"]) == (1, 19)
    assert [item.id for item in fast.breaks] == ["many-records"]
    # The next kind of call is recorded when the time has come.
    assert torch.equal(fast(x, "left"), x * 2)
    assert fast.stats()["graphs"] == 1
