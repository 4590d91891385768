"""Numbers that follow from tensors: taken anew once they have changed."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from magweld.frontend.traced import trace


def scaled(x):
    return x * x.sum().item()


def converted(x):
    return float(x.sum()) + 1.0, int(x[0]) // 2


def normed(x, largest=4.0):
    norm = x.norm().item()
    if norm > largest:
        x = x * (largest / (norm + 1e-6))
    return x, norm


def with_list(x):
    values = [x.max().item(), x.min().item()]
    return {"spread": values[0] - values[1], "values": values}


def negated(x):
    return -abs(x.mean().item()), round(x.sum().item(), 2)


def both(x):
    first, second = x[0].item(), x[0].item()
    return x + first * second


PROGRAMS = [scaled, converted, normed, with_list, negated, both]


def inputs(count=8):
    generator = torch.Generator().manual_seed(1)
    return [torch.rand(5, generator=generator) * 3 for _ in range(count)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_second_value_is_lifted(program):
    traced = trace(program, backend="eager", check=True)
    for x in inputs():
        result, expected = traced(x), program(x)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
    stats = traced.stats()
    # A second value that changes later than the first takes a third record.
    assert stats["records"] <= 3, traced.explain()
    assert stats["hits"] >= 5
    assert stats["breaks"] == 0


def test_values_in_a_dict():
    def program(x, y):
        losses = {"l1": (x - y).abs().mean(), "mse": (x - y).square().mean()}
        return sum(losses.values()), {key: loss.item() for key, loss in losses.items()}

    traced = trace(program, backend="eager", check=True)
    for x in inputs(6):
        result, expected = traced(x, x.flip(0)), program(x, x.flip(0))
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        assert list(result[1]) == list(expected[1])
    assert traced.stats()["records"] <= 3, traced.explain()


def test_both_ways_of_a_comparison_have_a_record():
    traced = trace(normed, backend="eager", check=True)
    for scale in (1.0, 9.0, 2.0, 8.0, 0.5, 7.0, 1.5, 6.0):
        x = torch.full((4,), scale / 2.0)
        assert torch.equal(traced(x)[0], normed(x)[0])
    assert traced.stats()["records"] == 2
    assert traced.stats()["hits"] == 6


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return x * self.scale.item() / (1 + x.square().mean().item())


def test_fractions_of_arguments_are_lifted_from_the_first_call_on():
    module = Scaled()
    traced = trace(module, backend="eager", check=True)
    for x in inputs(4):
        assert torch.equal(traced(x), Scaled()(x))
    assert (traced.stats()["records"], traced.stats()["hits"]) == (1, 3)
    # Those of the model alone come back: the graph holds them.
    assert "item(self.scale)" in {guard.path for guard in traced.records[0].guards}
    module.scale += 1
    assert torch.equal(traced(x), module.forward(x))
    assert traced.stats()["records"] == 2


def test_a_marked_value_is_lifted_from_the_first_call_on():
    program = lambda x: x.item() + 1.0  # noqa: E731
    traced = trace(program, backend="eager", dynamic={"item(args[0])": True})
    for value in (1.0, 2.5, math.inf, -0.0):
        x = torch.tensor(value)
        assert traced(x) == program(x)
    assert math.isnan(traced(torch.tensor(math.nan)))
    stats = traced.stats()
    assert (stats["records"], stats["hits"]) == (1, 4)
    assert any("item(args[0])" in guard.path for guard in traced.records[0].guards)


def test_types_of_values_are_those_of_the_tensors():
    traced = trace(lambda x: x.item(), backend="eager")
    for x in (torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3), torch.tensor(4)):
        assert type(traced(x)) is type(x.item())
    assert type(traced(torch.tensor(True))) is bool
    assert type(traced(torch.tensor(False))) is bool


def test_a_value_as_a_size():
    def program(x, lengths):
        longest = lengths.max().item()
        return x[:, :longest] * 2.0

    traced = trace(program, backend="eager", check=True)
    x = torch.rand(2, 9)
    for longest in (3, 5, 7, 4, 6, 8):
        lengths = torch.tensor([2, longest])
        assert torch.equal(traced(x, lengths), program(x, lengths))
    assert traced.stats()["records"] <= 3, traced.explain()


def test_values_are_those_before_the_writes(twins):
    class Meter:
        def __init__(self):
            self.total = torch.zeros(())
            self.last = 0.0
            self.history = []

        def step(self, x):
            self.last = self.total.item()
            self.total.add_(x.sum())
            self.history.append(self.last)
            return x * self.last

    pair = twins(Meter)
    outcomes = [pair.step(x) for x in inputs()]
    assert outcomes[3:] == ["hit"] * 5


def test_a_value_that_becomes_text_has_a_record_for_each():
    program = lambda x: f"{x.item():.2f}"  # noqa: E731
    traced = trace(program, backend="eager")
    for value in (1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 4.0):
        x = torch.tensor(value)
        assert traced(x) == program(x)
    assert traced.stats()["hits"] == 2


def test_values_within_a_loop_are_never_one_number():
    def program(x, n):
        for step in range(n):
            x = x * (x[0].item() + step)
        return x

    def carried(x, s, n):
        for _ in range(n):
            x = x + s.item()
        return x

    traced = trace(program, backend="eager", check=True)
    other = trace(carried, backend="eager", check=True)
    for count, x in zip((2, 3, 4, 2, 5, 3), inputs(6), strict=True):
        assert torch.equal(traced(x, count), program(x, count))
        s = x.sum()
        assert torch.equal(other(x, s, count), carried(x, s, count))


def test_a_value_in_one_way_of_a_branch():
    def program(x, s):
        h = (x * 2.0).sin()
        for _ in range(50):
            h = h + x
        if h.sum() > 60:
            x = x * s.item()
        return x + 1.0

    traced = trace(program, backend="eager", check=True)
    for number, x in enumerate(inputs()):
        s = torch.tensor(float(number))
        y = x * (number % 2)
        assert torch.equal(traced(y, s), program(y, s))


def test_state_that_a_value_comes_from_is_fetched_anew():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("factor", torch.tensor(2.0))

        def forward(self, x):
            return x * float(self.factor)

    module = Scale()
    traced = trace(module, backend="eager", check=True)
    x = torch.ones(2)
    for value in (2.0, 3.0, 4.0, 5.0):
        module.factor = torch.tensor(value)
        assert torch.equal(traced(x), module(x))
        with torch.no_grad():
            module.factor.mul_(0.5)
        assert torch.equal(traced(x), copy.deepcopy(module)(x))
    assert traced.stats()["records"] == 2


class Log:
    def __init__(self):
        self.items, self.named = [1, 2.0], {"a": 1}


APPENDED = {
    "slice": lambda log: log.items[:],
    "list": lambda log: list(log.items),
    "unpacked": lambda log: [*log.items],
    "sum": lambda log: log.items + log.items[:1],
    "copy": lambda log: log.items.copy(),
    "product": lambda log: log.items * 2,
    "last": lambda log: log.items[-1],
    "text": lambda log: str(log.items),
    "member": lambda log: 6 in log.items,
    "iterated": lambda log: [item for item in log.items],
    "joined": lambda log: (*log.items, *log.named.values()),
    "named": lambda log: dict(log.named),
    "values": lambda log: list(log.named.values()),
}


@pytest.mark.parametrize("read", APPENDED.values(), ids=APPENDED)
def test_a_number_in_a_list_of_the_caller_is_followed_when_all_of_it_is_read(read):
    def program(x, k, log):
        log.items.append(k + 1)
        log.named["k"] = k + 2
        return x + 1, read(log)

    traced = trace(program, backend="eager")
    for k in (4, 5, 1, 2, 3, 7):
        log, twin = Log(), Log()
        assert traced(torch.ones(1), k, log)[1] == program(torch.ones(1), k, twin)[1]
        assert vars(log) == vars(twin)
