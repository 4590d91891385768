"""Programs with breaks: split there, each part recorded, results as in eager."""

from __future__ import annotations

import bisect
import contextlib
import gc
import pickle
import traceback
import weakref
import zlib
from typing import ClassVar

import pytest
import torch
from torch import nn

from magweld.frontend import trace
from magweld.frontend.state.refgraph import RefGraph

x = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)
CALLS = 7
GOOD = zlib.compress(b"good")
# A native function that nothing is known about.
speak = zlib.crc32


def note(*values):
    """Stand for any native function that nothing is known about."""
    return zlib.crc32(bytes(len(values))) % 7


def repeat(program, *args, calls=CALLS, **options):
    """Call a program traced and eagerly, on equal arguments; return the traced one."""
    traced = trace(program, backend="eager", **options)
    for _ in range(calls):
        torch.manual_seed(5)
        mine_args = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        mine = traced(*mine_args)
        state = torch.get_rng_state()
        torch.manual_seed(5)
        other_args = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        theirs = program(*other_args)
        assert torch.equal(state, torch.get_rng_state()), traced.explain()
        assert repr((mine, mine_args)) == repr((theirs, other_args)), traced.explain()
        assert torch.is_grad_enabled()
    return traced


def middle(x):
    y = x * 2.0
    speak(b"middle")
    return y + 1.0, y


def native_call(x):
    y = x.cos()
    k = float(zlib.adler32(b"k") % 5)
    return y * k + x


def deep(x):
    def inner(y):
        z = y * 3.0
        speak(b"inner")
        return z - 1.0

    def outer(y):
        return inner(y + 1.0) * 2.0

    a = x.exp()
    return outer(a) + a


def loop(x):
    total = x
    for _ in range(5):
        total = total * 1.5
        speak(b"loop")
        total = total - x
    return total


def loop_over_values(x):
    total, factors = x, [0.5, 2.0, 3.0]
    for index, factor in enumerate(factors):
        for left, right in zip((1.0, 2.0), (3.0, 4.0), strict=True):
            total = total * factor + left * right
            speak(bytes(index))
    return total, index


def while_loop(x):
    n = 0
    while n < 3:
        x = x + 1.0
        n = n + 1
        speak(b"while")
    return x * n


def in_with(x):
    x = x.requires_grad_(False) + 0.0
    with torch.no_grad():
        y = x * 2.0
        speak(b"with")
        z = y + 1.0
        inside = torch.is_grad_enabled()
    return z * 2.0, inside, torch.is_grad_enabled()


def in_try(x):
    log = []
    try:
        y = x * 2.0
        {}[speak(b"try")]
    except KeyError as error:
        log.append(type(error).__name__)
        y = x * 3.0
    finally:
        log.append("finally")
        speak(b"finally")
    return y + 1.0, log


def raises_in_callee(x):
    def inner(y):
        speak(b"inner")
        raise ValueError("later")

    try:
        inner(x + 1.0)
    except ValueError as error:
        found = str(error)
    return x * 2.0, found


def break_raises(x):
    y = x + 1.0
    try:
        zlib.decompress(b"")
    except zlib.error:
        y = y * 4.0
    return y - 1.0


def closures(x):
    count = 1.0

    def add(k):
        nonlocal count
        count += k
        return x * count

    a = add(1.0)
    speak(b"closure")
    b = add(2.0)
    return a, b, count, list(map(float, [count]))


def in_place(x):
    x.mul_(2.0)
    view = x[0]
    speak(b"in place")
    view.add_(1.0)
    x.sub_(0.5)
    return view * 1.0, x


def aliases(x):
    y = x + 1.0
    views = [y.view(-1), y[0], x.t()]
    speak(b"aliases")
    views[0].mul_(3.0)
    views[2].add_(1.0)
    return y, views, x


def random_numbers(x):
    a = torch.rand(3) + x
    speak(b"random")
    b = torch.rand(3) * a
    torch.rand(2)
    return a, b


def arguments(x, *more, scale=2.0, **named):
    y = x * scale
    speak(bytes(len(more)))
    return y + sum(more) + sum(named.values())


def call_arguments(x):
    return arguments(x, 1.0, *[2.0, float(note(1))], scale=3.0, k=float(note()))


