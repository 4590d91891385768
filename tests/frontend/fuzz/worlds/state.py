"""Owns the state that generated programs use: it comes before each of them."""

WORLD = """
import collections, contextlib, dataclasses, enum, functools, itertools, math, operator
import random, zlib
from collections import Counter, OrderedDict, defaultdict, deque
from typing import NamedTuple
import torch
from torch import nn
from torch.nn import functional as F

torch.default_generator.manual_seed(5)
SCALE = 2.0
COUNT = 0
LIMIT = 2
LABEL = "b"
LAST = None
W = torch.randn(3)
PAIR = [torch.randn(3), torch.randn(3)]
NUMBERS = [1.0, 2.0, 0.5]
NESTED = [[1.0, 2.0], [3.0]]
TABLE = {"a": 1.0, "b": 2.0}
TAGS = {"p", "q"}
INTS = {1, 2, 8}
QUEUE = deque([1.0, 2.0], 3)
ORDERED = OrderedDict(a=1.0, b=-1.0)
COUNTS = Counter("aab")
GROUPS = defaultdict(list, a=[1.0])
LOG = []
CONSTANT = (1.0, (2.0, 3.0))
CODES = {1: 2.0, 2: 3.0, (1, "a"): 4.0}
SHARED = [NUMBERS, NUMBERS]
FUNCTIONS = {"relu": torch.relu, "neg": lambda t: -t}


class Mode(enum.Enum):
    PLAIN = 1
    DOUBLE = 2


MODE = Mode.PLAIN


class Point(NamedTuple):
    x: float
    y: float


POINT = Point(1.0, 2.0)


@dataclasses.dataclass
class Config:
    rate: float = 0.5
    depth: int = 2
    names: list = dataclasses.field(default_factory=lambda: ["a", "b"])


CFG = Config()


class Base:
    factor = 2.0
    shift = 0.5

    def __init__(self, gain):
        self.gain = gain
        self.items = [1.0]
        self.memo = {}

    def scale(self, x):
        return x * self.factor

    @property
    def total(self):
        return self.gain + self.shift

    @total.setter
    def total(self, value):
        self.gain = value - self.shift

    @staticmethod
    def double(x):
        return x + x

    @classmethod
    def make(cls, gain):
        return cls(gain)

    def __bool__(self):
        return self.gain > 0

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __contains__(self, item):
        return item in self.items

    def __getitem__(self, index):
        return self.items[index]

    def __setitem__(self, index, value):
        self.items[index] = value


class Child(Base):
    def __init__(self, gain):
        super().__init__(gain)
        self.extra = 1.5

    def scale(self, x):
        return super().scale(x) + self.extra

    def __getattr__(self, name):
        if name.startswith("auto_"):
            return self.gain * 2
        raise AttributeError(name)


OBJ = Child(1.0)
OTHER = Base(3.0)


class Slotted:
    __slots__ = ("tensor", "value")

    def __init__(self, value):
        self.value = value


SLOT = Slotted(1.5)
SECOND = Slotted(2.5)


class Adder:
    def __init__(self, amount):
        self.amount = amount
        self.calls = 0

    def __call__(self, x):
        return x + self.amount

    def __eq__(self, other):
        return isinstance(other, Adder) and self.amount == other.amount

    def __hash__(self):
        return hash(self.amount)

    def __add__(self, other):
        return Adder(self.amount + other)

    def __enter__(self):
        self.calls = self.calls + 0
        return self

    def __exit__(self, kind, error, trace):
        return kind is KeyError


ADD = Adder(1.0)


class Watched:
    limit = 3
    seen = []

    def __init__(self):
        self.value = 1.0

    def __setattr__(self, name, value):
        self.seen.append(name)
        object.__setattr__(self, name, value)

    def __getattribute__(self, name):
        if name == "twice":
            return object.__getattribute__(self, "value") * 2
        return object.__getattribute__(self, name)


WATCHED = Watched()


class Items(list):
    def append(self, value):
        super().append(value)
        self.last = value


ITEMS = Items([1.0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.stack = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.register_buffer("total", torch.zeros(3))
        self.scale = nn.Parameter(torch.ones(3))
        self.depth = 1

    def forward(self, x):
        for _ in range(self.depth):
            x = self.linear(x)
        return self.drop(x) * self.scale


NET = Net()


def closure():
    count, kept = 1.0, [2.0]

    def read(x):
        return x * count + kept[0]

    def write(value):
        nonlocal count
        count = value
        kept.append(value)
        return count

    return read, write


READ, WRITE = closure()


def default(x, factor=1.5, *rest, bias=0.25, **more):
    return x * factor + bias + len(rest) + sum(more.values())


def collect(x, acc=[]):
    acc.append(1.0)
    return x * len(acc)


def power(x, n):
    return x if n <= 0 else power(x, n - 1) * 0.5


def produce(items):
    for item in items:
        yield item * 2.0


def guarded(items):
    try:
        for item in items:
            yield item
    finally:
        LOG.append("closed")


@contextlib.contextmanager
def noted(value):
    LOG.append(value)
    try:
        yield value
    finally:
        LOG.append(-value)


HALF = functools.partial(default, factor=0.5)
"""
