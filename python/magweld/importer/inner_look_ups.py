"""Owns look-ups by tensors that do not index the first dimension alone.

`x[:, i, j]` finds elements, `x[:, i]` rows of each part of `x`. Dimensions that tensors
index, neighbours, become one with those before them: a place in it follows from the
indices, and the look-up is one of rows. Each tensor of indices is checked by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, fx

from magweld.artifact import StandIns
from magweld.importer.dtypes import INDICES, is_arranged
from magweld.importer.gathers import CHECKED_PLACES, IN_RANGE
from magweld.importer.inlining import inlined
from magweld.importer.nodes import (
    argument,
    insert_before,
    operand,
    replace_by,
    values_of,
)

aten = torch.ops.aten


@dataclass(frozen=True)
class _LookUp:
    """A look-up.

    Attributes:
        table: What is looked up in.
        first: The first dimension that a tensor indexes.
        indices: One tensor for each dimension from there on, as far as any do.
        select: Whether it is `index_select`.
    """

    table: fx.Node
    first: int
    indices: tuple[fx.Node, ...]
    select: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the table."""
        return tuple(values_of(self.table).shape)

    @property
    def arguments(self) -> list[fx.Node | None]:
        """The indices as `aten.index` takes them."""
        return [*[None] * self.first, *self.indices]


def expand_inner_look_ups(graph: fx.Graph, stand_ins: StandIns) -> None:
    """Split such look-ups into checks of their indices, and look-ups of rows.

    Others stay operators of torch: tensors of truth values, tensors that index
    dimensions which are no neighbours, and extents that a call tells.

    Args:
        graph: A functional ATen graph.
        stand_ins: Extents that stand for sizes of the call.
    """
    for node in list(graph.nodes):
        read = _READERS.get(node.target)
        look_up = read(node) if read is not None else None
        if look_up is not None and _is_generated(look_up, stand_ins):
            _expand(node, look_up)


def _of_index(node: fx.Node) -> _LookUp | None:
    indices: Any = node.args[1]
    named = [n for n, index in enumerate(indices) if index is not None]
    if not named or named != list(range(named[0], named[-1] + 1)):
        return None
    found = tuple(indices[n] for n in named)
    return _LookUp(operand(node), named[0], found)


def _of_index_select(node: fx.Node) -> _LookUp | None:
    table, dim = operand(node), argument(node, "dim")
    rank = values_of(table).dim()
    if not rank:
        return None
    return _LookUp(table, dim % rank, (operand(node, 2),), select=True)


_READERS: dict[Any, Callable[[fx.Node], _LookUp | None]] = {
    aten.index.Tensor: _of_index,
    aten.index_select.default: _of_index_select,
}


def _is_generated(look_up: _LookUp, stand_ins: StandIns) -> bool:
    """Whether kernels find what is looked up, and not by its rows alone."""
    table, places = values_of(look_up.table), [*map(values_of, look_up.indices)]
    extents = [extent for one in (table, *places) for extent in one.shape]
    return bool(
        (look_up.first > 0 or len(places) > 1)
        and not any(map(stand_ins.is_runtime, extents))
        and is_arranged(table)
        and table.dtype is not torch.bool
        and table.numel() > 0
        and all(place.dtype in INDICES for place in places)
        and all(place.dim() > 0 and place.numel() > 0 for place in places)
    )


def _expand(node: fx.Node, look_up: _LookUp) -> None:
    checked = [_checked(node, look_up, n) for n in range(len(look_up.indices))]
    found = inlined(node, _rows_of(look_up), [look_up.table, *checked])
    found.meta[IN_RANGE] = True
    replace_by(node, found)


def _checked(node: fx.Node, look_up: _LookUp, number: int) -> fx.Node:
    indices, shape = look_up.indices[number], look_up.shape
    arguments = (
        indices,
        shape[look_up.first + number],
        list(shape),
        look_up.arguments,
        look_up.select,
    )
    return insert_before(node, CHECKED_PLACES, arguments, values_of(indices))


def _rows_of(look_up: _LookUp) -> Callable[..., Tensor]:
    """Return what looks up in a table by checked indices."""
    shape, first = look_up.shape, look_up.first
    behind = first + len(look_up.indices)
    before, inner, row = shape[:first], shape[first:behind], shape[behind:]

    def run(table: Tensor, *checked: Tensor) -> Tensor:
        place = _place(checked, inner)
        whole = prod(inner)
        count = prod(before)
        if count > 1:
            begins = torch.arange(0, count * whole, whole, device=table.device)
            place = begins.view(*before, *[1] * place.dim()) + place
        else:
            place = place.view(*before, *place.shape)
        rows = table.reshape(count * whole, *row)
        found: Tensor = aten.index.Tensor(rows, [place])
        return found

    return run


def _place(checked: Sequence[Tensor], extents: Sequence[int]) -> Tensor:
    """Return where indices point to in dimensions that are one; some are negative."""
    place = None
    for index, extent in zip(checked, extents, strict=True):
        wide = index.to(torch.int64)
        wide = torch.where(wide < 0, wide + extent, wide)
        place = wide if place is None else place * extent + wide
    assert place is not None, "a look-up has indices"
    return place
