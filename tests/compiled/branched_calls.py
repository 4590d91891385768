"""Owns random calls that do the same to many values: splits, branches and joins."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from call_operands import matrix
from torch_graphs import Graph, Refused, Value

WIDTHS = (5, 8, 16, 24, 33)
Step = Callable[[Graph, Value], Value]


def parts(g: Graph) -> None:
    """Add branches on the parts of one value, equal ones in most cases."""
    value = g.pick(lambda t: t.dim() > 1 and t.dtype is torch.float32)
    dim = g.random.randrange(value.tensor.dim())
    count = g.random.randint(2, 6)
    if value.tensor.shape[dim] < count:
        raise Refused
    if g.random.random() < 0.3:
        taken = g.call(torch.unbind, value, dim)
    elif g.random.random() < 0.7:
        taken = g.call(torch.chunk, value, count, dim)
    else:
        cut = g.random.randint(1, value.tensor.shape[dim] - 1)
        taken = g.call(torch.split, value, [cut, value.tensor.shape[dim] - cut], dim)
    branch(g, taken[:12])


def separate(g: Graph) -> None:
    """Add branches on values of their own, which calls before may have made."""
    shape = [g.random.choice((3, 7, 32)), g.random.choice(WIDTHS)]
    branch(g, [matrix(g, shape, torch.float32) for _ in range(g.random.randint(2, 7))])


def branch(g: Graph, values: list[Value]) -> None:
    """Do the same to each value, to one of them something else now and then."""
    steps = [g.random.choice(STEPS) for _ in range(g.random.randint(1, 3))]
    odd = g.random.randrange(len(values)) if g.random.random() < 0.3 else -1
    made = []
    for number, value in enumerate(values):
        for step in steps:
            value = (shifted if number == odd else step)(g, value)
        made.append(value)
    alike = len({tuple(v.tensor.shape) for v in made}) == 1
    dims = made[0].tensor.dim()
    kind = g.random.random()
    if kind < 0.4 and alike and dims:
        g.call(torch.cat, made, g.random.randrange(dims), exact=False)
    elif kind < 0.6 and alike:
        g.call(torch.stack, made, g.random.randrange(dims + 1), exact=False)
    elif kind < 0.7 and alike:
        # Each reads what its neighbour makes: no member of the first launch.
        for one, other in pairwise(made):
            smooth(g, g.call(torch.mul, one, other, exact=False))


def smooth(g: Graph, value: Value) -> Value:
    return g.call(torch.tanh, value, exact=False)


def shifted(g: Graph, value: Value) -> Value:
    return g.call(torch.add, value, 1.0)


def linear(g: Graph, value: Value) -> Value:
    width = value.tensor.shape[-1] if value.tensor.dim() else 0
    if width < 2:
        return shifted(g, value)
    weight = g.input([width, width], torch.float32)
    made = g.call(F.linear, value, weight, g.input([width], torch.float32))
    return g.call(torch.mul, made, 1 / 64, exact=False)


def norm(g: Graph, value: Value) -> Value:
    width = value.tensor.shape[-1] if value.tensor.dim() else 0
    if width < 2:
        return smooth(g, value)
    scale = g.input([width], torch.float32)
    return g.call(F.layer_norm, value, [width], scale, None, 0.1, exact=False)


def soft(g: Graph, value: Value) -> Value:
    if not value.tensor.dim():
        return smooth(g, value)
    return g.call(F.softmax, value, dim=-1, exact=False)


STEPS: tuple[Step, ...] = (smooth, shifted, linear, norm, soft)
