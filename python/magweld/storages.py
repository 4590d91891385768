"""Owns which tensors share memory, and how they lie in it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch
from torch.autograd.graph import increment_version

_LISTS = "aten::_foreach_"


def storage_of(tensor: torch.Tensor) -> int:
    """Return the address of the storage object of a tensor.

    One without a storage, e.g. a sparse tensor, has a negative number of its own.
    """
    try:
        return int(tensor.untyped_storage()._cdata)
    except NotImplementedError:
        return -id(tensor)


def count_writes_to_lists(func: Any, args: Sequence[Any]) -> None:
    """Count what an operator on lists has written below a mode, or without data.

    Eager runs one operator for each tensor, and that counts. Fused steps of optimisers
    are one operator in eager too, which counts nothing.

    Args:
        func: The operator.
        args: Of its call.
    """
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.name.startswith(_LISTS) or not schema.is_mutable:
        return
    for argument, value in zip(schema.arguments, args, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write:
            increment_version([t for t in value if not t.is_inference()])


def is_alias(tensor: torch.Tensor, other: Any) -> bool:
    """Return whether an object is a tensor that shows the same elements of memory."""
    return (
        isinstance(other, torch.Tensor)
        and tensor.dtype == other.dtype
        and storage_of(tensor) == storage_of(other)
        and _place_of(tensor) == _place_of(other)
    )


def _place_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.storage_offset(), tensor.shape, tensor.stride())


def is_size_of(shape: Sequence[int], dtype: torch.dtype, nbytes: int) -> bool:
    """Return whether memory of some bytes has room for a tensor and no more."""
    return math.prod(shape) * dtype.itemsize == nbytes


def has_all_memory(tensor: torch.Tensor) -> bool:
    """Return whether the storage of a tensor is large enough: it can be resized."""
    return _extent(tensor)[1] <= tensor.untyped_storage().nbytes()


def neighbours(
    tensors: Sequence[torch.Tensor], of: Iterable[int]
) -> tuple[tuple[tuple[int, Hashable], ...], ...]:
    """Return for some tensors which others share their memory, and how they lie.

    What can happen to one by a write to the other is the same in two calls in which
    this is the same. Tensors beside each other may lie anywhere.
    """
    sharing: dict[int, list[int]] = {}
    groups = [sharing.setdefault(storage_of(tensor), []) for tensor in tensors]
    for number, group in enumerate(groups):
        group.append(number)
    return tuple(
        tuple(
            (other, _place(tensors[number], tensors[other]))
            for other in groups[number]
            if other != number
        )
        for number in of
    )


def _place(tensor: torch.Tensor, other: torch.Tensor) -> Hashable:
    """Return how a tensor lies to another one, None if beside it."""
    start, end = _extent(tensor)
    first, last = _extent(other)
    if end <= first or last <= start:
        return None
    # A key of compiled forms holds this.
    forms = ((item.shape, item.stride(), item.dtype) for item in (tensor, other))
    return first - start, *forms


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the first byte of a tensor in its storage, and the one behind its last."""
    size = tensor.element_size()
    start = int(tensor.storage_offset()) * size
    if tensor.numel() == 0:
        return start, start
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    count = 1 + sum((n - 1) * step for n, step in pairs)
    return start, start + int(count) * size
