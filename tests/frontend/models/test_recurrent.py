"""Recurrent models: unrolled for a fixed number of steps, a loop for any number.

Where the number of steps is named as dynamic, the loop over them is an operator with
the loop over the layers written out in it, and one record answers every number.
"""

from __future__ import annotations

import pytest
import torch
from topic_checks import HIT, MISS, run_and_check, traced
from torch import nn

from magweld.graphs.control_operators import ForOperator

WIDTH = 4
LAYERS = 4


class Cell(nn.Module):
    """An LSTM cell written out."""

    def __init__(self):
        super().__init__()
        self.input = nn.Linear(WIDTH, 4 * WIDTH)
        self.hidden = nn.Linear(WIDTH, 4 * WIDTH)

    def forward(self, x, state):
        h, c = state
        gates = self.input(x) + self.hidden(h)
        i, f, g, o = gates.chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class CopiedStates(nn.Module):
    """States are kept in tuples of tensors, which every step overwrites."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(Cell() for _ in range(LAYERS))

    def forward(self, steps):
        hs = tuple(steps.new_zeros(1, WIDTH) for _ in range(LAYERS))
        cs = tuple(steps.new_zeros(1, WIDTH) for _ in range(LAYERS))
        for step in range(steps.size(0)):
            x = steps[step]
            for layer, cell in enumerate(self.cells):
                x, c = cell(x, (hs[layer], cs[layer]))
                hs[layer].copy_(x)
                cs[layer].copy_(c)
        return x, hs, cs


class NewStates(nn.Module):
    """States are new tensors in each step; the outputs are collected."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Cell(), Cell()

    def forward(self, steps):
        zeros = steps.new_zeros(1, WIDTH)
        first, second = (zeros, zeros), (zeros, zeros)
        outputs = []
        for step in range(steps.size(0)):
            first = self.first(steps[step], first)
            second = self.second(first[0], second)
            outputs.append(second[0])
        return torch.stack(outputs), second


class WithModule(nn.Module):
    """Three chunks go through torch's own LSTM, in both directions."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(WIDTH, 3, bidirectional=True, batch_first=True)

    def forward(self, steps):
        outputs, state = [], None
        for chunk in steps.transpose(0, 1).split(3, 1):
            y, state = self.rnn(chunk, state)
            outputs.append(y)
        return torch.cat(outputs, 1), state


def model_of(kind):
    torch.manual_seed(0)
    return kind().eval()


def loops_in(target):
    graph = target.records[0].graph.graph
    return sum(isinstance(node.target, ForOperator) for node in graph.nodes)


@pytest.mark.parametrize("kind", [CopiedStates, NewStates, WithModule])
def test_a_fixed_number_of_steps_is_unrolled(kind):
    model = model_of(kind)
    target = traced(model)
    with torch.no_grad():
        for outcome in (MISS, HIT, HIT):
            steps = torch.rand(10, 1, WIDTH)
            run_and_check(target, [outcome], 1, model(steps), steps)
        assert loops_in(target) == 0
        steps = torch.rand(4, 1, WIDTH)
        run_and_check(target, [MISS, HIT], 2, model(steps), steps)


@pytest.mark.parametrize("kind", [CopiedStates, NewStates])
def test_any_number_of_steps_is_a_loop(kind):
    model = model_of(kind)
    target = traced(model, dynamic={"steps": 0})
    with torch.no_grad():
        for outcome, count in ((MISS, 5), (HIT, 9), (HIT, 2), (HIT, 17), (HIT, 5)):
            steps = torch.rand(count, 1, WIDTH)
            run_and_check(target, [outcome], 1, model(steps), steps)
    assert loops_in(target) == 1


@pytest.mark.parametrize("kind", [CopiedStates, NewStates])
def test_the_second_number_of_steps_is_lifted(kind):
    model = model_of(kind)
    target = traced(model, dynamic="auto")
    counts = (5, 7, 3, 9, 4, 12)
    with torch.no_grad():
        for number, count in enumerate(counts):
            steps = torch.rand(count, 1, WIDTH)
            outcome = MISS if number < 2 else HIT
            expected = model(steps)
            run_and_check(target, [outcome], min(number + 1, 2), expected, steps)
    assert loops_in(target) == 1
