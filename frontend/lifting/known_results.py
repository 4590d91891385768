"""Owns results on symbolic sizes that are known from an equal call before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Final

import torch
from torch import SymInt, Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from magweld.storages import storage_of

_PLAIN: Final = (
    *(bool, int, str, type(None), EllipsisType),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)


@dataclass(frozen=True)
class _Call:
    """A call that has been made.

    Attributes:
        result: What it has returned.
        kept: What it was made of; alive, so that ids stay those of these objects.
    """

    result: Any
    kept: tuple[Any, ...]


class KnownResults:
    """Calls torch on fake tensors, or gives what an equal call has given.

    To work out one operator on symbols takes torch milliseconds; layers that come again
    have the sizes of those before. What torch assumes about sizes in the first of equal
    calls holds in the others.

    Runs of one program make the same calls. The n-th call on some tensors gives in each
    run what it has given in the first: that very object, views and arguments as well.

    Attributes:
        is_stable: Whether further runs may take what calls have given: none of them has
            switched a mode of torch, or changed the form of an argument.
    """

    def __init__(self) -> None:
        self.is_stable = True
        self._results: dict[Hashable, Any] = {}
        self._calls: dict[Hashable, list[_Call]] = {}
        self._turns: Counter[Hashable] = Counter()

    def begin(self) -> None:
        """Begin a further run."""
        self._turns.clear()

    def call(
        self,
        name: Hashable,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        *,
        writes: bool = False,
    ) -> Any:
        """Return what a function returns; new tensors, as it does.

        Args:
            name: Stands for the function.
            function: It may write to its arguments, but to nothing else.
            args: Positional arguments, with fake tensors and symbolic sizes.
            kwargs: The others.
            writes: Whether it returns nothing as it writes; otherwise a function that
                returns no tensor may have switched a mode of torch.
        """
        leaves, spec = pytree.tree_flatten((args, kwargs))
        same = self._same(name, spec, leaves)
        calls = [] if same is None else self._calls.setdefault(same, [])
        turn = self._turns[same]
        if turn < len(calls):
            self._turns[same] += 1
            return calls[turn].result
        before = _forms(leaves)
        result = self._work_out((name, spec), function, args, kwargs, leaves)
        if not writes and not isinstance(result, (Tensor, tuple, list)):
            self._results.clear()
            self._forget()
            return result
        if _forms(leaves) != before:
            self._forget()
        elif same is not None and turn == len(calls) and _are_plain((leaves, result)):
            self._turns[same] += 1
            calls.append(_Call(result, (function, name, leaves)))
        return result

    def _same(self, name: Hashable, spec: Any, leaves: list[Any]) -> Hashable | None:
        """Return what stands for a call on these very arguments."""
        if not self.is_stable:
            return None
        parts = [_identity(leaf) for leaf in leaves]
        return None if None in parts else (name, spec, tuple(parts))

    def _work_out(
        self,
        what: Hashable,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        leaves: list[Any],
    ) -> Any:
        """Return what a function returns, or what it has for arguments like these."""
        parts = _parts(leaves)
        if parts is None:
            return function(*args, **kwargs)
        key = (what, parts)
        known = self._results.get(key)
        if known is not None:
            return pytree.tree_map(_again, known)
        result = function(*args, **kwargs)
        # What changes the form of an argument returns it, or nothing.
        if _is_new(result, leaves):
            self._results[key] = result
        return result

    def _forget(self) -> None:
        """Give up that further runs take what the calls have given."""
        self.is_stable = False
        self._calls.clear()


def _identity(leaf: Any) -> Hashable | None:
    """Return what stands for a part of an argument that is the same object."""
    if isinstance(leaf, Tensor):
        return (Tensor, id(leaf))
    if isinstance(leaf, slice):
        ends = [_identity(end) for end in (leaf.start, leaf.stop, leaf.step)]
        return None if None in ends else (slice, tuple(ends))
    return _value(leaf)


def _value(leaf: Any) -> Hashable | None:
    """Return what stands for a part of an argument that is no tensor."""
    if isinstance(leaf, SymInt):
        return (SymInt, leaf.node.expr)
    if type(leaf) is float:
        return (float, leaf.hex())
    return (type(leaf), leaf) if isinstance(leaf, _PLAIN) else None


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
        else:
            part = _value(leaf)
            if part is None:
                return None
            parts.append(part)
    return tuple(parts)


def _forms(leaves: list[Any]) -> list[Hashable]:
    """Return the forms of the tensors among some objects, and their memory."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    return [
        (
            *(_sizes(tensor.shape), _sizes(tensor.stride())),
            *(*_sizes((tensor.storage_offset(),)), storage_of(tensor)),
        )
        for tensor in tensors
        if tensor.layout is torch.strided
    ]


def _sizes(sizes: Any) -> tuple[Hashable, ...]:
    return tuple(n.node.expr if isinstance(n, SymInt) else n for n in sizes)


def _are_plain(objects: Any) -> bool:
    """Whether all tensors among some objects are known by their form."""
    leaves = pytree.tree_leaves(objects)
    return all(_is_plain(leaf) for leaf in leaves if isinstance(leaf, Tensor))


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
