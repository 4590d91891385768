"""Hits that take longer than eager: found by timed turns, told, and run eagerly."""

from __future__ import annotations

import functools
import random
import sys
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor

from magweld.comparison import CALLS
from magweld.frontend import trace
from magweld.frontend.backward_times import differentiable
from magweld.frontend.call_kinds import kind_of
from magweld.frontend.eager_kinds import Kind
from magweld.frontend.profitability import EAGER, HIT, Profitability
from magweld.frontend.records.record import NEVER
from magweld.runtime.errors import InputMismatchError, ProgramError


@dataclass
class Clock:
    """A clock that moves by a second when it is read: what it times takes one."""

    now: float = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def compared(
    program: Callable[..., Any], clock: Clock, **options: Any
) -> tuple[Any, Profitability]:
    """Trace a program whose hits are compared with eager runs on a clock."""
    fast = trace(program, **options)
    profit = Profitability(compares=True, clock=clock)
    fast._magweld_engine._profit = profit
    return fast, profit


def slow_graph(clock: Clock, seconds: float) -> Callable[..., Any]:
    """Return a backend whose programs take so much longer than eager runs."""

    def compile_graph(module: Any, examples: list[Tensor]) -> Callable[..., Any]:
        def run(*tensors: Tensor) -> Any:
            clock.now += seconds
            return module(*tensors)

        return run

    return compile_graph


def program(x: Tensor, log: list[int]) -> Tensor:
    log.append(0)
    x.add_(1)
    return torch.softmax(x * 2, -1)


def is_lost(profit: Profitability, kind: Kind) -> bool:
    """Count a call as an engine does; return whether it runs eagerly."""
    lost = profit.lost.get(kind)
    if lost is None:
        return False
    if lost.left > 0:
        lost.left -= 1
        return True
    return lost.attempt()


@pytest.mark.parametrize(
    ("hit", "runs_eagerly"),
    [(1.0, False), (0.5, False), (1.01, False), (1.03, True), (3.0, True)],
)
def test_the_faster_stays(hit: float, runs_eagerly: bool) -> None:
    told: list[str] = []
    profit, record = Profitability(True, told.append, clock=lambda: 0.0), Timed()
    profit.add([record])
    kind = kind_of((torch.ones(3),), {})
    while (times := profit.comparison(record, kind)) is not None:
        if is_lost(profit, kind):
            break
        way = times.turns.way
        profit.measure(record, kind, way, -1.0 if way == EAGER else -hit, None)
    assert is_lost(profit, kind) == runs_eagerly
    assert profit.is_open == runs_eagerly
    assert told == profit.describe()
    assert len(told) == runs_eagerly
    assert not is_lost(profit, kind_of((torch.ones(4),), {}))


@dataclass
class ForMany:
    """What is asked of a graph for many sizes."""

    wanted: list[Any] = field(default_factory=list)
    uses: int = 0
    calls: list[int] = field(default_factory=list)

    def want_own(self, sizes: Any, seconds: tuple[float, float], calls: int) -> bool:
        assert seconds == (2.0, 1.0)
        self.calls.append(calls)
        if calls >= self.uses:
            self.wanted.append(sizes)
        return calls >= self.uses


@dataclass
class Timed:
    """What is asked of a record."""

    is_timed: bool = True
    is_pending: bool = False
    grad_enabled: bool = True
    lifted: ForMany | None = None
    hits: int = 0
    compared_from: int = NEVER
    unfinished: int = 0
    is_trained: bool = False
    asked: int = 0
    has_doubtful_tiers: bool = False

    def compare_tiers(self) -> None:
        self.asked += 1
        self.is_pending = self.has_doubtful_tiers

    @property
    def wanted(self) -> list[Any]:
        return [] if self.lifted is None else self.lifted.wanted


def judge(
    profit: Profitability, record: Timed, size: int, hit: float, sizes: Any = None
) -> bool:
    """Time calls with a tensor of a size until it is known whether they run eagerly.

    Args:
        hit: Seconds of a hit; an eager run takes one.
        sizes: Those of a hit that a program for all sizes answers.
    """
    kind = kind_of((torch.ones(size),), {})
    asked = len(record.wanted)
    while (times := profit.comparison(record, kind)) is not None:
        way = times.turns.way
        if way == HIT:
            times.sizes = sizes
        profit.measure(record, kind, way, -1.0 if way == EAGER else -hit, None)
        if is_lost(profit, kind) or len(record.wanted) > asked:
            break
    return is_lost(profit, kind)


