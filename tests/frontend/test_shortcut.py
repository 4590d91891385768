"""Guards that are answered by versions of dicts notice every change all the same."""

from __future__ import annotations

import copy
import gc
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from magweld import frontend
from magweld.frontend.guards.checks import TensorCheck
from magweld.frontend.guards.guard import Mismatch
from magweld.frontend.guards.versions import versions_work

SCALE = 2.0


def scaled(x: torch.Tensor) -> torch.Tensor:
    """Read a global variable."""
    return x * SCALE


class Config:
    """Plain attributes."""

    def __init__(self) -> None:
        self.factor = 3.0


class OtherConfig(Config):
    """Finds another factor in its class."""

    factor = property(lambda self: 7.0)  # type: ignore[assignment]


class Model(nn.Module):
    """Reads state of many kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.config = Config()
        self.table = {"bias": 1.0}
        self.order: OrderedDict[str, float] = OrderedDict(a=1.0, b=2.0)
        self.steps = [1.0]
        self.pair = (2.0, [5.0])
        self.function: Callable[[torch.Tensor], torch.Tensor] = scaled

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Combine all of the state."""
        y = self.linear(x) * self.config.factor + self.table["bias"]
        for key in self.order:
            y = y * 2 if key == "a" else y + self.order[key]
        if self.training:
            y = -y
        return self.function(y) + self.steps[0] + self.pair[1][0]


def _set(name: str, value: Any) -> Callable[[Model], None]:
    return lambda model: setattr(model, name, value)


def _hook(model: Model) -> None:
    model.linear.register_forward_hook(lambda module, args, out: out * 3)


def _change_class(model: Model) -> None:
    model.config.__class__ = OtherConfig


def _replace_dict(model: Model) -> None:
    model.config.__dict__ = {"factor": 11.0}


def _change_function(model: Model) -> None:
    function = types.FunctionType(scaled.__code__, {"SCALE": 9.0})
    model.function = function


CHANGES: dict[str, Callable[[Model], Any]] = {
    "attribute": lambda m: setattr(m.config, "factor", 4.0),
    "class": _change_class,
    "instance dict": _replace_dict,
    "object": _set("config", copy.copy(Config())),
    "dict entry": lambda m: m.table.update(bias=5.0),
    "dict": _set("table", {"bias": 6.0}),
    "order": lambda m: m.order.move_to_end("a"),
    "list": lambda m: m.steps.__setitem__(0, 8.0),
    "list in tuple": lambda m: m.pair[1].__setitem__(0, 8.0),
    "flag": lambda m: m.train(),
    "hook": _hook,
    "parameter": lambda m: setattr(m.linear, "bias", nn.Parameter(torch.ones(4))),
    "module": _set("linear", nn.Linear(4, 4)),
    "function": _change_function,
    "method": lambda m: setattr(m, "forward", lambda x: x),
    "dtype": lambda m: m.linear.bias.data.copy_(torch.ones(4)),
    "requires_grad": lambda m: m.linear.requires_grad_(False),
}


def _armed(model: Model, x: torch.Tensor) -> Any:
    traced = frontend.trace(model, backend="eager")
    for _ in range(4):
        traced(x)
    assert traced.stats()["hits"] == 3
    shortcut = traced.records[0].program.shortcut
    assert shortcut is not None
    assert type(shortcut.run((x,), {})) is list
    return traced


@pytest.mark.parametrize("name", CHANGES)
def test_change_is_noticed(name: str) -> None:
    """Every change of state reaches the result of the next call."""
    assert versions_work()
    model = Model().eval()
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    CHANGES[name](model)
    for _ in range(3):
        got, expected = traced(x), model(x)
        assert torch.equal(got, expected)
        assert got.requires_grad == expected.requires_grad


def test_global_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A global is no part of what is watched, but is tested."""
    model = Model().eval()
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert torch.equal(traced(x), model(x))


FUNCTION = """
def inner(x, a=2.0, *, b=3.0):
    return x * a + b
"""
PARTS: dict[str, Callable[[Any], Any]] = {
    "defaults": lambda f: setattr(f, "__defaults__", (5.0,)),
    "no defaults": lambda f: setattr(f, "__defaults__", None),
    "keyword defaults": lambda f: setattr(f, "__kwdefaults__", {"b": 7.0}),
    "a keyword default": lambda f: f.__kwdefaults__.update(b=7.0),
    "code": lambda f: setattr(f, "__code__", (lambda x, a, *, b: x - a * b).__code__),
    "equal code": lambda f: setattr(f, "__code__", f.__code__.replace()),
    "equal defaults": lambda f: setattr(f, "__defaults__", (float("2"),)),
}


@pytest.mark.parametrize("held", ["attribute", "closure"])
@pytest.mark.parametrize("part", PARTS)
def test_part_of_a_function(part: str, held: str) -> None:
    """Code and defaults are words of memory; a hit asks no function that stays."""
    namespace: dict[str, Any] = {}
    exec(FUNCTION, namespace)
    inner = namespace["inner"]
    model = Model().eval()
    model.function = inner if held == "attribute" else lambda x: inner(x)
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    asked = {*traced.records[0].program.shortcut.run.__code__.co_names}
    # What is in a cell may be another one each time.
    parts = {"__code__", "__defaults__", "__kwdefaults__"} & asked
    assert bool(parts) == (held == "closure")
    PARTS[part](inner)
    for _ in range(3):
        try:
            expected = model(x)
        except TypeError:
            with pytest.raises(TypeError):
                traced(x)
        else:
            assert torch.equal(traced(x), expected)


def test_closure_variable_behind_the_shortcut() -> None:
    """The cell of a closure stays, what is in it does not."""

    def program() -> Any:
        factor = torch.tensor(2.0)

        def inner(x: torch.Tensor) -> torch.Tensor:
            return x * factor

        def change(value: float) -> None:
            nonlocal factor
            factor = torch.tensor(value)

        return inner, change

    model = Model().eval()
    model.function, change = program()
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    for value in (3.0, 4.0):
        change(value)
        assert torch.equal(traced(x), model(x))


def _never(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise NotImplementedError


def test_arguments_decide_without_a_full_check() -> None:
    """While versions stay, other arguments are a failure at once."""
    model = Model().eval()
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    program = traced.records[0].program
    full, program.run = program.run, _never
    failure = program.check((torch.randn(3, 4),), {})
    program.run = full
    assert program.guards[failure.number].category == "tensor"
    assert torch.equal(traced(x.double().float()), model(x))


def test_why_tensors_do_not_fit_is_found_out_only_where_no_record_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes longer than the test, and most calls have a record that answers them."""
    asked = []
    real = TensorCheck._mismatch

    def mismatch(self: TensorCheck, *tensors: torch.Tensor) -> Mismatch:
        asked.append(len(tensors))
        return real(self, *tensors)

    monkeypatch.setattr(TensorCheck, "_mismatch", mismatch)
    model = Model().eval()
    traced = frontend.trace(model, backend="eager", dynamic=False)
    few, many = torch.randn(2, 4), torch.randn(3, 4)
    for x in (few, many):
        traced(x)
    assert len(asked) == 1
    for x in (few, many, few, many):
        assert torch.equal(traced(x), model(x))
    assert len(asked) == 1
    newest = max(traced.records, key=lambda record: record.number)
    assert "expected 3, actual 2" in newest.program.check((few,), {}).shown


