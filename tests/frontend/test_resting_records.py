"""Records that no call fits rest: calls that are left alone do not ask for them."""

from __future__ import annotations

import torch

from magweld.frontend import trace
from magweld.frontend.records.cache import MAX_UNANSWERED, REST

ENOUGH = 40  # calls after which the program is left alone, and its records rest


class Walk:
    """A program whose state decides by its value what is computed."""

    def __init__(self):
        self.name = ""

    def step(self, x):
        return x * len(self.name) + self.name.count("a")


def _unstable(target, calls=ENOUGH):
    """Return a traced program of which no call has fitted a record for long."""
    fast = trace(target.step, backend="eager")
    x = torch.ones(3)
    for number in range(calls):
        target.name = f"{number}a"
        assert torch.equal(fast(x), target.step(x))
    assert any(item.id == "unstable-guard" for item in fast.breaks)
    return fast, x


def test_calls_that_no_record_fits_do_not_ask_for_them():
    walk = Walk()
    fast, x = _unstable(walk)
    last = fast.recompiles[-1].call
    assert last < ENOUGH
    for number in range(REST // 2):
        walk.name = f"other {number}"
        assert torch.equal(fast(x), walk.step(x))
    assert fast.recompiles[-1].call == last
    stats = fast.stats()
    assert stats["records"] > 0
    assert stats["calls"] == ENOUGH + REST // 2 == stats["misses"]


def test_they_are_asked_for_again_after_a_while():
    walk = Walk()
    fast, x = _unstable(walk)
    walk.name = "0a"  # the first record fits it
    for _ in range(REST + 5):
        assert torch.equal(fast(x), walk.step(x))
    assert fast.stats()["hits"] >= 5


def test_they_rest_for_longer_the_second_time():
    walk = Walk()
    fast, x = _unstable(walk)
    asked = set()
    for number in range(2 * REST + 2 * MAX_UNANSWERED):
        walk.name = f"other {number}"
        fast(x)
        asked.add(fast.recompiles[-1].call)
    again = {call for call in asked if call > ENOUGH}
    assert len(again) == MAX_UNANSWERED


def test_calls_of_another_kind_wake_them():
    walk = Walk()
    fast = trace(
        lambda x, y=None: walk.step(x) if y is None else x + y, backend="eager"
    )
    x = torch.ones(3)
    assert torch.equal(fast(x, x), x + x)
    assert torch.equal(fast(x, x), x + x)
    for number in range(ENOUGH):
        walk.name = f"{number}a"
        assert torch.equal(fast(x), walk.step(x))
    hits = fast.stats()["hits"]
    for _ in range(3):
        assert torch.equal(fast(x, x), x + x)
    stats = fast.stats()
    assert stats["hits"] == hits + 2
    assert stats["records"] == fast.stats()["graphs"]  # none was made twice


def test_a_hit_ends_the_count_of_calls_that_none_fits():
    walk = Walk()
    fast, x = _unstable(walk, calls=14)
    for number in range(4 * MAX_UNANSWERED):
        walk.name = "0a" if number % 4 == 0 else f"other {number}"
        assert torch.equal(fast(x), walk.step(x))
    assert fast.stats()["hits"] == MAX_UNANSWERED
