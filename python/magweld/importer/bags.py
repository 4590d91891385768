"""Owns bags of embeddings: look-ups of rows, and their sums, means and maxima.

What torch computes is read from its kernels for the CPU: sums of halves are f32
numbers until they are whole, a mean divides the rounded sum, a maximum is the first
row until a row is greater, so that a nan stays where it comes first and is passed over
later. Rows of the padding index are skipped, and a bag without rows is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, fx

from magweld.artifact import StandIns
from magweld.importer.dtypes import widened
from magweld.importer.gathers import CHECKED_EMBEDDING_BAG
from magweld.importer.inlining import inlined
from magweld.importer.nodes import (
    REASON,
    argument,
    insert_before,
    operand,
    positions_read,
    replace_parts_by,
    values_of,
)
from magweld.importer.ragged_bags import expand_ragged_bags
from magweld.importer.row_gradients import size_of_bags

aten = torch.ops.aten

_BAGS: Final = frozenset(
    {aten._embedding_bag.default, aten._embedding_bag_forward_only.default}
)
_SUM, _MEAN, _MAX = range(3)
# Rows of a bag whose maximum is written out, one comparison behind another.
_MOST_COMPARED: Final = 32


@dataclass(frozen=True)
class _Bags:
    """A call whose bags have one size.

    Attributes:
        table, indices, offsets: Its operands.
        weights: A factor for each index, None for ones.
        size: How many indices a bag has.
        mode: `_SUM`, `_MEAN` or `_MAX`.
        padding: The index that is skipped, -1 for none.
    """

    table: fx.Node
    indices: fx.Node
    offsets: fx.Node
    weights: fx.Node | None
    size: int
    mode: int
    padding: int

    @property
    def operands(self) -> list[fx.Node]:
        """What rows are made of, beside the indices."""
        return [self.table] if self.weights is None else [self.table, self.weights]


def expand_bags(graph: fx.Graph, stand_ins: StandIns) -> None:
    """Split bags into checks of what tells their rows, look-ups and reductions.

    Others stay operators of torch, with the reason in their `meta`.

    Args:
        graph: A functional ATen graph.
        stand_ins: Extents that stand for sizes of the call.
    """
    for node in graph.nodes:
        if node.target not in _BAGS:
            continue
        found = _bags_of(node)
        if found is None:
            found = expand_ragged_bags(node, stand_ins)
        if isinstance(found, _Bags):
            _expand(node, found)
        elif found:
            node.meta[REASON] = found


def _bags_of(node: fx.Node) -> _Bags | str | None:
    """Return the bags of a call, or why torch makes them, an id in front.

    None for those that are made like bags whose sizes a tensor tells.
    """
    table, indices, offsets = (operand(node, number) for number in range(3))
    weights, padding = (
        argument(node, "per_sample_weights"),
        argument(node, "padding_idx"),
    )
    mode, rows = argument(node, "mode"), values_of(table)
    ends = bool(argument(node, "include_last_offset"))
    size = 0 if ends else size_of_bags(offsets, values_of(indices).numel())
    if positions_read(node) != (0,):
        return "bag-gradient: its gradient reads more than the bags"
    if not rows.numel() or not values_of(indices).numel():
        return "bag-empty: there are no rows"
    if not size:
        return None
    if mode == _MAX and size > _MOST_COMPARED:
        return f"bag-maximum: the maximum of {size} rows, {_MOST_COMPARED} at most"
    if rows.dtype is torch.bfloat16 and mode != _MAX and padding < 0:
        return None  # no operator of a graph rounds as torch rounds these sums
    return _Bags(table, indices, offsets, weights, size, mode, padding)


def _expand(node: fx.Node, bags: _Bags) -> None:
    arguments = (bags.table, bags.indices, bags.size, bags.mode, bags.padding)
    checked = insert_before(
        node, CHECKED_EMBEDDING_BAG, arguments, values_of(bags.indices)
    )
    result = inlined(node, _rows_of(bags), [checked, *bags.operands])
    replace_parts_by(node, result)
    if not bags.offsets.users:
        bags.offsets.graph.erase_node(bags.offsets)


def _rows_of(bags: _Bags) -> Callable[..., Tensor]:
    """Return what computes bags of checked indices, a table and weights."""
    # Torch divides by a number of the table's type.
    size = float(torch.tensor(bags.size).to(values_of(bags.table).dtype))

    def run(checked: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
        places = checked.view(-1, bags.size).to(torch.int64)
        rows = aten.index.Tensor(table, [places])
        kept = places != bags.padding if bags.padding >= 0 else None
        if bags.mode == _MAX:
            return _greatest(rows, kept)
        total = _total(rows, kept, weights)
        return _mean(total, size, kept) if bags.mode == _MEAN else total

    return run


def _total(rows: Tensor, kept: Tensor | None, weights: Tensor | None) -> Tensor:
    wide = widened(rows)
    if weights is not None:
        wide = wide * weights.to(wide.dtype).view(*rows.shape[:2], 1)
    if kept is not None:
        wide = torch.where(kept.unsqueeze(-1), wide, 0.0)
    return _sum(wide).to(rows.dtype)


def _sum(terms: Tensor) -> Tensor:
    if terms.shape[1] > 1:
        return terms.sum(1)
    # Torch adds it to a zero, which makes 0.0 of -0.0.
    return terms.select(1, 0) + 0.0


def _mean(total: Tensor, size: float, kept: Tensor | None) -> Tensor:
    if kept is None:
        return total / size
    wide = torch.float64 if total.dtype is torch.float64 else torch.float32
    count = _sum(kept.to(wide)).clamp(min=1.0)
    return total / count.to(total.dtype).unsqueeze(-1)


def _greatest(rows: Tensor, kept: Tensor | None) -> Tensor:
    best = rows.select(1, 0)
    if kept is None:
        for number in range(1, rows.shape[1]):
            row = rows.select(1, number)
            best = torch.where(row > best, row, best)
        return best
    found = kept.select(1, 0).unsqueeze(-1)
    best = torch.where(found, best, 0.0)
    for number in range(1, rows.shape[1]):
        row, is_row = rows.select(1, number), kept.select(1, number).unsqueeze(-1)
        taken = is_row & (~found | (row > best))
        best = torch.where(taken, row, best)
        found = found | is_row
    return best
