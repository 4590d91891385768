"""What several threads touch, stepped through the order that breaks it."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import torch
from torch import Tensor

from magweld.frontend import trace
from magweld.frontend.guards import versions


def test_monitored_runs_that_overlap_leave_torch_compile_as_it_was() -> None:
    import torch._dynamo

    before = torch._dynamo.eval_frame._stance
    first_is_in, second_is_in = threading.Event(), threading.Event()
    first_is_out = threading.Event()

    def first(x: Tensor) -> Tensor:
        first_is_in.set()
        assert second_is_in.wait(60)
        return x + 1

    def second(x: Tensor) -> Tensor:
        second_is_in.set()
        assert first_is_out.wait(60)
        return x + 2

    def run_first() -> None:
        trace(first, backend="eager")(torch.ones(1))
        first_is_out.set()

    def run_second() -> None:
        assert first_is_in.wait(60)
        trace(second, backend="eager")(torch.ones(1))

    threads = [threading.Thread(target=run) for run in (run_first, run_second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert torch._dynamo.eval_frame._stance == before


class State(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = 2.0

    def forward(self, x: Tensor) -> Tensor:
        return x * self.own


def test_a_write_between_a_check_and_its_versions_is_noticed(monkeypatch: Any) -> None:
    state = State()
    fast = trace(state, backend="eager")
    x = torch.ones(1)
    assert versions.versions_work()
    make = versions.Versions
    written = []

    def write_before(*args: Any) -> Any:
        # Another thread writes when the values have been read, the versions not yet.
        written.append(True)
        state.own = 5.0
        return make(*args)

    monkeypatch.setattr(versions, "Versions", write_before)
    found = [fast(x).item() for _ in range(12)]
    assert written
    # The call in which it happens may see either.
    assert found[1:] == [5.0] * 11


def test_a_failed_guard_keeps_nothing() -> None:
    fast = trace(lambda x: (x * 2).sum(), backend="eager")
    kept = []
    gc.collect()
    gc.disable()
    try:
        for turn in range(12):
            x = torch.ones(4, dtype=(torch.float32, torch.int32)[turn % 2])
            kept.append(weakref.ref(x))
            fast(x)
            del x
        assert sum(reference() is not None for reference in kept) <= 1
    finally:
        gc.enable()


LOCAL = threading.local()


class Defaults(threading.local):
    z = 1


DEFAULTS = Defaults()


def test_state_of_threads_is_not_recorded() -> None:
    def count(x: Tensor) -> Tensor:
        LOCAL.n = getattr(LOCAL, "n", 0) + 1
        return x * LOCAL.n

    def default(x: Tensor) -> Tensor:
        DEFAULTS.z += 1
        return x * DEFAULTS.z

    for program in (count, default):
        results = []
        for call in (program, trace(program, backend="eager")):
            LOCAL.__dict__.clear()
            DEFAULTS.__dict__.clear()
            values = [call(torch.ones(1)).item() for _ in range(4)]
            thread = threading.Thread(
                target=lambda c=call, v=values: v.append(c(torch.ones(1)).item())
            )
            thread.start()
            thread.join(60)
            results.append(values)
        assert results[0] == results[1]
