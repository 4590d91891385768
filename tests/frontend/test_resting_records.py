"""Records that no call fits rest: calls that are left alone do not ask for them."""

from __future__ import annotations

import sys

import torch

from magweld.frontend import trace
from magweld.frontend.records.cache import MAX_UNANSWERED
from magweld.frontend.records.resting import REST, Resting

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
    # They are told by code of their own.
    engine = fast._magweld_engine
    assert engine.is_eager is not None
    assert not engine.is_eager((x, x), {})
    assert not engine.is_eager((), {"x": x})
    assert not engine.is_eager((3,), {})


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


def test_they_rest_for_longer_unless_they_answer_half_of_the_calls():
    rest, hits, found = Resting(), 0, []
    signature = ((), ())
    for answered in (0, 0, MAX_UNANSWERED - 1, MAX_UNANSWERED, 0):
        for _ in range(MAX_UNANSWERED):
            rest.note_unanswered()
        hits += answered
        found.append(rest.begin(signature, hits) // REST)
        rest.left -= 3  # answered by who does not count them
        rest.take_call()
        rest.end()
        assert rest.left == 0
        assert rest.take_untold() == 3
        assert rest.take_untold() == 0
    assert found == [1, 4, 16, 1, 4]


def test_records_that_never_answer_go_in_the_end():
    walk = Walk()
    fast, x = _unstable(walk, calls=14)
    for number in range(2 * ENOUGH + REST):
        walk.name = "0a" if number % 4 == 0 else f"other {number}"
        assert torch.equal(fast(x), walk.step(x))
    # That which is hit stays, and the newest, which may be hit yet.
    assert sorted(bool(record.hits) for record in fast.records) == [False, True]


def test_a_program_without_records_is_left_alone_by_less():
    def refused(x):
        assert sys._getframe().f_locals
        return x + 1

    fast, x = trace(refused, backend="eager"), torch.ones(3)
    for _ in range(ENOUGH):
        assert torch.equal(fast(x), x + 1)
    assert not fast.records
    assert fast._magweld_engine.is_eager is not None
    stats = fast.stats()
    assert stats["calls"] == stats["misses"] == ENOUGH
    assert torch.equal(fast(x=x), x + 1)
    assert fast.stats()["calls"] == ENOUGH + 1


def test_a_hit_ends_the_count_of_calls_that_none_fits():
    walk = Walk()
    fast, x = _unstable(walk, calls=14)
    for number in range(4 * MAX_UNANSWERED):
        walk.name = "0a" if number % 4 == 0 else f"other {number}"
        assert torch.equal(fast(x), walk.step(x))
    assert fast.stats()["hits"] == MAX_UNANSWERED
