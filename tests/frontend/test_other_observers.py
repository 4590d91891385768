"""Debuggers and profilers: those around a traced program, and those in it."""

from __future__ import annotations

import contextlib
import cProfile
import enum
import inspect
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from magweld.frontend import trace


@contextlib.contextmanager
def debugger() -> Iterator[None]:
    """Hold the events of the interpreter."""
    if sys.version_info >= (3, 12):
        for tool in (3, 4):
            sys.monitoring.use_tool_id(tool, "debugger")
        try:
            yield
        finally:
            for tool in (3, 4):
                sys.monitoring.free_tool_id(tool)
    else:
        before = sys.gettrace()
        sys.settrace(lambda frame, event, arg: None)
        try:
            yield
        finally:
            sys.settrace(before)


def test_calls_under_a_debugger_do_not_count() -> None:
    fast = trace(lambda x: x * 2, backend="eager")
    with debugger():
        for _ in range(4):
            assert fast(torch.ones(2)).tolist() == [2, 2]
    assert fast.stats()["hits"] == 0
    assert {item.id for item in fast.breaks} <= {"tracer-active", "tool-busy"}
    assert fast.breaks
    for _ in range(3):
        fast(torch.ones(2))
    assert fast.stats()["hits"] == 2


def test_guards_that_fail_under_a_debugger_do_not_count() -> None:
    def program(x: Any, flag: str) -> Any:
        return x * 2 if flag == "a" else x

    fast = trace(program, backend="eager")
    fast(torch.ones(2), "a")
    with debugger():
        for _ in range(20):
            assert fast(torch.ones(2), "b").tolist() == [1, 1]
    for _ in range(3):
        assert fast(torch.ones(2), "b").tolist() == [1, 1]
    assert fast.stats()["hits"] == 2
    assert "unstable-guard" not in {item.id for item in fast.breaks}


