"""Owns addresses of tensors in a frame: followed until the program compares them."""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any, Final

from magweld.frontend.monitor.code_table import Row, looks_at_frames


class Address:
    """Where a tensor lies in memory, which is somewhere else in each call.

    Attributes:
        live: How many places hold it, and how many have lost it to other uses.
    """

    def __init__(self) -> None:
        self.live = 0

    @property
    def is_used(self) -> bool:
        """Whether it is used other than in comparisons that settle, or may still be."""
        return self.live > 0

    def settles(self, other: Address, frame: FrameType, same: bool) -> bool:
        """Return whether each call compares it with another one with one outcome.

        Args:
            other: The other address.
            frame: Where they are compared.
            same: Whether they are the same now.
        """
        raise NotImplementedError


class AddressHolding:
    """One place of a frame that holds an address.

    Attributes:
        address: The address.
        place: Position of the value stack, None if a variable holds it.
        slot: Number of the local variable.
    """

    def __init__(self, address: Address, place: int | None, slot: int = -1) -> None:
        self.address, self.place, self.slot = address, place, slot
        address.live += 1

    def after(self, row: Row, code: CodeType) -> tuple[AddressHolding, ...]:
        """Return what holds the address after an instruction.

        Nothing does if the instruction uses it: then it stays alive. A comparison is
        looked at by its own rule.
        """
        if self.place is None:
            return self._after_in_variable(row)
        name, top = row.opname, row.depth - 1
        if name == "POP_TOP" and self.place == top:
            self.end()
            return ()
        if name == "STORE_FAST" and self.place == top and not looks_at_frames(code):
            return self._moved(None, row.arg)
        if name in _REORDERING:
            return self._after_reordering(name, row)
        if name == "COMPARE_OP" or row.depth - row.taken > self.place:
            return (self,)
        return ()

    def _after_in_variable(self, row: Row) -> tuple[AddressHolding, ...]:
        if row.arg != self.slot or row.opname not in _VARIABLE:
            return (self,)
        if row.opname == "LOAD_FAST":
            return self, AddressHolding(self.address, row.depth)
        if row.opname in ("STORE_FAST", "DELETE_FAST"):
            self.end()
        return ()

    def _after_reordering(self, name: str, row: Row) -> tuple[AddressHolding, ...]:
        top, other = row.depth - 1, row.depth - row.arg
        if name == "COPY" and self.place == other:
            return self, AddressHolding(self.address, row.depth)
        if name == "COPY":
            return (self,)
        if self.place not in (top, other):
            return (self,)
        return self._moved(other if self.place == top else top)

    def _moved(self, place: int | None, slot: int = -1) -> tuple[AddressHolding, ...]:
        self.end()
        return (AddressHolding(self.address, place, slot),)

    def end(self) -> None:
        """Take note that the place holds it no more, and that nothing has used it."""
        self.address.live -= 1


_REORDERING: Final = ("COPY", "SWAP")
_VARIABLE: Final = (
    *("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR"),
    *("STORE_FAST", "DELETE_FAST"),
)
_EQUALITY: Final = ("==", "!=")


def compared(
    held: Iterable[AddressHolding], frame: FrameType, symbol: str, stack: list[Any]
) -> tuple[AddressHolding, ...]:
    """Return what holds addresses after a comparison of the two values on top."""
    last = len(stack) - 1
    operands: list[AddressHolding] = []
    others: list[AddressHolding] = []
    for holding in held:
        place = holding.place
        taken = place is not None and place >= last - 1
        (operands if taken else others).append(holding)
    if len(operands) == 2 and symbol in _EQUALITY:
        left, right = operands
        same = stack[-1] == stack[-2]
        if left.address.settles(right.address, frame, same):
            left.end()
            right.end()
    return tuple(others)
