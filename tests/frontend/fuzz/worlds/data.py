"""Owns the state that programs of arrays, lists and effects before a truth use."""

WORLD = """
import collections, contextlib, itertools, math, operator, random, types
import numpy
import torch
from torch import nn
from torch.nn import functional as F

torch.default_generator.manual_seed(5)
ARRAY = numpy.arange(4.0, dtype="float32")
SHARED = torch.from_numpy(ARRAY)
LEFT = ARRAY[1:3]
BUF = torch.arange(8.0)
HEAD = BUF[:4]
PARAM = nn.Parameter(torch.ones(4))
LOG = []
CACHE = {}
COUNT = 0
Pair = collections.namedtuple("Pair", "a b")
_DICE = random.Random(3)
_SEEDED = torch.Generator().manual_seed(3)


class Box:
    def __init__(self, v):
        self.v = v
        self.items = [1.0, 2.0, 0.0, 3.0]
        self.array = numpy.ones(4, dtype="float32")
        self.t = HEAD

    @property
    def twice(self):
        return self.v * 2

    def put(self, v):
        self.v = v
        LOG.append(v)
        return self


class Made:
    def __new__(cls, v):
        made = object.__new__(cls)
        made.v = v
        return made


class Asked:
    def __init__(self, v):
        self.v = v

    def __getattribute__(self, name):
        if name == "w":
            LOG.append(name)
            return object.__getattribute__(self, "v")
        return object.__getattribute__(self, name)


class Kind(type):
    def __instancecheck__(cls, made):
        return getattr(made, "v", 0) != 1


class Some(metaclass=Kind):
    pass


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        LOG.append("backward")
        return gradient * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        self.seen.add_(1)
        if self.training:
            self.last = x.detach()
        return self.linear(x.float()) + self.seen


BOX = Box(2)
NET = Net()


def batch(rows):
    return torch.tensor(rows)


def gated(x):
    LOG.append("gated")
    if x.sum() > 1:
        CACHE["gated"] = x
        return x * 2
    return x - 1


def checked(x):
    if not (x == x).all():
        raise ValueError("no number")
    return x


def count_up(k):
    for i in range(3):
        yield k + i


@contextlib.contextmanager
def noted(value):
    LOG.append(value)
    try:
        yield value
    finally:
        LOG.append("left")


@contextlib.contextmanager
def doubled():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


_RUNNING = count_up(1)


def _hidden():
    frame = _RUNNING.gi_frame
    return [
        ("dice", repr(_DICE.getstate())),
        ("seeded", _SEEDED.get_state()),
        ("running", None if frame is None else [frame.f_locals.get("i")]),
    ]
"""
