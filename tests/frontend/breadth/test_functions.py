"""functools, operator, copies, hashing, formatting, generators, context managers."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import operator
import re
from typing import NamedTuple

import pytest
import torch

from magweld.frontend.traced import trace


def spread(a, /, b=2.0, *rest, c=3.0, **more):
    return a * b + c + len(rest) + sum(more.values())


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2.0

    return wrapper


@decorated
def wrapped(x, k=1.0):
    """Multiply."""
    return x * k


def partials(x, s):
    made = functools.partial(spread, x, c=s[0])
    return made(2.0), functools.partial(made, 3.0)(), made.keywords, made


def wraps(x, s):
    @decorated
    def inner(y):
        return y * s[0]

    kept = functools.wraps(spread)(lambda y: y)
    return wrapped(x, k=s[0]) + inner(x), inner.__name__, wrapped.__doc__, kept


class Cached:
    """Descriptors of functools."""

    def __init__(self, value):
        self.value = value

    @functools.cached_property
    def double(self):
        return self.value * 2.0

    def scale(self, factor, x):
        return x * factor * self.value

    triple = functools.partialmethod(scale, 3.0)


def cached(x, s):
    obj = Cached(s[0])
    return obj.triple(x) * obj.double + obj.double, obj


def operators(x, s):
    get = operator.itemgetter(0)
    values = operator.iadd(list(s), [4.0])
    operator.setitem(values, 0, 5.0)
    return (
        operator.mul(x, get(s)),
        operator.itemgetter(0, -1)(s),
        operator.contains(s, 1.0),
        operator.attrgetter("value")(Cached(s[0])),
        operator.methodcaller("scale", 2.0, x)(Cached(s[0])),
        functools.reduce(operator.add, s),
        min({"b": 2.0, "a": s[0]}.items(), key=operator.itemgetter(1)),
        values,
        operator.neg(x),
        get,
    )


class Shade(enum.Enum):
    """Members as keys and in text."""

    LIGHT = 1.0
    DARK = 2.0


class Level(enum.IntEnum):
    """Members as numbers."""

    LOW = 1
    HIGH = 2


def enums(x, s):
    shade, level = Shade(s[0]) if s[0] < 3.0 else Shade.DARK, Level(len(s))
    table = {Shade.LIGHT: 1.0, Shade.DARK: 2.0}
    text = f"{shade} {shade!r} {level:03d}"
    return x[level] * table[shade], text, level + 1, level > Level.LOW, shade.name


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A value."""

    a: float
    b: list = dataclasses.field(default_factory=list)


class Pair(NamedTuple):
    """A named tuple."""

    a: object
    b: float = 2.0


def records(x, s):
    value = dataclasses.replace(Frozen(s[0]), b=[4.0])
    pair = Pair(x, s[0])._replace(b=5.0)
    described = repr(value), dataclasses.asdict(value), dataclasses.astuple(value)
    return x * value.a * value.b[0], value, described, pair, pair._asdict()


def copies(x, s):
    nested = {"a": s, "b": [s[0]]}
    shallow, deep = copy.copy(nested), copy.deepcopy(nested)
    obj = copy.copy(Cached(s[0]))
    obj.value += 1.0
    deep["a"].append(7.0)
    return x * deep["a"][0] + obj.value, shallow["a"] is s, deep, obj


class Text:
    """Special methods that turn into text and numbers."""

    def __init__(self, value):
        self.value = value

    def __format__(self, specification):
        return f"<{self.value}:{specification}>"

    def __str__(self):
        return f"S{self.value}"

    def __repr__(self):
        return f"R{self.value}"

    def __hash__(self):
        return int(self.value)

    def __eq__(self, other):
        return isinstance(other, Text) and other.value == self.value

    def __index__(self):
        return 1

    def __float__(self):
        return self.value

    def __round__(self, digits=0):
        return self.value + digits


TEMPLATE, PERCENT = "{}|{k!r}", "%s-%r-%d"


def texts(x, s):
    obj = Text(s[0])
    parts = ",".join(str(v) for v in s), TEMPLATE.format(s, k=obj)
    mine = f"{obj}", f"{obj:a}", f"{obj!r}", str(obj), repr(obj), PERCENT % (obj, s, 3)
    lists = str([obj, s]), f"{s}", format(s[0], ".2f")
    return x * len("".join(parts)), parts, mine, lists


