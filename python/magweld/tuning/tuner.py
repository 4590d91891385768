"""Owns the course of tuning: plans from the cache, then measured, then the program."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from magweld.artifact import Program
from magweld.logs import topic
from magweld.runtime.cache import FileCache
from magweld.runtime.container import encode_parts, encode_request
from magweld.runtime.errors import WorkerError
from magweld.runtime.plans import MeasuredPlan, plan_key
from magweld.runtime.service import COMPILE_SECONDS, decode_answer
from magweld.runtime.worker_pool import TaskRunner
from magweld.tuning.contest import Contest, Contestant
from magweld.tuning.options import TuneOptions
from magweld.tuning.outcome import Outcome, summary
from magweld.tuning.watching import Unwatched, Watcher

_logger: Final = topic("plans")

# Names alone: the tasks import the compiler, which this process does not run.
_TASKS = "magweld.tuning.tasks"
FIND_UNITS = f"{_TASKS}:find_units"
FIND_ALTERNATIVES = f"{_TASKS}:find_alternatives"
COMPILE_ALTERNATIVE = f"{_TASKS}:compile_alternative"
COMPILE_PLANNED = f"{_TASKS}:compile_planned"

# Of the time for tuning, that for compiling what is to be measured.
COMPILE_SHARE = 0.7


@dataclass(frozen=True)
class _Unit:
    """Equal units of a graph.

    Attributes:
        structure: Their text.
        key: Of their plan in the cache.
        seconds: Their predicted time together.
        contestants: Their plans, that of the model first; the ones in time compiled.
    """

    structure: str
    key: str
    seconds: float
    contestants: list[Contestant] = field(default_factory=list)


@dataclass(frozen=True)
class Tuner:
    """Compiles modules with plans that are measured, each kind of unit once.

    Attributes:
        runner: Where units are found and programs are compiled.
        contest: Measures the plans of a unit.
        digest: Of compiler, machine and threads: part of every key.
        options: What the caller asks for.
        cache: Plans of earlier runs; None for none.
        parallel: Tasks that run at a time.
        parallel_contests: Contests that run at a time.
        watcher: Is told what happens.
        clock: Where the time comes from.
    """

    runner: TaskRunner
    contest: Contest
    digest: str
    options: TuneOptions = field(default_factory=TuneOptions)
    cache: FileCache[MeasuredPlan] | None = None
    parallel: int = 1
    parallel_contests: int = 1
    watcher: Watcher = field(default_factory=Unwatched)
    clock: Callable[[], float] = time.monotonic

    def compile(self, text: str, settings: str) -> Program:
        """Compile a module in the torch dialect.

        Args:
            text: The module.
            settings: Text of the `CompileOptions`, behind a target if that is a GPU.

        Raises:
            WorkerError: The compiler refused it or did not come back.
        """
        answer = json.loads(self._run(FIND_UNITS, encode_request(settings, text)))
        if "unlowered" in answer:
            nodes = tuple(answer["unlowered"])
            return Program((), (), (), arena_bytes=0, unlowered=nodes)
        counts = Counter(unit["structure"] for unit in answer["units"])
        seconds: Counter[str] = Counter()
        for unit in answer["units"]:
            seconds[unit["structure"]] += unit["seconds"]
        outcomes = self._decide(seconds, settings)
        program = self._program(answer["graph"], outcomes, settings)
        report = {**program.report, "tuning": summary(outcomes, counts)}
        return replace(program, report=report)

    def _run(self, task: str, payload: bytes) -> bytes:
        return self.runner.run(task, payload, COMPILE_SECONDS)

    def _decide(
        self, seconds: Mapping[str, float], settings: str
    ) -> dict[str, Outcome]:
        keys = {unit: plan_key(self.digest, settings, unit) for unit in seconds}
        outcomes: dict[str, Outcome] = {}
        for unit, key in keys.items():
            plan = self.cache.get(key) if self.cache else None
            if plan is not None:
                outcomes[unit] = Outcome("cache", plan)
        missing = [
            _Unit(unit, keys[unit], predicted)
            for unit, predicted in seconds.items()
            if unit not in outcomes
        ]
        missing.sort(key=lambda unit: -unit.seconds)
        return outcomes | self._measure(missing, settings)

    def _measure(self, units: Sequence[_Unit], settings: str) -> dict[str, Outcome]:
        if not units:
            return {}
        start = self.clock()
        self.contest.prepare()
        with ThreadPoolExecutor(self.parallel) as pool:
            for unit, found in zip(
                units,
                pool.map(lambda u: self._contestants(u, settings), units),
                strict=True,
            ):
                unit.contestants.extend(found)
            deadline = start + COMPILE_SHARE * self.options.seconds
            self._compile_all(pool, units, settings, deadline)
        deadline = start + self.options.seconds
        _logger.info("plans compiled after %.1f s", self.clock() - start)
        outcomes = self._contests(units, deadline)
        # Noise may have been a burst of it. Where there is no time, nothing happens.
        left = [u for u in units if outcomes[u.structure].open_after is not None]
        outcomes |= self._contests(left, deadline)
        _logger.info("%d units tuned in %.1f s", len(units), self.clock() - start)
        return outcomes

    def _contests(self, units: Sequence[_Unit], deadline: float) -> dict[str, Outcome]:
        self.watcher.begin(len(units))
        with ThreadPoolExecutor(self.parallel_contests) as pool:
            outcomes = list(pool.map(lambda u: self._outcome(u, deadline), units))
        return {u.structure: o for u, o in zip(units, outcomes, strict=True)}

    def _contestants(self, unit: _Unit, settings: str) -> list[Contestant]:
        most = str(self.options.candidates).encode()
        payload = encode_parts([settings.encode(), most, unit.structure.encode()])
        try:
            found = json.loads(self._run(FIND_ALTERNATIVES, payload))
        except WorkerError as error:
            _logger.warning("a unit is not tuned, it has no plans: %s", error)
            return []
        return [Contestant(a["label"], a["text"]) for a in found]

    def _compile_all(
        self,
        pool: ThreadPoolExecutor,
        units: Sequence[_Unit],
        settings: str,
        deadline: float,
    ) -> None:
        """Compile the best plans of all units before the next ones of any."""
        ranked = [
            (rank, number, contestant)
            for number, unit in enumerate(units)
            if len(unit.contestants) > 1
            for rank, contestant in enumerate(unit.contestants)
        ]
        ranked.sort(key=lambda entry: entry[:2])
        self.watcher.begin(len(ranked))

        def compile_one(contestant: Contestant) -> None:
            if self.clock() < deadline:
                self._compile(contestant, settings)
            self.watcher.step()

        list(pool.map(compile_one, (contestant for *_, contestant in ranked)))

    def _compile(self, contestant: Contestant, settings: str) -> None:
        payload = encode_request(settings, contestant.text)
        try:
            data = self._run(COMPILE_ALTERNATIVE, payload)
            contestant.program = decode_answer(data)
        except WorkerError as error:
            contestant.failed = True
            _logger.info("a plan is not measured, %s: %s", contestant.label, error)

    def _outcome(self, unit: _Unit, deadline: float) -> Outcome:
        outcome = self._contend(unit, deadline)
        message = outcome.reason
        if outcome.plan is not None:
            # At once: the process may end before all units are measured.
            if self.cache:
                self.cache.put(unit.key, outcome.plan)
            best = outcome.plan.measured[outcome.plan.label] * 1e3
            message = f"best {best:.3f} ms: {outcome.plan.label}"
        self.watcher.step(message)
        return outcome

    def _contend(self, unit: _Unit, deadline: float) -> Outcome:
        contestants = unit.contestants
        if not contestants:
            return Outcome("prediction", reason="its plans could not be found")
        if len(contestants) == 1:
            return Outcome("prediction", reason="there is one plan only")
        if contestants[0].failed:
            return Outcome("prediction", reason="the predicted plan does not compile")
        if all(contestant.failed for contestant in contestants[1:]):
            return Outcome("prediction", reason="no other plan compiles")
        left = deadline - self.clock()
        ready = [c for c in contestants if c.program is not None]
        if left <= 0 or not contestants[0].program or len(ready) < 2:
            return self._open("the time was over")
        try:
            plan = self.contest.hold(ready, left, self.digest)
        except WorkerError as error:
            _logger.warning("a unit is not tuned, measuring failed: %s", error)
            return Outcome("prediction", reason="measuring failed")
        if plan is None:
            return self._open("the noise was larger than the gain")
        return Outcome("measured", plan)

    def _open(self, reason: str) -> Outcome:
        seconds = self.options.seconds
        return Outcome("prediction", reason=reason, open_after=seconds)

    def _program(
        self, graph: str, outcomes: Mapping[str, Outcome], settings: str
    ) -> Program:
        plans = [o.plan.text for o in outcomes.values() if o.plan is not None]
        if plans:
            try:
                return self._compile_graph(settings, graph, *plans)
            except WorkerError as error:
                _logger.warning("a graph is compiled without its plans: %s", error)
        return self._compile_graph(settings, graph)

    def _compile_graph(self, *texts: str) -> Program:
        payload = encode_parts([text.encode() for text in texts])
        return decode_answer(self._run(COMPILE_PLANNED, payload))
