"""Calls with sizes that were just answered are answered by less, and counted."""

from __future__ import annotations

import gc

import torch
from torch import Tensor

from magweld.frontend import trace
from magweld.graphs.forms import COMPILE_BESIDE, Forms
from magweld.graphs.known_sizes import UNASKED, KnownSizes
from magweld.tiers import TieredGraph, Work


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
    known.add("key", tier, (0,))
    assert all(known.take("key", [x]) is tier for _ in range(UNASKED))
    assert known.take("key", [x]) is None
    assert known.drop("key") == UNASKED
    assert known.drop("key") == 0


def test_tensors_with_gaps_and_forms_that_have_gone_are_asked_about() -> None:
    known, tier = KnownSizes(), taken()
    known.add("key", tier, (1,))
    whole, gaps = torch.ones(4, 4), torch.ones(4, 4).t()
    assert known.take("key", [gaps, gaps]) is None
    assert known.take("key", [gaps, whole]) is tier
    del tier
    gc.collect()
    assert known.take("key", [gaps, whole]) is None


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
