"""Owns the state that programs of branches and loops use."""

WORLD = """
import contextlib, zlib
import torch
from torch import nn

torch.default_generator.manual_seed(5)
SCALE = 2
TOTAL = torch.zeros(6)
BUF = torch.randn(8, 6)
TAIL = BUF[2:]
LOG = []


class Box:
    def __init__(self, v):
        self.v = v
        self.w = torch.ones(6)
        self.items = [0.5]

    @property
    def half(self):
        return self.v * 0.5

    def put(self, v):
        self.v = v
        return self

    def scale(self, h):
        if h.sum() > self.v:
            return h * self.v
        return h + self.w


BOX = Box(2)
NET = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5))


def deep(x):
    for _ in range(50):
        x = x * 1.001
    return x


def noisy(x):
    return x + torch.rand(()) * 0.01


def fn(h, k):
    if h.sum() > k:
        return h - k
    return h + h.shape[0]


def many(h, k):
    for i in range(k):
        if h.mean() > i:
            return h * 0.5
    return h


def clipped(h, limit):
    while (h.abs() > limit).any():
        h = h.clamp(-9, 9) * 0.4
    return h


def rows(h):
    for row in h:
        yield row


@contextlib.contextmanager
def noted(value):
    LOG.append(value)
    try:
        yield value
    finally:
        LOG.append(-value)
"""
