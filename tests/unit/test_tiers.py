"""Graphs in two tiers: which one answers a call, and when that changes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from magweld import progress as progress_module
from magweld import tiers as tiers_module
from magweld.comparison import Turns
from magweld.paced import checkpoint
from magweld.progress import progress
from magweld.runtime.container import ContainerError
from magweld.tiers import Race, TieredGraph, Tiers, Verdict, Work, common_verdict
from magweld.verdicts import decode_verdict, encode_verdict


class Code:
    """Compiled code whose calls take a time of its own."""

    held_bytes = 100

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.seconds = seconds
        self.calls = 0

    def __call__(self, *inputs: Any) -> Any:
        self.calls += 1
        self._clock.now += self.seconds
        return inputs

    def mlir(self, stage: str) -> str:
        return stage

    def report(self) -> dict[str, Any]:
        return {"groups": [1]}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def raced(ours: float, theirs: float, **race: Any) -> tuple[TieredGraph, Code, Code]:
    clock = Clock()
    code, torch = Code(clock, ours), Code(clock, theirs)
    tiers = Tiers(in_background=False, races=True)
    graph = tiers.graph(torch, lambda: Work(lambda: code, Race(clock=clock, **race)))
    return graph, code, torch


@pytest.mark.parametrize(
    ("ours", "theirs", "calls"),
    [(1.0, 9.0, 12), (9.0, 1.0, 12), (1.1, 1.0, 12), (1.02, 1.0, 12), (1.0, 1.0, 18)],
)
def test_the_faster_tier_stays(ours: float, theirs: float, calls: int) -> None:
    graph, code, torch = raced(ours, theirs)
    torch_wins = ours > 1.03 * theirs
    for number in range(40):
        assert graph(number) == (number,)
        # Each call runs one of both, once.
        assert code.calls + torch.calls == number + 1
        assert (graph.verdict is not None) == (number + 1 >= calls)
    assert graph.verdict == Verdict(pytest.approx(ours), pytest.approx(theirs))
    loser, winner = (code, torch) if torch_wins else (torch, code)
    assert loser.calls <= 12 < winner.calls
    assert graph.torch_calls == torch.calls
    assert (graph.compiled is None) == torch_wins
    assert graph.report() == {"groups": [1]}
    assert ("torch runs it" in graph.describe()) == torch_wins


def test_graphs_that_are_alike_take_turns_together() -> None:
    """Each is called a few times: only together are their calls enough to decide."""
    turns = Turns()
    graphs = [raced(1.0, 3.0, turns=turns, is_shared=True) for _ in range(4)]
    for _ in range(4):
        assert not any(graph.is_decided for graph, _, _ in graphs)
        for graph, _, _ in graphs:
            graph()
    # The first call of each was not counted.
    calls = [(code.calls, torch.calls) for _, code, torch in graphs]
    assert calls == [(3, 1), (2, 2), (3, 1), (2, 2)]
    for graph, code, _ in graphs:
        graph()
        assert graph.taken is code
        assert graph.verdict == Verdict(1.0, 3.0)
        assert graph.is_clearly_compiled


@pytest.mark.parametrize(("theirs", "kept"), [(9.0, 1), (1.05, 0), (0.2, 1)])
def test_a_clear_verdict_is_remembered(theirs: float, kept: int) -> None:
    found: list[Verdict] = []
    graph, _, _ = raced(1.0, theirs, remember=found.append)
    for _ in range(12):
        graph()
    assert len(found) == kept


def test_a_verdict_of_a_busy_machine_is_for_this_process_alone() -> None:
    found: list[Verdict] = []
    graph, _, torch = raced(1.0, 9.0, remember=found.append)
    for _ in range(40):
        torch.seconds = 9.0 + 20 * (torch.calls % 4)
        graph()
    assert graph.is_clearly_compiled
    assert not found


def is_busy(code: Code, seconds: float) -> None:
    """Have calls take a multiple of a time, another one each time."""
    code.seconds = seconds * (1 + 5 * (code.calls % 4))


@pytest.mark.parametrize(("ours", "theirs"), [(1.0, 2.0), (2.0, 1.0)])
def test_tiers_are_compared_again_after_a_verdict_of_a_busy_machine(
    ours: float, theirs: float
) -> None:
    graph, code, torch = raced(ours, theirs)
    taken: list[Any] = []
    graph.on_taken = taken.append
    winner, loser = (code, torch) if ours < theirs else (torch, code)
    spent = 0.0
    while graph.verdict is None:
        is_busy(winner, 9.0)
        calls = winner.calls
        graph()
        spent += winner.seconds * (winner.calls - calls)
    # The slower one answers, and it is not told that it will always.
    assert graph.is_decided
    assert graph.is_doubtful
    assert graph.verdict.is_for_torch == (winner is code)
    assert "to be timed again" in graph.describe()
    assert graph.held_bytes == code.held_bytes
    assert graph.report() == {"groups": [1]}
    assert common_verdict([graph]) is None
    winner.seconds = min(ours, theirs)
    calls = loser.calls
    while graph.is_decided:
        graph()
    assert "being timed" in graph.describe()
    assert (loser.calls - calls) * loser.seconds >= 20 * spent
    for _ in range(20):
        graph()
    assert not graph.is_doubtful
    assert graph.verdict == Verdict(ours, theirs)
    assert taken == ([code] if winner is code else [])
    assert (graph.compiled is None) == (winner is torch)
    calls = loser.calls
    for _ in range(20_000):
        graph()
    assert loser.calls == calls


def test_a_machine_that_stays_busy_is_asked_more_and_more_seldom() -> None:
    graph, code, torch = raced(1.0, 3.0)
    comparisons: list[int] = []
    under_way = 0
    for number in range(40_000):
        under_way = 0 if graph.is_decided else under_way + 1
        if under_way == 1:
            comparisons.append(number)
        code.seconds, torch.seconds = (1.0, 3.0) if under_way % 2 else (4.0, 12.0)
        graph()
    assert graph.compiled is code
    assert graph.is_doubtful
    first, second, third, fourth = comparisons
    assert fourth - third > 3 * (third - second) > 9 * (second - first) > 9000


@pytest.mark.parametrize("later", [0.5, 1.1])
def test_code_that_loses_narrowly_is_compared_once_more(later: float) -> None:
    graph, code, torch = raced(1.1, 1.0)
    while graph.verdict is None:
        graph()
    assert graph.verdict.is_for_torch
    assert graph.is_doubtful
    code.seconds = later
    for _ in range(1000):
        graph()
    assert not graph.is_doubtful
    assert graph.verdict.is_for_torch == (later > torch.seconds)
    assert graph.taken is (None if later > torch.seconds else code)


def test_code_that_loses_clearly_is_not() -> None:
    graph, _, _ = raced(2.0, 1.0)
    while graph.verdict is None:
        graph()
    assert graph.verdict.is_for_torch
    assert not graph.is_doubtful


def test_a_comparison_can_be_asked_for() -> None:
    graph, code, _ = raced(9.0, 1.0)
    graph.compare_again()
    while graph.verdict is None:
        is_busy(code, 9.0)
        graph()
    calls = code.calls
    graph.compare_again()
    graph.compare_again()
    assert not graph.is_decided
    code.seconds = 0.5
    for _ in range(20):
        graph()
    assert graph.taken is code
    assert code.calls > calls
    graph.compare_again()
    assert graph.taken is code


def test_what_torch_is_known_to_win_is_not_compiled() -> None:
    tiers = Tiers(in_background=True, races=True)
    graph = tiers.graph(
        lambda x: x,
        lambda: Work(lambda: pytest.fail("compiled"), Race(known=Verdict(2.0, 1.0))),
    )
    assert graph(3) == 3
    assert not tiers.pending
    assert "torch runs it" in graph.describe()


def test_what_is_known_to_win_is_taken_at_once() -> None:
    graph, code, torch = raced(9.0, 1.0, known=Verdict(1.0, 2.0))
    graph(1)
    assert (code.calls, torch.calls) == (1, 0)
    assert graph.taken is code


class Gate:
    """Work that ends when it is told to."""

    def __init__(self, outcome: Any) -> None:
        self.open = threading.Event()
        self.thread: threading.Thread | None = None
        self._outcome = outcome

    def __call__(self) -> Any:
        self.thread = threading.current_thread()
        assert self.open.wait(60)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def test_torch_answers_until_the_code_is_there() -> None:
    tiers = Tiers(in_background=True, races=False)
    code = Code(Clock(), 1.0)
    work = Gate(code)
    graph = tiers.graph(lambda x: ("torch", x), lambda: Work(work))
    taken: list[Any] = []
    graph.on_taken = taken.append
    for _ in range(3):
        assert graph(1) == ("torch", 1)
    assert graph.is_pending
    assert tiers.pending == 1
    assert graph.report() == {}
    assert not tiers.wait(0.0)
    work.open.set()
    assert tiers.wait()
    assert taken == [code]
    assert graph(1) == (1,)
    assert graph.torch_calls == 3
    assert graph.seconds_behind > 0
    assert work.thread is not threading.current_thread()


def test_a_call_takes_the_code_without_anybody_waiting() -> None:
    tiers = Tiers(in_background=True, races=False)
    work = Gate(Code(Clock(), 1.0))
    graph = tiers.graph(lambda x: ("torch", x), lambda: Work(work))
    assert graph(1) == ("torch", 1)
    work.open.set()
    assert work.thread is None or work.thread.join(60) is None
    while graph.is_pending:
        graph(1)
    assert graph(1) == (1,)


def test_no_code_is_made_for_what_was_given_up() -> None:
    gate = Gate(Code(Clock(), 1.0))
    tiers = Tiers(in_background=True, races=False)
    graph = tiers.graph(lambda x: x, lambda: Work(gate))
    assert graph.give_up()
    assert not tiers.pending
    assert tiers.wait()
    assert graph(3) == 3
    assert gate.thread is None
    # What is being made already is made.
    begun = tiers.graph(lambda x: x, lambda: Work(gate))
    begun.prepare(None)
    assert not begun.give_up()
    gate.open.set()
    assert tiers.wait()
    assert begun.taken is not None
    assert not begun.give_up()


def test_failures_are_reported_in_the_thread_of_a_call() -> None:
    tiers = Tiers(in_background=True, races=True)
    work = Gate(ValueError("no code"))
    graph = tiers.graph(lambda x: ("torch", x), lambda: Work(work, Race()))
    threads: list[Any] = []
    graph.on_failure = lambda error: threads.append(
        (str(error), threading.current_thread())
    )
    work.open.set()
    assert tiers.wait()
    for _ in range(2):
        assert graph(1) == ("torch", 1)
    assert threads == [("no code", threading.current_thread())]
    with pytest.raises(ValueError, match="no code"):
        graph.mlir("linalg")


def test_in_the_call_failures_are_raised() -> None:
    def fail() -> Any:
        raise ValueError("no code")

    with pytest.raises(ValueError, match="no code"):
        Tiers(in_background=False, races=True).graph(print, lambda: Work(fail))


def test_many_jobs_end_in_few_threads() -> None:
    tiers = Tiers(in_background=True, races=False)
    gates = [Gate(Code(Clock(), 1.0)) for _ in range(20)]
    graphs = [tiers.graph(print, partial(Work, gate)) for gate in gates]
    assert tiers.pending == 20
    assert not tiers.wait(0.0)
    for gate in gates:
        gate.open.set()
    assert tiers.wait()
    assert not any(graph.is_pending for graph in graphs)
    assert len({gate.thread for gate in gates}) <= 3


class Preparation:
    """A preparation of some steps, of which each call does one."""

    def __init__(self, steps: int, outcome: Any) -> None:
        self.steps = steps
        self.done = 0
        self._outcome = outcome

    def __call__(self) -> Work:
        for _ in range(self.steps):
            self.done += 1
            checkpoint()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return Work(lambda: self._outcome, self.race)

    race: Race | None = None


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each call prepare for as short as it can."""
    monkeypatch.setattr(tiers_module, "_SLICE", 0.0)
    monkeypatch.setattr(tiers_module, "_PAUSE", 0.0)


