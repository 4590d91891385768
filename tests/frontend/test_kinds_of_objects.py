"""Enums, metaclasses, objects whose end runs code: captured, or right with a break."""

from __future__ import annotations

import enum

import pytest
import torch

from magweld.frontend import trace
from magweld.frontend.call_kinds import kind_of

X = torch.tensor([1.0, 2.0, 3.0])


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Mode(enum.Flag):
    READ = 1
    WRITE = 2


class Holder:
    def __init__(self, color, value):
        self.color = color
        self.value = value


class Tagging(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = "made"
        return made


class Tagged(metaclass=Tagging):
    def __init__(self, value):
        self.value = value


class Single(type):
    made = {}

    def __call__(cls, *args):
        if cls not in cls.made:
            cls.made[cls] = super().__call__(*args)
        return cls.made[cls]


class Settings(metaclass=Single):
    def __init__(self):
        self.scale = 2.0


class Registering(type):
    names = []

    def __new__(cls, name, bases, namespace):
        cls.names.append(name)
        return super().__new__(cls, name, bases, namespace)


ENDED = []


class Ending:
    def __init__(self, value):
        self.value = value

    def __del__(self):
        ENDED.append(type(self.value).__name__)


def holds_member(x):
    return Holder(Color.RED, x * 2.0)


def finds_member_by_value(x):
    holder = Holder(Color(2), x)
    return holder.value * holder.color.value, holder.color, holder.color.name


def computes_with_member(x):
    return x * Number.TWO, Number.TWO + 1, Number["ONE"]


def combines_flags(x):
    both = Mode.READ | Mode.WRITE
    return both, x * 2.0, Mode.READ in both


def has_members_as_keys(x):
    table = {Color.RED: 2.0, Color.BLUE: 3.0}
    return {color: x * table[color] for color in Color}


def iterates_over_members(x):
    for color in Color:
        if color is Color.BLUE:
            x = x * color.value
    return x, list(Color), len(Color)


def makes_by_metaclass(x):
    made = Tagged(x * 2.0)
    return made, made.tag


def asks_for_the_single_one(x):
    return x * Settings().scale


def makes_class(x):
    made = type("Made", (), {"scale": 2.0})
    return x * made.scale


def makes_enum(x):
    class Local(enum.Enum):
        ONE = 1
        TWO = 2

    return x * Local.TWO.value


def makes_class_by_metaclass(x):
    class Local(metaclass=Registering):
        scale = 3.0

    return x * Local.scale


def drops_object(x):
    made = Ending(x * 2.0)
    return made.value + 1.0


def drops_object_early(x):
    made = Ending(2.0)
    y = x * made.value
    del made
    return y + len(ENDED) % 2


def returns_object(x):
    return Ending(x * 2.0)


CAPTURED = [
    holds_member,
    finds_member_by_value,
    computes_with_member,
    combines_flags,
    has_members_as_keys,
    iterates_over_members,
    makes_by_metaclass,
    asks_for_the_single_one,
    makes_class,
]
BROKEN = {
    makes_enum: "native-class",
    makes_class_by_metaclass: "native-class",
    drops_object: "unknown-function",
    drops_object_early: "unknown-function",
    returns_object: "unknown-function",
}


def plain(value):
    """Return a result as something that `==` compares."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (Holder, Tagged, Ending)):
        return type(value).__name__, plain(vars(value))
    return value


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("program", CAPTURED)
def test_captured(program, check):
    program(X)  # flags and single objects are made once
    traced = trace(program, backend="eager", check=check)
    for shift in range(4):
        assert plain(traced(X + shift)) == plain(program(X + shift))
    assert traced.breaks == []
    assert traced.stats()["graphs"] == 1


@pytest.mark.parametrize("program", BROKEN)
def test_right_with_a_break(program):
    traced = trace(program, backend="eager")
    for shift in range(5):
        ENDED.clear()
        Registering.names.clear()
        expected = plain(program(X + shift))
        effects = [*ENDED, *Registering.names]
        ENDED.clear()
        Registering.names.clear()
        assert plain(traced(X + shift)) == expected
        assert [*ENDED, *Registering.names] == effects
    assert {item.id for item in traced.breaks} == {BROKEN[program]}
    assert all(item.where for item in traced.breaks)


def test_tensors_as_keys_that_may_be_one():
    def program(x, y):
        table = {x: 1.0, y: 2.0}
        return x * table[x] + len(table)

    traced = trace(program, backend="eager")
    other = X + 1.0
    for pair in ((X, other), (other, X), (X, X), (X, X), (X, other)):
        assert torch.equal(traced(*pair), program(*pair))
    assert traced.stats()["hits"] >= 2
    assert traced.breaks == []


def test_tensors_as_keys_of_a_table_from_before():
    keys = [X.clone(), X.clone()]
    table = {keys[0]: 2.0}
    holder = Holder(None, keys[0])

    def program(x):
        table[keys[1]] = 3.0
        return x * table[holder.value] + len(table)

    traced = trace(program, backend="eager")
    for _ in range(3):
        assert torch.equal(traced(X), X * 2.0 + 2)
    assert traced.stats()["hits"] >= 1
    holder.value = keys[1]
    assert torch.equal(traced(X), X * 3.0 + 2)
    holder.value = X.clone()
    with pytest.raises(KeyError):
        traced(X)


class Unhashable(type):
    """A metaclass whose classes cannot be keys."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        raise AssertionError("classes are told apart by identity")


class Held(metaclass=Unhashable):
    def __init__(self, factor: float) -> None:
        self.factor = factor


def test_arguments_whose_classes_cannot_be_keys() -> None:
    fast = trace(lambda x, held, other: x * held.factor + other.factor, backend="eager")
    for number in range(6):
        held = Held(float(number % 2))
        assert fast(torch.ones(2), held, other=held).tolist() == [2 * held.factor] * 2
    assert kind_of((held,), {"other": held}) == kind_of((Held(3.0),), {"other": held})
