"""Owns how a hit makes objects and repeats writes: recipes, steps of a mock."""

from __future__ import annotations

import builtins
import contextlib
import functools
import operator
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from magweld.frontend.state.mro import ABSENT, find_own
from magweld.short_repr import short_repr

Fill = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Recipe:
    """How an object is made.

    Attributes:
        make: Makes it, from `parts`.
        parts: Objects needed to make it.
        packed: Whether `make` takes the parts as one sequence.
        late: Whether a shell is made first and filled when all others exist; its
            parts are then constants.
        early: Whether the parts must have their content before it is made.
        fills: Functions that take the object and a list of parts.
        finals: The same, run when everything has been filled.
    """

    make: Callable[..., Any]
    parts: tuple[Any, ...] = ()
    packed: bool = False
    late: bool = False
    early: bool = False
    fills: tuple[Fill, ...] = ()
    finals: tuple[Fill, ...] = ()


@dataclass
class Environment:
    """What the steps of one hit work on.

    Attributes:
        fetched: External objects, as the guard program returned them.
        outputs: Tensors that the graph returned.
        made: New objects by number.
    """

    fetched: list[Any]
    outputs: tuple[Any, ...]
    made: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Constant:
    """A scalar or an object whose identity is guarded."""

    value: Any

    def build(self, env: Environment) -> Any:
        return self.value


@dataclass(frozen=True)
class Fetched:
    """An object from before the run.

    Attributes:
        index: Its number among those that were fetched.
        path: How it is reached, for the reader.
    """

    index: int
    path: str = field(default="", compare=False)

    def build(self, env: Environment) -> Any:
        return env.fetched[self.index]


@dataclass(frozen=True)
class Output:
    """A tensor that the graph computes."""

    index: int

    def build(self, env: Environment) -> Any:
        return env.outputs[self.index]


@dataclass(frozen=True)
class Made:
    """An object that an earlier step made."""

    index: int

    def build(self, env: Environment) -> Any:
        return env.made[self.index]


Source = Constant | Fetched | Output | Made


BuildParts = Callable[[Environment], list[Any]]


def parts_builder(parts: tuple[Source, ...]) -> BuildParts:
    """Return what gives the objects that a step takes."""
    found = [part.index for part in parts if isinstance(part, Output)]
    if len(found) < max(2, len(parts)):
        return lambda env: [part.build(env) for part in parts]
    run = run_of_outputs(parts)
    if run is not None:
        return lambda env: list(outputs_of(env.outputs, run))
    pick = operator.itemgetter(*found)
    return lambda env: list(pick(env.outputs))


def outputs_of(outputs: Sequence[Any], run: slice) -> Sequence[Any]:
    """Return some outputs.

    Raises:
        IndexError: There are not as many: who runs the graph has made an error.
    """
    if len(outputs) < run.stop:
        raise IndexError(f"a graph gave {len(outputs)} results, not {run.stop}")
    return outputs[run]


def run_of_outputs(parts: tuple[Source, ...]) -> slice | None:
    """Return which outputs some objects are, if these follow each other."""
    first = parts[0].index if parts and isinstance(parts[0], Output) else 0
    run = slice(first, first + len(parts))
    return run if parts == tuple(map(Output, range(run.start, run.stop))) else None


@dataclass(frozen=True)
class Make:
    """Makes one object: `function(*parts)`, the parts packed as a tuple if wanted.

    Attributes:
        index: Number of the new object.
        function: What makes it.
        parts: Its arguments.
        packed: Whether the parts are one sequence argument.
    """

    __repr__ = short_repr

    index: int
    function: Callable[..., Any]
    parts: tuple[Source, ...] = ()
    packed: bool = False

    @functools.cached_property
    def _build(self) -> BuildParts:
        return parts_builder(self.parts)

    def run(self, env: Environment) -> None:
        """Make the object."""
        parts = self._build(env)
        env.made[self.index] = (
            self.function(parts) if self.packed else self.function(*parts)
        )


@dataclass(frozen=True)
class Call:
    """Calls `function(target, *parts)` for its effect.

    Attributes:
        function: What is called.
        target: Its first argument.
        parts: The others.
        packed: Whether these are one sequence argument.
        where: The user's file:line that did it in the run, "" if unknown.
    """

    __repr__ = short_repr

    function: Callable[..., Any]
    target: Source
    parts: tuple[Source, ...] = ()
    packed: bool = False
    where: str = field(default="", compare=False)

    @functools.cached_property
    def _build(self) -> BuildParts:
        return parts_builder(self.parts)

    def run(self, env: Environment) -> None:
        """Call the function."""
        target = self.target.build(env)
        parts = self._build(env)
        if self.packed:
            self.function(target, parts)
        else:
            self.function(target, *parts)


