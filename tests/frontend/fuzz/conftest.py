"""Options of the fuzzer."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzz")
    group.addoption("--fuzz-programs", type=int, help="number of generated programs")
    group.addoption("--fuzz-seed", type=int, help="seed of the first of them")
