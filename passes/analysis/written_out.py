"""Owns why repeated operations are no loop, as an attribute of their function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.passes.ir.utils import functions_of

_WRITTEN_OUT: Final = "magweld.written_out"

REASONS: Final = {
    "loop-other-values": "an iteration reads other values from before the loop, that"
    " are no slices at one distance: other weights, constants that change",
    "loop-other-iterations": "an iteration reads results of other iterations than the"
    " one before",
    "loop-external": "an operator of an iteration runs through torch",
    "loop-too-small": "all iterations together have few operators, or few are left"
    " where some are joined to one body",
}


@dataclass(frozen=True)
class WrittenOut:
    """Operations that repeat and are compiled one by one.

    Attributes:
        id: Why, of `REASONS`.
        count: How often they are there.
        operators: How many repeat.
        node: Node of the captured graph that stands in the way, "" if it has no name.
    """

    id: str
    count: int
    operators: int
    node: str

    @property
    def reason(self) -> str:
        """Why, in words."""
        return REASONS[self.id]


def note_written_out(function: Any, found: WrittenOut) -> None:
    """Keep on a function what is no loop in it."""
    entries = {
        "id": ir.StringAttr.get(found.id),
        "count": i64(found.count),
        "operators": i64(found.operators),
        "node": ir.StringAttr.get(found.node),
    }
    function.attributes[_WRITTEN_OUT] = ir.ArrayAttr.get([ir.DictAttr.get(entries)])


def written_out(module: Any) -> Iterator[WrittenOut]:
    """Yield what is no loop in the functions of a module."""
    for function in functions_of(module):
        if _WRITTEN_OUT not in function.attributes:
            continue
        for entry in ir.ArrayAttr(function.attributes[_WRITTEN_OUT]):
            entries = ir.DictAttr(entry)
            yield WrittenOut(
                ir.StringAttr(entries["id"]).value,
                ir.IntegerAttr(entries["count"]).value,
                ir.IntegerAttr(entries["operators"]).value,
                ir.StringAttr(entries["node"]).value,
            )