def test_each_size_of_a_record_for_many_is_compared() -> None:
    profit = Profitability(True, clock=lambda: 0.0)
    record = Timed(lifted=ForMany())
    profit.add([record])
    slow = {3, 8}
    hits = {size: 2.0 if size in slow else 0.5 for size in range(1, 12)}
    assert {n for n, hit in hits.items() if judge(profit, record, n, hit)} == slow
    assert profit.is_open


def test_several_sizes_that_pay_tell_of_all() -> None:
    profit = Profitability(True, clock=lambda: 0.0)
    record = Timed(lifted=ForMany())
    profit.add([record])
    for size in range(1, 9):
        assert profit.is_open
        assert not judge(profit, record, size, 0.5)
    assert not profit.is_open


def test_kinds_that_pay_do_not_ask_while_others_are_compared() -> None:
    profit = Profitability(True, clock=lambda: 0.0)
    record = Timed(lifted=ForMany())
    profit.add([record])
    kinds = {n: kind_of((torch.ones(n),), {}) for n in (1, 2, 3)}
    assert not judge(profit, record, 1, 0.5)
    assert judge(profit, record, 2, 2.0)
    assert profit.is_open
    assert profit.paying == {kinds[1]}
    profit.compare_again(record)
    assert not profit.paying
    assert not judge(profit, record, 3, 0.5)
    assert profit.paying == {kinds[3]}
    profit.add([Timed(), record])
    assert not profit.paying


def calls_of_sizes_in_turn(hits: dict[int, float]) -> tuple[int, set[int]]:
    """Return how many calls decide on kinds that come in turn, and which run eagerly.

    Args:
        hits: Seconds of a hit of each size; an eager run takes one.
    """
    profit = Profitability(True, clock=lambda: 0.0)
    record = Timed(lifted=ForMany())
    profit.add([record])
    for count in range(0, 40 * len(hits), len(hits)):
        for size, hit in hits.items():
            kind = kind_of((torch.ones(size),), {})
            times = profit.comparison(record, kind)
            if times is not None:
                way = times.turns.way
                profit.measure(record, kind, way, -1.0 if way == EAGER else -hit, None)
        kinds = {size: kind_of((torch.ones(size),), {}) for size in hits}
        lost = {size for size, kind in kinds.items() if is_lost(profit, kind)}
        if not any(
            profit.comparison(record, kinds[size]) for size in hits.keys() - lost
        ):
            return count + len(hits), lost
    raise AssertionError("it is never known")


def test_sizes_that_come_in_turn_are_decided_together() -> None:
    sizes = range(1, 13)
    slowly, lost = calls_of_sizes_in_turn(dict.fromkeys(sizes, 0.97))
    assert not lost
    soon, lost = calls_of_sizes_in_turn(dict.fromkeys(sizes, 0.8))
    assert not lost
    assert 2 * soon < slowly + 1
    # One that does not pay is found among others that do.
    _, lost = calls_of_sizes_in_turn({**dict.fromkeys(sizes, 0.5), 4: 1.2})
    assert lost == {4}


def calls_until_decided(
    record: Timed, sizes: Iterable[int], hit: Callable[[int], float]
) -> tuple[int, Profitability]:
    """Return how many calls of sizes in turn are measured, and what they decide.

    Args:
        record: For many sizes.
        sizes: These, in the order of the calls.
        hit: Seconds of a hit of a size; an eager run takes as many as it has steps.
    """
    profit = Profitability(True, clock=lambda: 0.0)
    profit.add([record])
    return play(profit, record, sizes, hit), profit


