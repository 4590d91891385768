"""Owns which native callables of torch can only act through operators."""

from __future__ import annotations

import types
from typing import Any, Final

import torch

from magweld.frontend.rules.natives import native_name

# Where such functions are defined.
_OPERATOR_HOMES: Final = (
    "torch._VariableFunctionsClass.",
    "torch._C._fft.",
    "torch._C._linalg.",
    "torch._C._nested.",
    "torch._C._nn.",
    "torch._C._sparse.",
    "torch._C._special.",
    "torch._C._set_grad_enabled",
    "torch._ops.",
)


def acts_through_operators(native: Any) -> bool:
    """Return whether all that a native callable does is seen as operators."""
    owner = getattr(native, "__objclass__", None)
    if owner is not None:
        return issubclass(torch.Tensor, owner) and owner is not object
    if type(native) is not types.BuiltinFunctionType:
        return False
    return native_name(native).startswith(_OPERATOR_HOMES)
