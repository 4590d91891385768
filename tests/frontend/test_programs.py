"""Python constructs that a capture must follow, and those that it must refuse."""

from __future__ import annotations

import contextlib
import gc
import math
import operator
import os
import random
import sys
import threading
import weakref

import pytest
import torch
from torch import nn

from magweld.frontend.catalogue import CATALOGUE
from magweld.frontend.records import pace
from magweld.frontend.traced import trace

x = torch.tensor([1.0, -2.0, 3.0])


def generator(n):
    for i in range(n):
        yield float(i)


@contextlib.contextmanager
def doubled(values):
    values.append(2.0)
    try:
        yield values
    finally:
        values.append(3.0)


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


def with_generator(x):
    total = 0.0
    for value in generator(4):
        total += value
    return x * total + sum(v * 2.0 for v in generator(3))


def with_comprehensions(x):
    squares = [i * i for i in range(3) if i]
    table = {k: v for k, v in zip("ab", squares, strict=True)}
    return x * table["b"] + len({i % 2 for i in range(5)})


def with_closure(x):
    scale = 3.0

    def inner(t):
        nonlocal scale
        scale += 1.0
        return t * scale

    return inner(inner(x))


def with_keywords(x):
    def inner(a, b=2.0, *rest, c=3.0, **more):
        return a * b + c + len(rest) + more.get("d", 0.0)

    return inner(x, 4.0, 5, 6, c=1.0, d=2.0) + inner(*(x,), **{"c": 5.0})


def with_context_manager(x):
    with doubled([]) as values:
        x = x * values[0]
    return x + len(values)


def with_exceptions(x):
    try:
        {}["missing"]
    except KeyError as error:
        x = x + len(error.args)
    finally:
        x = x * 2.0
    try:
        raise ValueError("no")
    except (TypeError, ValueError):
        return x - 1.0


def with_recursion(x):
    return x * factorial(4)


def with_unpacking(x):
    first, *rest = [1.0, 2.0, 3.0]
    (a, b), c = (rest, first)
    return x * a + b - c


def with_strings(x):
    name = f"{x.shape[0]}-{'a'.upper()}-{2.5:.1f}"
    return x * len(name) if name == "3-A-2.5" else x


def with_builtins(x):
    values = sorted([3, 1, 2], key=lambda v: -v)
    pairs = list(enumerate(map(str, values)))
    flags = any(v > 2 for v in values) and all(values)
    return x * max(values) * len(pairs) + int(flags) + round(2.6) + abs(-1)


def with_math(x):
    return x * math.sqrt(4.0) + operator.add(1, 2) + math.prod([2, 3])


def with_super(x):
    class_pair = Child(2.0)
    return class_pair.apply(x)


class Base:
    def __init__(self, k):
        self.k = k

    def apply(self, x):
        return x * self.k


class Child(Base):
    def __init__(self, k):
        super().__init__(k + 1.0)

    def apply(self, x):
        return super().apply(x) + self.offset()

    @staticmethod
    def offset():
        return 1.0

    @classmethod
    def make(cls):
        return cls(1.0)

    def __call__(self, x):
        return x

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return float(i)

    def __eq__(self, other):
        return self.k == other.k

    __hash__ = None


def with_protocols(x):
    child = Child.make()
    return child(x) * len(child) + child[2] + float(child == Child(1.0))


def with_loops(x):
    n = 0
    while n < 5:
        n += 1
        if n == 2:
            continue
        if n == 4:
            break
        x = x + n
    else:
        x = x * 0.0
    return x


def with_tensor_lists(x):
    parts = [x * i for i in range(3)]
    return (
        torch.cat(parts).view(3, 3).sum(0) + sum(parts) + torch.stack(parts)[1:].mean()
    )


def with_indices(x):
    y = x.view(1, 3).expand(2, 3).clone()
    y[0, 1:] = 5.0
    y[:, 0] += x[0]
    return y[..., -1] + y[torch.tensor([0, 1]), 2]


def with_slices(x):
    values = [1.0, 2.0, 3.0, 4.0]
    return x * values[1:3][-1] + sum(values[::2]) + (1, 2, 3)[-1]


def with_isinstance(x):
    return (
        x * 2.0 if isinstance(x, torch.Tensor) and not isinstance(x, nn.Module) else x
    )


def with_getattr(x):
    child = Child(1.0)
    setattr(child, "z", 4.0)  # noqa: B010
    factor = getattr(child, "z")  # noqa: B009
    return x * factor + getattr(child, "nope", 2.0) + hasattr(child, "k")


def with_environment(x):
    return x * len(os.environ.get("HOME", ""))


def with_import(x):
    import math as m

    return x * m.pi


