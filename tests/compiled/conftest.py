"""Options of the random graphs, and a compiler cache of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from magweld import api
from magweld.runtime import service
from magweld.runtime.worker_pool import WorkerPool

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("random graphs")
    group.addoption("--random-graphs", type=int, help="number of graphs of torch")
    group.addoption("--random-seed", type=int, help="seed of the first of them")


@pytest.fixture(scope="module", autouse=True)
def no_cache(compile_workers: WorkerPool) -> Iterator[None]:
    """Compile every graph anew, whatever an earlier run has left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGWELD_CACHE", "0")
        patch.setattr(service, "WorkerPool", lambda *args, **more: compile_workers)
        api.compile_service.cache_clear()
        yield
        api.compile_service.cache_clear()
