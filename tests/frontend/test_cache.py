"""Tests of the records of one callable, which several threads use at once."""

from magweld.frontend.notes import Notes
from magweld.frontend.records.cache import RecordCache
from magweld.frontend.records.policy import LiftingPolicy


class Answering:
    """What the cache asks of a record."""

    hits = 0
    number = 0


def filled(count: int) -> RecordCache:
    cache = RecordCache(LiftingPolicy(automatic=False))
    for _ in range(count):
        cache.add(Answering())
    return cache


def test_a_record_that_answers_is_put_first():
    cache = filled(3)
    first, second, third = cache.records
    Notes().hit(cache, third)
    assert cache.records == [third, first, second]


def test_an_answer_by_a_record_that_was_dropped_meanwhile_is_only_counted():
    cache, notes = filled(2), Notes()
    record = cache.records[0]
    cache.failures["x"] += 1
    cache.drop()
    notes.hit(cache, record)
    assert (cache.records, notes.counts["hits"]) == ([], 1)
    assert not cache.failures
