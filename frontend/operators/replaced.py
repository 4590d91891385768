"""Owns what the inputs of a run were: `x.data = y` and `x += w` make them others."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.kinds import CallKind, name_of
from magweld.storages import is_alias, storage_of


class _Before(NamedTuple):
    """A tensor just before other memory is assigned to it."""

    tensor: torch.Tensor
    storage: int
    form: tuple[Any, ...]
    same: bool


class Replacements:
    """Inputs of one run, and assignments of memory to them."""

    def __init__(self) -> None:
        self._inputs: dict[int, tuple[torch.Tensor, tuple[Any, ...]]] = {}
        self._before: _Before | None = None
        self._flags: dict[int, tuple[Any, ...]] = {}
        self._moved: list[tuple[torch.Tensor, int]] = []

    def note_input(self, tensor: torch.Tensor) -> None:
        """Take note of a tensor from before the run; the last call was its first."""
        flags = self._flags.get(id(tensor))
        self._inputs.setdefault(id(tensor), (tensor, flags or _flags_of(tensor)))

    def note(self, func: Any, args: Any) -> None:
        """Take note of a torch call that is about to happen."""
        self._before = None
        first: Any = args[0] if args else None
        written = first if type(first) in (tuple, list) else (first,)
        self._flags = {
            id(tensor): _flags_of(tensor)
            for tensor in written
            if type(tensor) is torch.Tensor and _has_form(tensor)
        }
        if name_of(func) == "set data":
            tensor, value = args
            storage = storage_of(tensor)
            if storage >= 0:
                same = is_alias(tensor, value)
                self._before = _Before(tensor, storage, _form_of(tensor), same)

    def kind(self, kind: CallKind) -> CallKind:
        """Return what the call is, which would be a write to a tensor of the caller."""
        before = self._before
        if before is None:
            return kind
        if before.same:
            return CallKind.METADATA  # the memory that it has, e.g. `x.data += y`
        same_form = _form_of(before.tensor) == before.form
        return CallKind.MEMORY if same_form else kind

    def close(self) -> set[int]:
        """Return the storages concerned, once the call is recorded."""
        assert self._before is not None, "memory was replaced"
        tensor, storage = self._before.tensor, self._before.storage
        self._moved.append((tensor, storage))
        return {storage, storage_of(tensor)}

    def check(self) -> None:
        """Refuse a run in which an input is no longer what the guards would test.

        Raises:
            StopRecordingError: It has another form or other flags, or it took memory
                from or gave it to another input: nothing would tell which ones share.
        """
        for tensor, flags in self._inputs.values():
            if _flags_of(tensor) not in (flags, (*flags[:-1], True)):
                raise StopRecordingError("tensor-write", "form of an input")
            for moved, storage in self._moved:
                shared = (storage, storage_of(moved))
                if tensor is not moved and storage_of(tensor) in shared:
                    raise StopRecordingError("tensor-write", "memory of two inputs")

    def before(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return an input with the flags that it had: a write may need gradients."""
        known = self._inputs.get(id(tensor))
        if known is not None and tensor.requires_grad != known[1][-1]:
            return tensor.detach()
        return tensor


def _has_form(tensor: torch.Tensor) -> bool:
    """Whether a tensor has extents and strides to ask for; a nested one has none."""
    return tensor.layout is torch.strided and not tensor.is_nested


def _flags_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (*_form_of(tensor), tensor.requires_grad)


def _form_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.shape, tensor.stride(), tensor.dtype)
