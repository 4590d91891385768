"""Owns the state that programs of numbers, aliases and attributes use."""

WORLD = """
import functools, itertools, math, operator, random
import numpy
import torch
from torch import nn
from torch.nn import functional as F

torch.default_generator.manual_seed(5)
BASE = torch.arange(8.0)
HEAD = BASE[:4]
TAIL = BASE[4:]
MIDDLE = BASE[2:6]
EVEN = BASE[::2]
GRID = BASE.view(2, 4)
WHOLE = torch.arange(4)
LOSS = torch.ones(4, requires_grad=True)
FACTOR = 2
BIG = 2**53 + 1
COUNT = 0
NAMES = ["a", "b"]
VALUES = {"a": 1, "b": 2.5, 3: -1}
ARRAY = numpy.arange(4.0)
_DICE = random.Random(3)
_SEEDED = torch.Generator().manual_seed(3)
_ROLLS = numpy.random.RandomState(3)
LOG = []


class Part:
    size = 4
    kind = "part"

    def __init__(self, v):
        self.v = v
        self.w = 1.0
        self.t = BASE[:4]
        self.items = [1, 2.0]

    @property
    def twice(self):
        return self.v * 2

    @twice.setter
    def twice(self, value):
        self.v = value / 2

    @twice.deleter
    def twice(self):
        self.v = 0

    @functools.cached_property
    def cached(self):
        return self.v + 1

    def run(self, x, k=[1.0]):
        k.append(len(k))
        return x * self.v + k[-1]

    def __eq__(self, other):
        return isinstance(other, Part) and other.v == self.v

    def __lt__(self, other):
        return self.v < other.v

    __hash__ = object.__hash__


class Slots:
    __slots__ = ("a", "b", "__dict__")


class Failing:
    @property
    def value(self):
        raise ValueError("no value")

    def __getattr__(self, name):
        if name.startswith("v"):
            return len(name)
        raise AttributeError(name)


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("seen", BASE[:4])
        self.register_buffer("steps", torch.tensor(0))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        if self.training:
            self.steps += 1
            self.seen.mul_(0.5).add_(x.detach().mean())
        return self.drop(x) * self.weight + self.seen


P = Part(2)
Q = Part(2)
S = Slots()
S.a = 1.5
BAD = Failing()
CELL = Cell()


def counter():
    count, seen = 0, []

    def add(k):
        nonlocal count
        count += k
        seen.append(k)
        return count

    def get():
        return count + len(seen)

    return add, get


ADD, GET = counter()


def keep(x, kept=[], known={}):
    kept.append(1)
    known[len(kept)] = 1
    return x + len(known)


def check(k):
    if k > 2:
        raise ValueError("too large")
    if k != k:
        raise ArithmeticError("no number")
    return k


def inverse(k):
    try:
        return 1 / k
    except ZeroDivisionError:
        return -1.0
    finally:
        LOG.append("inverse")


def count_up(k):
    for i in range(3):
        got = yield k + i
        if got is not None:
            k = got


_RUNNING = count_up(1)


def _hidden():
    frame = _RUNNING.gi_frame
    return [
        ("dice", repr(_DICE.getstate())),
        ("seeded", _SEEDED.get_state()),
        ("rolls", _ROLLS.get_state()[2]),
        ("running", None if frame is None else [frame.f_locals.get("k")]),
    ]
"""
