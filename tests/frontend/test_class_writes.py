"""Programs that write attributes of classes: hits repeat it, later reads see it."""

from __future__ import annotations

import abc
import enum

import pytest
import torch
from torch import nn

from magweld.frontend import trace

X = torch.tensor([1.0, 2.0, 3.0])


def make_classes():
    """Return a base with state and a class derived from it, new ones for each test."""

    class Base:
        scale = 2.0
        last = None

    class Derived(Base):
        pass

    return Base, Derived


def sets_constant(base, derived):
    def program(x):
        base.last = "seen"
        return x * base.scale

    return program


def reads_what_it_wrote(base, derived):
    def program(x):
        base.scale = 3.0
        return x * derived.scale + x * derived().scale

    return program


def keeps_tensor(base, derived):
    def program(x):
        base.last = x + 1.0
        return derived.last * 2.0

    return program


def deletes(base, derived):
    def program(x):
        derived.scale = 5.0
        y = x * derived.scale
        del derived.scale
        return y * derived.scale

    return program


def writes_by_function(base, derived):
    def program(x):
        setattr(base, "la" + "st", [1, 2])
        type.__setattr__(derived, "own", base.last)
        return x * len(derived.own) * hasattr(base, "own")

    return program


def replaces_method(base, derived):
    base.act = lambda self, x: x + 1.0

    def act(self, x):
        return x * 7.0

    def program(x):
        y = derived().act(x)
        base.act = act
        return y + derived().act(x)

    return program


def from_method_of_class(base, derived):
    def remember(cls, value):
        cls.last = value

    base.remember = classmethod(remember)

    def program(x):
        derived.remember(4.0)
        return x * derived.last

    return program


PROGRAMS = [
    sets_constant,
    reads_what_it_wrote,
    keeps_tensor,
    deletes,
    writes_by_function,
    replaces_method,
    from_method_of_class,
]


def state_of(cls):
    return {k: v for k, v in vars(cls).items() if not k.startswith("_")}


def same(left, right):
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    return callable(left) or isinstance(left, classmethod) or left == right


@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize("check", [False, True])
def test_hits_leave_the_state_of_eager(make, check):
    classes, twins = make_classes(), make_classes()
    eager, traced = make(*twins), trace(make(*classes), backend="eager", check=check)
    for x in (X, X, X + 1.0, X + 2.0, X + 3.0):
        expected, found = eager(x), traced(x)
        assert torch.equal(expected, found)
        for twin, cls in zip(twins, classes, strict=True):
            ours, theirs = state_of(cls), state_of(twin)
            assert list(ours) == list(theirs)
            assert all(same(ours[name], theirs[name]) for name in ours)
    assert traced.breaks == []
    assert traced.stats()["hits"] >= 2


def test_change_from_outside_is_noticed():
    base, derived = make_classes()
    traced = trace(reads_what_it_wrote(base, derived), backend="eager")
    for _ in range(3):
        assert torch.equal(traced(X), X * 6.0)
    derived.scale = 10.0  # now found before what the program writes
    for _ in range(3):
        assert torch.equal(traced(X), X * 20.0)
    assert base.scale == 3.0


def test_property_that_holds_a_value_of_the_call():
    class Store:
        scale = 2.0

    def program(x, factor):
        Store.extra = property(lambda self: self.scale * factor)
        return x * Store().extra

    traced = trace(program, backend="eager", dynamic={"factor": True})
    for factor in (1, 1, 2, 3, 3, 4):
        assert torch.equal(traced(X, factor), X * 2.0 * factor)
        assert Store().extra == 2.0 * factor


def test_entry_in_between_is_noticed():
    class Base:
        scale = 2.0

    class Middle(Base):
        pass

    class Derived(Middle):
        pass

    def program(x):
        y = x * Derived.scale
        Base.scale = 3.0
        z = y * Derived.scale
        Base.scale = 2.0
        return z

    traced = trace(program, backend="eager")
    assert torch.equal(traced(X), X * 6.0)
    assert torch.equal(traced(X), X * 6.0)
    assert traced.stats()["hits"] == 1
    Middle.scale = 2.0
    assert torch.equal(traced(X), X * 4.0)