def play(
    profit: Profitability,
    record: Timed,
    sizes: Iterable[int],
    hit: Callable[[int], float],
) -> int:
    """Call with tensors of some sizes; return how many calls are measured."""
    measured = 0
    for size in sizes:
        kind = kind_of((torch.ones(size),), {})
        if is_lost(profit, kind):
            continue
        times = profit.comparison(record, kind)
        if times is None or times.is_lost:
            continue
        measured += 1
        seconds = float(size) if times.way == EAGER else hit(size)
        profit.measure(record, kind, times.way, -seconds, None)
    return measured


def runs_eagerly(profit: Profitability, record: Timed, size: int) -> bool:
    """Return whether a call of a size runs eagerly."""
    kind = kind_of((torch.ones(size),), {})
    if is_lost(profit, kind):
        return True
    times = profit.comparison(record, kind)
    return times is not None and times.is_lost


def test_sizes_that_lose_are_decided_together_by_few_calls_of_each() -> None:
    record = Timed(lifted=ForMany())
    sizes = range(8, 32)
    calls = [size for _ in range(7) for size in sizes]
    _, profit = calls_until_decided(record, calls, lambda size: size + 4)
    assert all(runs_eagerly(profit, record, size) for size in sizes)
    # They are told of together.
    assert len(profit.describe()) < 12
    assert "and others of about these sizes, run eagerly" in "".join(profit.describe())
    # No program was asked for sizes of which each has few calls.
    assert len(record.wanted) <= 1
    # Smaller sizes that were never seen lose as well; of larger ones nothing is known.
    assert runs_eagerly(profit, record, 5)
    assert not runs_eagerly(profit, record, 500)


def test_sizes_of_which_hardly_any_comes_back_are_decided() -> None:
    for factor, loses in ((1.5, True), (0.5, False)):
        record, drawn = Timed(lifted=ForMany()), random.Random(0)
        calls = [drawn.randrange(16, 512) for _ in range(600)]
        measured, profit = calls_until_decided(
            record, calls, lambda size, factor=factor: factor * size
        )
        assert measured < 300
        assert bool(profit.lost) == loses
        lost = sum(runs_eagerly(profit, record, size) for size in calls)
        # Some have run eagerly often enough to be timed once more.
        assert lost > 0.7 * len(calls) if loses else lost == 0


def test_kinds_that_there_is_no_room_to_know_are_compared_again_as_well() -> None:
    record, drawn = Timed(lifted=ForMany()), random.Random(0)
    calls = [drawn.randrange(16, 512) for _ in range(1000)]
    _, profit = calls_until_decided(record, calls, lambda size: 1.5 * size)
    known = {kind[0][0].numel() for kind in profit.lost}
    others = [size for size in calls if size not in known]
    assert len(others) > 100
    lost = len(profit.describe())
    assert play(profit, record, others * 50, lambda size: size / 2)
    assert len(profit.describe()) < lost


def test_small_sizes_that_lose_do_not_take_large_ones_along() -> None:
    record = Timed(lifted=ForMany())
    calls = [size for _ in range(30) for size in range(8, 80)]
    _, profit = calls_until_decided(record, calls, lambda size: 12 + size / 2)
    for size in range(8, 80):
        loses = 12 + size / 2 > 1.02 * size
        # Sizes that are compared together differ by a fifth at most.
        if abs(size - 22) > 4:
            assert runs_eagerly(profit, record, size) == loses, size


def test_what_is_compared_together_is_answered_by_records_again_together() -> None:
    record = Timed(lifted=ForMany())
    sizes = (101, 102, 103, 104)
    lose = [size for _ in range(12) for size in sizes]
    _, profit = calls_until_decided(record, lose, lambda size: 2.0 * size)
    assert len(profit.lost) == 4
    assert len(profit.describe()) == 1
    for size in sizes * 100:
        kind = kind_of((torch.ones(size),), {})
        if not is_lost(profit, kind):
            times = profit.comparison(record, kind)
            if times is not None:
                seconds = 1.0 if times.way == EAGER else 0.5
                profit.measure(record, kind, times.way, -seconds, None)
    assert not profit.lost
    assert not any(runs_eagerly(profit, record, size) for size in sizes)


