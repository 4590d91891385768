"""Owns attention over any number of queries and keys that native code computes."""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import torch
from torch import Tensor, fx

from magweld.codegen.attention_code import ATTENTION_CODE
from magweld.codegen.attention_kernels import MOST_ROWS, room_floats
from magweld.codegen.shared_code import float_lanes
from magweld.importer.nodes import argument, operand, positions_read, tensors_of

_ATTENTION: Final = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_NAMES: Final = ("query", "key", "value", "is_causal", "attn_mask", "scale")
# Batches, heads, rows and floats of a row.
_RANK: Final = 4
# Floats of a row, at most: a thread has the queries and sums of a part twice.
_MOST_SIZE: Final = 256
# Products from which threads share the work: starting them takes as long.
SHARED_PRODUCTS: Final = 1 << 17
# Products up to which torch computes one row of each head sooner than it takes to write
# down the words of a call.
_FEW: Final = 1 << 15


def is_native_attention(node: fx.Node) -> bool:
    """Tell whether a node is attention that native code computes.

    Args:
        node: Of any operator.
    """
    if node.target is not _ATTENTION or argument(node, "dropout_p"):
        return False
    if 1 in (positions_read(node) or ()):
        return False
    query, key, value = (tensors_of(operand(node, n))[0] for n in range(3))
    tensors = [t for one in node.all_input_nodes for t in tensors_of(one)]
    if any(t.dtype is not torch.float32 or t.device.type != "cpu" for t in tensors):
        return False
    if any(t.dim() != _RANK for t in (query, key, value)):
        return False
    size = query.shape[-1]
    alike = key.shape[:2] == value.shape[:2] == query.shape[:2]
    sizes = key.shape[-1] == value.shape[-1] == size
    return bool(alike and sizes and size % float_lanes() == 0 and size <= _MOST_SIZE)


def attention_arguments(node: fx.Node) -> list[Any]:
    """Return what `run_attention` takes, of the arguments of such a node."""
    return [argument(node, name) for name in _NAMES]


def run_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool,
    mask: Tensor | None,
    scale: float | None,
) -> tuple[Tensor, None]:
    """Return attention, and nothing for the logarithms of its sums.

    Args:
        query: [batches, heads, rows, size].
        key: [batches, heads, keys, size].
        value: The same.
        is_causal: Row i sees the keys 0..i.
        mask: Broadcasts to [batches, heads, rows, keys]; what is added to scores.
        scale: Factor of the scores; 1/sqrt(size) where None.
    """
    batches, heads, rows, size = query.shape
    keys = key.shape[2]
    if rows == 1 and 0 < query.numel() * keys <= _FEW:
        return _through_torch(query, key, value, is_causal, mask, scale)
    # Keys may have no value: torch does not see these.
    if not key.shape == value.shape == (batches, heads, keys, size):
        return _through_torch(query, key, value, is_causal, mask, scale)
    shown = torch.empty_like(query)
    if not shown.numel():
        return shown, None
    if not keys:
        return shown.zero_(), None
    query, key, value = map(_with_whole_rows, (query, key, value))
    result = shown if shown.stride(-1) == 1 else torch.empty_like(query)
    lanes = float_lanes()
    parts = -(-rows // MOST_ROWS)
    part = -(-rows // parts)
    items = batches * heads * parts
    threads = 1
    if query.numel() * keys >= SHARED_PRODUCTS:
        threads = min(torch.get_num_threads(), items)
    share = room_floats(part, size, lanes)
    room = query.new_empty(share * threads)
    bits = scale_bits(scale, size)
    at: int = 0
    distances: tuple[int, ...] = (0, 0, 0)
    if mask is not None:
        mask = _with_whole_rows(mask.expand(*mask.shape[:-1], keys))
        mask = mask.expand(batches, heads, rows, keys)
        at, distances = mask.data_ptr(), mask.stride()[:3]
    words = (
        *(query.data_ptr(), key.data_ptr(), value.data_ptr(), at),
        *(result.data_ptr(), room.data_ptr(), 0, 0),
        *(heads, rows, keys, size, part, parts, items, share, bits),
        *(int(is_causal), threads),
        *query.stride()[:3],
        *key.stride()[:3],
        *value.stride()[:3],
        *distances,
        *result.stride()[:3],
    )
    ATTENTION_CODE.loaded().run(words)
    return (result if result is shown else shown.copy_(result)), None


def scale_bits(scale: float | None, size: int) -> int:
    """Return the bits of the factor of scores.

    Args:
        scale: The factor; None for that of rows of a size.
        size: Floats of a row.
    """
    factor = 1.0 / math.sqrt(size) if scale is None else scale
    return int.from_bytes(struct.pack("<f", factor), "little")


def _through_torch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool,
    mask: Tensor | None,
    scale: float | None,
) -> tuple[Tensor, None]:
    tensors = (query, key, value)
    found = _ATTENTION(*tensors, 0.0, is_causal, attn_mask=mask, scale=scale)
    return found[0], None


def _with_whole_rows(x: Tensor) -> Tensor:
    """Return a tensor, or a copy, whose rows have their elements side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()
