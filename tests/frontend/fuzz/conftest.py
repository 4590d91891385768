"""Options of the fuzzer."""

from __future__ import annotations

import gc

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzz")
    group.addoption("--fuzz-programs", type=int, help="number of generated programs")
    group.addoption("--fuzz-seed", type=int, help="seed of the first of them")


@pytest.fixture(scope="session", autouse=True)
def _only_programs_are_collected() -> None:
    """Keep torch out of collections, which programs ask for: that is half the time.

    What earlier tests have imported as well; it stays to the end of the process.
    """
    gc.freeze()
