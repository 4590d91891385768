"""Fixtures of the front end's tests: traced callables compared with eager ones."""

from __future__ import annotations

import copy
import functools
import sys
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from magweld.frontend.differential.check import compare, run
from magweld.frontend.differential.describe import Description, Walk, generator_states
from magweld.frontend.traced import Traced, trace

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))


def equal(left: Any, right: Any) -> bool:
    """Return whether two results agree in type, structure and every value."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        same = left.dtype == right.dtype and left.shape == right.shape
        return same and left.stride() == right.stride() and torch.equal(left, right)
    if isinstance(left, (tuple, list, deque)):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(equal(left[k], right[k]) for k in left)
    if hasattr(left, "__dict__") and not callable(left):
        return equal(vars(left), vars(right))
    return bool(left == right)


@dataclass
class Checker:
    """A callable beside its traced form; both see equal arguments and state."""

    eager: Callable[..., Any]
    traced: Traced

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        """Call both on the same arguments and compare; tell what the traced did."""
        before = self.traced.stats()
        mine = self.traced(*args, **kwargs)
        theirs = self.eager(*args, **kwargs)
        assert equal(mine, theirs), f"{mine} is not {theirs}\n{self.traced.explain()}"
        return self.outcome(before)

    @property
    def assumes(self) -> bool:
        """Whether the newest record takes a truth of a tensor for that of all calls."""
        return self.traced.records[0].assumes

    def outcome(self, before: dict[str, int]) -> str:
        """Return "hit", "record" or the id of the break since `before`."""
        after = self.traced.stats()
        if any(record.ends is not None for record in self.traced.records[:1]):
            return self.traced.breaks[-1].id
        if after["hits"] > before["hits"]:
            return "hit"
        if after["graphs"] > before["graphs"]:
            return "record"
        return self.traced.breaks[-1].id if self.traced.breaks else "eager"


@pytest.fixture
def checker() -> Callable[[Callable[..., Any]], Checker]:
    """Return a factory of checkers for functions without effects on their state."""

    def make(function: Callable[..., Any]) -> Checker:
        return Checker(function, trace(function, backend="eager"))

    return make


@dataclass
class Twins:
    """Two equal objects with a method `step`; one runs traced, the other eagerly."""

    eager: Any
    mine: Any
    traced: Traced

    def step(self, *args: Any) -> str:
        """Call `step` on both with equal arguments; compare results and all state."""
        before = self.traced.stats()
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        result, expected = self.traced(*mine), self.eager.step(*theirs)
        assert equal(result, expected), self.traced.explain()
        assert equal(vars(self.mine), vars(self.eager)), self.traced.explain()
        assert equal(mine, theirs), self.traced.explain()
        return Checker(self.eager, self.traced).outcome(before)


@pytest.fixture
def twins() -> Callable[[Callable[[], Any]], Twins]:
    """Return a factory of twins from a factory of objects."""

    def make(factory: Callable[[], Any]) -> Twins:
        mine = factory()
        return Twins(factory(), mine, trace(mine.step, backend="eager"))

    return make


IMPORTS = "import torch, collections, functools, abc, contextvars, math\n"


def play(
    setup: str, body: str, calls: list[str], **options: Any
) -> tuple[list[Description], Any]:
    """Run calls of a program; return what was there after each, and its callable.

    Args:
        **options: How it is traced; it runs eagerly if there are none.
    """
    module = types.ModuleType("twin")
    module.__file__ = "<twin>"
    space = vars(module)
    sys.modules["twin"] = module
    exec(f"{IMPORTS}{setup}\ndef f(x, v=None):\n    {body}", space)
    function = trace(space["f"], **options) if options else space["f"]
    descriptions = []
    results: list[Any] = []
    space["results"] = results
    for call in calls:
        torch.default_generator.manual_seed(0)
        change, _, source = call.rpartition(" | ")
        changed = run(functools.partial(exec, change, space))
        arguments = eval(f"({source},)", space)
        ending = run(functools.partial(function, *arguments))
        results.append(ending.result)
        errors = [repr(ended.error) for ended in (changed, ending)]
        state = [(k, v) for k, v in space.items() if k[0] != "_" and k != "f"]
        roots = [("errors", errors), ("result", ending.result), ("args", arguments)]
        descriptions.append(Walk().describe([*roots, *state, *generator_states()]))
    del sys.modules["twin"]
    return descriptions, function


@pytest.fixture
def beside_twin() -> Callable[..., tuple[str | None, Traced]]:
    """Return a function that plays calls traced and eagerly.

    It takes the source of the state, the body of `f(x, v)`, calls in the form "changes
    before it | arguments", and whether hits are compared with eager, too; it returns
    the first difference and the callable.
    """

    def compare_twins(
        setup: str, body: str, calls: list[str], check: bool = True
    ) -> tuple[str | None, Traced]:
        expected, _ = play(setup, body, calls)
        found, traced = play(setup, body, calls, backend="eager", check=check)
        for number, pair in enumerate(zip(expected, found, strict=True)):
            difference = compare(*pair)
            if difference is not None:
                return f"call {number}: {difference}", traced
        return None, traced

    return compare_twins
