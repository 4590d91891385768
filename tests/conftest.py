"""Settings of all tests: traced callables compile in the call, and use what it gives.

Whether torch is faster, and when a worker has ended, depends on time. So does how long
examples take to generate, which Hypothesis would count as a failure.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from magweld.stand_by import StandBy

if TYPE_CHECKING:
    from magweld.runtime.worker_pool import WorkerPool

os.environ.setdefault("MAGWELD_COMPILE", "now")
os.environ.setdefault("MAGWELD_RACE", "0")
# Several processes share the cores: threads that wait must not keep others from
# running. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole",
        action="store_true",
        help="run whole grids and counts where a part of them is usual",
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what is for `--whole`, and most cases of grids with a sample.

    Tests that the command line names run in any case.
    """
    if config.getoption("--whole") or any("::" in arg for arg in config.args):
        return
    left_out = {item for item in items if item.get_closest_marker("whole")}
    grids: dict[tuple[Path, str, int], list[pytest.Item]] = {}
    for item in items:
        sample = item.get_closest_marker("sample")
        if sample is not None and item not in left_out:
            name = getattr(item, "originalname", item.name)
            grids.setdefault((item.path, name, *sample.args), []).append(item)
    for (*_, count), cases in grids.items():
        # The same in each run. Even steps could meet one value of a parameter alone.
        kept = random.Random(0).sample(cases, min(count, len(cases)))
        left_out |= {*cases} - {*kept}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def _imports_are_not_collected() -> None:
    """Keep all that was imported out of collections: each would look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _code_may_not_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what compiled code raises seen where torch, which answers then, does not."""

    def answer(self: StandBy, inputs: Sequence[Any], error: Exception) -> Any:
        self.run(*inputs)
        raise error

    monkeypatch.setattr(StandBy, "answer", answer)


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether tests are to run all that they can, and not the usual part of it."""
    return bool(request.config.getoption("--whole"))


@pytest.fixture(scope="session")
def compile_workers() -> Iterator[WorkerPool]:
    """A worker that outlives compile services: each takes a second to start."""
    from magweld.runtime.worker_pool import WorkerPool

    workers = WorkerPool(1, preload=("magweld.compiler",))
    yield workers
    workers.close()


@pytest.fixture
def shared_workers(
    compile_workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the compile services of one test use the worker of all tests."""
    from magweld.runtime import service

    monkeypatch.setattr(service, "WorkerPool", lambda *args, **more: compile_workers)


settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")