def test_guards_that_fail_while_another_thread_is_monitored_do_not_count() -> None:
    def program(x: Any, flag: str) -> Any:
        return x * 2 if flag == "a" else x

    fast = trace(program, backend="eager")
    fast(torch.ones(2), "a")
    lock = fast._magweld_engine._lock
    holder = threading.Thread(target=lock.acquire)
    holder.start()
    holder.join()
    for _ in range(20):
        assert fast(torch.ones(2), "b").tolist() == [1, 1]
    assert "unstable-guard" not in {item.id for item in fast.breaks}
    fast._magweld_engine._lock = threading.RLock()
    for _ in range(3):
        fast(torch.ones(2), "b")
    assert fast.stats()["hits"] == 2


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="events belong to a tool")
def test_a_debugger_that_comes_during_a_run_stays() -> None:
    coming: list[Any] = []

    @torch.library.custom_op("magweld_tests::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        if coming:
            sys.settrace(coming.pop())
        return x * 2

    def attach(frame: Any, event: str, arg: Any) -> None:
        """Look at nothing."""

    fast = trace(lambda x: double(x) + 1, backend="eager")
    before = sys.gettrace()
    try:
        for _ in range(3):
            sys.settrace(None)
            coming.append(attach)
            assert fast(torch.ones(1)).tolist() == [3.0]
            assert sys.gettrace() is attach
    finally:
        sys.settrace(before)
    for _ in range(4):
        assert fast(torch.ones(1)).tolist() == [3.0]
    assert fast.stats()["hits"] == 3


def inner(x: Any) -> Any:
    return x * 2


def profiles_itself() -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        seen: list[Any] = []
        x = x + 1
        sys.setprofile(lambda frame, event, arg: seen.append((event, frame.f_code)))
        x = inner(x)
        sys.setprofile(None)
        return x, [(event, code.co_name) for event, code in seen]

    return program


def debugs_itself() -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        seen: list[Any] = []

        def note(frame: Any, event: str, arg: Any) -> Any:
            seen.append((event, frame.f_code.co_name))
            return note

        before = sys.gettrace()
        sys.settrace(note)
        x = inner(x + 1) + 1
        sys.settrace(before)
        return x, seen

    return program


def counts_its_calls() -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        x = x + 1
        with cProfile.Profile() as profile:
            x = inner(x)
        codes = [entry.code for entry in profile.getstats()]
        names = [code.co_name for code in codes if not isinstance(code, str)]
        return x, sorted(names)

    return program


class Installer:
    """What installs a profile function from native code, as far as one can see."""

    def __init__(self, note: Any) -> None:
        self.install = map(sys.setprofile, [note])


def is_profiled_by_native_code() -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        seen: list[Any] = []

        def note(frame: Any, event: str, arg: Any) -> None:
            if frame.f_code is inner.__code__:
                seen.append(event)

        x = x + 1
        list(Installer(note).install)
        x = inner(x)
        x = inner(x)
        sys.setprofile(None)
        return x, seen

    return program


@pytest.mark.parametrize(
    "make",
    [
        profiles_itself,
        debugs_itself,
        counts_its_calls,
        is_profiled_by_native_code,
    ],
)
def test_what_a_program_installs_sees_its_frames_in_every_call(make: Any) -> None:
    eager = [make()(torch.ones(1)) for _ in range(5)]
    fast = trace(make(), backend="eager")
    found = [fast(torch.ones(1)) for _ in range(5)]
    assert [seen for _, seen in found] == [seen for _, seen in eager]
    assert [x.tolist() for x, _ in found] == [x.tolist() for x, _ in eager]
    assert sys.getprofile() is None


def reads_a_line(x: Any) -> Any:
    frame = sys._getframe()
    return x * 2, frame.f_lineno - frame.f_code.co_firstlineno


def reads_variables(x: Any) -> Any:
    y = x * 2
    zlib.crc32(b"a break")
    frame = inspect.currentframe()
    assert frame is not None
    return y, sorted(frame.f_locals)


def reads_variables_of_its_caller(x: Any) -> Any:
    def ask() -> list[str]:
        return sorted(sys._getframe(1).f_locals)

    y = x * 2
    zlib.crc32(b"a break")
    unread = 1
    return y, [*ask(), unread]


def lists_its_frames(x: Any) -> Any:
    def ask() -> list[Any]:
        return [(item.function, item.lineno) for item in inspect.stack()[:2]]

    return x * 2, ask()


def walks_a_traceback(x: Any) -> Any:
    y = x * 2
    zlib.crc32(b"a break")
    unread = "a"
    try:
        int(unread)
    except ValueError as error:
        trail = error.__traceback__
        assert trail is not None
        names = set(trail.tb_frame.f_locals)
        return y, sorted(names), trail.tb_lineno
    return y, unread


@pytest.mark.parametrize(
    "program",
    [
        reads_a_line,
        reads_variables,
        lists_its_frames,
        walks_a_traceback,
    ],
)
def test_frames_tell_what_they_tell_in_eager(program: Any) -> None:
    eager, fast = program(torch.ones(1)), trace(program, backend="eager")
    found = [fast(torch.ones(1)) for _ in range(5)]
    assert [rest for _, *rest in found] == [list(eager[1:])] * 5
    assert all(x.tolist() == [2.0] for x, *_ in found)
    assert "frame-access" in {item.id for item in fast.breaks}


def test_what_looks_at_frames_is_not_split_again() -> None:
    eager = reads_variables_of_its_caller(torch.ones(1))
    fast = trace(reads_variables_of_its_caller, backend="eager")
    fast(torch.ones(1))  # split before it looks
    for _ in range(3):
        assert fast(torch.ones(1))[1] == eager[1]
    assert fast.stats()["hits"] == 0


def test_library_code_that_asks_for_globals_splits() -> None:
    def program(x: Any) -> Any:
        x = x * 2
        kind = enum.Enum("kind", "a b")
        return x + len(kind), kind.__module__

    fast = trace(program, backend="eager")
    for _ in range(4):
        assert fast(torch.ones(1))[1] == program(torch.ones(1))[1]
    assert "frame-access" not in {item.id for item in fast.breaks}


class Noting(TorchFunctionMode):
    """Notes which functions of torch it is asked about."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.append(function.__name__)
        return function(*args, **(kwargs or {}))


def test_a_mode_sees_the_functions_of_the_program_only() -> None:
    """Operators are watched below the modes, some of which they have never met."""
    rows = torch.ones(2, 6)

    def program(x: torch.Tensor, names: list[str]) -> torch.Tensor:
        with Noting(names):
            x.set_(rows[:1].clone())
            x.add_(1)
            return x * 2

    traced = trace(program, backend="eager")
    for _ in range(3):
        expected: list[str] = []
        found: list[str] = []
        result = program(torch.zeros(2, 6), expected)
        assert torch.equal(traced(torch.zeros(2, 6), found), result)
        assert found == expected
