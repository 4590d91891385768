"""Owns the results of calls without data that are like calls before.

An operator of many steps, such as a cell of a recurrent layer, runs through torch's
dispatcher step by step. Its next call on tensors of the same form need not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class Form:
    """A tensor without data, wherever in memory it begins."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def make(self) -> torch.Tensor:
        """Return a new tensor of this form."""
        return torch.empty_strided(
            self.shape, self.stride, dtype=self.dtype, device=self.device
        )


@dataclass(frozen=True)
class Call:
    """A function, the structure of its arguments, and the form of each."""

    target: Any
    structure: pytree.TreeSpec
    leaves: tuple[Any, ...]


def call_of(node: fx.Node, args: Any, kwargs: Any) -> Call | None:
    """Return the call of a node; None if more than forms may matter."""
    if not isinstance(node.target, BuiltinFunctionType):
        return None
    values, structure = pytree.tree_flatten((args, kwargs))
    leaves = [form_of(v) if isinstance(v, torch.Tensor) else _typed(v) for v in values]
    if any(leaf is None for leaf in leaves):
        return None
    return Call(node.target, structure, tuple(leaves))


class RepeatedCalls:
    """Remembers calls of torch's own functions whose results are tensors of their own.

    Args are kept by form, so one that a call writes to, returns or returns a view of
    makes a call that is not kept. A node without tensors, such as one that switches a
    mode of torch, lets all be forgotten.
    """

    def __init__(self) -> None:
        self._results: dict[Call, tuple[tuple[Form, ...], pytree.TreeSpec]] = {}

    def answer(self, call: Call | None) -> Any:
        """Return new results of a call; None if none like it was kept."""
        found = None if call is None else self._results.get(call)
        if found is None:
            return None
        forms, structure = found
        return pytree.tree_unflatten([form.make() for form in forms], structure)

    def keep(self, call: Call | None, operands: Sequence[Any], result: Any) -> None:
        """Take note of the results of a call that has written to none of `operands`."""
        leaves, structure = pytree.tree_flatten(result)
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            self._results.clear()
            return
        if call is None or not are_new(leaves, operands):
            return
        forms = tuple(map(form_of, leaves))
        known = tuple(form for form in forms if form is not None)
        if known == forms:
            self._results[call] = known, structure


def form_of(tensor: torch.Tensor) -> Form | None:
    """Return the form of a tensor, None if more than that may matter."""
    plain = tensor.layout is torch.strided and not tensor.is_sparse
    if not plain or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized:
        return None
    return Form(
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.device,
    )


def _typed(value: Any) -> tuple[type, Any] | None:
    """Return a constant told exactly: 1, 1.0 and True are equal, and so are zeros."""
    if isinstance(value, float):
        return type(value), value.hex()
    kinds = (bool, int, str, torch.dtype, torch.device, torch.layout)
    if value is None or isinstance(value, (*kinds, torch.memory_format)):
        return type(value), value
    return None


def are_new(leaves: Sequence[Any], operands: Sequence[Any]) -> bool:
    """Whether all are tensors that share memory with no other and are no views."""
    if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return False
    tensors = [t for t in operands if isinstance(t, torch.Tensor)]
    storages = [t.untyped_storage()._cdata for t in (*leaves, *tensors)]
    own = storages[: len(leaves)]
    apart = len(set(own)) == len(own) and not set(own) & set(storages[len(own) :])
    return apart and all(t._base is None and _fills_memory(t) for t in leaves)


def _fills_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor has all of its memory, each element at a place of its own."""
    memory = tensor.untyped_storage().nbytes()
    return tensor.storage_offset() == 0 and memory == tensor.nbytes
