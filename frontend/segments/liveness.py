"""Owns what the state of a frame consists of at an instruction: slots and stack."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable
from enum import Enum, auto
from types import CodeType
from typing import Final, NamedTuple

from magweld.frontend.monitor.code_table import (
    CALLABLE_FIRST,
    CALLS,
    Flow,
    effect,
    looks_at_frames,
    parts_of,
    slot_count,
    slot_names,
    spread_count,
)

_READS: Final = frozenset(
    (
        "DELETE_DEREF DELETE_FAST LOAD_CLASSDEREF LOAD_CLOSURE LOAD_DEREF LOAD_FAST"
        " LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK LOAD_FROM_DICT_OR_DEREF STORE_DEREF"
    ).split()
)


class StackSlot(Enum):
    """What is known about one position of the value stack."""

    # That of the base class is a function of Python and runs at every look-up.
    __hash__ = object.__hash__

    VALUE = auto()
    EMPTY = auto()
    OUTER = auto()  # the exception to be handled again when this handler ends
    EITHER = auto()  # depends on the path


class KnownFrame(NamedTuple):
    """What is known about a frame before an instruction.

    Attributes:
        stack: Positions of the value stack.
        bound: Local slots that certainly hold a value.
    """

    stack: tuple[StackSlot, ...]
    bound: frozenset[int]


class Liveness:
    """Which slots the rest of a function may still read, at each instruction."""

    def __init__(self, code: CodeType) -> None:
        self.flow = Flow(code)
        self._always = _always_live(code)
        self._live: dict[int, frozenset[int]] = {}
        self._solve()

    def at(self, offset: int) -> frozenset[int]:
        """Return the slots that are live before an instruction."""
        return self._always | self._live.get(offset, frozenset())

    def _solve(self) -> None:
        flow = self.flow
        handlers = {i.offset: flow.covering(i.offset) for i in flow.instructions}
        nothing: frozenset[int] = frozenset()
        live = dict.fromkeys(flow.index, nothing)
        changed = True
        while changed:
            changed = False
            for instruction in reversed(flow.instructions):
                offset = instruction.offset
                after = nothing.union(
                    *(live.get(o, nothing) for o in flow.normal(instruction))
                )
                now = _before(instruction, after).union(
                    *(live.get(o, nothing) for o in handlers[offset])
                )
                if now != live[offset]:
                    live[offset] = now
                    changed = True
        self._live = live


def _before(instruction: dis.Instruction, after: frozenset[int]) -> frozenset[int]:
    for part in reversed(parts_of(instruction)):
        if part.opname in _READS:
            after |= {part.arg or 0}
        elif part.opname == "STORE_FAST":
            after -= {part.arg or 0}
    return after


def _always_live(code: CodeType) -> frozenset[int]:
    if looks_at_frames(code):
        return frozenset(range(slot_count(code)))
    names = slot_names(code)
    if "super" not in code.co_names:
        return frozenset()
    # `super()` looks at the first argument and at the cell of the class.
    first = {0} if code.co_argcount else set()
    return frozenset(first | {i for i, name in enumerate(names) if name == "__class__"})


def states_from(
    flow: Flow, offset: int, entry: KnownFrame, stops: Iterable[int] = ()
) -> dict[int, KnownFrame]:
    """Return what is known at every instruction that a frame may reach.

    Args:
        flow: Control flow of the function.
        offset: Where the frame goes on.
        entry: What is known there.
        stops: Where it goes no further.
    """
    found: dict[int, KnownFrame] = {}
    work = [(offset, entry)]
    while work:
        at, state = work.pop()
        known = found.get(at)
        merged = state if known is None else _merge(known, state)
        if merged == known:
            continue
        found[at] = merged
        if at in stops:
            continue
        instruction = flow.index[at]
        work += _successors(flow, instruction, merged)
    return found


def _successors(
    flow: Flow, instruction: dis.Instruction, state: KnownFrame
) -> Iterable[tuple[int, KnownFrame]]:
    result = []
    following = flow.following.get(instruction.offset)
    for target in flow.normal(instruction):
        jump = target != following
        # What may be reached behind the target of a jump is reached through it, too.
        if not jump or target == instruction.argval:
            result.append((target, _after(instruction, state, jump)))
    for region in flow.regions:
        if region.start <= instruction.offset < region.end:
            stack = state.stack[: region.depth] + (StackSlot.VALUE,) * (
                1 + region.lasti
            )
            bound = state.bound & _after(instruction, state, False).bound
            result.append((region.target, KnownFrame(stack, bound)))
    return result


def _after(instruction: dis.Instruction, state: KnownFrame, jump: bool) -> KnownFrame:
    for part in parts_of(instruction):
        state = _after_part(part, state, jump)
    return state


def _after_part(
    instruction: dis.Instruction, state: KnownFrame, jump: bool
) -> KnownFrame:
    name, arg = instruction.opname, instruction.arg or 0
    bound = state.bound
    if name == "STORE_FAST":
        bound |= {arg}
    elif name in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
        bound -= {arg}
    special = _stack_after(name, arg, state.stack)
    if special is not None:
        return KnownFrame(special, bound)
    change = effect(instruction, jump)
    if change <= 0:
        return KnownFrame(state.stack[: len(state.stack) + change], bound)
    return KnownFrame((*state.stack, *(StackSlot.VALUE,) * change), bound)


Stack = tuple[StackSlot, ...]


def _stack_after(name: str, arg: int, stack: Stack) -> Stack | None:
    """Return the stack after an instruction that makes, moves or takes empty slots."""
    if name in CALLS:
        taken = spread_count(arg) if name == "CALL_FUNCTION_EX" else 2 + arg
        return (*stack[: len(stack) - taken - (name == "CALL_KW")], StackSlot.VALUE)
    if name == "PUSH_NULL":
        return (*stack, StackSlot.EMPTY)
    if name == "PUSH_EXC_INFO":
        return (*stack[:-1], StackSlot.OUTER, StackSlot.VALUE)
    if name == "LOAD_GLOBAL" and arg & 1:
        return (*stack, *callable_pair(StackSlot.EMPTY))
    if name == "LOAD_SPECIAL":
        return (*stack[:-1], *callable_pair(StackSlot.EITHER))
    if loads_method(name, arg):
        taken = 3 if name == "LOAD_SUPER_ATTR" else 1
        return (*stack[: len(stack) - taken], *callable_pair(StackSlot.EITHER))
    if name == "SWAP":
        moved = list(stack)
        moved[-1], moved[-arg] = moved[-arg], moved[-1]
        return tuple(moved)
    if name == "COPY":
        return (*stack, stack[-arg])
    if name == "LOAD_FAST_AND_CLEAR":
        return (*stack, StackSlot.EITHER)
    return None


def callable_pair(receiver: StackSlot) -> Stack:
    """Return the two positions of a callable, given that of its receiver or nothing."""
    pair = (StackSlot.VALUE, receiver)
    return pair if CALLABLE_FIRST else pair[::-1]


def loads_method(name: str, arg: int) -> bool:
    """Return whether an instruction leaves a receiver or an empty slot."""
    if name == "LOAD_METHOD":
        return True
    flagged = name in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and bool(arg & 1)
    return flagged and sys.version_info >= (3, 12)


def _merge(left: KnownFrame, right: KnownFrame) -> KnownFrame:
    stack = tuple(
        a if a is b else StackSlot.EITHER
        for a, b in zip(left.stack, right.stack, strict=True)
    )
    return KnownFrame(stack, left.bound & right.bound)
