"""Fixtures of the end-to-end tests: programs through the default backend and eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from magweld import api
from magweld.frontend import Traced, trace

SMALL_DEVICE = """
[small]
units = 2
threads = 1
warp = 1
vector_bits = 256
peak_gflops = {peak}
"""
LEVEL = """
[[small.levels]]
name = "{}"
capacity = {}
bandwidth = {}
transaction = 64
units = {}
kind = "{}"
"""


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep compiled programs of this session in a directory of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGWELD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        api.compile_service.cache_clear()
        yield
        api.compile_service.cache_clear()


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def assert_same(mine: Any, theirs: Any) -> None:
    """Compare two results in structure, types, strides and values."""
    assert type(mine) is type(theirs)
    if isinstance(mine, torch.Tensor):
        assert mine.stride() == theirs.stride()
        assert mine.requires_grad == theirs.requires_grad
        torch.testing.assert_close(mine, theirs, equal_nan=True)
    elif isinstance(mine, dict):
        assert list(mine) == list(theirs)
        for key in mine:
            assert_same(mine[key], theirs[key])
    elif isinstance(mine, (tuple, list)):
        assert len(mine) == len(theirs)
        for left, right in zip(mine, theirs, strict=True):
            assert_same(left, right)
    else:
        assert mine == theirs


@dataclass(frozen=True)
class Compiled:
    """A program that was traced and answers from compiled code."""

    eager: Callable[..., Any]
    traced: Traced

    def compare(self, *args: Any) -> Any:
        """Call it and eager on equal arguments; compare results and arguments.

        Returns:
            The arguments and the result of the compiled program.
        """
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        hits = self.traced.stats()["hits"]
        result = self.traced(*mine)
        assert self.traced.stats()["hits"] == hits + 1, self.traced.explain()
        assert_same(result, self.eager(*theirs))
        assert_same(mine, theirs)
        return mine, result


def compile_for(function: Callable[..., Any], *args: Any) -> Compiled:
    """Trace a program on copies of arguments and require that it was compiled."""
    traced = trace(function)
    traced(*copy.deepcopy(args))
    (record,) = traced.records or (None,)
    assert record is not None, traced.explain()
    assert isinstance(record.compiled, api.CompiledGraph), traced.explain()
    return Compiled(function, traced)


@pytest.fixture
def compiled() -> Callable[..., Compiled]:
    """Return `compile_for`: (function, *args) to a compiled program."""
    return compile_for


@pytest.fixture
def same() -> Callable[[Any, Any], None]:
    """Return `assert_same`."""
    return assert_same


@pytest.fixture(scope="session")
def small_device(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a maker of devices: (capacity, bandwidth, peak) of their only cache."""

    def make(capacity: int, bandwidth: float = 200.0, peak: float = 100.0) -> str:
        levels = (
            ("dram", 0, 20.0, 1, "explicit"),
            ("l1", capacity, bandwidth, 2, "cache"),
            ("register", 2048, 800.0, 2, "explicit"),
        )
        path = tmp_path_factory.mktemp("device") / "small.toml"
        text = "".join(LEVEL.format(*level) for level in levels)
        path.write_text(SMALL_DEVICE.format(peak=peak) + text)
        return f"{path}#small"

    return make
