"""Owns the decision what to lift: numbers whose guards keep failing."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, Final, Literal

from magweld.diagnostics import did_you_mean
from magweld.frontend.guards.guard import Category, Failure, Guard
from magweld.frontend.lifting.state import NEW_NUMBERS, all_of
from magweld.frontend.state.modules import named_modules

# Failures of the guard of one number before it is lifted: the third value is.
LIFT_AFTER: Final = 2
# Runs that needed the value of a lifted number before it is left alone.
MAX_PINNED: Final = 2


class LiftingPolicy:
    """What the next run of one traced callable lifts.

    Attributes:
        wanted: Paths of numbers; replaced as a whole, so that readers need no lock.
        changing: Paths of arrays and sequences of which a guard on the content has
            failed; replaced as a whole.
    """

    def __init__(self, automatic: bool, marked: Iterable[str] = ()) -> None:
        self.wanted = frozenset(marked)
        self.changing: frozenset[str] = frozenset()
        self._automatic = automatic
        self._failures: Counter[str] = Counter()
        self._data: Counter[str] = Counter()
        self._elements: dict[str, set[str]] = {}
        self._pinned: Counter[str] = Counter()
        self._lifted: frozenset[str] = frozenset()

    def fresh(self) -> LiftingPolicy:
        """Return a policy of the same kind that knows nothing yet."""
        return LiftingPolicy(self._automatic)

    def note_miss(
        self,
        failures: Sequence[tuple[Guard, Failure]],
        changing: Iterable[str] = (),
    ) -> None:
        """Take note of the guards that failed in one call.

        Args:
            failures: The guard of each record that failed, and how.
            changing: Paths of sizes among them of which no value has come back: they
                are lifted at the second value.
        """
        if not self._automatic:
            return
        paths: set[str] = set()
        computed: set[str] = set()
        self._note_data({guard for guard, _ in failures})
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
        self._failures.update(dict.fromkeys(changing, LIFT_AFTER))
        often = {path for path in paths if self._failures[path] >= LIFT_AFTER}
        often |= self._sequences_of(often, failures)
        self.wanted |= {path for path in often if self._pinned[path] < MAX_PINNED}

    def _sequences_of(
        self, often: set[str], failures: Sequence[tuple[Guard, Failure]]
    ) -> set[str]:
        """Return what stands for all numbers of sequences of which two have changed.

        A guard tells of the first one that differs alone.
        """
        for guard, _ in failures:
            if guard.data and guard.path in often:
                self._elements.setdefault(guard.data[0], set()).add(guard.path)
        return {
            all_of(path) for path, found in self._elements.items() if len(found) > 1
        }

    def _note_data(self, guards: Iterable[Guard]) -> None:
        """Take note of the data whose content has changed from call to call.

        What a program makes of an array with numpy is compared with that of a run at
        first: some are few and come back.
        """
        for guard in guards:
            often = LIFT_AFTER if guard.category is Category.CONTENT else 1
            for path in guard.data:
                self._data[path] += 1
                if self._data[path] >= often:
                    self.changing |= {path}

    def retreat(self, paths: frozenset[str]) -> None:
        """Leave numbers alone: the run that was to lift them was refused."""
        blamed = self._blamed(paths)
        for path in blamed:
            self._pinned[path] = MAX_PINNED
        self.wanted -= blamed

    def note_captured(self, paths: frozenset[str], pinned: Iterable[str]) -> None:
        """Take note of a run that was captured.

        Args:
            paths: What it was to lift.
            pinned: The lifted numbers whose value decided about it.
        """
        decisive = frozenset(pinned)
        unnamed = decisive - paths
        if NEW_NUMBERS in paths and unnamed:
            decisive |= {NEW_NUMBERS}
        for sequence in self._elements:
            inside = any(path.startswith(f"{sequence}[") for path in unnamed)
            decisive |= {all_of(sequence)} & paths if inside else frozenset()
        for path in self._blamed(decisive):
            self._pinned[path] += 1
            if self._pinned[path] >= MAX_PINNED:
                self.wanted -= {path}
        self._lifted |= paths - decisive

    def _blamed(self, paths: frozenset[str]) -> frozenset[str]:
        """Return the paths that no run has lifted, or all if each has been lifted.

        One number that cannot be lifted keeps a run from lifting any.
        """
        return paths - self._lifted or paths


Dynamic = Literal[False, "auto"] | Mapping[str, bool | int | Sequence[int]]


def lifting_policy(target: Callable[..., Any], dynamic: Dynamic) -> LiftingPolicy:
    """Return the policy for a value of `dynamic`.

    Args:
        target: The callable that is traced; tells the positions of its parameters.
        dynamic: False, "auto", or a mapping from names of parameters or paths to True
            for numbers, or to the dimensions of a tensor.

    Raises:
        ValueError: It is none of these, or it names what the program does not have.
    """
    if dynamic is False:
        return LiftingPolicy(automatic=False)
    if dynamic == "auto":
        reads = _reads_numbers(target)
        return LiftingPolicy(automatic=True, marked=[NEW_NUMBERS] if reads else ())
    if not isinstance(dynamic, Mapping):
        raise ValueError(f"dynamic is {dynamic!r}, expected False, 'auto' or a mapping")
    known = _Names(target)
    marked: set[str] = set()
    for name, what in dynamic.items():
        for path in {name, known.path(name)}:
            if what is True:
                marked.add(path)
            elif what is not False:
                marked.update(f"{path}.shape[{dim}]" for dim in _dims(name, what))
    return LiftingPolicy(automatic=True, marked=marked)


def _reads_numbers(target: Callable[..., Any]) -> bool:
    """Return whether the code of a program asks tensors for numbers.

    Only what is seen without running it counts: the function, or `forward` of the
    modules. Where the answer is wrong, a number is lifted at its second value.
    """
    kinds = {type(one) for one, _ in named_modules(target)}
    function = target.__func__ if type(target) is MethodType else target
    functions = (function, *(inspect.getattr_static(one, "forward") for one in kinds))
    plain = (one for one in functions if type(one) is FunctionType)
    return any("item" in one.__code__.co_names for one in plain)


def _dims(name: str, what: object) -> tuple[int, ...]:
    dims = (what,) if isinstance(what, int) else what
    if isinstance(dims, Sequence) and all(isinstance(dim, int) for dim in dims):
        return tuple(dims)
    raise ValueError(f"dynamic[{name!r}] is {what!r}, expected a bool or dimensions")


class _Names:
    """The names by which numbers of a program can be marked."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self._target = target
        self._parameters: Mapping[str, inspect.Parameter] | None = None
        with contextlib.suppress(TypeError, ValueError):
            called = getattr(target, "forward", target)
            self._parameters = inspect.signature(called).parameters

    def path(self, name: str) -> str:
        """Return the path of what is marked by a name or a path.

        Raises:
            ValueError: There is nothing of this name.
        """
        if not isinstance(name, str):
            raise ValueError(f"dynamic names {name!r}, expected a name or a path")
        found = _FIRST_NAME.match(name)
        if found is None or self._parameters is None:
            return name
        first, rest = found[1], name[found.end() :]
        if first in self._parameters:
            index = list(self._parameters).index(first)
            return f"{name[: found.start(1)]}args[{index}]{rest}"
        if rest[:1] not in (".", "["):
            self._check(name, first, self._parameters, self._takes_any())
        elif first == "self" and (attribute := _ATTRIBUTE.match(rest)):
            self._check(name, attribute[1], _attributes(self._target), False)
        return name

    def _takes_any(self) -> bool:
        parameters = (self._parameters or {}).values()
        return any(item.kind is item.VAR_KEYWORD for item in parameters)

    def _check(self, name: str, part: str, known: Iterable[str], anyway: bool) -> None:
        if not anyway and part not in known:
            hint = did_you_mean(part, known)
            raise ValueError(f"dynamic names {name!r}, but there is no '{part}'{hint}")


# The first name of a path, also of what is computed from it: "item(args[0])".
_FIRST_NAME: Final = re.compile(r"(?:\w+\()?([^\W\d]\w*)")
_ATTRIBUTE: Final = re.compile(r"\.(\w+)")


def _attributes(target: object) -> set[str]:
    """Return the attributes that an object has, or that its methods may give it."""
    names = set(dir(target))
    for cls in type(target).__mro__:
        for method in vars(cls).values():
            if isinstance(method, FunctionType):
                names.update(method.__code__.co_names)
    return names