def method_chain(x):
    return x.add(float(note(1))).mul(float(note(2))).tolist()


def comprehension(x):
    return [x * float(note(k)) for k in range(3)]


def unbound(x):
    speak(b"unbound")
    if x is None:
        late = 1.0
    try:
        return x * late
    except UnboundLocalError:
        return x - 1.0


def generator_inside(x):
    def parts():
        for k in (1.0, 2.0):
            speak(b"part")
            yield x * k

    return x + sum(parts())


def sorted_with_key(x):
    def key(v):
        speak(b"key")
        return -v

    return x * sorted([1.0, 3.0, 2.0], key=key)[0]


def recursion(x, n=3):
    if n == 0:
        return x
    y = recursion(x + 1.0, n - 1)
    speak(b"up")
    return y * 2.0


def to_storage(x):
    y = x + 0.25
    values = y.untyped_storage()
    return y * float(values.nbytes() % 7) + 1.0


def to_array(x):
    y = x + 0.25
    values = y.numpy()
    return y * float(zlib.crc32(values) % 7) + 1.0


PROGRAMS = {
    middle: 2,
    native_call: 2,
    deep: 2,
    loop: 3,
    loop_over_values: 7,
    while_loop: 4,
    in_with: 3,
    in_try: 3,
    break_raises: 1,
    closures: 2,
    in_place: 2,
    aliases: 2,
    random_numbers: 2,
    arguments: 2,
    call_arguments: 4,
    unbound: 2,
    sorted_with_key: 2,
    recursion: 4,
    to_storage: 3,
    to_array: 2,
}
# Here the frames cannot be left at a break, as `with` or `try` is around it, or a place
# to split at shows only when its instruction has begun: further calls record the rest.
IN_LATER_CALLS = {in_with, in_try, sorted_with_key, to_storage}


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p not in IN_LATER_CALLS])
def test_the_first_call_records_all_parts(program, capsys):
    traced = repeat(program, x, calls=1)
    first = traced.stats()
    assert first["records"] == first["graphs"] == PROGRAMS[program], traced.explain()
    repeated = first["hits"]  # parts in loops
    traced(x.clone())
    second = traced.stats()
    assert second["misses"] == first["misses"], traced.explain()
    assert second["graphs"] == first["graphs"]
    assert second["hits"] - first["hits"] == first["graphs"] + repeated


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_parts_in_the_differential_mode(program, capsys):
    traced = repeat(program, x, calls=5, check=True)
    stats = traced.stats()
    assert stats["checked"] > 0 or program in (in_try, break_raises)


class Guard:
    log: ClassVar[list[str]] = []

    def __del__(self):
        self.log.append("end")


GUARD = pickle.dumps(Guard())


def test_a_variable_lives_at_least_to_the_end_of_its_frame(capsys):
    def inner(x):
        guard = pickle.loads(GUARD)  # noqa: F841
        y = x * 2.0
        speak(b"guarded")
        z = y + 1.0
        Guard.log.append("inner")
        speak(b"guarded, too")
        return z * 2.0

    def program(x):
        y = inner(x) + 1.0
        Guard.log.append("outer")
        return y

    traced = trace(program, backend="eager")
    for _ in range(4):
        Guard.log.clear()
        assert torch.equal(traced(x), (x * 2.0 + 1.0) * 2.0 + 1.0)
        assert Guard.log in (["inner", "end", "outer"], ["inner", "outer", "end"])
    assert traced.stats()["hits"] >= 6, traced.explain()


def test_a_backend_gets_the_inputs_of_each_part(capsys):
    shapes = []

    def backend(module, inputs):
        shapes.append([tuple(tensor.shape) for tensor in inputs])
        return module.forward

    traced = trace(in_place, backend=backend)
    for _ in range(3):
        assert repr(traced(x.clone())) == repr(in_place(x.clone()))
    assert shapes == [[(2, 3)], [(3,), (2, 3)]], traced.explain()
    assert not any(record.breaks for record in traced.records), traced.explain()


