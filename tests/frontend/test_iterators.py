"""Iterators and callbacks: what native code consumes unobserved is guarded."""

from __future__ import annotations

import collections
import functools
import itertools
import operator

import pytest
import torch

from magweld.frontend import trace

FIRST, SECOND = operator.itemgetter(0), operator.itemgetter(1)


class Holder:
    """Nested lists, read by native code through several layers."""

    def __init__(self):
        self.rows = [[1.0, 2.0], [3.0, 4.0]]
        self.get = FIRST

    def step(self, x, reader):
        return x * reader(self)


def lengths(h):
    return float(sum(map(len, h.rows)))


def lengths_of_iterator(h):
    return float(sum(map(len, iter(h.rows))))


def chained(h):
    return sum(itertools.chain.from_iterable(iter(h.rows)))


def started(h):
    return sum(itertools.starmap(operator.add, zip(*h.rows[:2], strict=False)))


def reduced(h):
    return float(len(functools.reduce(operator.add, h.rows)))


def grouped(h):
    groups = itertools.groupby(h.rows[0] + h.rows[1], key=lambda v: v > 2.0)
    return sum(key * len(list(group)) for key, group in groups)


def sorted_by_item(h):
    return sorted(h.rows, key=operator.itemgetter(1), reverse=True)[0][0]


def smallest(h):
    return min(h.rows, key=h.get)[1]


def accumulated(h):
    return list(itertools.accumulate(itertools.chain(*h.rows), operator.mul))[-1]


def selected(h):
    return sum(itertools.compress([1.0, 2.0], h.rows[0]))


def filtered(h):
    return float(len(list(itertools.filterfalse(None, iter(h.rows)))))


READERS = [
    lengths,
    lengths_of_iterator,
    chained,
    started,
    reduced,
    grouped,
    sorted_by_item,
    smallest,
    accumulated,
    selected,
    filtered,
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_native_consumers_guard_what_they_read(twins, reader):
    pair = twins(Holder)
    x = torch.ones(2)
    assert pair.step(x, reader) == "record", pair.traced.explain()
    assert pair.step(x, reader) == "hit"
    for change in (
        lambda h: h.rows[0].__setitem__(1, 9.0),
        lambda h: h.rows[1].append(5.0),
        lambda h: h.rows.insert(0, [0.0, 7.0]),
        lambda h: h.rows[0].clear() if reader is filtered else None,
        lambda h: setattr(h, "get", SECOND),
    ):
        for holder in (pair.mine, pair.eager):
            change(holder)
        pair.step(x, reader)
        assert pair.step(x, reader) == "hit"


class Resumed:
    """Generators driven by send, throw and close."""

    def __init__(self):
        self.values = [1.0, 2.0]

    def totals(self):
        total = 0.0
        try:
            while True:
                try:
                    total += yield total
                except ValueError as error:
                    total += len(error.args)
        finally:
            self.values.append(total)

    def step(self, x):
        generator = self.totals()
        next(generator)
        for value in self.values[:2]:
            result = generator.send(value)
        result += generator.throw(ValueError(1, 2))
        generator.close()
        return x * result


def test_generators_are_driven(twins):
    pair = twins(Resumed)
    assert pair.step(torch.ones(2)) == "record", pair.traced.explain()
    assert pair.mine.values == [1.0, 2.0, 5.0]
    for holder in (pair.mine, pair.eager):
        holder.values = [1.0, 2.0]
    assert pair.step(torch.ones(2)) == "hit"
    for holder in (pair.mine, pair.eager):
        holder.values = [3.0, 2.0]
    assert pair.step(torch.ones(2)) == "record"


class Defaults:
    """A defaultdict and a bounded deque of the caller."""

    def __init__(self):
        self.table = collections.defaultdict(list, a=[1.0])
        self.recent = collections.deque([1.0], maxlen=2)

    def step(self, x, key):
        self.table[key].append(2.0)
        self.recent.append(len(self.table))
        return x * sum(self.table[key]) * self.recent[0]


def test_defaults_are_made_and_stored(twins):
    pair = twins(Defaults)
    for key in ("a", "b", "b"):
        pair.step(torch.ones(2), key)
    for holder in (pair.mine, pair.eager):
        holder.__init__()
    assert pair.step(torch.ones(2), "b") == "record", pair.traced.explain()
    for holder in (pair.mine, pair.eager):
        holder.__init__()
    assert pair.step(torch.ones(2), "b") == "hit"
    for holder in (pair.mine, pair.eager):
        holder.__init__()
        holder.recent = type(holder.recent)([1.0], maxlen=1)
    assert pair.step(torch.ones(2), "b") == "record"
    assert list(pair.mine.recent) == [2]


def test_a_sum_of_what_functions_return(checker):
    blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.ReLU()])
    check = checker(lambda x: sum(map(lambda block: block(x), blocks)))
    assert check(torch.ones(2)) == "record", check.traced.explain()
    assert check(torch.zeros(2)) == "hit", check.traced.explain()
    blocks.append(torch.nn.Sigmoid())
    assert check(torch.ones(2)) == "record", check.traced.explain()


@pytest.mark.parametrize("begin", [iter, reversed])
def test_an_iterator_at_its_end_stays_there(begin):
    items: list[float] = []

    def program(x):
        items_left = begin(items)
        return x + next(items_left, 5.0), items_left

    traced = trace(program, backend="eager", check=True)
    for _ in range(3):
        result, items_left = traced(torch.zeros(2))
        assert result.tolist() == [5.0, 5.0]
        assert type(items_left) is type(begin([1.0]))
        items.append(1.0)
        assert list(items_left) == []
        items.clear()
    assert traced.stats()["hits"] == 2


class Walked:
    """An iterator of the caller, and what it walks over, changed behind it."""

    def __init__(self, items, change):
        self.items, self.change = items, change
        self.left = iter(items)

    def step(self, x):
        number = next(self.left, 5.0)
        if self.change == "append":
            self.items.append(9.0)
        elif self.change == "insert":
            self.items.insert(0, 9.0)
        elif self.change == "clear":
            self.items.clear()
        else:
            self.items[9.0] = 1
        return x * number


WALKED = {
    "at its end": lambda: Walked([], "append"),
    "list grows": lambda: Walked([1.0, 2.0], "insert"),
    "list shrinks": lambda: Walked([1.0, 2.0], "clear"),
    "dict grows": lambda: Walked({1.0: 1, 2.0: 2}, "set"),
}


def rest_of(walked):
    if isinstance(walked.items, list):
        walked.items += [7.0, 8.0]
    try:
        return list(walked.left)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("make", WALKED.values(), ids=WALKED)
def test_an_iterator_goes_on_before_what_it_walks_over_changes(make):
    walked, twin = make(), make()
    traced = trace(lambda walked, x: walked.step(x), backend="eager")
    for _ in range(4):
        walked, twin = make(), make()
        x = torch.ones(2)
        assert torch.equal(traced(walked, x), twin.step(x))
        assert walked.items == twin.items
        assert rest_of(walked) == rest_of(twin)
    assert traced.stats()["hits"] == 3, traced.explain()
