"""Tests of the records of one callable, which several threads use at once."""

from magweld.frontend.call_log import CallLog
from magweld.frontend.records.cache import MAX_BEHIND, RecordCache
from magweld.frontend.records.policy import LiftingPolicy


class Answering:
    """What the cache asks of a record."""

    hits = 0
    number = 0
    is_compiled = False

    def __init__(self, is_for_torch: bool = False) -> None:
        self.is_for_torch = is_for_torch


def filled(count: int, with_code: bool = False) -> RecordCache:
    cache = RecordCache(LiftingPolicy(automatic=False))
    for _ in range(count):
        record = Answering()
        record.is_compiled = with_code
        cache.add(record)
    return cache


def test_a_record_that_answers_is_put_first():
    cache = filled(3)
    first, second, third = cache.records
    CallLog().hit(cache, third)
    assert cache.records == [third, first, second]


def test_an_answer_by_a_record_that_was_dropped_meanwhile_is_only_counted():
    cache, log = filled(2), CallLog()
    record = cache.records[0]
    cache.failures["x"] += 1
    cache.drop()
    log.hit(cache, record)
    assert (cache.records, log.counts["hits"]) == ([], 1)
    assert not cache.failures


def test_records_that_torch_runs_for_many_sizes_stay_behind_those_with_code():
    cache = filled(2, with_code=True)
    of_torch = Answering(is_for_torch=True)
    cache.add(of_torch)
    assert cache.records[-1] is of_torch
    for _ in range(MAX_BEHIND - 1):
        cache.promote(of_torch)
        assert cache.records[-1] is of_torch
    cache.promote(cache.records[1])
    cache.promote(of_torch)
    assert cache.records[-1] is of_torch
    newest = Answering()
    cache.add(newest)
    assert cache.records[0] is newest


def test_records_that_torch_runs_for_many_sizes_are_first_where_no_other_has_code():
    cache = filled(2)
    of_torch = Answering(is_for_torch=True)
    cache.add(of_torch)
    assert cache.records[0] is of_torch


def test_records_that_torch_runs_are_first_once_no_other_is_hit_any_more():
    cache = filled(2, with_code=True)
    of_torch = Answering(is_for_torch=True)
    cache.add(of_torch)
    for _ in range(MAX_BEHIND):
        cache.promote(of_torch)
    assert cache.records[0] is of_torch
