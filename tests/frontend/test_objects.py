"""Locks, weak references, copies of objects: what they depend on is guarded."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from magweld.frontend.traced import trace

LOCK = threading.Lock()


class Settings:
    __slots__ = ("__dict__", "__weakref__", "scale")

    def __init__(self) -> None:
        self.scale = 2.0
        self.layers = [1.0, 2.0]
        self.table = {"a": self.layers}


class Copying(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.settings = Settings()

    def step(self, x: Any, deep: bool) -> Any:
        twin = copy.deepcopy(self.settings) if deep else copy.copy(self.settings)
        twin.layers.append(x.sum())
        twin.scale = 3.0
        shared = twin.table["a"] is twin.layers
        return x * self.settings.scale, twin.layers, shared, twin


@pytest.mark.parametrize("deep", [True, False])
def test_copies_are_made_again(twins: Any, deep: bool) -> None:
    pair = twins(Copying)
    x = torch.randn(3)
    assert pair.step(x, deep) == "record"
    if deep:
        assert pair.step(torch.randn(3), deep) == "hit"
    for model in (pair.eager, pair.mine):
        model.settings.table["a"] = model.settings.layers = [5.0]
    pair.step(x, deep)
    for model in (pair.eager, pair.mine):
        model.settings.scale = 7.0
    assert pair.step(x, deep) == "record"
    for model in (pair.eager, pair.mine):
        model.settings.more = 1.0
    assert pair.step(x, deep) == "record"


def test_identity_numbers_are_no_values(checker: Any) -> None:
    check = checker(lambda x: x + id(x) % 2)
    assert check(torch.zeros(3)) == "native-call"


class Referring:
    def __init__(self) -> None:
        self.target = Settings()
        self.reference = weakref.ref(self.target)

    def step(self, x: Any) -> Any:
        found = self.reference()
        return x if found is None else x * found.scale

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def test_referents_are_guarded() -> None:
    model = Referring()
    step = trace(model.step, backend="eager")
    x = torch.ones(2)
    assert step(x).tolist() == [2.0, 2.0]
    assert step(x).tolist() == [2.0, 2.0]
    assert step.stats()["hits"] == 1
    model.target.scale = 4.0
    assert step(x).tolist() == [4.0, 4.0]
    del model.target
    gc.collect()
    assert step(x).tolist() == [1.0, 1.0]
    assert step(x).tolist() == [1.0, 1.0]


def test_a_lock_must_be_free() -> None:
    def program(x: Any) -> Any:
        with LOCK:
            return x + 1

    step = trace(program, backend="eager")
    x = torch.ones(2)
    assert step(x).tolist() == step(x).tolist() == [2.0, 2.0]
    assert step.stats()["hits"] == 1
    LOCK.acquire()
    threading.Timer(0.05, LOCK.release).start()
    assert step(x).tolist() == [2.0, 2.0]  # waits, as the program would
    assert step.stats()["hits"] == 1


class Adder:
    def __call__(self, *parts: Any) -> Any:
        return sum(parts)


def test_arguments_from_a_generator(checker: Any) -> None:
    add = Adder()

    def program(x: Any) -> Any:
        return add(*(x + i for i in range(3)))

    check = checker(program)
    assert check(torch.randn(3)) == "record"
    assert check(torch.randn(3)) == "hit"


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = copy.deepcopy(self.first)

    def step(self, x: Any) -> Any:
        modules = len(list(self.modules()))
        return x * modules + sum(1.0 for _ in self.parameters())


def test_modules_and_parameters_are_told_apart() -> None:
    model = Shared()
    step = trace(model.step, backend="eager")
    x = torch.ones(1)
    assert step(x).item() == step(x).item() == 3.0 + 4.0
    assert step.stats()["hits"] == 1
    model.second.weight = model.first.weight
    assert step(x).item() == step(x).item() == 3.0 + 3.0
    model.second = model.first
    assert step(x).item() == step(x).item() == 2.0 + 2.0
    assert step.stats()["hits"] == 3


class Keyed:
    def __init__(self) -> None:
        self.key = Settings()
        self.table = {self.key: 2.0}

    def step(self, x: Any, other: Any) -> Any:
        seen = {self.key: 1.0}
        return x * self.table.get(self.key, 1.0) + seen.get(other, 5.0)


def test_keys_are_compared_by_identity() -> None:
    model = Keyed()
    step = trace(model.step, backend="eager")
    x = torch.ones(1)
    assert step(x, None).item() == step(x, None).item() == 7.0
    assert step.stats()["hits"] == 1
    model.key = Settings()
    assert step(x, None).item() == step(x, None).item() == 6.0
    assert step.stats()["hits"] == 2


def test_elements_of_lists_are_compared_by_identity() -> None:
    def program(x: Any, first: Any, second: Any) -> Any:
        return x + float(second in [first, None])

    step = trace(program, backend="eager")
    x, one, other = torch.zeros(1), Settings(), Settings()
    for _ in range(2):
        assert step(x, one, other).item() == 0.0
        assert step(x, one, one).item() == 1.0
    assert step.stats()["hits"] == 2


def test_an_argument_may_be_the_key() -> None:
    model = Keyed()
    step = trace(model.step, backend="eager")
    x = torch.zeros(1)
    for other, expected in ((Settings(), 5.0), (model.key, 1.0), (Settings(), 5.0)):
        assert step(x, other).item() == expected


class Labelled(property):
    """A property that is made with more than its functions."""

    def __init__(self, getter, label):
        super().__init__(getter)
        self.label = label


def test_an_instance_of_a_subclass_of_property(checker):
    def function(x):
        made = Labelled(len, "length")
        return x * len(made.label) * isinstance(made, property)

    check = checker(function)
    assert check(torch.ones(2)) == "record", check.traced.explain()
    assert check(torch.ones(2)) == "hit", check.traced.explain()
    categorical = checker(lambda x: torch.distributions.Categorical(logits=x).probs)
    assert categorical(torch.ones(3)) == "record", categorical.traced.explain()
    assert categorical(torch.zeros(3)) == "hit", categorical.traced.explain()
