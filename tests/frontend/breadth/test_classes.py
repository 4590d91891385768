"""Classes made inside of a program, and classes of all kinds that it uses."""

from __future__ import annotations

import abc
import collections
import contextlib
import dataclasses

import pytest
import torch
from torch import nn

from magweld.frontend.traced import trace


class Base:
    """A base outside of the programs; its attributes are state."""

    scale = 2.0
    made = 0

    def __init__(self, value):
        self.value = value

    def __init_subclass__(cls, tag=0.0, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag

    def apply(self, x):
        return x * self.value * self.scale


class Stored:
    """A descriptor that learns its name."""

    def __set_name__(self, owner, name):
        self.name = f"_{name}"
        self.owner = owner.__name__

    def __get__(self, instance, owner=None):
        return getattr(instance, self.name, 1.0)

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 2.0)

    def __delete__(self, instance):
        delattr(instance, self.name)


class Described:
    """Uses the descriptor."""

    field = Stored()

    def __getattr__(self, name):
        if name.startswith("x"):
            return 5.0
        raise AttributeError(name)


def plain(x, s):
    class Local:
        factor: float = s[0]
        power = factor * 2.0

        def apply(self, y):
            return y * self.factor + self.power

    return Local().apply(x)


def derived(x, s):
    class Local(Base, tag=s[0]):
        """A subclass."""

        field = Stored()

        @property
        def double(self):
            return self.value * 2.0

        def apply(self, y):
            return super().apply(y) + self.double

    local = Local(s[0])
    local.field = 4.0
    Local.extra = 3.0
    names = Local.__name__, local.field
    return local.apply(x) * Local.tag + Local.extra, names, isinstance(local, Base)


def with_dataclass(x, s):
    @dataclasses.dataclass
    class Local:
        a: float
        b: list = dataclasses.field(default_factory=list)

    local = Local(s[0])
    local.b.append(1.0)
    return x * local.a, local == Local(s[0], [1.0]), repr(local).endswith("b=[1.0])")


def with_namedtuple(x, s):
    pair = collections.namedtuple("Pair", "a b")(x, s[0])  # noqa: PYI024
    return pair.a * pair.b, pair._fields


def with_module(x, s):
    class Local(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = s[0]

        def forward(self, y):
            return y * self.scale

    return Local()(x)


def with_abstract_base(x, s):
    class Closing(contextlib.AbstractContextManager):
        def __exit__(self, *details):
            s.append(7.0)

    class Concrete(abc.ABC):
        @abc.abstractmethod
        def value(self): ...

    try:
        Concrete()
    except TypeError:
        x = x + 1.0
    with Closing():
        return x * s[0]


def with_three_arguments(x, s):
    local = type("Local", (Base,), {"half": lambda self: self.value / 2.0})
    return local(s[0]).apply(x) * local(s[0]).half()


def described(x, s):
    obj = Described()
    obj.field = s[0]
    y = x * obj.field + obj.xylophone + getattr(obj, "absent", 1.0)
    del obj.field
    return y, hasattr(obj, "other"), obj.field


PROGRAMS = [
    plain,
    derived,
    with_dataclass,
    with_namedtuple,
    with_module,
    with_abstract_base,
    with_three_arguments,
    described,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(follow, program):
    follow(program, lambda: [1.0, 2.0], lambda: [3.0])


def test_attributes_of_bases_are_guarded(monkeypatch):
    traced = trace(derived, backend="eager")
    x = torch.ones(2)
    for _ in range(2):
        assert torch.equal(traced(x, [2.0])[0], derived(x, [2.0])[0])
    assert traced.stats()["hits"] == 1
    monkeypatch.setattr(Base, "scale", 5.0)
    assert torch.equal(traced(x, [2.0])[0], derived(x, [2.0])[0])
    monkeypatch.setattr(Base, "apply", lambda self, x: x)
    assert torch.equal(traced(x, [2.0])[0], derived(x, [2.0])[0])
    assert traced.stats()["hits"] == 1


def returns_class(x, s):
    class Local:
        pass

    return Local


def returns_instance(x, s):
    class Local:
        pass

    return Local()


def keeps_class(x, s):
    class Local:
        pass

    s.append(Local)
    return x


def overloads(x, s):
    class Meta(type):
        def __call__(cls):
            return 2.0

    class Local(metaclass=Meta):
        pass

    return x * Local()


@pytest.mark.parametrize(
    "program", [returns_class, returns_instance, keeps_class, overloads]
)
def test_classes_that_leave_the_program_are_not_recorded(program):
    traced = trace(program, backend="eager")
    results = [traced(torch.ones(2), []) for _ in range(3)]
    assert traced.stats()["hits"] == 0
    assert traced.breaks
    if program is returns_class:
        assert len({id(item) for item in results}) == 3
