"""Calls with sizes that were just answered are answered by less, and counted."""

from __future__ import annotations

import gc
import itertools

import torch
from torch import Tensor, nn

from magweld.frontend import trace
from magweld.graphs.forms import COMPILE_BESIDE, Forms
from magweld.graphs.known_sizes import UNASKED, KnownSizes
from magweld.tiers import Race, TieredGraph, Work


class Code:
    """Compiled code."""

    held_bytes = 0

    def __call__(self, x: Tensor) -> Tensor:
        """Return twice as much."""
        return x * 2

    def mlir(self, stage: str) -> str:
        """Return nothing."""
        return stage

    def report(self) -> dict[str, object]:
        """Return nothing."""
        return {}


def taken() -> TieredGraph:
    """Return a graph whose code is there."""
    tier = TieredGraph(lambda x: x * 2)
    tier.compile(lambda: Work(Code))
    assert tier.taken is not None
    return tier


def test_a_form_answers_so_many_calls_and_is_asked_for_again() -> None:
    known, tier, x = KnownSizes(), taken(), torch.ones(3)
    assert known.take("key", [x]) is None
    known.add("key", tier, [x], (0,))
    for _ in range(UNASKED):
        answer = known.take("key", [x])
        assert answer is not None
        assert torch.equal(answer([x]), 2 * x)
    assert known.take("key", [x]) is None
    assert known.drop("key") == UNASKED
    assert known.drop("key") == 0


def test_tensors_with_gaps_and_forms_that_have_gone_are_asked_about() -> None:
    known, tier = KnownSizes(), taken()
    whole, gaps = torch.ones(4, 4), torch.ones(4, 4).t()
    known.add("key", tier, [gaps, whole], (1,))
    assert known.take("key", [gaps, gaps]) is None
    assert known.take("key", [gaps, whole]) is not None
    del tier
    gc.collect()
    assert known.take("key", [gaps, whole]) is None


class Buffer(Tensor):
    """A class of somebody else."""


class Alike(Code):
    """Code that need not check what it has checked."""

    def call_alike(self, inputs: list[Tensor]) -> Tensor:
        """Return three times as much."""
        return inputs[0] * 3


def test_code_checks_no_more_what_is_known() -> None:
    known, tier, x = KnownSizes(), TieredGraph(lambda x: x * 2), torch.ones(3)
    tier.compile(lambda: Work(Alike))
    weight = nn.Parameter(x)
    for tensors, factor in (([x], 3), ([weight], 3), ([Buffer(x)], 2)):
        known.add("key", tier, tensors, (0,))
        answer = known.take("key", tensors)
        assert answer is not None
        assert torch.equal(answer([x]), factor * x)


def test_a_form_that_is_to_be_timed_again_answers_meanwhile() -> None:
    """Times of a busy machine decide for a while."""
    known, x, now = KnownSizes(), torch.ones(3), [0.0]
    # Most calls take twice as long as one.
    seconds = itertools.chain([2.0, 1.0], itertools.repeat(2.0))

    def after(seconds: float, x: Tensor) -> Tensor:
        now[0] += seconds
        return 2 * x

    class Busy(Alike):
        def __call__(self, x: Tensor) -> Tensor:
            return after(next(seconds), x)

    tier = TieredGraph(lambda x: after(10.0, x))
    tier.compile(lambda: Work(Busy, Race(clock=lambda: now[0])))
    while tier.verdict is None:
        tier(x)
    assert tier.is_doubtful
    assert tier.taken is None
    known.add("key", tier, [x], (0,))
    waiting = tier._next
    assert waiting is not None
    left = waiting.left
    answer = known.take("key", [x])
    assert answer is not None
    assert torch.equal(answer([x]), 3 * x), "it checks no more what is known"
    assert waiting.left == left - 1, "it counts until then"
    waiting.left = 1
    answer = known.take("key", [x])
    assert answer is not None
    assert torch.equal(answer([x]), 3 * x), "the last one before"
    assert not tier.is_decided
    assert known.take("key", [x]) is None


def test_a_graph_that_is_timed_or_left_to_torch_has_no_code_for_the_next_call() -> None:
    now = [0.0]

    def after(seconds: float, x: Tensor) -> Tensor:
        now[0] += seconds
        return 2 * x

    class Slow(Code):
        def __call__(self, x: Tensor) -> Tensor:
            return after(5.0, x)

    x = torch.ones(3)
    tier = TieredGraph(lambda x: after(1.0, x))
    assert tier.take_call() is None
    tier.compile(lambda: Work(Slow, Race(clock=lambda: now[0])))
    while tier.verdict is None:
        assert tier.take_call() is None
        tier(x)
    assert tier.verdict.is_for_torch
    assert tier.take_call() is None
    code = taken()
    assert code.take_call() is code.compiled


def test_calls_that_nobody_was_asked_about_count_towards_a_form() -> None:
    forms = Forms(1 << 20)
    forms.note_uses("key", COMPILE_BESIDE - 1)
    assert forms.uses == COMPILE_BESIDE - 1
    assert forms.is_wanted("key", COMPILE_BESIDE)


def test_sizes_that_come_in_turns_have_their_own_results() -> None:
    program = trace(lambda x: torch.softmax(x * 2, -1), compile="now")
    sizes = (5, 9, 12, 7, 5, 9)
    with torch.no_grad():
        for repeat in range(3 * UNASKED):
            for size in sizes if repeat % 3 else sizes[::-1]:
                x = torch.randn(size, 8)
                x = x if repeat % 4 else torch.randn(8, size).t()
                torch.testing.assert_close(program(x), torch.softmax(x * 2, -1))
    assert program.stats()["misses"] <= 3
