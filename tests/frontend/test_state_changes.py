"""Programs that read state in many ways; the state changes, results stay eager's."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from magweld.frontend import trace

X = torch.tensor([1.0, 2.0, 3.0])


class Holder:
    """An object with attributes only."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def reads_truth_in_generator():
    table = {"a": [[], [1]]}
    program = lambda x: x * 2 if any(v for v in table["a"]) else x  # noqa: E731
    return program, [lambda: table["a"][1].clear()]


def reads_truth_in_list():
    table = {"a": [[], [1]]}
    program = lambda x: x * 2 if all(table["a"]) else x  # noqa: E731
    return program, [lambda: table["a"][0].append(3)]


def reads_largest_value():
    table = {"a": 1.0, "b": 2.0}
    program = lambda x: x * max(table.values())  # noqa: E731
    return program, [lambda: table.update(b=5.0), lambda: table.update(c=9.0)]


def reads_sorted_items():
    table = {"b": 1.0, "a": 2.0}

    def program(x):
        for _, value in sorted(table.items()):
            x = x * value - 1.0
        return x

    return program, [lambda: table.update(b=7.0)]


def reads_class_name():
    class Named:
        pass

    named = Named()
    program = lambda x: x * len(named.__class__.__name__)  # noqa: E731
    return program, [lambda: setattr(Named, "__name__", "Longer")]


def reads_metaclass():
    class Meta(type):
        factor = 2.0

    class Instance(metaclass=Meta):
        pass

    changes = [
        lambda: setattr(Meta, "factor", 3.0),
        lambda: setattr(Instance, "factor", 4.0),
    ]
    return lambda x: x * Instance.factor, changes


def reads_through_bases():
    class Old:
        f = 1.0

    class New:
        f = 5.0

    class Derived(Old):
        pass

    instance = Derived()
    change = lambda: setattr(Derived, "__bases__", (New,))  # noqa: E731
    return lambda x: x * instance.f, [change]


def reads_descriptor():
    class Descriptor:
        def __init__(self, value):
            self.value = value

        def __get__(self, obj, kind=None):
            return self.value

    class Owner:
        d = Descriptor(2.0)

    owner = Owner()
    changes = [
        lambda: setattr(vars(Owner)["d"], "value", 3.0),
        lambda: vars(owner).update(d=9.0),
    ]
    return lambda x: x * owner.d, changes


def reads_through_getattr_hook():
    class Dynamic:
        def __init__(self):
            self.store = {"q": 2.0}

        def __getattr__(self, name):
            return self.store[name]

    dynamic = Dynamic()
    changes = [
        lambda: dynamic.store.update(q=4.0),
        lambda: setattr(dynamic, "q", 8.0),
    ]
    return lambda x: x * dynamic.q, changes


def reads_in_decorator():
    state = {"on": True}

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * (2.0 if state["on"] else 1.0)

        return wrapper

    @decorate
    def program(x):
        return x + 1.0

    return program, [lambda: state.update(on=False)]


def reads_named_tuple():
    pair = collections.namedtuple("pair", "a b")  # noqa: PYI024
    holder = Holder(p=pair(1.0, 2.0))
    program = lambda x: x * holder.p.a + holder.p[1]  # noqa: E731
    return program, [lambda: setattr(holder, "p", pair(3.0, 4.0))]


@dataclasses.dataclass
class Data:
    a: float = 1.0
    b: list = dataclasses.field(default_factory=list)


def reads_dataclass():
    data = Data()
    program = lambda x: x * data.a + len(data.b) + float(data == Data())  # noqa: E731
    return program, [lambda: data.b.append(1), lambda: setattr(data, "a", 3.0)]


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def reads_enum():
    holder = Holder(c=Colour.RED)

    def program(x):
        return x * holder.c.value if holder.c is Colour.RED else x - holder.c.value

    return program, [lambda: setattr(holder, "c", Colour.BLUE)]


def searches_list():
    values = [3.0, 1.0, 2.0]

    def program(x):
        return x * values.index(1.0) + values.count(2.0) + sum(sorted(values))

    return program, [lambda: values.insert(0, 9.0), lambda: values.append(2.0)]


def looks_for_members():
    names, rest = {"a"}, ["a"]

    def program(x):
        return x * (2.0 if "c" in names else 1.0) + (1.0 if "z" in rest else 0.0)

    return program, [lambda: names.add("c"), lambda: rest.append("z")]


def compares_nested():
    table = {"k": [1, (2, [3])]}
    program = lambda x: x * 2 if table["k"] == [1, (2, [3])] else x  # noqa: E731
    return program, [lambda: table["k"][1][1].append(4)]


def formats_nested():
    values = [1, [2]]
    program = lambda x: x * len(f"{values}") + len(str(values))  # noqa: E731
    return program, [lambda: values[1].append(22)]


