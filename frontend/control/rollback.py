"""Owns undoing what an arm did to tensors, random generators and modes of torch."""

from __future__ import annotations

import random
import sys
from types import TracebackType
from typing import Any, NamedTuple, Self

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.watch import OperatorWatch, storage_of


class _Saved(NamedTuple):
    """Memory before the first write to it."""

    tensor: torch.Tensor
    version: int
    data: torch.UntypedStorage
    form: tuple[Any, ...]

    def restore(self) -> None:
        """Make the memory, and the tensor that was written, what they were."""
        tensor, storage = self.tensor, self.tensor.untyped_storage()
        if storage.nbytes() != self.data.nbytes():
            storage.resize_(self.data.nbytes())
        storage.copy_(self.data)
        if _form_of(tensor) != self.form:
            with torch.no_grad():
                tensor.set_(storage, *self.form)
        torch._C._autograd._unsafe_set_version_counter((tensor,), (self.version,))


def _form_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.storage_offset(), tensor.shape, tensor.stride())


class Rollback:
    """Undoes at its end what tensors, generators and modes have become.

    Args:
        watch: Tells about writes before they happen.
    """

    def __init__(self, watch: OperatorWatch) -> None:
        self._watch = watch
        self._made: set[int] = set()
        self._saved: dict[int, _Saved] = {}

    def __enter__(self) -> Self:
        self._generators = _generator_states()
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
        _restore_generators(self._generators)
        for saved in self._saved.values():
            saved.restore()

    def _save(self, tensor: torch.Tensor, args: Any) -> None:
        storage = storage_of(tensor)
        if storage in self._saved or storage in self._made:
            return
        if self._before[0] is not None:
            self._before[0](tensor, args)  # a way within a way
        if torch.is_grad_enabled() and any(map(_requires_grad, (tensor, *args))):
            # The write would change the autograd graph, which nothing undoes.
            raise StopRecordingError("tensor-value", "a write with gradients")
        data = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
        form = _form_of(tensor)
        self._saved[storage] = _Saved(tensor, tensor._version, data, form)


def _requires_grad(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(map(_requires_grad, obj))
    return isinstance(obj, torch.Tensor) and obj.requires_grad


def _generator_states() -> list[Any]:
    states: list[Any] = [torch.get_rng_state(), random.getstate(), None, None]
    if "numpy.random" in sys.modules:
        states[2] = sys.modules["numpy.random"].get_state()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states[3] = torch.cuda.get_rng_state_all()
    return states


def _restore_generators(states: list[Any]) -> None:
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    if states[2] is not None:
        sys.modules["numpy.random"].set_state(states[2])
    if states[3] is not None:
        torch.cuda.set_rng_state_all(states[3])
