"""State that a recorder of tensor calls alone would bake into its graph."""

from __future__ import annotations

import torch
from torch import nn

from magweld.frontend.traced import trace

G_SCALE = 2.0


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scales = [2.0, 3.0]
        self.cfg = {"k": 3.0}
        self.use_res = True
        self.temp = 2.0
        self.calls = 0
        self.log = []

    def by_global(self, x):
        return x * G_SCALE

    def by_list(self, x):
        for scale in self.scales:
            x = x * scale + 1.0
        return x

    def by_dict(self, x):
        return x * self.cfg["k"]

    def by_flag(self, x):
        y = x * 3.0
        return y + x if self.use_res else y

    def by_native_reader(self, x):
        return x * max(self.temp, 1.0)

    def by_counter(self, x):
        self.calls += 1
        return x if self.calls % 2 else -x

    def with_effects(self, x):
        y = x * 2.0
        self.calls += 1
        self.log.append(y)
        return y


def replay_after(model, method, change):
    traced = trace(getattr(model, method), backend="eager")
    x = torch.tensor([4.0, 5.0])
    traced(x)
    assert traced.stats()["records"] == 1, traced.explain()
    change()
    return traced(x), getattr(model, method)(x)


def test_a_changed_global(monkeypatch):
    change = lambda: monkeypatch.setitem(globals(), "G_SCALE", 5.0)  # noqa: E731
    mine, eager = replay_after(Model(), "by_global", change)
    assert torch.equal(mine, eager)


def test_a_list_that_has_grown():
    model = Model()
    mine, eager = replay_after(model, "by_list", lambda: model.scales.append(7.0))
    assert torch.equal(mine, eager)


def test_a_changed_dict_entry():
    model = Model()
    mine, eager = replay_after(model, "by_dict", lambda: model.cfg.update(k=9.0))
    assert torch.equal(mine, eager)


def test_a_flag_that_decides_a_branch():
    model = Model()
    change = lambda: setattr(model, "use_res", False)  # noqa: E731
    mine, eager = replay_after(model, "by_flag", change)
    assert torch.equal(mine, eager)


def test_an_attribute_read_by_native_code():
    model = Model()
    change = lambda: setattr(model, "temp", 4.0)  # noqa: E731
    mine, eager = replay_after(model, "by_native_reader", change)
    assert torch.equal(mine, eager)


def test_a_counter_of_its_own():
    model, twin = Model(), Model()
    traced = trace(model.by_counter, backend="eager")
    x = torch.tensor([4.0, 5.0])
    for _ in range(4):
        assert torch.equal(traced(x), twin.by_counter(x))
    assert model.calls == twin.calls == 4


def test_side_effects_are_repeated():
    model = Model()
    traced = trace(model.with_effects, backend="eager")
    for number in range(3):
        y = traced(torch.tensor([float(number)]))
        assert model.calls == number + 1
        assert model.log[-1] is y
    assert [float(y) for y in model.log] == [0.0, 2.0, 4.0]
