"""Owns the engine of the differential mode."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from torch import fx

from magweld.frontend.capture.capture import capture
from magweld.frontend.catalogue import CATALOGUE, Break
from magweld.frontend.differential.beside import running_beside
from magweld.frontend.differential.check import (
    CheckError,
    ElsewhereError,
    EndedError,
    Ending,
    run,
    run_checked,
)
from magweld.frontend.differential.outside import Written, written_by
from magweld.frontend.engine import Engine, ignore_failure, watched
from magweld.frontend.guards.derive import Arguments
from magweld.frontend.operators.kinds import RESIZES, operator_of
from magweld.frontend.operators.torch_state import hooks_on_saved_tensors
from magweld.frontend.records.cache import RecordCache
from magweld.frontend.records.record import Record
from magweld.frontend.segments.program import Program, TracedCall
from magweld.frontend.segments.shape import Form, Suspended
from magweld.graphs.control_operators import all_nodes


class CheckedEngine(Engine):
    """An engine that compares each of its hits with an eager run.

    The eager run comes first; its effects are undone before the record answers.
    """

    __slots__ = ("_checks", "_running", "_unstoppable")

    def __init__(self, *parts: Any) -> None:
        """Make it of what an `Engine` is made of."""
        super().__init__(*parts)
        self._checks = {"checked": 0, "skipped": 0}
        self._running = threading.local()
        self._unstoppable: list[Record] = []

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call; a hit is compared with eager.

        Raises:
            CheckError: They differ.
        """
        if self._due(self._cache, args, kwargs) is None:
            return super().call(args, kwargs)
        self._log.count("calls")
        call = TracedCall(self.target, args, kwargs)
        result = self._answer(self._cache, call, args, kwargs)
        return self._go_on(result) if type(result) is Suspended else result

    def stats(self) -> dict[str, int]:
        """Return the counts of `Engine.stats`, with those of compared hits."""
        return {**super().stats(), **self._checks}

    def _know_lost(self) -> None:
        """Whether a call is to be compared has to be asked before who runs it."""

    def _know_resting(self, cache: RecordCache) -> None:
        """Likewise."""

    def _answer(
        self,
        cache: RecordCache,
        program: Program,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        note: Callable[[Record], None] = ignore_failure,
    ) -> Suspended | Any:
        answer = functools.partial(super()._answer, cache, program, args, kwargs, note)
        record = self._due(cache, args, kwargs)
        if record is None:
            return answer()
        self._running.flag = True
        try:
            return self._compared(program, record, answer)
        finally:
            self._running.flag = False

    def _due(
        self, cache: RecordCache, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Record | None:
        """Return the record that will answer and has to be compared, if any."""
        if getattr(self._running, "flag", False) or watched():
            return None
        holding = (r for r in cache.records if r.program.holds(args, kwargs))
        record = next(holding, None)
        return None if any(r is record for r in self._unstoppable) else record

    def _compared(
        self, program: Program, record: Record, answer: Callable[[], Any]
    ) -> Any:
        thread = running_beside()
        if thread:
            self._skip(f"thread {thread} runs beside it")
            return answer()
        if hooks_on_saved_tensors():
            self._skip("hooks on saved tensors would run twice")
            return answer()
        target = self.target
        known = program.arguments
        # The run that is compared takes the values of a rest.
        args, kwargs, names = tuple(known.args), known.kwargs, known.names

        def roots() -> list[tuple[str, Any]]:
            texts = names or [f"args[{index}]" for index in range(len(args))]
            named = list(zip(texts, args, strict=True))
            return [*named, *kwargs.items(), ("callable", target)]

        beside = program.copy()
        eager = beside.run
        if record.ends is not None:
            # What runs at the break may not run twice.
            eager = functools.partial(self._run_to, record, record.ends, beside)
        exact = self._backend.name == "eager"

        # Frames of closures would keep what these hold for as long as an exception.
        answered = functools.partial(self._answered, record, answer)
        outcome = run_checked(
            eager, answered, roots, exact, _state, self._written(record, known)
        )
        skipped, difference = outcome.skipped, outcome.difference
        if difference is not None and difference.is_of_values:
            skipped = "memory that nobody has filled" * _leaves_unfilled(record.graph)
        if skipped:
            self._skip(skipped)
            return outcome.ending.give()
        self._checks["checked"] += 1
        if difference is not None:
            guards = [str(guard) for guard in record.guards]
            raise CheckError(difference, guards)
        return outcome.ending.give()

    def _answered(self, record: Record, answer: Callable[[], Any]) -> Any:
        """Answer from a record.

        Raises:
            EndedError: An operator has raised, and the program went to its end.
        """
        self._running.instead = False
        ending = run(answer)
        if self._running.instead and record.ends is not None:
            raise EndedError(ending)
        return ending.give()

    def _skip(self, reason: str) -> None:
        self._checks["skipped"] += 1
        self._log.add(Break(CATALOGUE["check-skipped"], reason, ""))

    def _written(self, record: Record, known: Arguments) -> Iterable[Written]:
        fetched = record.program.test(known.args, known.kwargs)
        if type(fetched) is not list:
            return ()
        return written_by(record.mock, fetched[len(record.input_paths) :])

    def _run_instead(self, program: Program, reason: Break) -> Any:
        self._running.instead = True
        return super()._run_instead(program, reason)

    def _run_to(self, record: Record, ends: Form, program: Program) -> Suspended:
        """Run a program up to a break, observed, as only that shows where this is.

        Raises:
            EndedError: It went on behind the break, to its end.
            ElsewhereError: It came to another break.
        """
        known = self._segments
        with self._lock:
            outcome = capture(
                program, known.sources, known.places, assumes=known.assumes
            )
        result = outcome.result
        if type(result) is not Suspended:
            # What lies behind can be compared when the record answers from now on.
            self._unstoppable.append(record)
            raise EndedError(Ending(result, outcome.error))
        if result.form.key != ends.key:
            raise ElsewhereError(result.form.where, Ending(result, None))
        return result


def _state(result: Any) -> Any:
    return result.values if type(result) is Suspended else result


# What makes tensors whose memory nothing has been written to.
_EMPTY: Final = RESIZES | {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}


def _leaves_unfilled(graph: fx.GraphModule) -> bool:
    """Return whether a graph has such a tensor: its values are any, in eager, too."""
    return any(_is_empty(node) and not _is_filled(node) for node in all_nodes(graph))


def _is_empty(node: fx.Node) -> bool:
    return node.op.startswith("call") and operator_of(node) in _EMPTY


def _is_filled(node: fx.Node) -> bool:
    """Return whether something is written to a tensor, or to what is made of it."""
    waiting, seen = [node], {node}
    while waiting:
        for user in waiting.pop().users.keys() - seen:
            if user.meta.get("writes"):
                return True
            seen.add(user)
            waiting.append(user)
    return False
