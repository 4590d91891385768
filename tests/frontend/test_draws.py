"""Numbers from the random generators of the process: drawn again on every call."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib

import numpy as np
import pytest
import torch

from magweld.frontend.traced import trace

X = torch.tensor([1.0, 2.0, 3.0])
LIMITS = {"low": 0.5}


def state():
    kind, keys, *rest = np.random.get_state()
    return random.getstate(), kind, keys.tolist(), rest


def outcomes(program, seeds, **options):
    """Return what calls of a traced program did, each compared with eager."""
    traced = trace(program, backend="eager", **options)
    result = []
    for seed in seeds:
        hits = traced.stats()["hits"]
        seen = []
        for function in (traced, program):
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
            seen.append((function(X), state()))
        (mine, after), (theirs, expected) = seen
        assert torch.equal(mine, theirs), traced.explain()
        assert after == expected, traced.explain()
        result.append(traced.stats()["hits"] > hits)
    return result


def uses_number(x):
    return x * random.random()


def uses_helpers(x):
    order = [1.0, 2.0, 3.0]
    random.shuffle(order)
    return x * order[0] + random.uniform(0, 2) + random.randint(1, 9)


def uses_normal(x):
    return x * random.gauss(0.0, 1.0) + random.choice((1.0, 2.0))


def uses_arrays(x):
    return (
        x * np.random.uniform(0, 1) + float(np.random.normal()) + np.random.randint(3)
    )


def mixes_generators(x):
    return x * random.random() + torch.rand(3) * np.random.rand()


NUMBERS = [uses_number, uses_helpers, uses_normal, uses_arrays, mixes_generators]


@pytest.mark.parametrize("program", NUMBERS, ids=lambda p: p.__name__)
def test_the_same_numbers_are_a_hit_and_others_are_not(program):
    assert outcomes(program, [7, 7, 8, 7, 8]) == [False, True, False, True, True]


def decides(x):
    return x * 2.0 if random.random() < LIMITS["low"] else x * 3.0


def decides_reflected(x):
    return x * 2.0 if 0.5 >= np.random.rand() else x * 3.0


@pytest.mark.parametrize("program", [decides, decides_reflected])
def test_a_number_that_only_decides(program):
    found = outcomes(program, range(12))
    assert found.count(False) == 2


def decides_by_another(x):
    return x * 2.0 if random.random() < random.random() else x * 3.0


def decides_by_another_variable(x):
    number, other = random.random(), np.random.rand()
    if number > other:
        return x * 2.0
    return x * 3.0


@pytest.mark.parametrize("program", [decides_by_another, decides_by_another_variable])
def test_numbers_that_are_compared_with_each_other_are_values(program):
    # So few calls that records which never fit are still asked.
    found = outcomes(program, [*range(8), 3])
    assert found == [False] * 8 + [True]


def test_the_limit_of_a_decision_is_guarded(monkeypatch):
    traced = trace(decides, backend="eager")
    random.seed(1)
    traced(X)
    monkeypatch.setitem(LIMITS, "low", 0.0)
    random.seed(1)
    assert torch.equal(traced(X), X * 3.0)


def decides_later(x):
    number = random.uniform(0, 1)
    other = random.random()
    for _ in range(2):
        y = x * 2.0 if number < LIMITS["low"] else x * 3.0
    return y + 1.0 if other < 0.5 else y


def is_thrown_away(x):
    number = random.uniform(0, 1)
    if x.shape[0] > 5:
        x = x * number
    number = 2.0
    random.random()
    return x + number


def is_left_in_variables(x):
    def inner(y):
        number = random.random()
        other = random.random()
        if y is None:
            return number + other
        return x * 2.0

    return inner(x) + inner(x)


@pytest.mark.parametrize(
    ("program", "records"),
    [(decides_later, 4), (is_thrown_away, 1), (is_left_in_variables, 1)],
)
@pytest.mark.parametrize("options", [{}, {"dynamic": {"x": (0,)}}])
def test_numbers_in_variables(program, records, options):
    found = outcomes(program, range(16), **options)
    assert found.count(False) == records


def test_a_number_is_compared_with_one_that_is_lifted():
    def program(x, rate):
        number = random.random()
        return x * 2.0 if number < rate else x * 3.0

    traced = trace(program, backend="eager", dynamic={"rate": True})
    for seed in range(20):
        for rate in (0.3, 0.5, 0.7):
            random.seed(seed)
            mine = traced(X, rate)
            random.seed(seed)
            assert torch.equal(mine, program(X, rate)), traced.explain()


def used_in_a_call(x):
    number = random.random()
    return torch.mul(x, number)


def used_in_the_other_way(x):
    number = random.random()
    if (x * number).sum() > 100.0:
        return x * number
    return x + 1.0


def only_used_in_the_other_way(x):
    number = random.random()
    return x * number if x.sum() > 100.0 else x + 1.0


def copied(x):
    number = random.random()
    other = number
    return x if number < 2.0 else x + 1.0, x * other


def copied_and_used_by_the_first_name(x):
    number = random.random()
    other = number
    return x * number, other is None


def seen_as_local(x):
    number = random.random()
    return x * locals()["number"]


def behind_a_break(x):
    number = random.random()
    y = x + 1.0 if number < 2.0 else x
    zlib.crc32(b"")
    return y * number


def raised(x):
    number = random.random()
    try:
        raise ValueError(number)
    except ValueError as error:
        return x * error.args[0]


USES = [
    *(used_in_a_call, used_in_the_other_way, only_used_in_the_other_way, copied),
    copied_and_used_by_the_first_name,
    *(seen_as_local, behind_a_break, raised),
]


@pytest.mark.parametrize("options", [{}, {"dynamic": {"x": (0,)}}])
@pytest.mark.parametrize("program", USES, ids=lambda p: p.__name__)
def test_uses_of_numbers_in_variables(program, options):
    traced = trace(program, backend="eager", **options)
    for scale in (1.0, 100.0, 1.0, 100.0):
        for seed in (1, 2, 1):
            random.seed(seed)
            mine = traced(X * scale)
            random.seed(seed)
            theirs = program(X * scale)
            assert repr(mine) == repr(theirs), traced.explain()


def decides_and_uses(x):
    number = random.random()
    return x * number if number < 2.0 else x


def decides_twice(x):
    return x * 2.0 if 0.2 < random.random() < 0.9 else x


@pytest.mark.parametrize("program", [decides_and_uses, decides_twice])
def test_a_number_that_is_used_elsewhere_is_a_value(program):
    assert outcomes(program, [1, 2, 1]) == [False, False, True]


def test_generators_are_put_back_before_other_records_are_asked():
    def program(x):
        for _ in range(4):
            x = x + 1.0 if random.random() < 0.5 else x * 2.0
        return x

    assert outcomes(program, [*range(6), *range(6)])[6:] == [True] * 6


def test_a_generator_of_its_own_is_refused():
    generator = random.Random(3)
    traced = trace(lambda x: x * generator.random(), backend="eager")
    twin = random.Random(3)
    for _ in range(3):
        assert torch.equal(traced(X), X * twin.random())
    assert traced.breaks[0].id == "random-state"


def test_a_program_that_seeds_is_refused():
    def program(x):
        random.seed(5)
        return x * random.random()

    traced = trace(program, backend="eager")
    assert torch.equal(traced(X), traced(X))
    assert traced.breaks[0].id == "random-state"


def test_an_arm_of_a_branch_draws_only_when_it_is_taken():
    def program(x):
        return x * random.randint(2, 9) if x.sum() > 0 else x + 1.0

    traced = trace(program, backend="eager")
    for factor in (1.0, 1.0, -1.0, 1.0, -1.0, -1.0):
        seen = []
        for function in (traced, program):
            random.seed(7)
            seen.append((function(X * factor), random.getstate()))
        (mine, after), (theirs, expected) = seen
        assert torch.equal(mine, theirs)
        assert after == expected


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * random.random()


def test_an_operator_in_python_draws_once():
    assert outcomes(lambda x: Noisy.apply(x) + 1.0, [1, 1, 2]) is not None


_SEEDED_BEFORE_IMPORTS = """
import random, sys, torch
random.seed(1)
states = random.getstate(), torch.get_rng_state()
import magweld
from magweld.frontend import trace
fast = trace(lambda x, n: x * n, backend="eager")
for n in range(2, 7):
    fast(torch.ones(n + 1), n)
magweld.compile, magweld.compile_portable, magweld.load, magweld.TuneOptions
from magweld.progress import progress
from magweld.tuning.watching import watching
sys.stderr.isatty = lambda: True
with progress("compiling"), watching(True) as bar:
    bar.begin(1)
assert "rich.progress" in sys.modules
assert random.getstate() == states[0]
assert torch.equal(torch.get_rng_state(), states[1])
"""


def test_imports_draw_nothing():
    command = [sys.executable, "-c", _SEEDED_BEFORE_IMPORTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
