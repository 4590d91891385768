"""Owns the element types that generated code computes with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

GENERATED_FLOATS = frozenset({torch.float32, torch.float64})
# Unsigned types would lose their sign rule on the way: they run through torch.
GENERATED = GENERATED_FLOATS | {torch.int64, torch.int32, torch.bool}

HALVES = frozenset({torch.bfloat16, torch.float16})
"""Types of memory alone: generated code arranges, rounds to and widens them."""

INDICES = frozenset({torch.int32, torch.int64})
"""Types of the indices of rows."""

_MOVED = HALVES | {torch.int16, torch.int8}
# Elements that only torch computes with travel as integers of the same bits.
_SAME_BITS = {
    torch.int8: (
        torch.uint8,
        torch.float8_e4m3fn,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2,
        torch.float8_e5m2fnuz,
    ),
    torch.int16: (torch.uint16,),
    torch.int32: (torch.uint32, torch.complex32),
    torch.int64: (torch.uint64, torch.complex64),
}
_CARRIERS = {dtype: carrier for carrier, those in _SAME_BITS.items() for dtype in those}

# What a compiled program takes, makes and hands on.
IMPORTED = GENERATED | _MOVED | set(_CARRIERS)

LITERAL_TYPES: dict[torch.dtype, type[np.generic]] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.bool: np.bool_,
}
"""Types of constants that text can hold, as numpy spells them."""


def is_half(tensor: torch.Tensor) -> bool:
    """Tell whether generated code rounds to the elements of a tensor."""
    return tensor.dtype in HALVES


def widened(value: Any) -> Any:
    """Return a tensor of halves in f32, and anything else as it is."""
    is_narrow = isinstance(value, torch.Tensor) and is_half(value)
    return value.to(torch.float32) if is_narrow else value


def is_arranged(tensor: torch.Tensor) -> bool:
    """Tell whether generated code loads and stores the elements of a tensor."""
    return tensor.dtype in GENERATED or is_half(tensor)


def is_carried(dtype: torch.dtype) -> bool:
    """Tell whether elements have another type in compiled code than in torch."""
    return dtype in _CARRIERS


def carrier_of(dtype: torch.dtype) -> torch.dtype:
    """Return the type that compiled code has for elements of a type."""
    return _CARRIERS.get(dtype, dtype)


def carried(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's bits in the type that compiled code has for them."""
    carrier = _CARRIERS.get(tensor.dtype)
    if carrier is None:
        return tensor
    # What is conjugated or negated lazily has other bits in memory.
    return tensor.resolve_conj().resolve_neg().view(carrier)


def generated_floats_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a decomposition decline calls whose floats are not generated, or are empty.

    The operator then stays as it is and runs through torch as a whole, which keeps
    torch's own intermediate precision.
    """
    return _guarded(function, lambda tensor: tensor.dtype in GENERATED)


def arranged_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a decomposition that rounds nothing decline as above, but for halves."""
    return _guarded(function, is_arranged)


def _guarded(
    function: Callable[..., Any], takes: Callable[[torch.Tensor], bool]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not all(takes(tensor) and tensor.numel() for tensor in tensors):
            return NotImplemented
        return function(*args, **kwargs)

    return guarded