@pytest.mark.parametrize("breaks", [False, True])
def test_a_recorded_call_keeps_nothing_of_the_program(breaks):
    class Thing:
        pass

    def program(x, thing):
        y = x * 2.0
        if breaks:
            speak(b"kept")
        return y + 1.0, thing

    traced = trace(program, backend="eager")
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            value, thing = x * 1.0, Thing()
            kept = [weakref.ref(value), weakref.ref(thing)]
            traced(value, thing)
            del value, thing
            assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()
    assert traced.stats()["records"] == 1 + breaks


def test_a_handler_around_a_break_sees_nothing(capsys):
    log = []

    def program(x):
        try:
            y = x * 2.0
            speak(b"handled")
            return y + 1.0
        except BaseException as error:
            log.append(error)
            raise
        finally:
            log.append("end")

    traced = repeat(program, x, calls=4)
    assert log == ["end"] * 8
    assert traced.stats()["records"] == 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program_with_breaks(program, capsys):
    traced = repeat(program, x, calls=PROGRAMS[program] + 6)
    before = traced.stats()
    traced(x.clone())
    after = traced.stats()
    assert after["records"] == PROGRAMS[program], traced.explain()
    assert after["graphs"] == before["graphs"], traced.explain()
    assert after["hits"] > before["hits"]
    assert after["misses"] == before["misses"], traced.explain()
    assert after["breaks"] == len(traced.breaks) > 0
    assert __file__ in traced.breaks[0].where


class Block(nn.Module):
    def __init__(self, talks):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.talks = talks
        self.calls = 0
        self.seen = []

    def forward(self, x):
        y = self.linear(x)
        self.seen.append(y.shape[0])
        if self.talks:
            speak(b"block")
            self.calls = 7
        return torch.relu(y)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.Sequential(Block(False), Block(True), Block(True))
        self.scale = 2.0

    def forward(self, x):
        return self.blocks(x) * self.scale


def test_modules_in_a_sequential(capsys):
    mine, other = Model(), Model()
    traced = trace(mine, backend="eager")

    def compare(records):
        assert torch.equal(traced(x), other(x))
        for left, right in zip(mine.blocks, other.blocks, strict=True):
            assert (left.calls, left.seen) == (right.calls, right.seen)
        assert traced.stats()["records"] <= records, traced.explain()

    for _ in range(6):
        compare(12)
    for model in (mine, other):
        model.scale = 3.0
        model.blocks[2].linear.weight.data.mul_(2.0)
    compare(13)
    mine.blocks[1].talks = other.blocks[1].talks = False
    compare(15)
    compare(15)
    assert len(traced.breaks) <= 2, traced.explain()


class Counter:
    def __init__(self):
        self.log = []
        self.state = {"n": 0, "last": None}
        self.cache = None

    def step(self, x, k):
        before = list(self.log)
        self.state["last"] = x * k
        self.log.append(k)
        inner = {"log": self.log, "pair": [x, x]}
        speak(bytes(len(before)))
        inner["pair"][0].add_(1.0)
        self.cache = (inner["pair"][1], inner["log"], self.state["last"])
        return self.cache[0] * k, self.cache[1] is self.log, before


def test_state_before_and_after_a_break(twins, capsys):
    pair = twins(Counter)
    for k in (2.0, 2.0, 3.0, 2.0, 2.0):
        pair.step(x, k)
    assert pair.mine.cache[1] is pair.mine.log


def many_breaks(x):
    x = x.add(float(note(1))).add(float(note(2))).add(float(note(3)))
    x = x.add(float(note(4))).add(float(note(5))).add(float(note(6)))
    return x.add(float(note(7))).add(float(note(8))).add(float(note(9)))


def test_few_operators_between_breaks(capsys):
    traced = repeat(many_breaks, x, calls=12)
    assert traced.stats()["records"] == 0
    assert traced.breaks[-1].id == "many-breaks"


def test_what_the_break_changes_is_seen(capsys):
    table = {"k": 1.0}
    values = [1.0]

    def tick():
        table["k"] += 1.0
        values.append(table["k"])

    class Native(dict):
        pass

    change = Native(run=tick)

    def program(x):
        y = x * table["k"]
        speak(str(change["run"]()).encode())
        return y * table["k"] + len(values), values[-1]

    traced = trace(program, backend="eager")
    for _ in range(5):
        n = len(values)
        mine = traced(x)
        table["k"], values[n:] = table["k"] - 1.0, []
        theirs = program(x)
        assert torch.equal(mine[0], theirs[0])
        assert mine[1] == theirs[1]


