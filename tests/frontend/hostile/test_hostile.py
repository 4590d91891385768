"""Programs that try to get another answer from a hit than from eager."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from magweld.frontend import engine, profitability
from magweld.frontend.profitability import Profitability
from magweld.frontend.traced import Traced

from .aliases import ALIASES
from .attributes import ATTRIBUTES
from .caches import CACHES
from .case import Case
from .comparisons import COMPARISONS
from .control import CONTROL
from .functions import FUNCTIONS
from .iterators import ITERATORS
from .keys import KEYS
from .numbers import NUMBERS
from .sets import SETS
from .spread import PLACES, SPREAD, USES

Play = Callable[..., tuple[str | None, Traced]]
GROUPS = {
    "aliases": ALIASES,
    "attributes": ATTRIBUTES,
    "caches": CACHES,
    "comparisons": COMPARISONS,
    "control": CONTROL,
    "functions": FUNCTIONS,
    "iterators": ITERATORS,
    "keys": KEYS,
    "numbers": NUMBERS,
    "sets": SETS,
}
CASES = {
    f"{group}: {name}": case for group in GROUPS for name, case in GROUPS[group].items()
}
SPLIT = [name for name, case in CASES.items() if case.split]
# Of those with a break, one in so many runs where not all are wanted.
_EACH = 6


def played(play: Play, case: Case, body: str) -> Traced:
    difference, traced = play(case.setup, body, case.steps, check=False)
    assert difference is None, f"{difference}\n{traced.explain()}"
    return traced


@pytest.mark.parametrize("name", CASES)
def test_calls_are_those_of_eager(name: str, beside_twin: Play) -> None:
    case = CASES[name]
    traced = played(beside_twin, case, case.indented)
    assert traced.stats()["hits"] >= case.hits, traced.explain()


@pytest.mark.parametrize("name", SPLIT)
def test_the_same_with_a_break(name: str, beside_twin: Play, whole: bool) -> None:
    if whole or SPLIT.index(name) % _EACH == 0:
        played(beside_twin, CASES[name], CASES[name].split)


class Dice:
    """A clock whose steps are drawn: whether hits pay is found both ways, in turn."""

    def __init__(self) -> None:
        self._random = random.Random(3)
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self._random.choice((0.5, 1.0, 2.0, 4.0))
        return self._now


@pytest.mark.parametrize("name", CASES)
def test_whoever_answers_calls_they_are_those_of_eager(
    name: str, beside_twin: Play, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole and list(CASES).index(name) % _EACH:
        return

    def comparing(
        races: bool, tell: Callable[[str], None], is_busy: Callable[[], bool]
    ) -> Profitability:
        return Profitability(True, tell, clock=Dice(), is_busy=is_busy)

    monkeypatch.setattr(engine, "Profitability", comparing)
    monkeypatch.setattr(profitability, "_PAUSE", 2)
    case = CASES[name]
    steps = [step for step in case.steps for _ in range(2)]
    difference, traced = beside_twin(case.setup, case.indented, steps, check=False)
    assert difference is None, f"{difference}\n{traced.explain()}"
    stats = traced.stats()
    if not stats["breaks"]:  # each part behind a break is a hit or a miss as well
        assert stats["calls"] == stats["hits"] + stats["misses"] + stats["eager"]


@pytest.mark.parametrize("name", SPREAD)
def test_numbers_in_sequences_are_those_of_the_call(
    name: str, beside_twin: Play, whole: bool
) -> None:
    places, uses = list(PLACES), USES.strip().splitlines()
    place, _, use = name.partition(": ")
    # Each use in one place, and all places, unless all pairs are wanted.
    if whole or uses.index(use) % len(places) == places.index(place):
        played(beside_twin, SPREAD[name], SPREAD[name].indented)
