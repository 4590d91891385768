"""Owns undoing what a branch on trial did to tensors, generators and modes."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.put_back import SavedMemory, save_generators
from magweld.frontend.operators.watch import OperatorWatch
from magweld.storages import storage_of


class Rollback:
    """Undoes at its end what tensors, generators and modes have become.

    Args:
        watch: Tells about writes before they happen.
    """

    def __init__(self, watch: OperatorWatch) -> None:
        self._watch = watch
        self._made: set[int] = set()
        self._saved: dict[int, SavedMemory] = {}

    def __enter__(self) -> Self:
        self._put_back = save_generators()
        self._grad = torch.is_grad_enabled()
        self._before = self._watch.before_write, self._watch.made
        self._watch.before_write, self._watch.made = self._save, self._made
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.before_write, self._watch.made = self._before
        if self._watch.made is not None:
            self._watch.made |= self._made
        torch.set_grad_enabled(self._grad)
        self._put_back()
        for saved in self._saved.values():
            saved.restore()

    def _save(self, tensor: torch.Tensor, args: Any) -> None:
        storage = storage_of(tensor)
        if storage in self._saved or storage in self._made:
            return
        if self._before[0] is not None:
            self._before[0](tensor, args)  # a branch within a branch
        if torch.is_grad_enabled() and any(map(_requires_grad, (tensor, *args))):
            # The write would change the autograd graph, which nothing undoes.
            raise StopRecordingError("tensor-value", "a write with gradients")
        self._saved[storage] = SavedMemory.of(tensor)


def _requires_grad(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(map(_requires_grad, obj))
    return isinstance(obj, torch.Tensor) and obj.requires_grad