def test_identity_of_live_values(capsys):
    kept = []

    def program(x, y):
        a = [x, y]
        b = {"a": a, "x": x}
        speak(b"identity")
        kept[:] = [a, b, x]
        b["a"].append(x + y)
        return a, b["a"] is a, a[0] is x, x is y, y

    traced = trace(program, backend="eager")
    z = x + 1.0
    for pair in ((x, z), (x, z), (x, x), (x, x), (z, x), (x, z)):
        mine = traced(*pair)
        assert mine[1:4] == (True, True, pair[0] is pair[1]), traced.explain()
        assert mine[0][0] is pair[0]
        assert mine[4] is pair[1]
        assert kept[0] is mine[0]
        assert kept[1]["a"] is kept[0]
        assert kept[2] is pair[0]


def test_shared_memory_between_live_tensors(capsys):
    def program(x):
        y = x * 1.0
        first, second = y[0], y.view(-1)[:3]
        third = x[1]
        speak(b"memory")
        second.mul_(5.0)
        third.zero_()
        return first, y, x.sum()

    repeat(program, x)


def test_exceptions_of_the_break(capsys):
    def program(x, good):
        y = x + 1.0
        z = deeper(y, good)
        return z * 2.0

    def deeper(y, good):
        total = y * 2.0
        zlib.decompress(GOOD if good else b"bad")  # the break raises here
        return total

    traced = trace(program, backend="eager")
    for _ in range(4):
        assert torch.equal(traced(x, True), program(x, True))
    for _ in range(4):
        with pytest.raises(zlib.error) as caught:
            traced(x, False)
        entries = traceback.extract_tb(caught.value.__traceback__)
        lines = [entry.line for entry in entries if entry.filename == __file__]
        assert "zlib.decompress(GOOD" in lines[-1]
        assert lines[-2] == "z = deeper(y, good)"


def test_a_break_that_raises_runs_once(capsys):
    tries = []

    def key(value):
        tries.append(value)
        raise ValueError(value)

    def program(x):
        y = x + 1.0
        bisect.bisect([1.0], 2.0, key=key)
        return y * 2.0

    traced = trace(program, backend="eager")
    for number in range(4):
        with pytest.raises(ValueError, match=r"1\.0"):
            traced(x)
        assert len(tries) == number + 1
    assert traced.stats()["hits"] > 0


def test_exceptions_behind_the_break(capsys):
    log = []

    def program(x, key):
        try:
            y = x * 2.0
            speak(b"before")
            value = {"a": 1.0}[key]
            return y * value
        finally:
            log.append(key)

    traced = trace(program, backend="eager")
    for _ in range(4):
        traced(x, "a")
        with pytest.raises(KeyError):
            traced(x, "b")
    assert log == ["a", "b"] * 4


def test_context_manager_of_the_user_around_a_break(capsys):
    log = []

    @contextlib.contextmanager
    def region(name):
        log.append(name)
        yield name
        log.append("end " + name)

    class Swallow:
        def __enter__(self):
            log.append("in")
            return self

        def __exit__(self, kind, error, trace):
            log.append(kind)
            return True

    def program(x, bad):
        with Swallow() as held:
            y = x * 2.0
            speak(b"swallow")
            y = y + 1.0
            if bad:
                {}["bad"]
            y = y * 3.0
        return y, type(held).__name__

    def managed(x):
        with region("a"):
            y = x * 2.0
            speak(b"managed")
        return y + 1.0

    for bad in (False, True):
        repeat(program, x, bad)
    repeat(managed, x)
    assert log.count("a") == log.count("end a") == 14


def test_gradients_through_a_break(capsys):
    weight = nn.Parameter(torch.ones(3))

    def program(x):
        y = x * weight
        speak(b"grad")
        with torch.no_grad():
            k = y.sum()
            speak(b"no grad")
            k = k * 2.0
        return (y * y).sum() + k * 0.0

    traced = trace(program, backend="eager")
    for _ in range(5):
        weight.grad = None
        traced(x).backward()
        mine, weight.grad = weight.grad, None
        program(x).backward()
        assert torch.equal(mine, weight.grad)
        assert torch.is_grad_enabled()