PROGRAMS = [value for name, value in sorted(globals().items()) if name[:5] == "with_"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_is_captured(checker, program):
    check = checker(program)
    assert check(x) == "record", check.traced.explain()
    assert check(x * 2.0) == "hit", check.traced.explain()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 100.0


def prints(x):
    print("value", end="", file=sys.stderr)
    return x + 1.0


def uses_attrgetter(x):
    return x * operator.attrgetter("shape.numel")(x)()


def reads_random_value(x):
    return x * torch.rand(3).tolist()[0]


def applies_function(x):
    return Square.apply(x)


def shares_memory(x):
    return x.clone().share_memory_()


def counts_by_mask(x):
    return sum(part for part in x[x > 0])


def makes_numpy(x):
    return x * float(x.detach().numpy()[0])


def defines_class(x):
    class Meta(type):
        pass

    class Local(metaclass=Meta):
        k = 2.0

    return x * Local.k


def seeds(x):
    torch.manual_seed(3)
    return x + torch.rand(3)


def starts_thread(x):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return x + 1.0


class Endless:
    def __iter__(self):
        return self

    def __next__(self):
        return 2.0


SPLIT = [
    (prints, "native-call"),
    (uses_attrgetter, "native-call"),
    (reads_random_value, "tensor-value"),
    (shares_memory, "tensor-write"),
    (counts_by_mask, "dynamic-shape"),
    (makes_numpy, "tensor-value"),
    (defines_class, "native-class"),
    (seeds, None),
    (starts_thread, None),
]


@pytest.mark.parametrize(
    ("program", "reason"), SPLIT, ids=lambda p: getattr(p, "__name__", p)
)
def test_program_is_split(program, reason, capsys):
    traced = trace(program, backend="eager")
    for _ in range(6):
        random.seed(7)
        torch.manual_seed(7)
        mine = traced(x)
        random.seed(7)
        torch.manual_seed(7)
        assert torch.equal(mine, program(x)), traced.explain()
    found = {item.id for item in traced.breaks}
    assert found <= set(CATALOGUE)
    if reason is not None:
        assert reason in found, traced.explain()
    assert __file__ in traced.breaks[0].where
    assert traced.breaks[0].id in traced.explain()


def test_monitoring_stops_after_two_refusals():
    class Opaque:
        __slots__ = ("values",)

        def __init__(self):
            self.values = (v for v in (1, 2))

    def refused(x):
        return x + 1.0, Opaque()

    traced = trace(refused, backend="eager")
    for _ in range(5):
        traced(x)
    assert traced.stats()["breaks"] == 1
    assert traced.stats()["records"] == 0
    assert traced.breaks[0].id == "result-object"


def test_custom_backward_is_kept():
    traced = trace(applies_function, backend="eager")
    for _ in range(3):
        argument = x.clone().requires_grad_()
        traced(argument).sum().backward()
        assert torch.equal(argument.grad, torch.full((3,), 100.0))
    assert traced.stats()["hits"] == 2


def test_exceptions_propagate_and_leave_no_record():
    def fail(x, bad):
        if bad:
            raise RuntimeError("as asked")
        return x * 2.0

    traced = trace(fail, backend="eager")
    with pytest.raises(RuntimeError, match="as asked"):
        traced(x, True)
    assert traced.stats()["records"] == 0
    assert torch.equal(traced(x, False), x * 2.0)
    assert torch.equal(traced(x, False), x * 2.0)
    assert traced.stats()["hits"] == 1
    with pytest.raises(RuntimeError, match="as asked"):
        traced(x, True)


def test_handled_operator_error_is_refused():
    def guess(x):
        try:
            return x @ torch.ones(7, 7)
        except RuntimeError:
            return x * 2.0

    traced = trace(guess, backend="eager")
    assert torch.equal(traced(x), x * 2.0)
    assert traced.breaks[0].id == "operator-raised"


def test_traced_inside_of_traced(checker):
    inner = trace(lambda t: t * 2.0, backend="eager")
    check = checker(lambda x: inner(x) + 1.0)
    assert check(x) == "record", check.traced.explain()
    assert check(x) == "hit"
    assert inner.stats()["records"] == 0 or inner.stats()["calls"] == 2


def test_traced_calls_itself():
    def countdown(x, n):
        return x if n == 0 else traced(x * 2.0, n - 1)

    traced = trace(countdown, backend="eager")
    for _ in range(2):
        assert torch.equal(traced(x, 3), x * 8.0)
    assert traced.stats()["hits"] >= 1


def test_calls_from_many_threads():
    traced = trace(lambda x, k: x * k + 1.0, backend="eager")
    wrong = []

    def work(k):
        for _ in range(50):
            if not torch.equal(traced(x, k), x * k + 1.0):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    stats = traced.stats()
    assert 1 <= stats["records"] <= 4
    assert stats["calls"] == 200


def test_module_attributes_are_reached_through_it():
    model = nn.Linear(3, 2)
    traced = trace(model, backend="eager")
    assert traced.in_features == 3
    assert traced.weight is model.weight
    with pytest.raises(AttributeError):
        _ = traced.nothing


def test_failing_backend_costs_only_speed():
    def backend(gm, inputs):
        raise RuntimeError("no code")

    traced = trace(lambda x: x * 2.0, backend=backend)
    with pytest.warns(UserWarning, match="no code"):
        assert torch.equal(traced(x), x * 2.0)
    assert torch.equal(traced(x + 1.0), (x + 1.0) * 2.0)
    assert traced.stats()["hits"] == 1
    assert traced.records[0].breaks[0].id == "backend-failed"
    assert "no code" in traced.explain()


def test_graph_without_operators_needs_no_backend():
    def backend(gm, inputs):
        raise AssertionError("nothing is to be compiled")

    traced = trace(lambda x, k: (x, k + 1), backend=backend)
    for _ in range(2):
        assert traced(x, 2) == (x, 3)
    assert traced.stats()["hits"] == 1


def test_callable_backend_gets_graph_and_inputs():
    seen = []

    def backend(gm, inputs):
        seen.append((gm, inputs, gm.forward))
        return gm.forward

    weight = torch.ones(3)
    traced = trace(lambda x: x * weight + 1.0, backend=backend)
    traced(x)
    assert torch.equal(traced(x), x + 1.0)
    ((gm, inputs, returned),) = seen
    assert isinstance(gm, torch.fx.GraphModule)
    assert inputs[0] is x
    assert inputs[1] is weight
    assert traced.records[0].compiled == returned
    # Its code is there since it has run.
    assert torch.equal(gm.forward(x, weight)[0], x + 1.0)
    assert gm.forward != returned


def test_unknown_backend_and_bad_arguments():
    with pytest.raises(ValueError, match="unknown backend 'nope'"):
        trace(lambda x: x, backend="nope")
    with pytest.raises(ValueError, match="dynamic"):
        trace(lambda x: x, dynamic="maybe")
    with pytest.raises(TypeError, match="callable"):
        trace(3)


def test_active_mode_runs_eagerly():
    traced = trace(lambda n: torch.ones(n), backend="eager")
    with torch.device("meta"):
        assert traced(2).device.type == "meta"
    assert traced.breaks[0].id == "torch-mode"
    assert traced(2).device.type == "cpu"


def test_active_tracer_is_left_alone(monkeypatch):
    import sys

    events = []

    def tracer(frame, event, arg):
        events.append(event)

    traced = trace(lambda x: x * 2.0, backend="eager")
    previous = sys.gettrace()
    sys.settrace(tracer)
    try:
        result = traced(x)
        still = sys.gettrace()
    finally:
        sys.settrace(previous)
    assert torch.equal(result, x * 2.0)
    assert still is tracer
    if sys.version_info < (3, 12):
        assert traced.breaks[0].id == "tracer-active"


def test_unstable_guard_ends_monitoring():
    class Counter:
        def __init__(self):
            self.calls = 0

        def step(self, x):
            self.calls += 1
            return x * self.calls

    counter, twin = Counter(), Counter()
    traced = trace(counter.step, backend="eager", dynamic=False)
    for _ in range(14):
        assert torch.equal(traced(x), twin.step(x))
    assert counter.calls == 14
    assert any(item.id == "unstable-guard" for item in traced.breaks)
    assert traced.stats()["records"] < 12


def test_records_are_limited(monkeypatch):
    monkeypatch.setattr(pace, "_APART", 0)
    traced = trace(lambda x, k: x * k, backend="eager", dynamic=False)
    for k in range(40):
        traced(x, str(k) and k)
        traced(x, k)
    assert traced.stats()["records"] == 32
    assert traced.stats()["hits"] == 40


def test_records_keep_no_arguments_alive():
    class Payload:
        k = 2.0

    traced = trace(lambda x, payload, items: (x * payload.k, items), backend="eager")
    argument, payload, items = torch.ones(3), Payload(), [Payload()]
    held = [weakref.ref(argument), weakref.ref(payload), weakref.ref(items[0])]
    traced(argument, payload, items)
    assert traced.stats()["records"] == 1, traced.explain()
    del argument, payload, items
    gc.collect()
    assert [ref() for ref in held] == [None, None, None]


def test_a_module_made_in_the_program_after_torch_compile_was_used():
    torch.compile(nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3)).eval()

    def program(x):
        for layer in layers[:2]:  # a slice is a new ModuleList
            x = layer(x)
        return x

    traced = trace(program, backend="eager")
    with torch.no_grad():
        for _ in range(2):
            x = torch.randn(2, 4)
            torch.testing.assert_close(traced(x), program(x))
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == 1
