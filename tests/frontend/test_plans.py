"""What is remembered of classes holds no longer than the classes stay as they are."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from magweld import frontend
from magweld.frontend.state.lookup import Lookup, lookup
from magweld.frontend.state.plans import Plans


class Descriptor:
    def __get__(self, obj, owner=None):
        return 7

    def __set__(self, obj, value):
        raise AttributeError


def change_class(cls, base):
    cls.value = 2


def change_base(cls, base):
    base.value = 2


def add_property(cls, base):
    cls.value = property(lambda self: 3)


def add_descriptor(cls, base):
    cls.value = Descriptor()


def add_hook(cls, base):
    cls.__getattr__ = lambda self, name: 4


def add_getter(cls, base):
    cls.__getattribute__ = lambda self, name: 5


def change_bases(cls, base):
    cls.__bases__ = (type("Other", (base,), {"value": 6}),)


CHANGES = (
    *(change_class, change_base, add_property, add_descriptor, add_hook, add_getter),
    change_bases,
)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_ends_with_its_class(change, stored):
    base = type("Base", (), {})
    cls = type("Cls", (base,), {})
    obj, plans = cls(), Plans()
    if stored:
        obj.value = 1
    for _ in range(3):
        getattr(obj, "value", None)  # the interpreter gives the class a tag
        assert plans.lookup(obj, "value") == lookup(obj, "value")
    change(cls, base)
    for _ in range(3):
        assert plans.lookup(obj, "value") == lookup(obj, "value")
    assert plans.lookup(obj, "value").how is not (
        Lookup.ABSENT if not stored else Lookup.CLASS_VALUE
    )


def test_the_class_of_a_found_value_may_change():
    found = type("Found", (), {})
    cls = type("Cls", (), {"value": found()})
    obj, plans = cls(), Plans()
    for _ in range(3):
        assert obj.value is not None
        assert plans.lookup(obj, "value").how is Lookup.CLASS_VALUE
    found.__get__ = lambda self, obj, owner: 8
    assert plans.lookup(obj, "value").how is Lookup.PYTHON_DESCRIPTOR


def test_instance_dicts_are_those_of_now():
    obj, plans = Descriptor(), Plans()
    for _ in range(2):
        assert plans.instance_dict(obj) is obj.__dict__
    obj.__dict__ = {"x": 1}
    assert plans.instance_dict(obj) is obj.__dict__
    assert plans.instance_dict(3) is None


PROGRAMS = {
    "class": "a = v.k\n    type(v).k = a + 1\n    return x * v.k + a",
    "base": "a = v.k\n    A.k = a + 1\n    return x * v.k + a",
    "property": "a = v.k\n    B.k = property(lambda self: 9)\n    return x * v.k + a",
    "other class": "a = v.k\n    v.__class__ = C\n    return x * v.k + a",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_class_that_the_program_changes(name, beside_twin):
    state = (
        "class A: k = 1\nclass B(A): pass\nclass C: k = 5\n"
        "def fresh():\n    global A, B\n    return B()"
    )
    calls = ["torch.ones(2), B()"] * 3 + ["A.k = 4 | torch.ones(2), B()"]
    difference, traced = beside_twin(state, PROGRAMS[name], calls)
    assert difference is None, f"{difference}\n{traced.explain()}"


class Member(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.linear(x) * self.scale + getattr(self, "shift", 1.0)


def swap_parameter(model):
    model.linear.weight = nn.Parameter(torch.ones(2, 2))


def add_attribute(model):
    model.shift = 5.0


def hide_member(model):
    model.__dict__["scale"] = 3.0


def own_table(model):
    class Table(dict):
        def __getitem__(self, key):
            return torch.tensor(10.0)

    model._buffers = Table(model._buffers)


def remove_table(model):
    model.__dict__["_parameters"] = {}
    del model.__dict__["_buffers"]
    model.__dict__["_modules"]["scale"] = torch.tensor(4.0)


@pytest.mark.parametrize(
    "change", [swap_parameter, add_attribute, hide_member, own_table, remove_table]
)
def test_members_of_modules(change):
    model, x = Member(), torch.randn(3, 2)
    traced = frontend.trace(model, backend="eager")
    for _ in range(2):
        assert torch.equal(traced(x), model(x))
    change(model)
    for _ in range(3):
        assert torch.equal(traced(x), model(x))
    again = copy.deepcopy(model)
    assert torch.equal(frontend.trace(again, backend="eager")(x), model(x))


def test_a_getter_of_modules_with_other_code(monkeypatch):
    def code(self, name):
        return torch.tensor(6.0) if name == "scale" else self._modules[name]

    model, x = Member(), torch.randn(3, 2)
    expected = model.linear(x) * 6 + 6
    model.__dict__["shift"] = 6.0
    traced = frontend.trace(model, backend="eager")
    traced(x)
    with torch.no_grad():
        model.linear.__dict__.update(model.linear._parameters)
        monkeypatch.setattr(nn.Module.__getattr__, "__code__", code.__code__)
        # The code must find the names that it reads.
        monkeypatch.setitem(nn.Module.__getattr__.__globals__, "torch", torch)
        for _ in range(2):
            assert torch.equal(traced(x), expected)
