"""Owns which parts of a function can be sides of a branch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.control.flow import FlowGraph, Join
from magweld.frontend.control.scopes import TrialBranch, TrialEndedError
from magweld.frontend.monitor.code_table import FUNCTION, SUSPENDABLE, Row
from magweld.frontend.monitor.handlers import lets_through
from magweld.frontend.monitor.observer import Observer

# Instruction -> how many values it takes before it counts down to its display.
_DISPLAYS: Final = {"LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2}
_EXTENDS: Final = ("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE")
_TESTS: Final = ("_IF_TRUE", "_IF_FALSE")
_MOVES: Final = ("JUMP_BACKWARD", "JUMP_FORWARD", "NOP")


def why_not(flow: FlowGraph, row: Row, join: Join) -> str:
    """Return why a jump is no branch that can be an operator, "" if it can."""
    region = flow.between(flow.successors(row), join.ends)
    if row in region:
        return "the branch belongs to a loop"
    return why_not_function(flow, region, row.depth)


def why_not_function(flow: FlowGraph, region: list[Row], depth: int) -> str:
    """Return why a region of a function cannot run on its own, "" if it can.

    Args:
        depth: Depth of the value stack with the tested value on top.
    """
    flags = flow.code.co_flags
    if flags & FUNCTION != FUNCTION or flags & SUSPENDABLE:
        return "the branch is in no ordinary function"
    base = depth - 1
    for inner in region:
        taken = _DISPLAYS.get(inner.opname, 1 if inner.opname in _EXTENDS else 0)
        if taken and inner.depth - taken - inner.arg < base:
            return "a comprehension is filled in a branch"
    return ""


def branches_of(row: Row, outcome: bool) -> tuple[int, int]:
    """Return the offsets at which the taken and the other branch begin."""
    target = row.argval
    following = next((at for at in row.normal if at != target), target)
    jumps = row.opname.endswith("IF_TRUE") == outcome
    return (target, following) if jumps else (following, target)


def check_handlers(trial: TrialBranch, observer: Observer, row: Row) -> None:
    """Refuse that a branch on trial goes where its end could be caught.

    Its outermost frame has no handlers; an exception in it ends the branch.

    Raises:
        StopRecordingError: It is about to.
    """
    if observer is trial.observer:
        return
    following = (observer.rows[at >> 1] for at in row.normal)
    handlers = {at for after in following if after is not None for at in after.handlers}
    if not all(lets_through(observer, at, TrialEndedError) for at in handlers):
        raise StopRecordingError("tensor-value", "exceptions are handled in a branch")


@dataclass(frozen=True)
class LoopForm:
    """A loop whose only way out is the test of a tensor.

    Attributes:
        stay: Offset of the first instruction of an iteration.
        tests: Offsets of the instructions that end an iteration: they test a tensor.
        leaves: Offsets of the first instruction behind the loop.
        while_true: Whether an iteration follows when the tensor is true.
        within: Those of the tests that make the tensor first.
    """

    stay: int
    tests: frozenset[int]
    leaves: frozenset[int]
    while_true: bool
    within: frozenset[int] = frozenset()


def loop_form(flow: FlowGraph, row: Row) -> LoopForm | None:
    """Return the loop that a conditional jump decides about, None if there is none."""
    for stay in flow.successors(row):
        tests = _tests(flow, stay)
        region = flow.between((stay,), tests)
        if any(map(flow.is_exit, region)):
            continue
        after = {at for inner in region for at in flow.successors(inner)}
        reached = tests & (after | {stay})
        leaves = _leaves(flow, (row.offset, *reached), stay)
        if reached and leaves:
            on_true = row.opname.endswith("IF_TRUE")
            if flow.real_offset(row.argval) != stay:
                on_true = not on_true
            return LoopForm(stay, reached, leaves, on_true)
    return None


def jump_behind(flow: FlowGraph, row: Row) -> Row | None:
    """Return the conditional jump that a test of a tensor decides about, if any.

    Args:
        row: The jump itself, or what gives the truth that it takes: the call of `bool`;
            on 3.13 TO_BOOL, and a comparison that tests its result.
    """
    if not _is_test(row):
        if not _kind(row) or not flow.successors(row):
            return None
        row = flow.rows[flow.settle(flow.successors(row)[0], _PASSING)]
    return row if _is_test(row) else None


# Instructions that pass a truth value on to the jump behind them.
_PASSING: Final = ("EXTENDED_ARG", "TO_BOOL")


def _kind(row: Row) -> str:
    """Return in which way an instruction gives the truth of a tensor, "" if in none."""
    if row.tests_result:
        return "comparison"
    gives = row.opname == "TO_BOOL" or (row.opname == "CALL" and row.arg == 1)
    return row.opname if gives else ""


def with_tests(flow: FlowGraph, form: LoopForm, first: Row) -> LoopForm | None:
    """Return a loop whose iterations end with tests that lie in front of the jumps.

    Args:
        first: The test that the program came to first; the others are alike.

    Returns:
        None if one of the jumps takes something else.
    """
    tests = [_test_before(flow, at, _kind(first)) for at in form.tests]
    found = [row for row in tests if row is not None]
    if len(found) < len(tests):
        return None
    within = frozenset(row.offset for row in found if row.tests_result)
    offsets = frozenset(row.offset for row in found)
    return replace(form, tests=offsets, within=within)


def _test_before(flow: FlowGraph, offset: int, kind: str) -> Row | None:
    """Return the test of a kind whose result the jump at an offset takes."""
    while True:
        before = [row for row in flow.rows.values() if offset in flow.successors(row)]
        if len(before) != 1 or _kind(before[0]) == kind:
            return before[0] if len(before) == 1 else None
        if before[0].opname not in _PASSING:
            return None
        offset = before[0].offset


def _is_test(row: Row) -> bool:
    return row.opname.startswith("POP_JUMP") and row.opname.endswith(_TESTS)


def _tests(flow: FlowGraph, stay: int) -> frozenset[int]:
    """Return the conditional jumps that lead to an instruction."""
    body = flow.settle(stay, _MOVES)
    return frozenset(
        at
        for at, row in flow.rows.items()
        if _is_test(row)
        if any(flow.settle(to, _MOVES) == body for to in flow.successors(row))
    )


def _leaves(flow: FlowGraph, tests: Iterable[int], stay: int) -> frozenset[int]:
    """Return where jumps lead that do not stay, if that is one place."""
    body = flow.settle(stay, _MOVES)
    targets = {
        to
        for at in tests
        for to in flow.successors(flow.rows[at])
        if flow.settle(to, _MOVES) != body
    }
    places = {flow.settle(to, _MOVES) for to in targets}
    return frozenset(targets) if len(places) == 1 else frozenset()