def test_each_call_prepares_a_little(slices: None) -> None:
    tiers = Tiers(in_background=True, races=False)
    preparation = Preparation(5, code := Code(Clock(), 1.0))
    graph = tiers.graph(lambda x: ("torch", x), preparation)
    ready: list[None] = []
    graph.on_ready = lambda: ready.append(None)
    # The call that has made the graph has waited for that.
    for done in range(5):
        assert preparation.done == done
        assert tiers.pending == 1
        assert graph(1) == ("torch", 1)
    graph(1)
    assert tiers.wait()
    assert ready == [None]
    assert graph(1) == (1,)
    assert graph.taken is code


def test_waiting_ends_a_preparation(slices: None) -> None:
    tiers = Tiers(in_background=True, races=False)
    preparation = Preparation(50, Code(Clock(), 1.0))
    graph = tiers.graph(lambda x: ("torch", x), preparation)
    assert preparation.done == 0
    assert tiers.wait()
    assert preparation.done == 50
    assert graph(1) == (1,)


def test_a_call_prepares_for_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers_module, "_SLICE", 0.0)
    monkeypatch.setattr(tiers_module, "_PAUSE", float("inf"))
    tiers = Tiers(in_background=True, races=False)
    preparations = [Preparation(3, Code(Clock(), 1.0)) for _ in "abc"]
    graphs = [tiers.graph(lambda x: ("torch", x), one) for one in preparations]
    # Its pieces, a form and the program for all sizes: one call runs them all.
    assert [graph(1) for graph in graphs] == [("torch", 1)] * 3
    assert [one.done for one in preparations] == [1, 0, 0]
    # Another program has a pace of its own.
    other = Preparation(3, Code(Clock(), 1.0))
    graph = Tiers(in_background=True, races=False).graph(lambda x: ("torch", x), other)
    graph(1)
    assert other.done == 1
    assert tiers.wait()
    assert [graph(1) for graph in graphs] == [(1,)] * 3