def test_sizes_get_a_program_of_their_own_before_they_run_eagerly() -> None:
    profit = Profitability(True, clock=lambda: 0.0)
    record = Timed(lifted=ForMany())
    profit.add([record])
    assert not judge(profit, record, 3, 2.0, sizes="three")
    assert not judge(profit, record, 4, 2.0, sizes="four")
    assert record.wanted == ["three", "four"]
    # One of these pays. The other one is not asked for a second time.
    assert not judge(profit, record, 4, 0.5)
    assert judge(profit, record, 3, 2.0, sizes="three")
    assert record.wanted == ["three", "four"]


def test_sizes_run_eagerly_until_a_program_of_their_own_may_have_paid() -> None:
    profit = Profitability(True, clock=lambda: 0.0)
    graph = ForMany(uses=1000)
    record, kind = Timed(lifted=graph), kind_of((torch.ones(3),), {})
    profit.add([record])
    passed = [0]
    while judge(profit, record, 3, 2.0, sizes="three"):
        passed.append(passed[-1] + calls_until_compared(profit, kind))
    assert record.wanted == ["three"]
    # It is told how many calls there were; those that are timed come on top.
    assert len(graph.calls) == len(passed) == 4
    for told, count in zip(graph.calls, passed, strict=True):
        assert count <= told <= count + 20
    # It has been tried.
    assert judge(profit, record, 3, 2.0, sizes="three")
    assert len(graph.calls) == 4


def calls_until_compared(profit: Profitability, kind: Any) -> int:
    """Return how many calls of a kind run eagerly before one is compared again."""
    count = 0
    while is_lost(profit, kind):
        count += 1
    return count


def test_what_runs_eagerly_is_compared_again_more_and_more_seldom() -> None:
    told: list[str] = []
    profit = Profitability(True, told.append, clock=lambda: 0.0)
    record, kind = Timed(), kind_of((torch.ones(3),), {})
    profit.add([record])
    assert judge(profit, record, 3, 2.0)
    first = calls_until_compared(profit, kind)
    assert profit.is_open
    assert judge(profit, record, 3, 2.0)
    second = calls_until_compared(profit, kind)
    assert second > 2 * first
    # It was another load that has decided.
    assert not judge(profit, record, 3, 0.5)
    assert not profit.is_open
    assert profit.comparison(record, kind) is None
    assert len(told) == 2
    assert "again" in told[-1]
    assert profit.describe() == []


def judge_busily(profit: Profitability, record: Timed, hit: float) -> float:
    """Time calls of a busy machine until hits pay; return the seconds of eager runs."""
    kind, spent, calls = kind_of((torch.ones(3),), {}), 0.0, 0
    while (times := profit.comparison(record, kind)) is not None:
        way = times.turns.way
        seconds = hit
        if way == EAGER:
            seconds = 9.0 * (1 + 5 * (calls % 4))
            calls += 1
            spent += seconds
        profit.measure(record, kind, way, -seconds, None)
    assert not is_lost(profit, kind)
    return spent


def test_times_of_a_busy_machine_are_not_the_last() -> None:
    profit, record = Profitability(True, clock=lambda: 0.0), Timed(hits=5)
    profit.add([record])
    for factor in (1, 4, 16):
        spent = judge_busily(profit, record, 2.0)
        assert not profit.is_open
        # By then hits have taken much longer than the eager runs that were timed.
        assert record.compared_from == 5 + factor * 20 * spent / 2.0
        profit.compare_again(record)
        assert profit.is_open
        assert record.compared_from == NEVER
    assert judge(profit, record, 3, 2.0)
    # Another record takes the place of one that is to be compared again.
    other = Timed()
    profit.add([other])
    judge_busily(profit, other, 2.0)
    profit.add([Timed()])
    profit.compare_again(other)
    assert profit.comparison(other, kind_of((torch.ones(5),), {})) is None


def test_times_taken_beside_a_compilation_are_not_the_last() -> None:
    compiling = True
    profit = Profitability(True, clock=lambda: 0.0, is_busy=lambda: compiling)
    record = Timed(hits=5)
    profit.add([record])
    assert not judge(profit, record, 3, 0.5)
    assert 5 < record.compared_from < NEVER
    compiling = False
    profit.compare_again(record)
    # Eager runs were slower only as long as something was compiled beside them.
    assert judge(profit, record, 3, 2.0)