def test_other_record_takes_over() -> None:
    """Going back and forth between two states hits two records."""
    model = Model().eval()
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    for _ in range(4):
        for training in (True, False):
            model.train(training)
            assert torch.equal(traced(x), model(x))
    assert len(traced.records) == 2
    assert traced.stats()["misses"] == 2


def test_replaced_objects_are_released() -> None:
    """What a record no longer matches does not stay alive through it."""
    model = Model().eval()
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    old = weakref.ref(model.config)
    model.config = Config()
    model.config.factor = 1.5
    traced(x)
    gc.collect()
    assert old() is None


class Head(nn.Module):
    """Uses what it is handed."""

    def forward(
        self, x: torch.Tensor, body: nn.Module, config: Config, table: dict[str, Any]
    ) -> torch.Tensor:
        """Apply another module and a table of tensors."""
        return body(x) * config.factor + table["bias"]


def test_arguments_are_released() -> None:
    """A record keeps nothing alive that was handed over in a call."""
    traced = frontend.trace(Head().eval(), backend="eager")
    for _ in range(4):
        body, config, bias = nn.Linear(4, 4).eval(), Config(), torch.ones(4)
        x = torch.randn(2, 4)
        refs = [weakref.ref(item) for item in (body, body.weight, config, bias, x)]
        traced(x, body, config, {"bias": bias})
        del body, config, bias, x
        gc.collect()
        assert [ref() for ref in refs] == [None] * 5
    assert traced.stats()["hits"] == 3


class Holder:
    """Hands out what it holds."""

    def __call__(self, x: torch.Tensor, dtype: torch.dtype) -> Any:
        """Return the namespace itself."""
        return vars(self), x.to(dtype)


def test_arguments_of_fixed_identity_take_no_variable() -> None:
    """An argument that a record holds is not mistaken for a stable object."""
    holder = Holder()
    traced = frontend.trace(holder, backend="eager")
    for _ in range(5):
        namespace, y = traced(torch.randn(2), torch.float64)
        assert namespace is vars(holder)
        assert y.dtype is torch.float64
    assert traced.stats()["hits"] == 4


def test_namespaces_of_functions_are_not_watched() -> None:
    """Scripts write to their globals between calls all the time."""
    namespace: dict[str, Any] = {"table": {"scale": 2.0}}
    exec("def program(x): return x * table['scale']", namespace)
    traced = frontend.trace(namespace["program"], backend="eager")
    x = torch.ones(2)
    for value in range(6):
        namespace["unrelated"] = value
        assert torch.equal(traced(x), x * 2.0)
    shortcut = traced.records[0].program.shortcut
    assert shortcut is None or type(shortcut.run((x,), {})) is list
    namespace["table"] = {"scale": 3.0}
    assert torch.equal(traced(x), x * 3.0)


def test_parts_that_are_exchanged_twice() -> None:
    """The memory of what was exchanged is not that of what comes after the next."""
    namespace: dict[str, Any] = {}
    exec(FUNCTION, namespace)
    model = Model().eval()
    model.function = inner = namespace["inner"]
    x = torch.randn(2, 4)
    traced = _armed(model, x)
    was = id(inner.__defaults__)
    inner.__defaults__ = None
    made = [(float(n),) for n in range(3, 2000)]
    assert was not in map(id, made)
    inner.__defaults__ = made[0]
    assert torch.equal(traced(x), model(x))


class Reader(nn.Module):
    """Has a generator that a call asks about and does not run."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = self.first = (number for number in range(9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tell whether the generator is the first one."""
        return x * 2 if self.rows is self.first else x * 3


def test_generators_from_before_the_run() -> None:
    model, x = Reader(), torch.ones(2)
    traced = frontend.trace(model, backend="eager")
    for _ in range(4):
        assert torch.equal(traced(x), x * 2)
    assert traced.stats()["hits"] == 3
    assert not traced.breaks
    model.rows = (number for number in range(9))
    for _ in range(3):
        assert torch.equal(traced(x), x * 3)
    assert next(model.first) == 0
