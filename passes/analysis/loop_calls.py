"""Owns the call that runs a loop, as an attribute of what it calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.dialects.integers import i64

LOOP = "magweld.loop"


@dataclass(frozen=True)
class LoopCall:
    """A call that runs a function several times.

    Operand `i` of the call is what argument `i` of the function is part of.

    Attributes:
        function: Name of the function, an iteration.
        trips: How many iterations.
        starts: For each argument the element of the operand where it begins in the
            first iteration.
        strides: How many elements later it begins in each further one.
        fed_by: For each argument which result of the iteration before it is from the
            second iteration on; -1 if it is always part of the operand.
        stacked: For each result whether the call returns those of all iterations one
            after another, and not that of the last one.
    """

    function: str
    trips: int
    starts: tuple[int, ...]
    strides: tuple[int, ...]
    fed_by: tuple[int, ...]
    stacked: tuple[bool, ...]

    def attribute(self) -> Any:
        """Return the call as an attribute."""
        return ir.DictAttr.get(
            {
                "function": ir.FlatSymbolRefAttr.get(self.function),
                "trips": i64(self.trips),
                "starts": ir.DenseI64ArrayAttr.get(self.starts),
                "strides": ir.DenseI64ArrayAttr.get(self.strides),
                "fed_by": ir.DenseI64ArrayAttr.get(self.fed_by),
                "stacked": ir.DenseBoolArrayAttr.get(self.stacked),
            }
        )


def loop_of(callee: Any) -> LoopCall | None:
    """Return the loop that a declaration stands for, None if it is none."""
    if LOOP not in callee.attributes:
        return None
    entries = ir.DictAttr(callee.attributes[LOOP])
    return LoopCall(
        ir.FlatSymbolRefAttr(entries["function"]).value,
        ir.IntegerAttr(entries["trips"]).value,
        tuple(ir.DenseI64ArrayAttr(entries["starts"])),
        tuple(ir.DenseI64ArrayAttr(entries["strides"])),
        tuple(ir.DenseI64ArrayAttr(entries["fed_by"])),
        tuple(map(bool, ir.DenseBoolArrayAttr(entries["stacked"]))),
    )