def test_hits_are_compared_again_when_enough_have_passed() -> None:
    clock, calls = Clock(), [0]
    is_busy = True

    def compile_graph(module: Any, examples: list[Tensor]) -> Callable[..., Any]:
        def run(*tensors: Tensor) -> Any:
            calls[0] += 1
            clock.now += calls[0] % 4 - 0.9 if is_busy else 2.0
            return module(*tensors)

        return run

    fast, profit = compared(program, clock, backend=compile_graph)
    fast(torch.zeros(4), [])
    while profit.is_open:
        fast(torch.zeros(4), [])
    (record,) = fast.records
    assert record.compared_from < NEVER
    is_busy = False
    hits = record.hits
    while not profit.is_open:
        fast(torch.zeros(4), [])
    assert record.hits > hits + 100
    for _ in range(20):
        fast(torch.zeros(4), [])
    assert len(profit.describe()) == 1


def test_tiers_are_compared_anew_before_hits_are_timed_again() -> None:
    profit, record = Profitability(True, clock=lambda: 0.0), Timed()
    profit.add([record])
    kind = kind_of((torch.ones(3),), {})
    assert judge(profit, record, 3, 2.0)
    calls_until_compared(profit, kind)
    assert record.asked == 0
    record.has_doubtful_tiers = True
    assert profit.comparison(record, kind) is None
    assert record.asked == 1
    for _ in range(CALLS):
        assert not is_lost(profit, kind)
        assert profit.comparison(record, kind) is None
    record.is_pending = record.has_doubtful_tiers = False
    assert not judge(profit, record, 3, 0.5)
    assert record.asked == 1


def test_comparing_again_ends_where_nothing_can_be_measured() -> None:
    profit = Profitability(True, clock=lambda: 0.0)
    record, kind = Timed(), kind_of((torch.ones(3),), {})
    profit.add([record])
    assert judge(profit, record, 3, 2.0)
    first = calls_until_compared(profit, kind)
    tried = 0
    while not is_lost(profit, kind):
        tried += 1
    assert tried < first
    assert calls_until_compared(profit, kind) > 2 * first


def test_pending_records_are_not_compared() -> None:
    profit, record = Profitability(True), Timed(is_pending=True)
    profit.add([record])
    assert profit.comparison(record, ()) is None
    record.is_pending = False
    assert profit.comparison(record, ()) is not None


def test_records_that_are_gone_are_not_compared() -> None:
    profit, old, new = Profitability(True), Timed(), Timed()
    profit.add([old])
    profit.add([new])
    assert profit.comparison(old, ()) is None
    assert profit.comparison(new, ()) is not None


def test_calls_that_never_repeat_end_the_comparison() -> None:
    profit, record = Profitability(True), Timed()
    profit.add([record])
    for number in range(1000):
        if (times := profit.comparison(record, kind_of((number,), {}))) is not None:
            times.turns.add(HIT, 1.0)
    assert not profit.is_open
    assert profit.comparison(record, ()) is None


def test_results_do_not_depend_on_times_where_they_must_not() -> None:
    profit, record = Profitability(True), Timed()
    profit.add([record])
    torch.use_deterministic_algorithms(True)
    try:
        assert profit.comparison(record, ()) is None
    finally:
        torch.use_deterministic_algorithms(False)


def test_kinds_of_calls() -> None:
    x = torch.ones(2, 3)
    assert kind_of((x, 1), {"n": x}) == kind_of((x + 1, 1), {"n": x * 2})
    for other in (
        kind_of((x, 2), {"n": x}),
        kind_of((x, 1.0), {"n": x}),
        kind_of((x, True), {"n": x}),
        kind_of((x.double(), 1), {"n": x}),
        kind_of((x.T, 1), {"n": x}),
        kind_of((x, 1), {"m": x}),
        kind_of((x, 1), {}),
    ):
        assert other != kind_of((x, 1), {"n": x})


