"""What trains inside of the traced program: right in every call, with a break."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from magweld.frontend import trace


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 4))


def steps(model, optimizer):
    def program(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return program


def accumulates(model, optimizer):
    def program(x):
        total = 0.0
        for part in x.split(2):
            loss = model(part).pow(2).mean()
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return total

    return program


def takes_gradients(model, optimizer):
    def program(x):
        loss = model(x).pow(2).sum()
        found = torch.autograd.grad(loss, list(model.parameters()))
        return torch.stack([g.sum() for g in found])

    return program


def checkpoints(model, optimizer):
    def program(x):
        return checkpoint(model, x, use_reentrant=False).sum()

    return program


def checkpoints_of_old(model, optimizer):
    def program(x):
        return checkpoint(model, x.requires_grad_(), use_reentrant=True).sum()

    return program


def checkpoints_without_gradients(model, optimizer):
    def program(x):
        with torch.no_grad():
            return checkpoint(model, x, use_reentrant=False).sum()

    return program


def maps(model, optimizer):
    def program(x):
        return torch.func.vmap(lambda row: (row * 2.0).sum())(x).sum()

    return program


def differentiates(model, optimizer):
    def program(x):
        return torch.func.grad(lambda row: (row * row).sum())(x).sum()

    return program


def calls_with_other_parameters(model, optimizer):
    def program(x):
        doubled = {name: p * 2.0 for name, p in model.named_parameters()}
        return torch.func.functional_call(model, doubled, (x,)).sum()

    return program


def pushes_forward(model, optimizer):
    def program(x):
        model.eval()
        return torch.func.jvp(model, (x,), (torch.ones_like(x),))[1].sum()

    return program


def scales_under_autocast(model, optimizer):
    def program(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(x).pow(2).mean()
        (loss * 8.0).backward()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad.div_(8.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return program


PROGRAMS = [
    steps,
    accumulates,
    takes_gradients,
    checkpoints,
    checkpoints_of_old,
    checkpoints_without_gradients,
    maps,
    differentiates,
    calls_with_other_parameters,
    pushes_forward,
    scales_under_autocast,
]
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def same(left, right):
    return left is right is None or torch.equal(left, right)


def compare(model, twin):
    for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(mine, other)
        assert same(mine.grad, other.grad)


def run(make, optimizer, check):
    model, twin = make_model(), make_model()
    build = OPTIMIZERS[optimizer]
    eager = make(twin, build(twin.parameters()))
    traced = trace(make(model, build(model.parameters())), backend="eager", check=check)
    for seed in range(5):
        torch.manual_seed(seed)
        x = torch.randn(4, 4)
        results, states = [], []
        for program in (eager, traced):
            torch.manual_seed(seed)
            result = program(x.clone())
            if result.grad_fn is not None and make not in (
                steps,
                scales_under_autocast,
            ):
                result.backward()
            results.append(result.detach())
            states.append(torch.get_rng_state())
        assert torch.equal(*results)
        assert torch.equal(*states)
        compare(model, twin)
    return traced


# Breaks of one recorded call: program -> names, in order.
BREAKS = {
    steps: ["Optimizer.zero_grad", "Tensor.backward", "SGD.step"],
    takes_gradients: [],
    checkpoints: [],
    checkpoints_without_gradients: [],
    maps: [],
    differentiates: [],
    calls_with_other_parameters: [],
}


@pytest.mark.sample(14)
@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize("check", [False, True])
def test_gradients_and_parameters_are_those_of_eager(make, check):
    traced = run(make, "sgd", check)
    # Parts of which the differential mode cannot put everything back are no breaks.
    breaks = [item for item in traced.breaks if item.id != "check-skipped"]
    names = BREAKS.get(make)
    if names is not None:
        found = [item.detail for item in breaks]
        assert len(found) == len(names)
        assert all(map(str.endswith, found, names))
        # One record for each part, all made by the first call.
        assert traced.stats()["graphs"] == len(names) + 1
        assert traced.stats()["misses"] == len(names) + 1
    for item in breaks:
        assert item.where
        assert item.refusal.hint


@pytest.mark.parametrize("make", [steps, accumulates])
def test_optimizer_with_state(make):
    run(make, "adamw", check=False)