def numbers(x, s):
    obj = Text(s[0])
    return x * float(obj), [1.0, 2.0][obj], round(obj), hash(obj), obj == Text(1.0)


class Whole(int):
    """A number with a class of its own."""

    def double(self):
        return self * 2


def subclasses(x, s):
    whole = Whole(len(s))
    return x * whole, whole.double(), whole + 1, [4.0, 5.0, 6.0][whole], f"{whole}"


@contextlib.contextmanager
def noted(log, value):
    log.append(value)
    try:
        yield value * 2.0
    except KeyError:
        log.append("key")
    finally:
        log.append("out")


def contexts(x, s):
    with noted(s, 4.0) as a, noted(s, 5.0) as b:
        x = x * a + b
    with noted(s, 6.0):
        {}["missing"]
    with contextlib.ExitStack() as stack:
        x = x * stack.enter_context(noted(s, 1.0))
        stack.callback(s.append, "callback")

    @noted(s, 1.0)
    def inner(y):
        return y * 2.0

    return inner(x)


class Problem(Exception):
    """An exception with attributes."""

    def __init__(self, value):
        super().__init__(value)
        self.value = value


def exceptions(x, s):
    try:
        try:
            raise KeyError("a", s[0])
        except KeyError as error:
            raise Problem(s[0]) from error
    except Problem as problem:
        x = x * problem.value + len(str(problem))
        cause = type(problem.__cause__).__name__
    try:
        return x * s.missing
    except AttributeError as error:
        return x + 1.0, str(error), cause, ValueError("never raised", s[0])


def heaps(x, s):
    heap = [5.0, *s]
    heapq.heapify(heap)
    heapq.heappush(heap, 0.5)
    return x * heapq.heappop(heap), heap


def iterators(x, s):
    part = iter(s)
    next(part)
    table = {"a": x}
    return (
        x * 2.0,
        part,
        enumerate(s, 3),
        zip(s, [x], strict=False),
        reversed(s),
        map(str, s),
        iter(range(3)),
        table.items(),
    )


NAMED = re.compile(r"layer(\d+)(?P<rest>\.\w+)?")


def patterns(x, s):
    names = [f"layer{int(value)}.weight" for value in s] + ["head"]
    found = [NAMED.match(name) for name in names]
    numbers = [int(match.group(1)) for match in found if match]
    spans = [match.span("rest") for match in found if match is not None]
    return x * sum(numbers), NAMED.sub("-", names[0]), spans, NAMED.findall(names[0])


def matches(x, s):
    return x * 2.0, [number.group() for number in [NAMED.search(f"a layer{s[0]:.0f}")]]


PROGRAMS = [
    patterns,
    matches,
    partials,
    wraps,
    cached,
    operators,
    enums,
    records,
    copies,
    texts,
    numbers,
    subclasses,
    contexts,
    exceptions,
    heaps,
    iterators,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(follow, program):
    follow(program, lambda: [1.0, 2.0], lambda: [3.0])


def test_another_pattern_is_another_record():
    state = {"pattern": re.compile("a+")}
    traced = trace(lambda x, n: (x, state["pattern"].findall(n)), backend="eager")
    x = torch.ones(1)
    for expression in ("a+", "b", "a+"):
        state["pattern"] = re.compile(expression)
        for _ in range(2):
            assert traced(x, "aab")[1] == re.findall(expression, "aab")
    assert traced.stats()["hits"] == 4
    assert traced.stats()["breaks"] == 0


def test_a_template_with_groups_runs_by_itself():
    traced = trace(lambda x, n: (x * 2.0, NAMED.sub(r"<\1>", n)), backend="eager")
    for _ in range(3):
        assert traced(torch.ones(1), "layer7.w")[1] == "<7>"
    assert [found.id for found in traced.breaks] == ["native-call"]
    assert traced.stats()["hits"] > 0


def test_a_match_is_no_result():
    traced = trace(lambda x, n: (x, NAMED.match(n)), backend="eager")
    for name in ("layer1", "layer2", "head"):
        match = traced(torch.ones(1), name)[1]
        assert str(match) == str(NAMED.match(name))
    assert [found.id for found in traced.breaks] == ["result-object"]
