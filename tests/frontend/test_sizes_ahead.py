"""Sizes that are worked out behind the calls, for the next run that lifts them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magweld.frontend.engine import Engine
from magweld.frontend.lifting import ahead
from magweld.frontend.lifting.known_results import KnownResults
from magweld.frontend.records.backends import Backend, run_eagerly
from magweld.frontend.records.policy import LiftingPolicy
from magweld.frontend.traced import trace
from magweld.tiers import Tiers

Program = Callable[..., Any]


def engine(program: Program, behind: bool = True) -> Engine:
    """Return what answers a program's calls by its graphs, run by torch.

    Args:
        program: The program.
        behind: Whether what takes long is done behind the calls.
    """
    tiers = Tiers(in_background=behind, races=False)
    backend = Backend("eager", run_eagerly, True, tiers)
    return Engine(program, backend, LiftingPolicy(automatic=True))


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Calls work as long on sizes as one operator takes; the names of the threads that
    have worked out one.
    """
    monkeypatch.setattr(ahead, "_SLICE", 0.0)
    monkeypatch.setattr(ahead, "_PAUSE", 0.0)
    threads: list[str] = []
    work_out = KnownResults._work_out

    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return work_out(*args)

    monkeypatch.setattr(KnownResults, "_work_out", noted)
    return threads


def call(made: Engine, program: Program, *args: Any) -> None:
    """Compare a call with eager."""
    torch.testing.assert_close(made.call(args, {}), program(*args))


def attention() -> tuple[Program, Callable[[int], tuple[Tensor, ...]]]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    places = torch.randn(64, 8)
    return (
        lambda x: model(x + places[: x.shape[1]]).mean(1),
        lambda n: (torch.randn(2, n, 8),),
    )


def images() -> tuple[Program, Callable[[int], tuple[Tensor, ...]]]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2),
    ).eval()  # fmt: skip
    return model, lambda n: (torch.randn(2, 3, 2 * n, 2 * n + 2),)