HitStep = Make | Call


@dataclass(frozen=True)
class Mock:
    """Everything that a hit does after its graph.

    Attributes:
        steps: New objects first, then writes, in order.
        result: What the call returns.
        made: Number of new objects.
    """

    __repr__ = short_repr

    steps: tuple[HitStep, ...]
    result: Source
    made: int

    @functools.cached_property
    def collected(self) -> tuple[Callable[[Any], Any], slice] | None:
        """What makes up the result, and of which outputs, if a hit does nothing else.

        A program of many small operators most often returns all in a list or a tuple.
        """
        match self.steps:
            case [
                Make(0, builtins.list, ()),
                Call(function, Made(0), parts, packed=True),
            ] if function is replace_list:
                kind: Callable[[Any], Any] = list
            case [Make(0, builtins.tuple, parts, packed=True)]:
                kind = tuple
            case _:
                return None
        run = run_of_outputs(parts)
        return (kind, run) if run is not None and self.result == Made(0) else None

    def replay(self, fetched: list[Any], outputs: tuple[Any, ...]) -> Any:
        """Rebuild objects, repeat writes and return the result of the call."""
        if self.collected is not None:
            make, run = self.collected
            return make(outputs_of(outputs, run))
        env = Environment(fetched, outputs, [None] * self.made)
        for step in self.steps:
            step.run(env)
        return self.result.build(env)


def set_cell(cell: types.CellType, value: Any) -> None:
    """Write a closure variable."""
    cell.cell_contents = value


def clear_cell(cell: types.CellType) -> None:
    """Unbind a closure variable."""
    del cell.cell_contents


def set_class_attribute(cls: type, name: str, value: Any) -> None:
    """Write an attribute of a class; the same value again would flush type caches."""
    if find_own(cls, name) is not value:
        type.__setattr__(cls, name, value)


def discard_attribute(cls: type, name: str) -> None:
    """Delete an attribute of a class if it is there."""
    if find_own(cls, name) is not ABSENT:
        type.__delattr__(cls, name)


def replace_list(target: list[Any], items: list[Any]) -> None:
    """Give a list, or an instance of a subclass, new elements."""
    list.__setitem__(target, slice(None), items)


def replace_set(target: set[Any], items: list[Any]) -> None:
    """Give a set new elements."""
    set.clear(target)
    set.update(target, items)


def discard_slot(obj: Any, descriptor: Any) -> None:
    """Delete what a slot holds, if it holds anything."""
    with contextlib.suppress(AttributeError):
        descriptor.__delete__(obj)


def discard_key(target: dict[Any, Any], key: Any) -> None:
    """Delete an entry of a dict if it is there."""
    if dict.__contains__(target, key):
        owner: Any = OrderedDict if isinstance(target, OrderedDict) else dict
        owner.__delitem__(target, key)


def fill_namespace(target: Any, items: list[Any]) -> None:
    """Fill the instance dict of a new object from keys and values in turn."""
    namespace = target.__dict__
    for key, value in zip(items[::2], items[1::2], strict=True):
        namespace[key] = value


def make_partial(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> functools.partial[Any]:
    """Make a partial function that holds this very dict of keywords."""
    made = functools.partial(function)
    made.__setstate__((function, args, keywords, None))  # type: ignore[attr-defined]
    return made


def make_function(
    code: types.CodeType,
    namespace: dict[str, Any],
    name: str,
    defaults: tuple[Any, ...] | None,
    *cells: types.CellType,
) -> types.FunctionType:
    """Make a function as a `def` statement does."""
    return types.FunctionType(code, namespace, name, defaults, cells)


FUNCTION_FIELDS: Final = (
    "__qualname__",
    "__kwdefaults__",
    "__doc__",
    "__module__",
    "__annotations__",
    *(("__type_params__",) if sys.version_info >= (3, 12) else ()),
)


def fill_function(function: types.FunctionType, values: list[Any]) -> None:
    """Set what a decorator may have replaced."""
    for name, value in zip(FUNCTION_FIELDS, values, strict=True):
        setattr(function, name, value)
