"""Forced breaks: how many parts one call records, and how many it answers.

A native function without annotation stands for a forced break. A break in a callee
suspends all frames at once: the caller's part before the call and the callee's are one
record here, where records per frame would be two.
"""

from __future__ import annotations

import random
import zlib

import pytest
import torch
from topic_checks import agree, count_parts, traced
from torch import nn

X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)
interrupt = zlib.crc32


def first_and_last(target, args, parts, hits_within=0):
    """Check that one call records all parts, and that the next one hits all of them."""
    expected = target.eager(*args)
    count_parts(target, parts, hits_within, parts, expected, *args)
    count_parts(target, 0, parts + hits_within, parts, expected, *args)


class Both:
    """A callable, traced and as it is."""

    def __init__(self, eager):
        self.eager = eager
        self.traced = traced(eager)

    def __call__(self, *args, **kwargs):
        return self.traced(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.traced, name)


def small_sum(a, b, c, d):
    total = a + b
    interrupt(b"")
    return total + c + d


@pytest.mark.parametrize(
    ("numbers", "others"),
    [((1, 2, 3, 4), (2, 1, 3, 4)), ((1.5, 2.5, 3.5, 4.5), (2.5, 1.5, 3.5, 4.5))],
)
def test_parts_behind_a_break_are_shared(numbers, others):
    target = traced(small_sum)
    count_parts(target, 2, 0, 2, sum(numbers), *numbers)
    count_parts(target, 0, 2, 2, sum(numbers), *numbers)
    # Other numbers with the same sum come to what is known behind the break.
    count_parts(target, 1, 1, 3, sum(others), *others)
    count_parts(target, 0, 2, 3, sum(others), *others)


def inner_sum(a, b):
    total = a + b
    interrupt(b"")
    return total * b


def through_callee(a, b):
    return inner_sum(a * 2.0, b) + a


def test_break_in_a_function():
    # The caller before and behind, the callee before and behind: four by frame.
    first_and_last(Both(through_callee), (X, X + 1.0), 2)
    first_and_last(Both(inner_sum), (X, X + 1.0), 2)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = self.linear(x)
        interrupt(b"")
        return torch.relu(y) * self.weight


class Outer(nn.Module):
    def __init__(self, inner, scale):
        super().__init__()
        self.inner = inner
        self.scale = scale

    def forward(self, x):
        return self.inner(x + self.scale) * self.scale


def test_break_in_a_module_used_by_two():
    inner = Inner()
    for scale in (2.0, 3.0):
        # Two traced callables share nothing, the module in both included.
        first_and_last(Both(Outer(inner, scale)), (X,), 2)
    pair = [Outer(inner, 2.0), Outer(inner, 2.0)]
    target = traced(lambda number, x: pair[number](x))
    count_parts(target, 2, 0, 2, pair[0](X), 0, X)
    # What lies behind the break is known from the other module.
    count_parts(target, 1, 1, 3, pair[1](X), 1, X)
    for number in (0, 1):
        count_parts(target, 0, 2, 3, pair[number](X), number, X)


class ParameterOnStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        y = x * 2.0
        return self.weight * (y + float(interrupt(b""))) + self.bias


def test_break_with_a_parameter_on_the_stack():
    module = ParameterOnStack()
    target = Both(module)
    first_and_last(target, (X,), 2)
    with torch.no_grad():
        module.weight.mul_(3.0)
    count_parts(target, 0, 2, 2, module(X), X)
    module.weight = nn.Parameter(torch.full((3,), 7.0))
    # The old one is on the stack no more; neither part has ever seen it.
    assert agree(target(X), module(X))


class Methods(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)

    def finish(self, x, size):
        return self.linear(x) * size

    def forward(self, x):
        y = x + 1.0
        return self.finish(y, float(interrupt(b"") + 2)).relu()


def test_break_between_a_method_and_its_call():
    first_and_last(Both(Methods()), (X,), 2)


def stores(a, b):
    c = a + b
    d = [c, a]
    interrupt(b"")
    e = c * d[0]
    d.append(e)
    interrupt(b"")
    return c + e + d[1], d


def test_variables_live_across_breaks():
    first_and_last(Both(stores), (X, X + 1.0), 3)


class Flagged(nn.Module):
    def __init__(self, adds, breaks):
        super().__init__()
        self.adds = adds
        self.breaks = breaks

    def forward(self, x):
        y = x * 2.0
        if self.breaks:
            interrupt(b"")
        return y + 1.0 if self.adds else y - 1.0


def test_the_same_code_in_two_instances():
    for breaks in (False, True):
        for adds in (False, True):
            first_and_last(Both(Flagged(adds, breaks)), (X,), 1 + breaks)


