"""Helpers that people write around models: meters, schedules, buffers, caches.

Each is an object whose state changes with every call. Results and state must be those
of an eager twin, and after a while every call is answered by a record.
"""

from __future__ import annotations

import math

import pytest
import torch


class EarlyStopping:
    """Counts how often a loss was no better than the best."""

    def __init__(self):
        self.best, self.bad = math.inf, 0

    def step(self, x):
        value = x.mean().item()
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= 2


class Accuracy:
    """Counts hits in Python numbers."""

    def __init__(self):
        self.correct, self.total = 0, 0

    def step(self, x):
        self.correct += (x.argmax(-1) == x.argmin(-1).flip(0)).sum().item()
        self.total += x.shape[0]
        return self.correct / self.total


class LossScaler:
    """Halves the scale of gradients that are not finite, doubles it now and then."""

    def __init__(self):
        self.scale, self.good = 1024.0, 0

    def step(self, x):
        gradient = x / (x.sum() > 3.5)
        if not torch.isfinite(gradient).all():
            self.scale, self.good = self.scale * 0.5, 0
            return torch.zeros_like(x)
        self.good += 1
        if self.good % 3 == 0:
            self.scale *= 2.0
        return gradient / self.scale


class Quantiser:
    """Takes its scale from the data."""

    def __init__(self):
        self.scales = []

    def step(self, x):
        scale = max(x.abs().max().item() / 127, 1e-8)
        self.scale = scale
        return (x / scale).round().to(torch.int8), scale


class Cosine:
    """A schedule of learning rates."""

    def __init__(self):
        self.steps, self.rate = 0, 0.1

    def step(self, x):
        self.steps += 1
        self.rate = 0.05 * (1.0 + math.cos(math.pi * self.steps / 20))
        return x * self.rate


class Buffer:
    """A ring of rows, written in place."""

    def __init__(self):
        self.rows, self.next, self.full = torch.zeros(4, 3), 0, False

    def __len__(self):
        return 4 if self.full else self.next

    def step(self, x):
        self.rows[self.next] = x[0]
        self.next = (self.next + 1) % 4
        self.full = self.full or self.next == 0
        return self.rows[: len(self)].sum(0)


class Losses:
    """Reports a dict of numbers and keeps the last one."""

    def __init__(self):
        self.last = {}

    def step(self, x):
        losses = {"mean": x.mean(), "norm": x.norm()}
        self.last = {name: loss.item() for name, loss in losses.items()}
        return sum(losses.values()), dict(self.last)


class Average:
    """A moving average of weights with a warm-up."""

    def __init__(self):
        self.shadow, self.updates = {"w": torch.zeros(4, 3)}, 0

    def step(self, x):
        self.updates += 1
        decay = min(0.9, (1 + self.updates) / (10 + self.updates))
        for shadow in self.shadow.values():
            shadow.mul_(decay).add_(x, alpha=1 - decay)
        return self.shadow["w"]


HELPERS = [
    EarlyStopping,
    Accuracy,
    LossScaler,
    Quantiser,
    Cosine,
    Buffer,
    Losses,
    Average,
]


@pytest.mark.parametrize("helper", HELPERS, ids=lambda helper: helper.__name__)
def test_helper(twins, helper):
    pair = twins(helper)
    generator = torch.Generator().manual_seed(2)
    outcomes = [pair.step(torch.rand(4, 3, generator=generator)) for _ in range(24)]
    assert set(outcomes) == {"record", "hit"}
    assert outcomes[12:].count("hit") >= 11, pair.traced.explain(recompiles=True)
