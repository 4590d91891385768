"""What operators warn of is seen in hits as eagerly, and at the line of the program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.frontend import trace

CALLS = 4

PROGRAMS: dict[str, Callable[[Tensor], Any]] = {
    "native code": lambda x: x[:1].std(0) * 2,
    "an index": lambda x: (x + 1)[torch.ones(4, dtype=torch.uint8)],
    "an unused result": lambda x: (x[:1].var(0), x * 2)[1],
    "a function of torch": lambda x: F.mse_loss(x, x[0]),
    "an argument": lambda x: torch.tensor(x) + 1,
    "a result of another size": lambda x: torch.add(x, 1, out=torch.empty(1)),
    "an attribute": lambda x: (x * 2).grad is None,
}


def texts(program: Callable[[Tensor], Any], action: Any, x: Tensor) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        for _ in range(CALLS):
            program(x)
    told = (str(warning.message) for warning in seen)
    return [text for text in told if "backend-failed" not in text]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_each_call_warns_as_eager_does(name: str, backend: str) -> None:
    program = PROGRAMS[name]
    x = torch.randn(4, 3, requires_grad=name == "an attribute")
    expected = texts(program, "always", x)
    fast = trace(program, backend=backend, compile="now")
    assert texts(fast, "always", x) == expected
    assert len(expected) == CALLS
    assert fast.stats()["hits"] >= CALLS - 1, fast.explain()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("race", ["0", "1"])
def test_a_call_warns_where_those_before_were_ignored(
    name: str, race: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("MAGWELD_RACE", race)
    program = PROGRAMS[name]
    x = torch.randn(4, 3, requires_grad=name == "an attribute")
    fast = trace(program, compile="now")
    assert texts(fast, "ignore", x) == []
    assert texts(fast, "always", x) == texts(program, "always", x)
    assert texts(fast, "ignore", x) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            fast(x)
    assert capfd.readouterr().err == ""


def test_filters_stay() -> None:
    before = list(warnings.filters)
    fast = trace(lambda x: F.mse_loss(x, x[0]), backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fast(torch.randn(4, 3))
        assert len(warnings.filters) == len(before) + 1
    assert warnings.filters == before


def test_a_function_of_torch_warns_at_the_line_of_the_program() -> None:
    def program(x: Tensor) -> Tensor:
        return F.mse_loss(x, x[0])

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trace(program, backend="eager")(torch.randn(4, 3))
    (warning,) = seen
    assert warning.filename == __file__
    assert warning.lineno == program.__code__.co_firstlineno + 1


def test_a_line_of_the_program_warns_once() -> None:
    def first(x: Tensor) -> Tensor:
        return x[:1].std(0)

    def second(x: Tensor) -> Tensor:
        return x[:1].std(0)

    x = torch.randn(4, 3)
    for program in (first, second):
        fast = trace(program, backend="eager")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("default")
            fast(x)
            trace(program, backend="eager")(x)
        (warning,) = seen
        assert warning.filename == __file__
        assert warning.lineno == program.__code__.co_firstlineno + 1


def test_filters_of_the_program_count() -> None:
    def program(x: Tensor) -> Tensor:
        return x[:1].std(0)

    x = torch.randn(4, 3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        trace(program, backend="eager")(x)
    assert not seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = trace(program, backend="eager")
        for _ in range(CALLS):
            with pytest.raises(UserWarning, match="degrees of freedom"):
                fast(x)


def test_only_the_operator_that_warns_is_left_to_torch() -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.tanh(x @ x.t()) * 2 + 1
        return torch.relu(y - y[:1].std(0, keepdim=True)).sum(1)

    fast, x = trace(program, compile="now"), torch.randn(8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("default", message="std")
        for _ in range(CALLS):
            torch.testing.assert_close(fast(x), program(x), equal_nan=True)
    assert fast.stats()["hits"] == CALLS - 1
    assert fast.stats()["records"] == 1


@pytest.mark.parametrize("compile", ["now", "background"])
def test_no_call_is_lost_where_warnings_are_errors(compile: str) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.fft.fft(x).conj()

    fast, x = trace(program, compile=compile), torch.randn(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(CALLS):
            torch.testing.assert_close(fast(x), program(x))
            fast.wait()


PLACED: dict[str, Callable[[Tensor], Any]] = {
    "native code": lambda x: x[:1].std(0) * 2,
    "a function of torch": lambda x: F.mse_loss(x, x[0]),
    "in a branch": lambda x: x[:1].std(0) if x.sum() < 1e9 else x * 2,
}


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_hits_warn_at_the_line_of_the_program(name: str, backend: str) -> None:
    program, x = PLACED[name], torch.randn(4, 3)
    fast = trace(program, backend=backend, compile="now")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(CALLS):
            fast(x)
    places = [(one.filename, one.lineno) for one in seen]
    assert places == [(__file__, program.__code__.co_firstlineno)] * CALLS
    assert fast.stats()["hits"] == CALLS - 1, fast.explain()


def test_a_line_that_has_warned_does_not_warn_in_hits() -> None:
    def program(x: Tensor) -> Tensor:
        return x[:1].std(0) * 3

    fast, x = trace(program, compile="now"), torch.randn(4, 3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(CALLS):
            fast(x)
        program(x)
    assert len(seen) == 1
    assert fast.stats()["hits"] == CALLS - 1
