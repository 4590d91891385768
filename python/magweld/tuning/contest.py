"""Owns the measuring of the plans of one unit in a worker that may die of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from magweld.artifact import Program
from magweld.logs import topic
from magweld.runtime.errors import WorkerError, WorkerProtocolError
from magweld.runtime.measuring import TASK, decode_times, encode_measurement
from magweld.runtime.plans import MeasuredPlan
from magweld.runtime.race import Least, winner
from magweld.runtime.worker_pool import TaskRunner

_logger: Final = topic("plans")

# Of one unit: enough rounds for kernels of milliseconds.
MOST_SECONDS = 2.0
# Beyond the race itself: a call of each program before, which may be slow.
EXTRA_SECONDS = 60.0


@dataclass
class Contestant:
    """One plan of a unit.

    Attributes:
        label: What distinguishes it.
        text: The plan.
        program: It compiled, None as long as it is not.
        failed: Whether it cannot be compiled.
    """

    label: str
    text: str
    program: Program | None = None
    failed: bool = False


@dataclass(frozen=True)
class Contest:
    """Measures plans against each other.

    Attributes:
        runner: Where programs run, with torch.
        threads: That torch and kernels use.
    """

    runner: TaskRunner
    threads: int

    def prepare(self) -> None:
        """Begin to start a worker."""
        self.runner.prestart()

    def hold(
        self, contestants: Sequence[Contestant], seconds: float, identity: str
    ) -> MeasuredPlan | None:
        """Return the fastest plan, or the first if no other gains enough.

        Args:
            contestants: Compiled plans, that of the model first.
            seconds: Most time for the race.
            identity: What the times depend on beside the unit.

        Returns:
            None if the noise is larger than what a plan seems to gain.

        Raises:
            WorkerError: The first plan cannot be measured.
        """
        seconds = min(seconds, MOST_SECONDS)
        try:
            times = self._race(contestants, seconds)
        except WorkerError as error:
            _logger.info("measuring plans one by one, together they failed: %s", error)
            times = self._race_survivors(contestants, seconds)
        number = winner(times)
        if number is None:
            return None
        chosen = contestants[number]
        measured = {
            c.label: t.seconds
            for c, t in zip(contestants, times, strict=True)
            if t is not None
        }
        return MeasuredPlan(chosen.text, chosen.label, identity, measured)

    def _race(
        self, contestants: Sequence[Contestant], seconds: float
    ) -> list[Least | None]:
        programs = [c.program for c in contestants if c.program is not None]
        payload = encode_measurement(programs, self.threads, seconds)
        answer = self.runner.run(TASK, payload, seconds + EXTRA_SECONDS)
        try:
            times = decode_times(answer)
            if len(times) != len(contestants):
                raise ValueError(f"{len(times)} times of {len(contestants)} programs")
        except (ValueError, TypeError) as error:
            reason = f"the answer is no list of times: {error}"
            raise WorkerProtocolError(reason) from error
        return times

    def _race_survivors(
        self, contestants: Sequence[Contestant], seconds: float
    ) -> list[Least | None]:
        """Leave out what cannot be measured even alone."""
        alive = [c for c in contestants if self._survives(c)]
        if contestants[0] not in alive:
            return self._race(contestants[:1], 0)  # raises what is wrong with it
        found = dict(zip(map(id, alive), self._race(alive, seconds), strict=True))
        return [found.get(id(c)) for c in contestants]

    def _survives(self, contestant: Contestant) -> bool:
        try:
            self._race([contestant], 0)
        except WorkerError as error:
            _logger.warning("plan %r is left out: %s", contestant.label, error)
            return False
        return True
