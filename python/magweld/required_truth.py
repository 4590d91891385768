"""Owns the operator of a graph that fails where a tensor has another truth."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.library import Library


def _require(condition: Tensor, truth: bool) -> Tensor:
    if bool(condition) is not truth:
        raise RuntimeError(f"a condition of the program is {not truth}")
    # What a graph keeps for its exceptions must have a result, and no operator of
    # torch's library returns its argument.
    return condition.clone()


def _without_data(condition: Tensor, truth: bool) -> Tensor:
    return torch.empty_like(condition)


def _register() -> OpOverload:
    LIBRARY.define(  # type: ignore[no-untyped-call]
        "require_truth(Tensor condition, bool truth) -> Tensor"
    )
    LIBRARY.impl("require_truth", _require, "CPU")  # type: ignore[no-untyped-call]
    LIBRARY.impl("require_truth", _without_data, "Meta")  # type: ignore[no-untyped-call]
    operator: OpOverload = torch.ops.magweld.require_truth.default
    return operator


LIBRARY = Library("magweld", "FRAGMENT")  # type: ignore[no-untyped-call]

REQUIRE_TRUTH: Final = _register()
"""Returns a copy of a boolean tensor of one element, or raises RuntimeError.

It raises where the truth of the tensor is not the one that is required.
"""
