"""Owns the decision what to lift: numbers whose guards keep failing."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from magweld.frontend.guards.guard import Category, Failure, Guard

# Failures of the guard of one number before it is lifted: the third value is.
LIFT_AFTER: Final = 2
# Runs that needed the value of a lifted number before it is left alone.
MAX_PINNED: Final = 2


class LiftingPolicy:
    """What the next run of one traced callable lifts.

    Attributes:
        wanted: Paths of numbers; replaced as a whole, so that readers need no lock.
    """

    def __init__(self, automatic: bool, marked: Iterable[str] = ()) -> None:
        self.wanted = frozenset(marked)
        self._automatic = automatic
        self._failures: Counter[str] = Counter()
        self._pinned: Counter[str] = Counter()

    def fresh(self) -> LiftingPolicy:
        """Return a policy of the same kind that knows nothing yet."""
        return LiftingPolicy(self._automatic)

    def note_miss(self, failures: Sequence[tuple[Guard, Failure]]) -> None:
        """Take note of the guards that failed in one call."""
        if not self._automatic:
            return
        paths: set[str] = set()
        computed: set[str] = set()
        for guard, failure in failures:
            paths.update(failure.lifts)
            if guard.lifts is not None and guard.lifts[1] is failure.kind:
                paths.add(guard.lifts[0])
                if guard.category is Category.PREDICATE:
                    computed.add(guard.lifts[0])
        self._failures.update(paths)
        for path in computed:
            # Tensors hold data: what follows from them does not settle.
            self._failures[path] += LIFT_AFTER
        often = {path for path in paths if self._failures[path] >= LIFT_AFTER}
        often = {path for path in often if self._pinned[path] < MAX_PINNED}
        self.wanted |= often

    def retreat(self, paths: frozenset[str]) -> None:
        """Leave numbers alone: the run that was to lift them was refused."""
        for path in paths:
            self._pinned[path] = MAX_PINNED
        self.wanted -= paths

    def note_pinned(self, paths: Iterable[str]) -> None:
        """Take note of lifted numbers whose value decided about a run."""
        for path in paths:
            self._pinned[path] += 1
            if self._pinned[path] >= MAX_PINNED:
                self.wanted -= {path}


Dynamic = Literal[False, "auto"] | Mapping[str, bool | int | Sequence[int]]


def lifting_policy(target: Callable[..., Any], dynamic: Dynamic) -> LiftingPolicy:
    """Return the policy for a value of `dynamic`.

    Args:
        target: The callable that is traced; tells the positions of its parameters.
        dynamic: False, "auto", or a mapping from names of parameters or paths to True
            for numbers, or to the dimensions of a tensor.

    Raises:
        ValueError: It is none of these.
    """
    if dynamic is False or dynamic == "auto":
        return LiftingPolicy(automatic=dynamic == "auto")
    if not isinstance(dynamic, Mapping):
        raise ValueError(f"dynamic is {dynamic!r}, expected False, 'auto' or a mapping")
    positions = _positions(target)
    marked: set[str] = set()
    for name, what in dynamic.items():
        for path in {name, positions.get(name, name)}:
            if what is True:
                marked.add(path)
            elif what is not False:
                dims = (what,) if isinstance(what, int) else what
                marked.update(f"{path}.shape[{dim}]" for dim in dims)
    return LiftingPolicy(automatic=True, marked=marked)


def _positions(target: Callable[..., Any]) -> dict[str, str]:
    """Return the paths of the parameters of a callable that are passed by position."""
    try:
        parameters = inspect.signature(getattr(target, "forward", target)).parameters
    except (TypeError, ValueError):
        return {}
    return {name: f"args[{index}]" for index, name in enumerate(parameters)}
