"""Owns the list of tiles that a call runs, as an attribute of what it calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir

TILES = "magweld.tile_runs"


@dataclass(frozen=True)
class Tile:
    """One tile of a call that runs tile by tile.

    Attributes:
        function: Name of the function that makes it.
        operands: Number of the call's operand for each argument.
        starts: Where the part of each begins.
        position: Where the result goes.
    """

    function: str
    operands: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    position: tuple[int, ...]

    def attribute(self) -> Any:
        """Return the tile as an attribute."""
        starts = [ir.DenseI64ArrayAttr.get(start) for start in self.starts]
        return ir.DictAttr.get(
            {
                "function": ir.FlatSymbolRefAttr.get(self.function),
                "operands": ir.DenseI64ArrayAttr.get(self.operands),
                "starts": ir.ArrayAttr.get(starts),
                "position": ir.DenseI64ArrayAttr.get(self.position),
            }
        )


def tiles_of(callee: Any) -> list[Tile]:
    """Return the tiles that a declaration lists."""
    return [_tile(ir.DictAttr(tile)) for tile in ir.ArrayAttr(callee.attributes[TILES])]


def _tile(entries: Any) -> Tile:
    return Tile(
        ir.FlatSymbolRefAttr(entries["function"]).value,
        tuple(ir.DenseI64ArrayAttr(entries["operands"])),
        tuple(tuple(ir.DenseI64ArrayAttr(s)) for s in ir.ArrayAttr(entries["starts"])),
        tuple(ir.DenseI64ArrayAttr(entries["position"])),
    )
