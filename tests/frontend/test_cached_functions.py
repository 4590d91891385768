"""Functions with a cache behind writes: a hit takes what is kept, and runs nothing."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magweld.frontend import trace
from magweld.frontend.state.draws import entry_of


class State:
    """What a program writes and its cached functions read."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.calls: list[Any] = []


def made(state: State, name: str) -> Callable[..., Any]:
    """Return a function that answers from a state, with one kind of cache."""

    def scale(*args: Any, **kwargs: Any) -> float:
        state.calls.append((args, kwargs))
        return state.factor * (len(args) + len(kwargs))

    def table(*args: Any, **kwargs: Any) -> Any:
        return {}

    kinds: dict[str, Callable[..., Any]] = {
        "unbounded": functools.cache(scale),
        "bounded": functools.lru_cache(scale),
        "one": functools.lru_cache(maxsize=1)(scale),
        "none": functools.lru_cache(maxsize=0)(scale),
        "typed": functools.lru_cache(typed=True)(scale),
        "table": functools.cache(table),
    }
    return kinds[name]


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda f, thing: f(),
    "word": lambda f, thing: f("a"),
    "number": lambda f, thing: f(7),
    "float": lambda f, thing: f(7.5),
    "two": lambda f, thing: f("a", 2),
    "keyword": lambda f, thing: f("a", b=2),
    "keywords": lambda f, thing: f(b=2, a=None),
    "object": lambda f, thing: f(thing, "a"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["unbounded", "bounded", "one", "none", "typed"])
def test_what_is_kept_is_taken_and_nothing_runs_early(name: str, call: str) -> None:
    def program(x: Any, state: State, function: Any, thing: Any) -> Any:
        state.factor += 1.0
        return x * CALLS[call](function, thing)

    def run(call_program: Any) -> Any:
        state, thing = State(), object()
        function = made(state, name)
        found = []
        for number in range(12):
            if number in (5, 6, 9):
                function.cache_clear()
            if number == 7:
                function("another")  # evicts the only one
            found.append(call_program(torch.ones(2), state, function, thing)[0].item())
        return found, [len(args) for args, _ in state.calls], state.factor

    fast = trace(program, backend="eager")
    assert run(fast) == run(program)
    assert fast.stats()["hits"]


def test_an_entry_is_found_without_a_call() -> None:
    for name in ("unbounded", "bounded", "one"):
        for call in CALLS.values():
            state, thing = State(), object()
            function = made(state, name)
            given: list[Any] = []

            def note(*args: Any, given: Any = given, **kwargs: Any) -> None:
                given[:] = args, kwargs

            call(note, thing)
            entry = entry_of(function, *given)
            assert entry is not None
            assert not entry.is_there()
            call(function, thing)
            assert entry.is_there()
            function.cache_clear()
            assert not entry.is_there()
            assert len(state.calls) == 1


@pytest.mark.parametrize("name", ["none", "typed"])
def test_no_entry_can_be_told(name: str) -> None:
    function = made(State(), name)
    function("a", 1)
    assert entry_of(function, ("a", 1), {}) is None


@dataclasses.dataclass(frozen=True)
class Named:
    """What is told from others by code of the program."""

    name: str


def test_arguments_with_an_equality_of_their_own_have_no_entry() -> None:
    function = made(State(), "unbounded")
    for key in (Named("a"), (1, (Named("a"),))):
        function(key)
        assert entry_of(function, (key,), {}) is None


def test_answers_that_are_dicts_have_no_entry() -> None:
    function = functools.lru_cache(made(State(), "table"))
    function(1)
    assert entry_of(function, (1,), {}) is None


@pytest.mark.parametrize(
    "options", [{}, {"maxsize": 2}, {"maxsize": 0}, {"typed": True}]
)
@pytest.mark.parametrize("args", [(), ((1, 2),)])
def test_a_function_that_differs_each_time_runs_as_often(
    options: dict[str, Any], args: tuple[Any, ...]
) -> None:
    """A hit that asks it and cannot use what it gives would have it run once more."""

    def run(wrap: Callable[[Any], Any]) -> Any:
        called: list[Any] = []

        @functools.lru_cache(**options)
        def scale(number: int, *more: Any) -> float:
            called.append(number)
            if len(called) % 3 == 0:
                raise ValueError("the third")
            return number + 0.5 * (len(called) % 2)

        def program(x: Any, number: int) -> Any:
            try:
                return x * scale(number, *args)
            except ValueError:
                return x

        call, found = wrap(program), []
        for number in (1, 1, 1, 2, 1, 3, 2, 1, 1, 1, 2, 2, 3, 1):
            found.append(call(torch.ones(2), number).tolist())
            if len(found) % 5 == 0:
                scale.cache_clear()
            found.append(list(called))
        return found

    assert run(lambda program: trace(program, backend="eager")) == run(lambda f: f)


def test_what_a_cache_keeps_for_sequences_is_taken() -> None:
    @functools.cache
    def scale(sizes: tuple[int, ...], name: str = "a") -> float:
        return float(sum(sizes))

    fast = trace(lambda x: x * scale((2, 3), name="b"), backend="eager")
    for _ in range(4):
        assert fast(torch.ones(2)).tolist() == [5.0, 5.0]
    assert fast.stats()["hits"] == 3
    assert fast.stats()["breaks"] == 0