class Recurrent(nn.Module):
    def __init__(self, breaks):
        super().__init__()
        torch.manual_seed(0)
        self.cell = nn.Linear(6, 3)
        self.breaks = breaks

    def forward(self, sequence):
        state = sequence.new_zeros(sequence.shape[1], 3)
        outputs = []
        for step in sequence:
            joined = torch.cat([step, state], 1)
            state = torch.tanh(self.cell(joined))
            if self.breaks:
                interrupt(b"")
            outputs.append(state)
        return torch.stack(outputs), state


def test_recurrent_cells_without_breaks():
    first_and_last(Both(Recurrent(False)), (torch.randn(3, 2, 3),), 1)


def test_recurrent_cells_with_a_break_in_each_step():
    # Three steps make four parts, but those between two breaks share one record.
    first_and_last(Both(Recurrent(True)), (torch.randn(3, 2, 3),), 3, hits_within=1)


def decay(x, steps):
    for _ in range(steps):
        x = x * 0.5 + 1.0
        interrupt(b"")
        x = x.sin()
    return x * 2.0


def test_passes_of_a_loop_share_their_part():
    target = Both(decay)
    # Before the first break, from one to the next, behind the last.
    first_and_last(target, (X, 6), 3, hits_within=4)
    # More passes need a new beginning only, fewer need none of the parts in the middle.
    count_parts(target, 1, 9, 4, decay(X, 9), X, 9)
    count_parts(target, 0, 10, 4, decay(X, 9), X, 9)


def joined(*features, layer):
    return layer(torch.cat(features, 1))


def factory(layer, breaks):
    def run(*features):
        if breaks:
            interrupt(b"")
        return joined(*features, layer=layer)

    return run


class Dense(nn.Module):
    def __init__(self, breaks):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(6, 3)
        self.breaks = breaks

    def forward(self, x):
        y = factory(self.first, self.breaks)(x + 1.0)
        return factory(self.second, self.breaks)(x, y)


def test_closures_from_a_factory():
    first_and_last(Both(Dense(False)), (X,), 1)
    first_and_last(Both(Dense(True)), (X,), 3)


def test_a_closure_that_is_returned_across_a_break():
    def made(layer, scale):
        weight = layer.weight * scale
        interrupt(b"")
        return factory(lambda x: x @ weight, False)

    layer = nn.Linear(6, 6)
    x = torch.rand(2, 3)
    target = traced(made)
    # What lies behind the break is one record for both numbers.
    sequence = ((2.0, 2, 0, 2), (2.0, 0, 2, 2), (3.0, 1, 1, 3), (3.0, 0, 2, 3))
    for scale, misses, hits, records in sequence:
        before = target.stats()
        function = target(layer, scale)
        after = target.stats()
        assert agree(function(x, x), made(layer, scale)(x, x))
        found = after["misses"] - before["misses"], after["hits"] - before["hits"]
        assert found == (misses, hits), target.explain(recompiles=True)
        assert after["records"] == records


class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.attention = nn.MultiheadAttention(size, 2, batch_first=True)
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, x, mask):
        y, weights = self.attention(x, x, x, attn_mask=mask)
        y = self.norm(x + y)
        return y + self.down(nn.functional.gelu(self.up(y))), weights


class Bart(nn.Module):
    def __init__(self, drop, size=8, layers=2):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(11, size)
        self.layers = nn.ModuleList(Layer(size) for _ in range(layers))
        self.drop = drop
        self.size = size

    def shifted(self, tokens):
        result = tokens.new_zeros(tokens.shape)
        result[:, 1:] = tokens[:, :-1].clone()
        result[:, 0] = 2
        return result

    def forward(self, tokens):
        x = self.embed(self.shifted(tokens)) * self.size**0.5
        count = x.shape[1]
        mask = torch.full((count, count), float("-inf")).triu(1)
        states = ()
        for layer in self.layers:
            states = (*states, x)
            chance = random.uniform(0, 1)
            if self.training and chance < self.drop:
                continue
            x = layer(x, mask)[0]
        return tuple(v for v in (x, states) if v is not None)


def test_layers_left_out_by_chance():
    model = Bart(0.5)
    target = traced(model)
    tokens = torch.randint(0, 11, (2, 5))
    model.eval()
    count_parts(target, 1, 0, 1, model(tokens), tokens)
    count_parts(target, 0, 1, 1, model(tokens), tokens)
    model.train()
    patterns = set()
    for seed in range(24):
        random.seed(seed)
        expected, after = model(tokens), random.random()
        random.seed(seed)
        assert agree(target(tokens), expected), target.explain()
        assert random.random() == after
        random.seed(seed)
        patterns.add(tuple(random.uniform(0, 1) < 0.5 for _ in range(2)))
    # One for each choice of layers, and the one from before.
    assert target.stats()["records"] == 1 + len(patterns) == 5, target.explain()
    assert target.stats()["breaks"] == 0
    assert target.stats()["misses"] == 5
    assert target.stats()["hits"] == 21
