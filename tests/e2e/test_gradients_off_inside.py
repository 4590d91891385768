"""Programs that switch gradients or autocast themselves are compiled as in eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld import frontend

HALF = torch.bfloat16


class Scorer(nn.Module):
    """Parameters that require gradients, which the program does not record."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x)) * 2 + 1
        return torch.softmax(self.second(hidden).exp().log1p(), -1)


class Searched(Scorer):
    """The same with operators whose sizes follow from values, which torch runs."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.tanh(self.first(x)) * 2 + 1
        found = hidden[hidden[:, 0] > 0.5].sin() @ self.second.weight.t()
        return torch.softmax(self.second(hidden).exp().log1p(), -1), found


class Behind(Scorer):
    """Operators in front of the block without gradients, and behind it."""

    def forward(self, x: Tensor) -> Tensor:
        x = (x * 2).sin().exp()
        with torch.no_grad():
            hidden = torch.tanh(self.first(x)) * 2 + 1
            y = self.second(hidden)
        return (y * 3).sigmoid() - x.sum()


class Returned(Scorer):
    """A view of a parameter, which has the mode of the hit."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.tanh(self.first(x)) * 2 + 1, self.first.weight.t()


class Moved(Scorer):
    """Writes to a parameter, which only a program without gradients may."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        self.first.bias.mul_(0.5).add_(0.1)
        return torch.tanh(self.first(x)) * 2 + 1


MODULES = (Scorer, Searched, Behind, Returned, Moved)


def leaves(result: Any) -> tuple[Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def compare(mine: Callable[..., Any], twin: Callable[..., Any], x: Tensor) -> None:
    for ours, theirs in zip(leaves(mine(x)), leaves(twin(x)), strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.requires_grad == theirs.requires_grad
        assert (ours.grad_fn is None) == (theirs.grad_fn is None)
        assert ours.is_leaf == theirs.is_leaf
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("changes", [False, True], ids=["one", "sizes"])
def test_results_have_the_flags_of_eager(
    kind: type[Scorer], changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever runs a hit, no result has a history that eager does not give it."""
    monkeypatch.setenv("MAGWELD_RACE", "0")
    model = kind()
    traced = frontend.trace(copy.deepcopy(model), compile="now")
    for call in range(10):
        compare(traced, model, torch.randn(5 + call % 5 if changes else 6, 8))
    stats = traced.stats()
    assert stats["breaks"] == 0
    assert stats["hits"] >= 5
    if kind in (Scorer, Searched, Behind):
        assert stats["compilations"] > 0


def test_sizes_share_a_program_where_the_program_switches_gradients_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAGWELD_RACE", "0")
    model = Scorer()
    traced = frontend.trace(copy.deepcopy(model), compile="now")
    for size in (3, 4, 5, 6, 7, 8, 9, 10, 11, 12):
        compare(traced, model, torch.randn(size, 8))
    newest = max(traced.records, key=lambda record: record.number)
    assert newest.lifted is not None
    assert not newest.lifted.is_for_torch
    assert traced.stats()["compilations"] <= 3


def test_what_lies_between_switches_of_autocast_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the modes that they leave behind: products are those of halves."""
    monkeypatch.setenv("MAGWELD_RACE", "0")
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()

    @torch.no_grad()
    def program(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with torch.autocast("cpu", dtype=HALF):
            y = model(x).softmax(-1) * 2
            with torch.autocast("cpu", enabled=False):
                z = torch.tanh(model(x)).exp() + 1
        return y, z, (y.float() + z).sin() * 3

    traced = frontend.trace(program, compile="now")
    for _ in range(4):
        x = torch.randn(5, 8)
        for ours, theirs in zip(traced(x), program(x), strict=True):
            assert ours.dtype == theirs.dtype
            torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)
        assert not torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()
    assert traced.stats()["hits"] == 3
    report = traced.records[0].inspectable.report()
    assert report["pieces"] >= 2
    assert all("autocast" in text for text in report["cuts"])


def test_a_piece_that_raises_leaves_no_region_open() -> None:
    table = nn.Embedding(4, 8)

    @torch.no_grad()
    def program(x: Tensor, at: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=HALF):
            return (table(at) @ x).tanh().exp() + 1

    traced = frontend.trace(program, compile="now")
    x = torch.randn(8, 3)
    for _ in range(3):
        traced(x, torch.tensor([1, 2]))
    with pytest.raises(IndexError):
        traced(x, torch.tensor([1, 9]))
    assert not torch.is_autocast_enabled("cpu")
    assert torch.is_grad_enabled()


def test_background_compilation_goes_on_in_calls_outside_of_autocast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The modes are those of the region, whoever waits."""
    monkeypatch.setenv("MAGWELD_RACE", "0")
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()

    @torch.no_grad()
    def program(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=HALF):
            return model(x).softmax(-1) * 2

    traced = frontend.trace(program, compile="background")
    x = torch.randn(5, 8)
    for _ in range(3):
        traced(x)
    assert traced.wait(120)
    found = traced(x)
    assert found.dtype == program(x).dtype
    torch.testing.assert_close(found, program(x), rtol=2e-2, atol=2e-2)
    assert traced.stats()["compilations"] > 0
