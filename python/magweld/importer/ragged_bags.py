"""Owns bags of embeddings whose sizes a tensor tells: their check and their operator.

Rows of a bag are added one behind the other, as torch's kernels for the CPU do: halves
in f32, rounded once. A mean divides by the number of indices between two offsets, less
those that are skipped.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Final

import torch
from torch import Tensor, fx

from magweld.artifact import StandIns
from magweld.importer.dtypes import HALVES
from magweld.importer.gathers import CHECKED_BOUNDS, CHECKED_INDICES, LIBRARY
from magweld.importer.nodes import (
    argument,
    insert_before,
    operand,
    replace_parts_by,
    values_of,
)
from magweld.importer.placing import CPU

BAG_MODES: Final = ("sum", "mean", "max")
"""Names of torch's numbers of what a bag becomes."""

TIES_EVEN: Final = "ties-even"
TIES_AWAY: Final = "ties-away"

_SUM, _MEAN, _MAX = range(3)
_MOST_NARROW: Final = torch.iinfo(torch.int32).max


def expand_ragged_bags(node: fx.Node, stand_ins: StandIns) -> str:
    """Replace a call by checks of its indices and offsets, and bags within bounds.

    Args:
        node: A call of torch's operator of which the bags alone are read.
        stand_ins: Extents that stand for sizes of the call.

    Returns:
        Why it is left to torch, an id in front; nothing where it is not.
    """
    reason = _reason(node, stand_ins)
    if not reason:
        _expand(node)
    return reason


def _reason(node: fx.Node, stand_ins: StandIns) -> str:
    table, indices, offsets = (values_of(operand(node, n)) for n in range(3))
    result, weights = values_of(node)[0], argument(node, "per_sample_weights")
    shapes = [table.shape, indices.shape, offsets.shape]
    if any(stand_ins.is_runtime(extent) for shape in shapes for extent in shape):
        return "bag-sizes: how many there are differs from call to call"
    if table.device != CPU:
        return "bag-device: kernels for CPUs alone take bags of any size"
    if rounding_of(node) is None:
        return f"bag-rounding: torch rounds sums of {table.dtype} in a way of its own"
    if not result.numel():
        return "bag-empty: there are no bags"
    if weights is not None and values_of(weights).dtype is not table.dtype:
        return "bag-weights: they have another type than the table"
    if offsets.dtype is torch.int32 and indices.numel() > _MOST_NARROW:
        return "bag-offsets: they have too few bits for so many indices"
    return ""


def _expand(node: fx.Node) -> None:
    result = values_of(node)[0]
    table, indices, offsets = (operand(node, number) for number in range(3))
    mode, padding = argument(node, "mode"), argument(node, "padding_idx")
    last = bool(argument(node, "include_last_offset"))
    weights = argument(node, "per_sample_weights")
    operands = (table, indices, offsets, mode, last, padding)
    bounds_like = values_of(offsets).new_empty(result.shape[0] + 1)
    insert = partial(insert_before, node)
    checked = insert(CHECKED_INDICES, operands, values_of(indices))
    bounds = insert(CHECKED_BOUNDS, (*operands, False), bounds_like)
    sizes = None
    # Elsewhere bounds that torch takes are those of its means.
    apart = last or padding >= 0 or values_of(table).dtype is torch.float64
    if mode == _MEAN and apart:
        sizes = insert(CHECKED_BOUNDS, (*operands, True), bounds_like)
    away = rounding_of(node) == TIES_AWAY
    arguments = (table, checked, bounds, sizes, weights, mode, padding, away)
    bags = insert(RAGGED_BAGS, arguments, result)
    replace_parts_by(node, bags)


def rounding_of(node: fx.Node) -> str | None:
    """Return how torch rounds what it adds in a wider type, None for another way.

    `TIES_EVEN` or `TIES_AWAY`, IEEE 754's names for the nearest number: the even one of
    two, or the one that is farther from zero.

    Args:
        node: A call of torch's operator for bags.
    """
    table, weights = values_of(operand(node)), argument(node, "per_sample_weights")
    if table.dtype not in HALVES or argument(node, "mode") == _MAX:
        return TIES_EVEN
    # One kernel for rows without gaps, another one for all others and for padding.
    strided = [table.stride(1)]
    strided += [] if weights is None else [values_of(weights).stride(0)]
    fast = argument(node, "padding_idx") < 0 and set(strided) == {1}
    return _halves_rounded(table.dtype, fast, weights is not None)


@cache
def _halves_rounded(dtype: torch.dtype, fast: bool, weighted: bool) -> str | None:
    """Ask torch for the sum of halves that lies between two of them."""
    # Above this number only even ones are halves.
    whole = round(2 / torch.finfo(dtype).eps)
    numbers = torch.tensor([whole, 1.0, 1.0], dtype=dtype, device=CPU)
    step = 1 if fast else 2
    rows = numbers.repeat_interleave(8 * step).view(3, -1)[:, ::step]
    ids = torch.tensor([0, 1, 0, 1, 2], device=CPU)
    offsets = torch.tensor([0, 2], device=CPU)
    weights = torch.ones(5, dtype=dtype, device=CPU) if weighted else None
    found, *_ = torch.embedding_bag(rows, ids, offsets, False, _SUM, False, weights)
    rounded, exact = (int(value) - whole for value in found[:, 0])
    if exact != 2:
        return None  # rounded on the way
    if rounded == 2:
        return TIES_AWAY if dtype is torch.bfloat16 else None
    return TIES_EVEN if rounded == 0 else None


def _bags(
    table: Tensor,
    indices: Tensor,
    bounds: Tensor,
    sizes: Tensor | None,
    weights: Tensor | None,
    mode: int,
    padding: int,
    away: bool = False,
) -> Tensor:
    skipped = None if padding < 0 else padding
    # Indices behind the last bound are in no bag.
    count = int(bounds[-1])
    indices = indices[:count]
    taken = mode if sizes is None else _SUM
    factors = None if weights is None else weights[:count]
    found, *_ = torch.embedding_bag(
        table, indices, bounds, False, taken, False, factors, True, skipped
    )
    if sizes is None:
        return found
    padded = (indices == padding).to(sizes.dtype).cumsum(0)
    before = torch.cat([padded.new_zeros(1), padded])[bounds.long()]
    divisors = (sizes.diff() - before.diff()).clamp(min=1)
    return found / divisors.to(found.dtype).unsqueeze(1)


def _register() -> torch._ops.OpOverload:
    LIBRARY.define(  # type: ignore[no-untyped-call]
        "bags(Tensor table, Tensor indices, Tensor bounds, Tensor? sizes, "
        "Tensor? weights, int mode, int padding, bool away=False) -> Tensor"
    )
    LIBRARY.impl("bags", _bags, "CPU")  # type: ignore[no-untyped-call]
    operator: torch._ops.OpOverload = torch.ops.magweld.bags.default
    return operator


RAGGED_BAGS: Final = _register()
"""The sums, means or maxima of the rows between bounds, one row for each bag.

Takes a table, indices into it, where bags begin and the last one ends, the bounds that
means take sizes from (None for the same), a factor for each index or None, the number
of one of `BAG_MODES`, the index that is skipped, negative for none, and whether sums of
halves that lie between two of these are rounded away from zero.
"""