def decoding() -> tuple[Program, Callable[[int], tuple[Tensor, ...]]]:
    def program(x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        keys, values = torch.cat([keys, x], 2), torch.cat([values, x], 2)
        y = F.scaled_dot_product_attention(x, keys, values)
        keys[:, :, x.shape[2] - 1] += 1
        return y.transpose(1, 2).flatten(2), keys.relu_(), values

    def arguments(n: int) -> tuple[Tensor, ...]:
        return torch.randn(1, 2, 1, 4), torch.randn(1, 2, n, 4), torch.randn(1, 2, n, 4)

    return program, arguments


def recurrent() -> tuple[Program, Callable[[int], tuple[Tensor, ...]]]:
    torch.manual_seed(0)
    model = nn.GRU(4, 4, batch_first=True)
    return lambda x: model(x)[0][:, -1], lambda n: (torch.randn(2, n, 4),)


@pytest.mark.parametrize("case", [attention, images, decoding, recurrent])
@torch.no_grad()
def test_no_call_works_out_what_is_known(case: Any, worked: list[str]) -> None:
    program, arguments = case()
    fast, at_once = engine(program), engine(program, behind=False)
    for n in (5, 6):
        call(fast, program, *arguments(n))
        call(at_once, program, *arguments(n))
    assert set(worked) == {"MainThread"}
    assert (len(fast.records), len(at_once.records)) == (1, 2)
    worked.clear()
    calls = 0
    while len(fast.records) < 2:
        call(fast, program, *arguments(8 + calls % 20))
        calls += 1
        assert calls < 200
    # One call has let each operator go on, another one has made the record.
    assert calls > 5
    assert set(worked) == {"magweld-paced"}
    # The record is the one that a run makes by itself.
    mine, other = fast.records[0], at_once.records[0]
    assert sorted(map(str, mine.guards)) == sorted(map(str, other.guards))
    assert mine.graph.code == other.graph.code
    hits = fast.stats()["hits"]
    for n in (30, 9, 17):
        call(fast, program, *arguments(n))
    assert fast.stats()["hits"] == hits + 3


@torch.no_grad()
def test_no_code_is_made_for_a_size_that_does_not_come_back() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.softmax(x * 2, -1)

    fast = trace(program, compile="background")
    for n in (5, 6):
        x = torch.randn(n, 3)
        torch.testing.assert_close(fast(x), program(x))
    assert not fast.records
    assert fast.wait()
    for n in (7, 5):
        x = torch.randn(n, 3)
        torch.testing.assert_close(fast(x), program(x))
    (record,) = fast.records
    assert record.lifted is not None
    stats = fast.stats()
    assert (stats["hits"], stats["compilations"]) == (1, 0)


@torch.no_grad()
def test_a_record_that_was_hit_stays() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.softmax(x * 2, -1)

    fast = trace(program, compile="background")
    for n in (5, 5, 6, 7):
        x = torch.randn(n, 3)
        torch.testing.assert_close(fast(x), program(x))
    (record,) = fast.records
    assert record.hits == 1


def test_what_held_for_other_sizes_is_worked_out_once_more(worked: list[str]) -> None:
    def program(x: Tensor) -> Tensor:
        return x[:20].sum(0) + x.shape[0]

    fast = engine(program)
    for n in (5, 6, 7):
        call(fast, program, torch.randn(n, 3))
    worked.clear()
    assert fast.wait()
    assert set(worked) == {"magweld-paced"}
    # More rows than the slice takes: another graph than that of seven rows.
    call(fast, program, torch.randn(30, 3))
    assert "MainThread" in worked
    assert len(fast.records) == 2
    # What was of no use is not awaited again.
    call(fast, program, torch.randn(8, 3))
    assert len(fast.records) == 3
    hits = fast.stats()["hits"]
    for n in (12, 19, 20, 21, 40):
        call(fast, program, torch.randn(n, 3))
    assert fast.stats()["hits"] == hits + 5


@torch.no_grad()
def test_sizes_wait_for_the_record_that_takes_them(worked: list[str]) -> None:
    def program(x: Tensor, y: Tensor | None) -> Tensor:
        return torch.softmax(x * 2, -1) if y is None else y + 1

    fast = engine(program)
    for n in (5, 6):
        call(fast, program, torch.randn(n, 3), None)
    assert fast.wait()
    call(fast, program, torch.randn(7, 3), torch.ones(2))
    assert len(fast.records) == 2
    worked.clear()
    call(fast, program, torch.randn(8, 3), None)
    assert len(fast.records) == 3
    assert not worked


def test_nothing_of_the_call_is_kept(worked: list[str]) -> None:
    def program(x: Tensor, bias: Tensor, n: int) -> Tensor:
        return torch.softmax(x[: x.shape[0] - n] * 2 + bias, -1)

    fast = engine(program)
    for n in (5, 6, 7):
        args = (torch.randn(n, 3), torch.randn(3), n % 3 + 1)
        call(fast, program, *args)
    gone = [weakref.ref(part) for part in args[:2]]
    del args
    assert len(fast.records) < 3
    assert [part() for part in gone] == [None, None]


def test_draws_are_eagers(worked: list[str]) -> None:
    def program(x: Tensor) -> Tensor:
        return F.dropout(x * torch.rand_like(x), 0.5) + torch.randn(3)

    fast = engine(program)
    for n in range(5, 30):
        x, found = torch.randn(n, 3), []
        for run in (lambda x: fast.call((x,), {}), program):
            torch.manual_seed(n)
            found.append((run(x), torch.rand(2)))
        torch.testing.assert_close(*found)
    assert "magweld-paced" in worked
    assert fast.stats()["hits"] > 0


def test_other_modes_end_the_wait(worked: list[str]) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.softmax(x * 2, -1)

    fast = engine(program)
    for n in (5, 6, 7):
        call(fast, program, torch.randn(n, 3))
    torch.set_default_dtype(torch.float64)
    try:
        for n in (8, 9, 10):
            call(fast, program, torch.randn(n, 3))
        assert len(fast.records) == 2
        assert fast.stats()["hits"] == 1
    finally:
        torch.set_default_dtype(torch.float32)


def test_control_flow_is_worked_out_in_the_call(worked: list[str]) -> None:
    def program(x: Tensor) -> Tensor:
        total = torch.zeros(3)
        for row in x:
            total = total * 0.5 + row
        return total

    fast = engine(program)
    for n in (5, 6, 7):
        call(fast, program, torch.randn(n, 3))
    assert len(fast.records) == 2
    call(fast, program, torch.randn(11, 3))
    assert fast.stats()["hits"] == 2
    assert set(worked) == {"MainThread"}
