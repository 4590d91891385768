"""Programs that try to get another answer from a hit than from eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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


@pytest.mark.parametrize("name", SPREAD)
def test_numbers_in_sequences_are_those_of_the_call(
    name: str, beside_twin: Play, whole: bool
) -> None:
    places, uses = list(PLACES), USES.strip().splitlines()
    place, _, use = name.partition(": ")
    # Each use in one place, and all places, unless all pairs are wanted.
    if whole or uses.index(use) % len(places) == places.index(place):
        played(beside_twin, SPREAD[name], SPREAD[name].indented)
