"""Owns the traced callable of the differential mode."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from magweld.frontend.annotations.user import UserAnnotation
from magweld.frontend.backends import Backend
from magweld.frontend.catalogue import CATALOGUE, Break
from magweld.frontend.differential.check import CheckError, run_checked
from magweld.frontend.lifting.policy import LiftingPolicy
from magweld.frontend.traced import Traced


class CheckedTraced(Traced):
    """A traced callable that compares each of its hits with an eager run.

    The eager run comes first; its effects are undone before the record answers.
    """

    __slots__ = ("_checks", "_running")

    def __init__(
        self,
        target_callable: Callable[..., Any],
        backend: Backend,
        lifting: LiftingPolicy,
        annotations: tuple[UserAnnotation, ...] = (),
    ) -> None:
        super().__init__(target_callable, backend, lifting, annotations)
        self._checks = {"checked": 0, "skipped": 0}
        self._running = threading.local()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer a call; a hit is compared with eager.

        Raises:
            CheckError: They differ.
        """
        if not self._is_due(args, kwargs):
            return super().__call__(*args, **kwargs)
        self._running.flag = True
        try:
            return self._compared(args, kwargs)
        finally:
            self._running.flag = False

    def stats(self) -> dict[str, int]:
        """Return the counts of `Traced.stats`, with those of compared hits."""
        return {**super().stats(), **self._checks}

    def _is_due(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if getattr(self._running, "flag", False):
            return False
        if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
            return False
        for record in self._cache.records:
            if record.program.holds(args, kwargs):
                # What runs at a break may not run twice.
                return record.ends is None
        return False

    def _compared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target = self._magweld_target

        def roots() -> list[tuple[str, Any]]:
            named = [(f"args[{index}]", value) for index, value in enumerate(args)]
            return [*named, *kwargs.items(), ("callable", target)]

        outcome = run_checked(
            functools.partial(target, *args, **kwargs),
            functools.partial(super().__call__, *args, **kwargs),
            roots,
            self._backend.name == "eager",
        )
        if outcome.skipped:
            self._checks["skipped"] += 1
            self._note(Break(CATALOGUE["check-skipped"], outcome.skipped, ""))
            return outcome.ending.give()
        self._checks["checked"] += 1
        if outcome.difference is not None:
            guards = [str(guard) for guard in self._cache.records[0].guards]
            raise CheckError(outcome.difference, guards)
        return outcome.ending.give()
