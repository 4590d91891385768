"""`trace(backend=...)` with the names that `torch.compile` knows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name", ["aot_eager", "aot_eager_decomp_partition", "eager_noexcept", "inductor"]
)
def test_training_by_a_backend_of_torch_compile(name: str) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Tanh())
    fast = trace(model, backend=name)
    for seed in range(3):
        x, found = torch.randn(5, 4), []
        for run in (fast, model):
            torch.manual_seed(seed)
            model.zero_grad()
            result = run(x)
            result.square().sum().backward()
            found.append([result, *(p.grad.clone() for p in model.parameters())])
        torch.testing.assert_close(*found)
    assert fast.stats()["hits"] == 2
    assert not fast.breaks
    assert not fast.records[0].breaks


def test_writes_views_and_gradients_of_gradients() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y.add_(1)
        return (x.sin() * y).sum(), y[1:]

    fast = trace(function, backend="aot_eager")
    for _ in range(3):
        found = []
        for run in (fast, function):
            x, y = torch.linspace(0, 1, 5, requires_grad=True), torch.zeros(5)
            total, view = run(x, y)
            assert view._base is y
            (first,) = torch.autograd.grad(total, x, create_graph=True)
            found.append([y, *torch.autograd.grad(first.sum(), x)])
        torch.testing.assert_close(*found)
    assert fast.stats()["hits"] == 2


def test_a_backend_that_is_not_installed_costs_speed_only() -> None:
    fast = trace(lambda x: x + 1, backend="openxla")
    with pytest.warns(UserWarning, match="backend-failed: openxla"):
        fast(torch.ones(2))
    torch.testing.assert_close(fast(torch.ones(2)), torch.full((2,), 2.0))
    assert fast.stats()["hits"] == 1


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(ValueError, match="'inducter'; did you mean 'inductor'"):
        trace(lambda x: x, backend="inducter")
