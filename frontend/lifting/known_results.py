"""Owns results on symbolic sizes that are known from an equal call before."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import torch
from torch import SymInt, Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from magweld.storages import storage_of

_PLAIN: Final = (
    *(bool, int, str, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)


class KnownResults:
    """Calls torch on fake tensors, or gives what an equal call has given.

    To work out one operator on symbols takes torch milliseconds; layers that come again
    have the sizes of those before. What torch assumes about sizes in the first of equal
    calls holds in the others.
    """

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}

    def call(
        self, name: Hashable, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """Return what a function returns; new tensors, as it does.

        Args:
            name: Stands for the function.
            function: It may write to its arguments, but to nothing else.
            args: Positional arguments, with fake tensors and symbolic sizes.
            kwargs: The others.
        """
        leaves, spec = pytree.tree_flatten((args, kwargs))
        parts = _parts(leaves)
        if parts is None:
            return self._noted(function(*args, **kwargs))
        key = (name, spec, parts)
        known = self._results.get(key)
        if known is not None:
            return pytree.tree_map(_again, known)
        result = self._noted(function(*args, **kwargs))
        # What changes the form of an argument returns it, or nothing.
        if _is_new(result, leaves):
            self._results[key] = result
        return result

    def _noted(self, result: Any) -> Any:
        if not isinstance(result, (Tensor, tuple, list)):
            # It may have switched a mode of torch.
            self._results.clear()
        return result


def _parts(leaves: list[Any]) -> tuple[Hashable, ...] | None:
    """Return what results of a call depend on; None if that is not known."""
    first: dict[int, int] = {}
    parts: list[Hashable] = []
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            if not _is_plain(leaf):
                return None
            same = first.setdefault(id(leaf), number)
            form = (_sizes(leaf.shape), _sizes(leaf.stride()))
            parts.append((same, form, leaf.dtype, leaf.device, leaf.requires_grad))
        elif isinstance(leaf, SymInt):
            parts.append(leaf.node.expr)
        elif type(leaf) is float:
            parts.append(leaf.hex())
        elif isinstance(leaf, _PLAIN):
            parts.append((type(leaf), leaf))
        else:
            return None
    return tuple(parts)


def _sizes(sizes: Any) -> tuple[Hashable, ...]:
    return tuple(n.node.expr if isinstance(n, SymInt) else n for n in sizes)


def _is_plain(tensor: Any) -> bool:
    """Whether a fake tensor is known by its form: none whose values are known."""
    if type(tensor) is not FakeTensor or tensor.layout is not torch.strided:
        return False
    return not (tensor.is_conj() or tensor.is_neg()) and tensor.constant is None


def _is_new(result: Any, leaves: list[Any]) -> bool:
    """Whether results are tensors with memory of their own each, of known sizes."""
    found = [leaf for leaf in pytree.tree_leaves(result) if leaf is not None]
    if not found or not all(map(_is_plain, found)):
        return False
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    taken = {storage_of(one) for one in tensors}
    memory = {storage_of(one) for one in found}
    if len(memory) < len(found) or not memory.isdisjoint(taken):
        return False
    return all(_is_sized(one) and not one.requires_grad for one in found)


def _is_sized(tensor: Tensor) -> bool:
    """Whether no size follows from values: such a size is another one each time."""
    sizes: list[Any] = [*tensor.shape, *tensor.stride()]
    symbols = [size.node for size in sizes if isinstance(size, SymInt)]
    return all(symbol.hint is not None for symbol in symbols)


def _again(leaf: Any) -> Any:
    if leaf is None:
        return None
    sizes, strides = leaf.shape, leaf.stride()
    return torch.empty_strided(sizes, strides, dtype=leaf.dtype, device=leaf.device)