def calls_partial():
    holder = Holder(f=functools.partial(lambda a, b: a * b, b=2.0))
    changes = [
        lambda: holder.f.keywords.update(b=5.0),
        lambda: setattr(holder, "f", functools.partial(torch.add, other=1.0)),
    ]
    return lambda x: holder.f(x), changes


class Scaler:
    def __init__(self, k):
        self.k = k

    def go(self, x):
        return x * self.k


def calls_bound_method():
    second = Scaler(3.0)
    holder = Holder(f=Scaler(2.0).go)
    changes = [
        lambda: setattr(holder, "f", second.go),
        lambda: setattr(second, "k", 7.0),
    ]
    return lambda x: holder.f(x), changes


def reads_mutable_default():
    def program(x, factors=[2.0]):  # noqa: B006
        return x * factors[0]

    return program, [lambda: program.__defaults__[0].__setitem__(0, 4.0)]


def reads_tensors_in_list():
    holder = Holder(ts=[torch.ones(3), torch.ones(3)])
    changes = [
        lambda: holder.ts[0].mul_(3.0),
        lambda: holder.ts.append(torch.ones(3)),
        lambda: holder.ts.__setitem__(1, torch.zeros(3)),
        lambda: holder.ts.__setitem__(1, holder.ts[0]),
    ]
    return lambda x: sum(holder.ts, x), changes


def iterates_after_write():
    table = {"a": 1.0, "b": 2.0}

    def program(x):
        table["a"] = 5.0
        return x * sum(table.values())

    return program, [lambda: table.update(b=7.0), lambda: table.update(c=1.0)]


def uses_missing_hook():
    class Default(dict):
        def __missing__(self, key):
            return 3.0

    table = Default()
    return lambda x: x * table["q"], [lambda: table.update(q=8.0)]


def calls_patched_torch():
    module = SimpleNamespace(relu=torch.relu)
    change = lambda: setattr(module, "relu", lambda t: t * 0.0)  # noqa: E731
    return lambda x: module.relu(x - 2.0), [change]


def maps_and_filters():
    values = [1.0, 2.0]

    def program(x):
        total = sum(map(lambda v: v * 2.0, values))
        return x * total * len(list(filter(None, values)))

    return program, [lambda: values.append(3.0), lambda: values.__setitem__(0, 0.0)]


def handles_exception():
    holder = Holder(bad=False)

    def program(x):
        try:
            if holder.bad:
                raise ValueError
            return x
        except ValueError:
            return x * 2.0

    return program, [lambda: setattr(holder, "bad", True)]


def asks_for_attribute():
    holder = Holder()
    program = lambda x: x * holder.k if hasattr(holder, "k") else x  # noqa: E731
    return program, [lambda: setattr(holder, "k", 3.0), lambda: delattr(holder, "k")]


def iterates_object():
    class Range:
        n = 3

        def __iter__(self):
            return iter(range(self.n))

    steps = Range()

    def program(x):
        for i in steps:
            x = x + i
        return x

    return program, [lambda: setattr(steps, "n", 5)]


def zips_lists():
    a, b = [1.0, 2.0], [3.0, 4.0]

    def program(x):
        for i, (p, q) in enumerate(zip(a, b, strict=True)):
            x = x + p * q * i
        return sum(itertools.chain(a, b), x)

    return program, [
        lambda: b.__setitem__(1, 9.0),
        lambda: (a.append(1.0), b.append(5.0)),
    ]


def sorts_objects_by_key():
    objects = [Scaler(1.0), Scaler(2.0)]
    program = lambda x: x * max(objects, key=lambda o: o.k).k  # noqa: E731
    return program, [lambda: setattr(objects[0], "k", 7.0)]


def asks_for_gradient_flag():
    weight = nn.Parameter(torch.ones(3))
    program = lambda x: x * 2.0 if weight.requires_grad else x  # noqa: E731
    return program, [lambda: weight.requires_grad_(False)]


def converts_by_attribute():
    holder = Holder(dtype=torch.float32, device=torch.device("cpu"))
    changes = [
        lambda: setattr(holder, "dtype", torch.float64),
        lambda: setattr(holder, "device", "cpu"),
    ]
    return lambda x: x.to(holder.dtype).to(holder.device), changes


def combines_lists():
    values = [1.0, 2.0]
    program = lambda x: x * sum(values * 2 + [1.0]) + (values + values)[3]  # noqa: E731
    return program, [lambda: values.__setitem__(1, 6.0), lambda: values.append(0.0)]


CASES = [
    value
    for name, value in sorted(globals().items())
    if getattr(value, "__module__", "") == __name__
    and name.islower()
    and not name.startswith("test")
]


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_results_follow_the_state(make):
    program, changes = make()
    traced = trace(program, backend="eager")
    for change in [lambda: None, *changes]:
        change()
        for _ in range(2):
            assert torch.equal(traced(X.clone()), program(X.clone())), traced.explain()
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] >= len(changes) + 1