def test_effects_happen_once_whoever_runs() -> None:
    clock = Clock()
    fast, _ = compared(program, clock, backend=slow_graph(clock, 3.0))
    mine, theirs = (torch.zeros(4), []), (torch.zeros(4), [])
    for _ in range(20):
        torch.testing.assert_close(fast(*mine), program(*theirs))
        assert torch.equal(mine[0], theirs[0])
        assert mine[1] == theirs[1]
    stats = fast.stats()
    assert stats["calls"] == 20
    assert stats["hits"] + stats["eager"] + stats["misses"] == 20
    assert stats["eager"] > stats["hits"]
    assert (
        "calls like (float32[4], list) run eagerly: a hit takes 4e+03 ms,"
        " eager 1e+03 ms"
    ) in fast.explain()
    # Calls of another kind are hits still.
    before = fast.stats()["hits"]
    fast(torch.zeros(5), [])
    fast(torch.zeros(5), [])
    assert fast.stats()["hits"] > before


def test_functions_with_a_cache_are_asked_once_in_calls_that_are_timed() -> None:
    @functools.lru_cache
    def scale(number: int) -> float:
        return number * 2.0

    clock = Clock()
    fast, _ = compared(
        lambda x: torch.softmax(x * scale(3), -1), clock, backend=slow_graph(clock, 3.0)
    )
    for number in range(20):
        fast(torch.zeros(4))
        info = scale.cache_info()
        assert (info.hits, info.misses) == (number, 1)
    assert fast.stats()["eager"] > 3
    assert fast.stats()["hits"] > 3


class Undecided:
    """What a backend has returned of which it never gets known what runs it fastest."""

    is_decided = False


def test_calls_whose_hits_cannot_be_timed_again_run_eagerly() -> None:
    clock = Clock()
    fast, profit = compared(program, clock, backend=slow_graph(clock, 3.0))
    for _ in range(20):
        fast(torch.zeros(4), [])
    (lost,) = profit.lost.values()
    lost.left = 0
    fast.records[0]._returned = Undecided()
    for _ in range(4 * CALLS):
        fast(torch.zeros(4), [])
    assert lost.left > 0


def test_hits_that_pay_are_not_looked_at_again() -> None:
    clock = Clock()
    fast, profit = compared(program, clock, backend=slow_graph(clock, -0.9))
    for _ in range(14):
        fast(torch.zeros(4), [])
    stats = fast.stats()
    assert not profit.is_open
    assert stats["eager"] == 6
    assert stats["hits"] == 14 - 1 - stats["eager"]
    assert "run eagerly" not in fast.explain()


