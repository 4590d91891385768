"""Compiled code that raises where eager does not: torch answers, from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magweld.frontend import Traced, trace
from magweld.runtime.program import LoadedProgram
from magweld.stand_by import StandBy

BEFORE = 4
BEHIND = 3
ANSWER = StandBy.answer

Program = Callable[[Tensor, Tensor], Any]


class FaultyCode:
    """How often code was called since it has begun to raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self._monkeypatch = monkeypatch

    def begin(self, late: bool = False) -> None:
        """Let code raise before it does anything, or after it has done all.

        What code writes to is written behind it.
        """
        run = LoadedProgram._run

        def raises(*arguments: Any, **keywords: Any) -> Any:
            self.calls += 1
            if late:
                run(*arguments, **keywords)
            raise RuntimeError("no memory for an arena")

        self._monkeypatch.setattr(LoadedProgram, "_run", raises)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> FaultyCode:
    monkeypatch.setattr(StandBy, "answer", ANSWER)
    return FaultyCode(monkeypatch)


def results(x: Tensor, state: Tensor) -> list[Tensor]:
    return [torch.tanh(x * 2) + 1, x.sum()]


def writes(x: Tensor, state: Tensor) -> Tensor:
    state.mul_(0.5).add_(x.mean(0))
    return torch.relu(x - state)


def beside_torch(x: Tensor, state: Tensor) -> Tensor:
    state += torch.fft.fft(torch.tanh(x * 2) + 1).abs().sum(0)
    return torch.relu(x - state) * 2 + 1


def two_parts(x: Tensor, state: Tensor) -> Tensor:
    state.add_(1)
    torch.randn(3, generator=torch.Generator())
    return torch.relu(x - state) * 2


def drawn(x: Tensor, state: Tensor) -> list[Tensor]:
    dropped = F.dropout(torch.tanh(x * 2), 0.5)
    state.add_(torch.rand(6))
    return [dropped + 1, torch.rand_like(x) * 2, torch.relu(x - state).sum(0)]


def check(
    fast: Traced,
    program: Program,
    faulty: FaultyCode,
    sizes: list[int],
    before: int = BEFORE,
    late: bool = False,
) -> None:
    state, expected_state = torch.zeros(6), torch.zeros(6)
    for number, size in enumerate(sizes):
        if number == before:
            faulty.begin(late)
        x = torch.randn(size, 6)
        torch.manual_seed(number)
        expected = program(x, expected_state)
        drawn_next = torch.rand(3)
        torch.manual_seed(number)
        result = fast(x, state)
        assert torch.equal(torch.rand(3), drawn_next)
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(state, expected_state)
    assert faulty.calls


@pytest.mark.filterwarnings("ignore:backend-failed")
@pytest.mark.parametrize("program", [results, writes, beside_torch, two_parts])
def test_torch_answers(program: Program, faulty: FaultyCode) -> None:
    fast = trace(program, compile="now")
    check(fast, program, faulty, [5] * (BEFORE + BEHIND))
    # No code is called again.
    calls = faulty.calls
    fast(torch.randn(5, 6), torch.zeros(6))
    assert faulty.calls == calls <= 2
    assert (
        any(
            item.id == "backend-failed" and "no memory for an arena" in item.detail
            for item in fast.breaks
        )
        or program is beside_torch
    )


@pytest.mark.filterwarnings("ignore:backend-failed")
@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_draws_what_code_has_drawn(dynamic: bool, faulty: FaultyCode) -> None:
    fast = trace(drawn, compile="now", dynamic={"x": True} if dynamic else "auto")
    sizes = [4, 6, 9, 5, 8, 11, 7, 9, 7, 7] if dynamic else [5] * 9
    check(fast, drawn, faulty, sizes, before=6, late=True)


@pytest.mark.filterwarnings("ignore:backend-failed")
def test_training_draws_what_code_has_drawn(faulty: FaultyCode) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    fast = trace(model, compile="now")
    for number in range(BEFORE + BEHIND):
        x = torch.randn(5, 6)
        if number == BEFORE:
            faulty.begin(late=True)
        torch.manual_seed(number)
        expected = torch.autograd.grad(model(x).pow(2).sum(), [*model.parameters()])
        torch.manual_seed(number)
        found = torch.autograd.grad(fast(x).pow(2).sum(), [*model.parameters()])
        torch.testing.assert_close(found, expected)
    assert faulty.calls


@pytest.mark.filterwarnings("ignore:backend-failed")
def test_torch_answers_for_all_sizes(faulty: FaultyCode) -> None:
    fast = trace(writes, compile="now", dynamic={"x": True})
    check(fast, writes, faulty, [4, 6, 9, 5, 8, 11, 7, 9, 7, 7], before=6)


def test_a_user_is_told_once(faulty: FaultyCode) -> None:
    fast = trace(results, compile="now")
    for _ in range(3):
        fast(torch.randn(5, 6), torch.zeros(6))
    faulty.begin()
    with pytest.warns(UserWarning, match="backend-failed.*no memory for an arena"):
        fast(torch.randn(5, 6), torch.zeros(6))
    fast(torch.randn(5, 6), torch.zeros(6))
    assert [item.id for item in fast.breaks] == ["backend-failed"]
    assert fast.stats()["breaks"] == 1
    assert fast.explain().count("no memory for an arena") == 1
    assert "torch runs it: its code has raised" in fast.explain()


@pytest.mark.filterwarnings("ignore:backend-failed")
@pytest.mark.parametrize("behind", [False, True])
def test_torch_answers_in_training(behind: bool, faulty: FaultyCode) -> None:
    """The code of a forward half may raise, or only that of a backward half."""
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    fast = trace(model, compile="now")
    for number in range(BEFORE + BEHIND):
        x = torch.randn(5, 6)
        expected = torch.autograd.grad(model(x).pow(2).sum(), [*model.parameters()])
        if number == BEFORE and not behind:
            faulty.begin()
        loss = fast(x).pow(2).sum()
        if number == BEFORE and behind:
            faulty.begin()
        found = torch.autograd.grad(loss, [*model.parameters()])
        torch.testing.assert_close(found, expected)
    assert faulty.calls


def test_what_torch_raises_is_seen(faulty: FaultyCode) -> None:
    """Nothing is told of the code where the graph is at fault, and it stays."""

    def program(x: Tensor, index: Tensor) -> Tensor:
        return F.embedding(index, torch.tanh(x)) * 2

    fast = trace(program, compile="now")
    for index in (1, 2, 9, 1, 2):
        if index == 9:
            with pytest.raises(IndexError):
                fast(torch.randn(5, 6), torch.tensor([index]))
        else:
            x = torch.randn(5, 6)
            given = (x, torch.tensor([index]))
            torch.testing.assert_close(fast(*given), program(*given))
    assert fast.stats()["torch_hits"] == 0


@pytest.mark.filterwarnings("ignore:backend-failed")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_statistics_of_another_type_than_torch_promises(
    dtype: torch.dtype, faulty: FaultyCode
) -> None:
    """Torch's function for shapes says float32 for what is half precision."""

    def program(x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        normed = torch.ops.aten._native_batch_norm_legit
        result = normed(x, None, None, mean, var, True, 0.1, 1e-5)[0]
        return result * 2

    fast = trace(program, compile="now")
    for _ in range(4):
        x = torch.randn(8, 3).to(dtype)
        ours = [torch.zeros(3, dtype=dtype), torch.ones(3, dtype=dtype)]
        theirs = [tensor.clone() for tensor in ours]
        torch.testing.assert_close(fast(x, *ours), program(x, *theirs))
        torch.testing.assert_close(ours, theirs)
