"""Owns following random numbers from where they were drawn to their last use."""

from __future__ import annotations

from types import CodeType
from typing import Final

from magweld.frontend.monitor.code_table import Row, looks_at_frames
from magweld.frontend.state.draws import Holding

Held = tuple[Holding, ...]


def followed(held: Held, row: Row, code: CodeType) -> Held:
    """Return where numbers are after an instruction.

    Those that it uses are left out: their value counts then. A comparison is looked at
    by its own rule.

    Args:
        held: Where they were.
        row: The instruction.
        code: Code of the frame.
    """
    result: Held = ()
    for holding in held:
        result += _after(holding, row, code)
    return result


def _after(holding: Holding, row: Row, code: CodeType) -> Held:
    place, slot = holding.place, holding.slot
    name, top = row.opname, row.depth - 1
    if name in ("STORE_FAST", "DELETE_FAST") and slot == row.arg:
        slot = None
    if place == top and name in ("STORE_FAST", "POP_TOP"):
        if name == "STORE_FAST" and (slot is not None or looks_at_frames(code)):
            return ()  # two variables hold it now
        return holding.at(None, row.arg if name == "STORE_FAST" else slot)
    if name in _MAY_BE_UNBOUND and slot == row.arg:
        return ()
    if name == "LOAD_FAST" and slot == row.arg:
        return () if place is not None else holding.at(row.depth, slot)
    if place is None or name == "COMPARE_OP" or _is_below(place, row):
        return holding.at(place, slot)
    return ()


# They look at values that they do not take.
_REORDERING: Final = ("COPY", "SWAP")
_MAY_BE_UNBOUND: Final = ("LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR")


def _is_below(place: int, row: Row) -> bool:
    return row.opname not in _REORDERING and row.depth - row.taken > place


def ended(held: Held, row: Row) -> None:
    """Take note that a frame has ended, with the numbers in its variables.

    Args:
        held: Where they were before its last instruction.
        row: This instruction.
    """
    if row.opname in ("RETURN_VALUE", "RETURN_CONST"):
        for holding in held:
            holding.at(None, None)