def test_written_value_follows_the_graph():
    class Store:
        value = None

    def write(x):
        Store.value = x * 2.0
        return x

    traced = trace(write, backend="eager")
    for x in (X, X + 1.0, X + 2.0):
        traced(x)
        assert torch.equal(Store.value, x * 2.0)
    assert traced.stats()["hits"] == 2


def test_metaclass_with_setter_in_python():
    seen = []

    class Meta(type):
        def __setattr__(cls, name, value):
            seen.append(name)
            super().__setattr__(name, value)

    class Store(metaclass=Meta):
        value = 0

    def program(x):
        Store.value = 3
        return x * Store.value

    traced = trace(program, backend="eager")
    for count in (1, 2, 3):
        assert torch.equal(traced(X), X * 3)
        assert seen == ["value"] * count
    assert traced.stats()["hits"] == 2


class Kind(enum.Enum):
    ONE = 1


class Special:
    pass


class Abstract(abc.ABC):
    limit = 1

    @abc.abstractmethod
    def act(self):
        """Do something."""


class Ending:
    def __del__(self):
        pass


def to_enum(x):
    Kind.extra = 2
    return x * Kind.extra


def to_special(x):
    Special.__call__ = lambda self, x: x
    return x * 2


def to_abstract(x):
    Abstract.limit = 2
    return x * Abstract.limit


def to_immutable(x):
    try:
        int.limit = 2
    except TypeError:
        return x * 2
    return x


@pytest.mark.parametrize(
    ("program", "refusal"),
    [
        (to_enum, "native-attribute"),  # its setter reads the namespace of the class
        (to_abstract, None),
        (to_special, "class-write"),
        (to_immutable, "class-write"),
    ],
)
def test_kinds_of_classes(program, refusal):
    traced = trace(program, backend="eager")
    for x in (X, X + 1, X + 2):
        assert torch.equal(traced(x), x * 2)
    ids = {item.id for item in traced.breaks}
    assert ids == (set() if refusal is None else {refusal})


def test_value_that_ends_by_code_is_refused():
    class Store:
        value = Ending()

    def program(x):
        Store.value = None
        return x * 2

    traced = trace(program, backend="eager")
    assert torch.equal(traced(X), X * 2)
    assert Store.value is None
    assert {item.id for item in traced.breaks} == {"unknown-function"}


def test_hook_put_on_in_the_first_call():
    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.ready = False

        def forward(self, x):
            if not self.ready:
                self.inner.register_forward_hook(lambda m, args, out: out * 2.0)
                self.ready = True
            return self.inner(x)

    model = Hooked()
    expected = (model.inner(X) * 2.0).detach()
    traced = trace(model, backend="eager")
    for _ in range(4):
        assert torch.equal(traced(X), expected)
    assert traced.breaks == []
    assert traced.stats()["hits"] == 2
    assert len(model.inner._forward_hooks) == 1


def test_hook_put_on_and_off_in_every_call():
    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x):
            seen = []
            hook = lambda m, args, out: seen.append(out)  # noqa: E731
            handle = self.inner.register_forward_hook(hook)
            y = self.inner(x)
            handle.remove()
            return y + seen[0]

    model = Watched()
    traced = trace(model, backend="eager")
    before = torch.utils.hooks.RemovableHandle.next_id
    for count in range(1, 7):
        assert torch.equal(traced(X), model.inner(X) * 2.0)
        assert torch.utils.hooks.RemovableHandle.next_id == before + count
        assert not model.inner._forward_hooks


@pytest.mark.parametrize(
    "asks",
    [
        lambda obj, cls: isinstance(obj, cls),
        lambda obj, cls: issubclass(type(obj), cls),
        lambda obj, cls: isinstance(obj, (int, cls)),
    ],
)
def test_bases_that_change_change_class_checks(asks):
    base, derived = make_classes()
    other, _ = make_classes()
    obj = derived()
    traced = trace(lambda x: x + 1 if asks(obj, base) else x - 1, backend="eager")
    assert traced(X).tolist() == traced(X).tolist() == [2.0, 3.0, 4.0]
    assert traced.stats()["hits"] == 1
    derived.__bases__ = (other,)
    assert traced(X).tolist() == [0.0, 1.0, 2.0]
    derived.__bases__ = (base,)
    assert traced(X).tolist() == [2.0, 3.0, 4.0]
