"""Operators that run for their errors and effects, and modes left switched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.frontend import trace


def after(x: Tensor) -> Tensor:
    return (x.exp() * 2 + 1).tanh().sum(-1)


def looks_up(x: Tensor) -> Tensor:
    F.embedding((x[0, 0] * 0 + x[1, 1]).long()[None], x)
    return after(x)


def gathers(x: Tensor) -> Tensor:
    x.gather(0, (x[0] * 0 + x[1, 1]).long()[None])
    return after(x)


def factors(x: Tensor) -> Tensor:
    torch.linalg.cholesky(x, upper=True)
    return after(x)


@pytest.mark.parametrize("program", [looks_up, gathers, factors])
def test_what_nobody_reads_raises_all_the_same(program: Callable[..., Any]) -> None:
    fast = trace(program)
    for number in range(6):
        x, raised = torch.eye(3) * (1 if number < 4 else -5), []
        for run in (fast, program):
            try:
                run(x)
                raised.append("")
            except Exception as error:
                raised.append(type(error).__name__)
        assert raised[0] == raised[1]
        assert bool(raised[0]) == (number >= 4)
    assert fast.records[0].is_compiled


@pytest.mark.parametrize("program", [looks_up, gathers])
def test_a_step_of_training_raises_what_nobody_reads(
    program: Callable[..., Any],
) -> None:
    fast = trace(program)
    for number in range(6):
        x = (torch.eye(3) * (1 if number < 4 else 7)).requires_grad_()
        if number < 4:
            fast(x).sum().backward()
            continue
        with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
            fast(x)
    assert fast.records[0].is_compiled


EYE = torch.eye(3)
_ERRORS: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "cholesky": (lambda x: after(torch.linalg.cholesky(x)), -EYE),
    "inv": (lambda x: after(torch.linalg.inv(x)), 0 * EYE),
    "inverse": (lambda x: after(x.inverse()), 0 * EYE),
    "solve": (lambda x: after(torch.linalg.solve(x, x + 1)), 0 * EYE),
    "lu_factor": (lambda x: after(torch.linalg.lu_factor(x)[0]), 0 * EYE),
    "ldl_factor": (lambda x: after(torch.linalg.ldl_factor(x)[0]), 0 * EYE),
    "eigh": (lambda x: after(torch.linalg.eigh(x)[1]), EYE * float("nan")),
    "svd": (lambda x: after(torch.linalg.svd(x)[0]), EYE * float("nan")),
    "tensorinv": (lambda x: after(torch.linalg.tensorinv(x, ind=1)), 0 * EYE),
    "bincount": (lambda x: after(torch.bincount(x.sum(0).long()).float()), -EYE),
    "one_hot": (lambda x: after(F.one_hot(x.sum(0).long(), 4).float()), 7 * EYE),
    "nll_loss": (lambda x: F.nll_loss(x.exp(), x.sum(0).long()).exp(), 7 * EYE),
    "bce": (lambda x: F.binary_cross_entropy(x, x).exp(), 7 * EYE),
    "scatter": (lambda x: after(x.scatter(0, x.long(), 1.0)), 7 * EYE),
    "index_add": (lambda x: after(x.index_add(0, x[0].long(), x)), 7 * EYE),
    "index": (lambda x: after(x[x[0].long()]), 7 * EYE),
    "index_select": (lambda x: after(x.index_select(0, x[0].long())), 7 * EYE),
    "take": (lambda x: after(x.take(x.long())), 70 * EYE),
    "index_put": (lambda x: after(x.index_put((x[0].long(),), x[0])), 70 * EYE),
    "normal": (lambda x: after(torch.normal(x, x)), -EYE),
    "bernoulli": (lambda x: after(torch.bernoulli(x)), 7 * EYE),
    "multinomial": (lambda x: after(torch.multinomial(x + 1, 2).float()), -7 * EYE),
    "floor_divide": (lambda x: after((3 // (x.long() + 2)).float()), -2 * EYE),
    "remainder": (lambda x: after((3 % (x.long() + 2)).float()), -2 * EYE),
}


@pytest.mark.sample(16)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", _ERRORS)
def test_operators_raise_what_they_raise_in_eager_torch(
    name: str, training: bool
) -> None:
    program, bad = _ERRORS[name]
    fast, errors = trace(program, compile="now"), []
    for _ in range(3):
        fast(EYE.clone().requires_grad_(training))
    for run in (program, fast):
        with pytest.raises((IndexError, RuntimeError), match=r".") as caught:
            run(bad.clone().requires_grad_(training))
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]
    assert fast.stats()["hits"] >= 1


@pytest.fixture
def noted() -> Iterator[tuple[Any, list[int]]]:
    log: list[int] = []
    library = torch.library.Library("magweld_notes", "FRAGMENT")
    library.define("note(Tensor x) -> Tensor")

    def note(x: Tensor) -> Tensor:
        log.append(1)
        return x * 2

    library.impl("note", note, "CPU")
    library.impl("note", torch.empty_like, "Meta")
    yield torch.ops.magweld_notes.note, log
    library._destroy()


def test_a_users_operator_runs_though_nobody_reads_it(
    noted: tuple[Any, list[int]],
) -> None:
    note, log = noted

    def program(x: Tensor) -> Tensor:
        note(torch.softmax(x, -1))
        return after(x)

    fast = trace(program)
    for number in range(4):
        fast(torch.randn(3, 4))
        assert len(log) == number + 1
    assert fast.stats()["hits"] == 3
    assert fast.records[0].is_compiled


@pytest.mark.parametrize("enabled", [True, False])
def test_the_grad_mode_is_the_programs(enabled: bool) -> None:
    def program(x: Tensor) -> Tensor:
        torch.set_grad_enabled(not enabled)
        return after(x)

    fast = trace(program)
    try:
        for _ in range(4):
            torch.set_grad_enabled(enabled)
            fast(torch.randn(3, 4))
            assert torch.is_grad_enabled() is not enabled
    finally:
        torch.set_grad_enabled(True)
    assert fast.stats()["hits"] == 3
