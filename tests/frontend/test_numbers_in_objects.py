"""Numbers that keep changing in objects that a program makes of them."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch

from magweld.frontend.traced import trace


class Pair(NamedTuple):
    a: Any
    b: Any = 2


class Made:
    def __new__(cls, value):
        made = object.__new__(cls)
        made.value = value
        return made


class Larger(Pair):
    __slots__ = ()

    def __new__(cls, a, b):
        return super().__new__(cls, a + 1, b)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __eq__(self, other):
        return (type(self), self.a, self.b) == (type(other), other.a, other.b)

    __hash__ = None


class Kept(float):
    """Its native `__new__` looks at what it gets."""


def renewed(k):
    made = SimpleNamespace(k=k, j=1)
    made.k += made.j
    return made.k


FOLLOWED = {
    "field": lambda k: Pair(k).a,
    "by name": lambda k: Pair(b=k, a=1)[1],
    "unpacked": lambda k: sum((lambda a, b: (a, b))(*Pair(k, 1))),
    "made anew": lambda k: Pair._make([k, 1]).a,
    "subclass": lambda k: Larger(k, 1).a,
    "namespace": lambda k: SimpleNamespace(k=k).k,
    "changed": renewed,
    "dict": lambda k: dict(k=k)["k"],
    "new": lambda k: Made(k).value,
    "returned": lambda k: Pair(k, 1),
    "nested": lambda k: Pair([k, 1], ({"k": (k,)}, tuple([k, k + 1]))),
    "ordered": lambda k: OrderedDict(j=1, k=k),
    "slots": lambda k: Slotted(k, 1),
    "slots of both": lambda k: Slotted(1, [k]),
}


@pytest.mark.parametrize("program", FOLLOWED.values(), ids=FOLLOWED)
def test_one_record_answers_every_value(program):
    traced = trace(lambda x, k: (x * 2, program(k)), backend="eager", check=True)
    for k in (2.0, 3.0, 5.0, 6.5, 7.0, 8.0):
        assert traced(torch.ones(2), k)[1] == program(k)
    # Two values, and one for all.
    assert traced.stats()["records"] == 3, traced.explain()
    assert traced.stats()["hits"] == 3


OTHERS = {
    "float": lambda k: (Kept(k), type(Kept(k))),
    "slot deleted": lambda k: (lambda s: (delattr(s, "b"), s.a)[1])(Slotted(k, k)),
    "ordered last": lambda k: (lambda d: (d.move_to_end("j"), [*d.values()])[1])(
        OrderedDict(j=1, k=k)
    ),
    "ordered of pairs": lambda k: Pair(OrderedDict([("k", k)]), 1),
    "ordered of ordered": lambda k: OrderedDict(OrderedDict(k=k), k=k + 1),
}


@pytest.mark.parametrize("program", OTHERS.values(), ids=OTHERS)
def test_others_hold_the_numbers_of_the_call(program):
    traced = trace(lambda x, k: (x * 2, program(k)), backend="eager", check=True)
    for k in (2.0, 3.0, 5.0, 1.0, 7.0, 8.0):
        assert traced(torch.ones(2), k)[1] == program(k)


class Constant:
    """Answers with a number that the attribute may be by chance."""

    def __init__(self, k):
        self.k = k

    def __getattribute__(self, name):
        return 5.0 if name == "k" else object.__getattribute__(self, name)


class Nines(Pair):
    __slots__ = ()

    def __iter__(self):
        return iter((5.0, 5.0))


class Fives(type):
    def __instancecheck__(cls, value):
        return value == 5.0


class Five(metaclass=Fives):
    pass


CHANCE = {
    "attribute": lambda k: Constant(k).k,
    "getattr": lambda k: getattr(Constant(k), "k"),  # noqa: B009
    "list": lambda k: max(list(Nines(k, 1.0))),
    "tuple": lambda k: max(tuple(Nines(k, 1.0))),
    "isinstance": lambda k: isinstance(k, Five),
}


@pytest.mark.parametrize("program", CHANCE.values(), ids=CHANCE)
def test_a_number_that_code_of_a_class_gives_is_not_taken_for_another(program):
    traced = trace(lambda x, k: (x + 1, program(k)), backend="eager", check=True)
    for k in (2.0, 3.0, 5.0, 5.0, 6.5, 7.0, 2.0):
        assert traced(torch.ones(2), k)[1] == program(k)
