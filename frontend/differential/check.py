"""Owns the check of one call: eager first, everything put back, then the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from magweld.diagnostics import MagweldError
from magweld.frontend.differential.describe import (
    Description,
    Difference,
    Item,
    TensorData,
    Walk,
    difference,
    generator_states,
    join,
    shown,
)
from magweld.frontend.differential.outside import Silence, Written, warned_to
from magweld.frontend.differential.snapshot import CannotRestoreError, Snapshot
from magweld.frontend.operators.torch_state import torch_state

# A description of so many takes seconds. A handler of logs may reach all that the
# program which made it has.
MOST_OBJECTS: Final = 100_000


def compare(
    expected: Description, found: Description, exact: bool = True
) -> Difference | None:
    """Return the first difference, None when there is none.

    Args:
        expected: What eager left.
        found: What the traced callable left.
        exact: Whether tensors must agree bit by bit.
    """
    for left, right in zip(expected.items, found.items, strict=False):
        result = _compare_items(expected, found, left, right, exact)
        if result is not None:
            return result
    return None


def _compare_items(
    expected: Description,
    found: Description,
    left: Item,
    right: Item,
    exact: bool,
) -> Difference | None:
    if left.kind != right.kind:
        return Difference(left.path, f"a {left.kind}", f"a {right.kind}")
    if left.origin != right.origin:
        return Difference(left.path, _origin(left), _origin(right))
    result = _compare_data(left, right, exact)
    if result is not None:
        return result
    for mine, theirs in zip_longest(left.parts, right.parts):
        if mine != theirs:
            return _part_difference(expected, found, left, mine, theirs)
    return None


def _origin(item: Item) -> str:
    if item.origin is None:
        return "a new object"
    return f"object {item.origin} from before the call"


def _compare_data(left: Item, right: Item, exact: bool) -> Difference | None:
    if isinstance(left.data, TensorData) and isinstance(right.data, TensorData):
        result = difference(left.data, right.data, exact)
        if result is None:
            return None
        name, wanted, got = result
        return Difference(join(left.path, name), str(wanted), str(got))
    if left.data != right.data:
        return Difference(left.path, repr(left.data), repr(right.data))
    return None


def _part_difference(
    expected: Description, found: Description, item: Item, mine: Any, theirs: Any
) -> Difference:
    if mine is None or theirs is None or mine[0] != theirs[0]:
        names = [None if part is None else part[0] for part in (mine, theirs)]
        path = join(item.path, "<content>")
        return Difference(path, *[f"{name or 'nothing'}" for name in names])
    path = join(item.path, mine[0])
    return Difference(path, shown(expected, mine[1]), shown(found, theirs[1]))


Call = Callable[[], Any]
# Gives the objects that a call starts from, with their names.
Roots = Callable[[], list[tuple[str, Any]]]


class CheckError(MagweldError):
    """A hit that differs from eager.

    Attributes:
        difference: Where and how.
    """

    def __init__(self, difference: Difference, guards: list[str]) -> None:
        self.difference = difference
        held = "\n".join(f"  {guard}" for guard in guards)
        super().__init__(
            f"a hit differs from eager at {difference} [result-mismatch]; hint: "
            f"report it with the program; the guards that held:\n{held}"
        )


@dataclass(frozen=True)
class Ending:
    """How a call ended: its result, or the exception that it raised."""

    result: Any
    error: BaseException | None

    def give(self) -> Any:
        """Return the result or raise the exception."""
        if self.error is not None:
            raise self.error
        return self.result


class EndedError(Exception):
    """A run did not stop where the record does; its end is that of the program."""

    def __init__(self, ending: Ending) -> None:
        super().__init__("the frames at a break cannot be left")
        self.ending = ending


class ElsewhereError(Exception):
    """Eager came to another break than the record; its end is the program there."""

    def __init__(self, where: str, ending: Ending) -> None:
        super().__init__(where)
        self.ending = ending


def run(call: Call) -> Ending:
    """Run a call to its end, whatever that is."""
    try:
        return Ending(call(), None)
    except (EndedError, ElsewhereError) as told:
        # With the traceback it would be a cycle, which keeps the frames.
        return Ending(None, told.with_traceback(None))
    except Exception as error:
        return Ending(None, error)


@dataclass(frozen=True)
class Checked:
    """What a checked call gave.

    Attributes:
        ending: What the caller gets.
        difference: How the hit differed from eager, None if it did not.
        skipped: Why nothing was compared, "" if it was.
    """

    ending: Ending
    difference: Difference | None = None
    skipped: str = ""


def run_checked(
    eager: Call,
    traced: Call,
    roots: Roots,
    exact: bool,
    view: Callable[[Any], Any] = lambda result: result,
    written: Iterable[Written] = (),
) -> Checked:
    """Run a call eagerly, put its effects back, run it traced, and compare.

    Args:
        eager: The call without the front end.
        traced: The call with it.
        roots: What the call can reach: its arguments and its callable.
        exact: Whether tensors must agree bit by bit.
        view: Returns what is compared of a result.
        written: What the traced call writes.
    """
    before = Walk(exact=exact)
    before.describe(roots(), MOST_OBJECTS)
    if len(before.objects) > MOST_OBJECTS:
        reason = f"it reaches more than {MOST_OBJECTS:,} objects"
        return Checked(_own_end(run(traced)), skipped=reason)
    origins = {id(obj): number for number, obj in enumerate(before.objects)}
    try:
        snapshot = Snapshot(before.objects, [*written, *warned_to()])
    except CannotRestoreError as reason:
        return Checked(_own_end(run(traced)), skipped=str(reason))
    silence = Silence()
    with silence.kept():
        ending = run(eager)
    expected = _describe(ending, view, roots, origins, exact, silence.logged)
    try:
        if isinstance(ending.error, EndedError):
            raise CannotRestoreError(str(ending.error))
        snapshot.restore()
    except CannotRestoreError as reason:
        silence.show()
        return Checked(_own_end(ending), skipped=str(reason))
    told = Silence()
    # What takes logs may be within reach of the call.
    with told.logs_kept():
        mine = run(traced)
    try:
        if isinstance(mine.error, EndedError):
            return Checked(_own_end(mine), skipped="an operator has raised")
        if isinstance(ending.error, ElsewhereError):
            return Checked(mine, skipped="the program breaks earlier than it did")
        found = _describe(mine, view, roots, origins, exact, told.logged)
        return Checked(mine, compare(expected, found, exact))
    finally:
        told.show()


def _own_end(ending: Ending) -> Ending:
    """Return how the program ended, also where it went on, or to another break."""
    error = ending.error
    return error.ending if isinstance(error, (EndedError, ElsewhereError)) else ending


def _describe(
    ending: Ending,
    view: Callable[[Any], Any],
    roots: Roots,
    origins: dict[int, int],
    exact: bool,
    logged: list[tuple[str, int, str]],
) -> Description:
    error = ending.error
    raised = None if error is None else f"{type(error).__qualname__}: {error}"
    return Walk(origins, exact).describe(
        [
            ("exception", raised),
            ("result", view(ending.result)),
            *roots(),
            ("logged", logged),
            ("torch state", torch_state()),
            *generator_states(),
        ]
    )