def test_two_prefixes_share_what_follows(capsys):
    def program(x, flag):
        y = x * 2.0 if flag else x + 1.0
        speak(b"shared")
        return y.sin() * y

    traced = trace(program, backend="eager")
    for flag in (True, True, False, False, True, False):
        assert torch.equal(traced(x, flag), program(x, flag))
    assert traced.stats()["records"] == 3, traced.explain()
    assert traced.stats()["breaks"] == 1


def test_super_and_class_cells(capsys):
    class Base:
        def run(self, x):
            return x * 2.0

    class Derived(Base):
        def run(self, x):
            y = x + 1.0
            speak(b"derived")
            return super().run(y) + (__class__ is Derived)

    repeat(Derived().run, x)


def test_a_break_at_every_line_is_left_alone(capsys):
    def program(x):
        for _ in range(20):
            speak(b"line")
        return x + 1.0

    lines = ["def many(x):"]
    lines += [f"    speak(bytes({n}))" for n in range(12)]
    namespace = {"speak": speak}
    exec("\n".join([*lines, "    return x + 1.0"]), namespace)
    traced = repeat(namespace["many"], x, calls=16)
    assert traced.stats()["records"] == 0, traced.explain()
    assert "many-breaks" in {item.id for item in traced.breaks}
    repeat(program, x)


def test_results_that_change_at_every_call_do_not_grow_records(capsys):
    count = []

    def program(x):
        y = x * 2.0
        k = float(zlib.crc32(bytes(len(count))))
        count.append(k)
        return y + k

    traced = trace(program, backend="eager")
    for n in range(60):
        mine = traced(x)
        assert len(count) == n + 1
        assert torch.equal(mine, x * 2.0 + count[-1])
    assert traced.stats()["records"] < 40


def test_recursive_and_nested_tracing(capsys):
    def inner(x):
        y = x + 1.0
        speak(b"inner")
        return y * 2.0

    nested = trace(inner, backend="eager")

    def program(x, n=2):
        y = nested(x) * 3.0
        speak(b"outer")
        return program(y, n - 1) if n else y - nested(y)

    def plain(x, n=2):
        y = inner(x) * 3.0
        return plain(y, n - 1) if n else y - inner(y)

    traced = trace(program, backend="eager")
    for _ in range(6):
        assert torch.equal(traced(x), plain(x))


@pytest.mark.parametrize("program", [method_chain, comprehension])
def test_breaks_within_expressions(program, capsys):
    traced = repeat(program, x, calls=8)
    assert traced.stats()["records"] <= 4, traced.explain(recompiles=True)
    assert traced.stats()["hits"] >= 12, traced.explain()


def test_a_generator_may_end_when_a_graph_is_released():
    graph = RefGraph(locate=lambda: None)
    generator = (value for value in ())
    holders = [[generator], [generator]]
    for obj in (holders, *holders, generator):
        graph.adopt(obj)
    reference = weakref.ref(generator)
    del generator, holders, obj
    graph.release()
    assert reference() is None
    assert not graph.nodes


def test_default_of_an_inner_function_reaches_what_lies_behind_a_break():
    leaf = torch.ones(3, requires_grad=True)

    def program(x, n):
        def inner(y, positional=n, *, named=n):
            assert leaf.grad is None
            return y * positional, positional, named

        return inner(x)

    traced = trace(program, backend="eager")
    x = torch.ones(2)
    for n in (255, -7, 14, 255, 1000, 1000, 3, 5000, 3):
        result, positional, named = traced(x, n)
        assert torch.equal(result, x * n)
        assert (positional, named) == (n, n)
    assert any(item.id == "autograd-graph" for item in traced.breaks)


def test_random_numbers_that_are_put_back():
    """A generator cannot be made again: the break comes before there is one."""

    def program(x):
        y = torch.relu(x) * 3 + x
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            z = torch.rand(3) + x * 2 - 1
        return torch.relu(z) * torch.rand(3) + y

    traced = repeat(program, x, calls=12)
    assert traced.stats()["hits"] > 0