@pytest.mark.parametrize("steps", [0, 3])
def test_a_preparation_that_fails_is_told(slices: None, steps: int) -> None:
    tiers = Tiers(in_background=True, races=False)
    preparation = Preparation(steps, ValueError("refused"))
    graph = tiers.graph(lambda x: ("torch", x), preparation)
    told: list[Exception] = []
    graph.on_failure = told.append
    for _ in range(5):
        assert graph(1) == ("torch", 1)
    assert [str(error) for error in told] == ["refused"]
    assert not tiers.pending
    assert graph.describe() == "torch runs it: it could not be compiled"


@pytest.mark.parametrize(("ours", "compiled"), [(2.0, False), (0.5, True)])
def test_a_verdict_is_known_behind_the_preparation(
    slices: None, ours: float, compiled: bool
) -> None:
    tiers = Tiers(in_background=True, races=True)
    preparation = Preparation(3, Code(Clock(), 1.0))
    preparation.race = Race()
    graph = tiers.graph(lambda x: ("torch", x), preparation)
    graph.presume(Verdict(ours, 1.0))
    tiers.wait()
    assert (graph.taken is not None) == compiled
    assert graph.made == compiled
    assert graph(1) == ((1,) if compiled else ("torch", 1))


SCRIPT = """
import os, sys, threading
from magweld.tiers import Tiers, Work
tiers = Tiers(in_background=True, races=False)
begun = threading.Event()
def work():
    begun.set()
    threading.Event().wait()
graph = tiers.graph(lambda x: ("torch", x), lambda: Work(work))
assert graph(1) == ("torch", 1)
assert begun.wait(60)
"""