class Backward(torch.autograd.Function):
    """A graph whose backward takes time on a clock."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, clock: Clock, seconds: float) -> Tensor:
        ctx.clock, ctx.seconds = clock, seconds
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        ctx.clock.now += ctx.seconds
        return gradients[0] * 2, None, None


@pytest.mark.parametrize(("seconds", "runs_eagerly"), [(5.0, True), (-0.9, False)])
def test_backward_is_timed_as_well(seconds: float, runs_eagerly: bool) -> None:
    clock = Clock()

    def slow_backward(module: Any, examples: list[Tensor]) -> Callable[..., Any]:
        return lambda *inputs: (Backward.apply(inputs[0], clock, seconds),)

    weight = torch.ones(4, requires_grad=True)
    fast, profit = compared(lambda w: w * 2, clock, backend=slow_backward)
    for number in range(20):
        fast(weight).sum().backward()
        assert torch.equal(weight.grad, torch.full((4,), 2.0 * (number + 1)))
    stats = fast.stats()
    assert bool(profit.describe()) == runs_eagerly
    assert (stats["eager"] > stats["hits"]) == runs_eagerly
    assert profit.is_open == runs_eagerly
    assert stats["eager"] >= 3


def inferring(clock: Clock, seconds: float) -> tuple[Any, Profitability]:
    """Trace a program whose results have gradients, and hits take so much longer."""
    weight = torch.ones(4, requires_grad=True)
    return compared(
        lambda x: torch.softmax(x * weight, -1),
        clock,
        backend=slow_graph(clock, seconds),
    )


@pytest.mark.parametrize(("seconds", "runs_eagerly"), [(5.0, True), (-0.9, False)])
def test_calls_alone_are_compared_where_nobody_asks_for_gradients(
    seconds: float, runs_eagerly: bool
) -> None:
    fast, profit = inferring(Clock(), seconds)
    for _ in range(32 + CALLS + 2):
        assert fast(torch.zeros(4)).requires_grad
    assert bool(profit.describe()) == runs_eagerly
    assert profit.is_open == runs_eagerly


def test_calls_alone_tell_nothing_once_gradients_were_asked_for() -> None:
    fast, profit = inferring(Clock(), 5.0)
    fast(torch.zeros(4))
    fast(torch.zeros(4)).sum().backward()
    for _ in range(40):
        fast(torch.zeros(4))
    assert not profit.is_open
    assert fast.stats()["eager"] == 0


def test_gradients_that_come_late_are_timed_from_then_on() -> None:
    fast, _ = inferring(Clock(), 5.0)
    results = [fast(torch.zeros(4)) for _ in range(34)]
    results[-1].sum().backward()
    (record,) = fast.records
    assert record.is_trained
    assert record.unfinished == 0


def failing_graph(
    fails: Callable[[int], bool], error: Exception, part: str = ""
) -> tuple[Callable[..., Any], list[int]]:
    """Return a backend whose graphs fail in some calls, and a list of all calls.

    Args:
        part: What graphs have in them that fail.
    """
    ran: list[int] = []

    def compile_graph(module: Any, examples: list[Tensor]) -> Callable[..., Any]:
        if part not in module.code:
            return module  # type: ignore[no-any-return]

        def run(*tensors: Tensor) -> Any:
            ran.append(0)
            if fails(len(ran)):
                raise error
            return module(*tensors)

        return run

    return compile_graph, ran


def logging_program(x: Tensor, log: list[int]) -> Tensor:
    log.append(0)
    return torch.softmax(x * 2, -1)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no memory"),
        ProgramError("bad-result", "another shape"),
        InputMismatchError(0, "has dtype"),
    ],
)
def test_calls_run_eagerly_whose_graph_keeps_failing(error: Exception) -> None:
    backend, ran = failing_graph(lambda call: True, error)
    fast = trace(logging_program, backend=backend)
    for calls in range(1, 80):
        log: list[int] = []
        x = torch.randn(4)
        assert torch.equal(fast(x, log), torch.softmax(x * 2, -1))
        assert log == [0]
        assert fast.stats()["calls"] == calls
    assert len(ran) == 3
    assert "the graph fails where the program does not" in fast.explain()


def program_with_a_break(x: Tensor, log: list[int]) -> Tensor:
    log.append(0)
    y = torch.relu(x * 2) + 1
    zlib.crc32(b"")  # native code that nothing is known about
    z = torch.sigmoid(y) - 1
    zlib.crc32(b"")
    log.append(1)
    return torch.softmax(z * 2, -1)


@pytest.mark.parametrize("part", ["relu", "sigmoid", "softmax"])
def test_calls_with_breaks_run_eagerly_a_part_of_which_keeps_failing(part: str) -> None:
    backend, ran = failing_graph(lambda call: True, RuntimeError("no memory"), part)
    fast = trace(program_with_a_break, backend=backend)
    for calls in range(1, 80):
        log: list[int] = []
        x = torch.randn(4)
        assert torch.equal(fast(x, log), program_with_a_break(x, []))
        assert log == [0, 1]
        assert fast.stats()["calls"] == calls
    assert len(ran) == 3
    assert fast.stats()["eager"] > 60
    assert "the graph fails where the program does not" in fast.explain()


def test_parts_of_programs_with_breaks_that_fail_now_and_then_go_on() -> None:
    error = IndexError("out of range")
    backend, ran = failing_graph(lambda call: call % 3 == 0, error, "sigmoid")
    fast = trace(program_with_a_break, backend=backend)
    fast._magweld_engine._profit = Profitability(compares=False)
    for _ in range(40):
        fast(torch.ones(4), [])
    assert fast.stats()["eager"] == 0
    assert len(ran) > 30


def test_a_graph_that_fails_now_and_then_goes_on() -> None:
    error = IndexError("out of range")
    backend, ran = failing_graph(lambda call: call % 3 == 0, error)
    fast = trace(logging_program, backend=backend)
    fast._magweld_engine._profit = Profitability(compares=False)
    for _ in range(40):
        fast(torch.ones(4), [])
    assert len(ran) == 39


def test_what_hides_its_tensors_is_not_timed() -> None:
    class Result:
        def __init__(self, value: Tensor) -> None:
            self.value = value

    clock = Clock()
    weight = torch.ones(4, requires_grad=True)
    fast, profit = compared(
        lambda x: Result(x * weight), clock, backend=slow_graph(clock, 5.0)
    )
    for _ in range(8):
        fast(torch.zeros(4)).value.sum().backward()
    assert not profit.is_open
    assert fast.stats()["eager"] == 0


class Loss(NamedTuple):
    value: Tensor
    more: Any


class Named(dict):
    """It may have attributes beside what it holds."""


def test_results_are_looked_into_without_code_of_the_program() -> None:
    weight = torch.ones(2, requires_grad=True)
    a, b = weight * 2, weight * 3
    cycle: list[Any] = [a]
    cycle.append({"me": cycle, "b": b, "size": a.shape})
    assert differentiable(cycle) == [a, b]
    deep: Any = a
    for _ in range(10_000):
        deep = [deep]
    assert differentiable(deep) == [a]
    assert differentiable(Loss(a, (3, "x", None))) == [a]
    assert differentiable((torch.max(a.reshape(1, 2), 1), 1.5))
    assert differentiable([weight, 3]) == []
    assert differentiable((a, np.ones(3), np.float32(1), np.bool_(True))) == [a]
    objects = np.full(1, None, dtype=object)
    for other in (Named(a=a), mock.Mock(), {1}, iter([a]), Loss(a, Named()), objects):
        assert differentiable(other) is None


@pytest.mark.parametrize("trains", [False, True])
def test_other_results_are_timed_where_nothing_trains(trains: bool) -> None:
    weight = torch.ones(4, requires_grad=trains)

    def program(x: Tensor) -> Named:
        return Named(a=torch.softmax(x * weight, -1))

    clock = Clock()
    fast, _ = compared(program, clock, backend=slow_graph(clock, 3.0))
    for _ in range(20):
        fast(torch.zeros(4))
    assert (fast.stats()["eager"] > 3) is not trains


def test_hits_that_lose_by_much_are_timed_again_later() -> None:
    pauses = []
    for hit in (1.05, 2.0, 50.0):
        profit, record = Profitability(True, clock=lambda: 0.0), Timed()
        profit.add([record])
        assert judge(profit, record, 3, hit)
        pauses.append(calls_until_compared(profit, kind_of((torch.ones(3),), {})))
    assert pauses[0] < pauses[1] < pauses[2] < 2000


def test_results_that_hold_themselves_are_timed() -> None:
    def cyclic(x: Tensor) -> list[Any]:
        result: list[Any] = [torch.softmax(x * 2, -1)]
        result.append(result)
        return result

    clock = Clock()
    fast, _ = compared(cyclic, clock, backend=slow_graph(clock, 3.0))
    for _ in range(20):
        result = fast(torch.zeros(4))
        assert result[1] is result
    assert fast.stats()["eager"] > 3


def test_an_eager_run_that_raises() -> None:
    clock = Clock()
    fails: list[bool] = []

    def raising(x: Tensor) -> Tensor:
        if fails:
            raise KeyError("x")
        return torch.softmax(x * 2, -1)

    fast, _ = compared(raising, clock, backend=slow_graph(clock, 2.0))
    for _ in range(20):
        fast(torch.zeros(4))
    assert fast.stats()["eager"] > 3
    fails.append(True)
    with pytest.raises(KeyError):
        fast(torch.zeros(4))


def test_times_under_a_profiler_decide_nothing() -> None:
    clock = Clock()
    fast, profit = compared(program, clock, backend=slow_graph(clock, 8.0))
    sys.setprofile(lambda frame, event, arg: None)
    try:
        for _ in range(20):
            fast(torch.ones(2, 2), [])
    finally:
        sys.setprofile(None)
    assert fast.stats()["eager"] == 0
    for _ in range(20):
        fast(torch.ones(2, 2), [])
    assert fast.stats()["eager"] > 0
    assert profit.describe()
