"""Modules: inlined, as arguments, with Parameters, built inside, per instance."""

from __future__ import annotations

import torch
from topic_checks import HIT, MISS, agree, run_and_check, traced
from torch import nn


class Model(nn.Module):
    """A module with a Parameter, children by name, and a list of layers."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3))
        self.linear = nn.Linear(3, 3)
        self.layer0 = nn.Linear(3, 3)
        self.layer1 = nn.ReLU(inplace=True)

    def scale(self, x, factor=1.0):
        return x * self.weight * factor

    def forward(self, x):
        x = self.scale(self.linear(x), factor=2.0)
        for index in range(2):
            x = getattr(self, f"layer{index}")(x)
        for name, child in self.named_children():
            if name == "linear":
                x = child(x)

        def inner(y):
            return self.scale(y)

        return inner(x) + self.weight


def test_modules_and_parameters():
    model = Model().eval()
    target = traced(model)
    with torch.no_grad():
        for outcome in (MISS, HIT):
            x = torch.rand(2, 3)
            run_and_check(target, [outcome], 1, model(x), x)
            model.weight.mul_(1.5)


def external(model, x):
    return model.linear(x) + model.weight


def test_a_module_as_an_argument():
    first, second = Model().eval(), Model().eval()
    target = traced(external)
    with torch.no_grad():
        for outcome, model in ((MISS, first), (HIT, first), (HIT, second)):
            x = torch.rand(2, 3)
            run_and_check(target, [outcome], 1, external(model, x), model, x)


def parameter_of(x, weight):
    return x * weight


def test_a_parameter_as_an_argument():
    target = traced(parameter_of)
    weight = nn.Parameter(torch.rand(3), requires_grad=False)
    run_and_check(target, [MISS, HIT], 1, weight * 2.0, torch.full((3,), 2.0), weight)


class Keeps(nn.Module):
    """A tensor is stored on a submodule."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()
        self.inner.kept = torch.zeros(3)

    def forward(self, x):
        self.inner.kept = x * 2.0
        return self.inner.kept + self.inner(x)


def test_an_attribute_of_a_submodule_is_written():
    model, eager = Keeps().eval(), Keeps().eval()
    target = traced(model)
    for outcome in (MISS, HIT, HIT):
        x = torch.rand(3)
        expected = eager(x)
        run_and_check(target, [outcome], 1, expected, x)
        assert agree(model.inner.kept, eager.inner.kept)


def builds_module(x):
    layer = nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        layer.weight.fill_(0.5)
        return layer(x)


def test_a_module_built_inside():
    target = traced(builds_module)
    x = torch.rand(2, 3)
    torch.manual_seed(1)
    expected = builds_module(x)
    state = torch.get_rng_state()
    for outcome in (MISS, HIT):
        torch.manual_seed(1)
        run_and_check(target, [outcome], 1, expected, x)
        assert torch.equal(torch.get_rng_state(), state)


def map_modules(modules, x):
    return tuple(map(lambda module: module(x), modules))


def test_modules_through_map():
    target = traced(map_modules)
    modules = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])
    with torch.no_grad():
        for outcome in (MISS, HIT):
            x = torch.rand(2, 3)
            run_and_check(target, [outcome], 1, map_modules(modules, x), modules, x)


class Switch(nn.Module):
    """The same forward code for two instances; a flag decides."""

    def __init__(self, flag):
        super().__init__()
        self.flag = flag
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        if self.flag:
            return self.linear(x)
        return x + 1.0


def run_switch(model, x):
    return model(x)


def test_static_control_flow_per_instance():
    target = traced(run_switch)
    on, off = Switch(True), Switch(False)
    with torch.no_grad():
        for number, model in enumerate((on, off)):
            x = torch.rand(2, 3)
            run_and_check(target, [MISS, HIT], number + 1, model(x), model, x)
        run_and_check(target, [HIT], 2, on(x), on, x)
