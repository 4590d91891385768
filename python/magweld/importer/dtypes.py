"""Owns the element types that generated code computes with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

GENERATED_FLOATS = frozenset({torch.float32, torch.float64})
# Narrower types would be computed with other intermediate precision than torch's,
# unsigned ones would lose their sign rule on the way: they run through torch.
GENERATED = GENERATED_FLOATS | {torch.int64, torch.int32, torch.bool}

# What text can name; unsigned elements travel as signed ones of the same bits.
IMPORTED = GENERATED | {
    torch.bfloat16,
    torch.float16,
    torch.int16,
    torch.int8,
    torch.uint8,
}
_CARRIERS = {torch.uint8: torch.int8}

LITERAL_TYPES: dict[torch.dtype, type[np.generic]] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.bool: np.bool_,
}
"""Types of constants that text can hold, as numpy spells them."""


def is_carried(dtype: torch.dtype) -> bool:
    """Tell whether elements have another type in compiled code than in torch."""
    return dtype in _CARRIERS


def carried(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's bits in the type that compiled code has for them."""
    carrier = _CARRIERS.get(tensor.dtype)
    return tensor if carrier is None else tensor.view(carrier)


def generated_floats_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a decomposition decline calls whose floats are not generated, or are empty.

    The operator then stays as it is and runs through torch as a whole, which keeps
    torch's own intermediate precision.
    """

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        for tensor in tensors:
            if tensor.dtype not in GENERATED or tensor.numel() == 0:
                return NotImplemented
        return function(*args, **kwargs)

    return guarded