def test_the_end_of_the_process_does_not_wait() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=60)


def test_a_forked_process_goes_on_through_torch() -> None:
    fork = """
from magweld.paced import checkpoint
def prepare():
    while True:
        checkpoint()
begun = tiers.graph(lambda x: ("torch", x), prepare)
begun.on_failure = graph.on_failure = lambda error: os._exit(1)
begun(1)
child = os.fork()
if child == 0:
    assert graph(1) == begun(1) == ("torch", 1)
    assert tiers.wait(), "what was under way in the parent is not awaited"
    assert not tiers.pending
    for one in (graph, begun):
        assert "before this process was forked" in one.describe()
    code = type("Code", (), {"held_bytes": 1, "__call__": lambda self, x: x})()
    other = tiers.graph(lambda x: ("torch", x), lambda: Work(lambda: code))
    other.wait(None)
    assert other(1) == 1
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT + fork]
    subprocess.run(command, check=True, timeout=60)


def test_verdicts_are_kept_as_files() -> None:
    verdict = Verdict(0.5, 0.25)
    data = encode_verdict(verdict, b"key")
    assert decode_verdict(data, b"key") == verdict
    for broken, key in [(data, b"other"), (data[:-1], b"key"), (b"", b"key")]:
        with pytest.raises(ContainerError):
            decode_verdict(broken, key)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def make(is_terminal: bool) -> None:
        monkeypatch.setattr(progress_module, "SECONDS_BEFORE_LINE", 0.0)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)

    return make


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_long_wait_shows_a_line_on_terminals_alone(
    is_terminal: bool, terminal: Callable[[bool], None], monkeypatch: Any
) -> None:
    shown: list[str] = []
    begun = threading.Event()

    class Line:
        def __init__(self, text: str) -> None:
            self.text = text

        def start(self) -> None:
            shown.append(self.text)
            begun.set()

        def stop(self) -> None:
            shown.append("gone")

    class Terminal:
        def __init__(self, stderr: bool) -> None:
            assert stderr

        def status(self, text: str) -> Line:
            return Line(text)

    monkeypatch.setattr("rich.console.Console", Terminal)
    terminal(is_terminal)
    with progress("compiling"):
        assert begun.wait(60) if is_terminal else True
    assert shown == (["magweld: compiling", "gone"] if is_terminal else [])
