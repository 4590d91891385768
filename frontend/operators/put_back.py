"""Owns putting back what operators have done to memory and random generators."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import fx

from magweld import generators
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.effects import has_effect
from magweld.frontend.operators.tensors import GraphInput
from magweld.storages import storage_of

PutBack = generators.PutBack


class SavedMemory(NamedTuple):
    """A tensor and its whole memory before a write; one of inference has no version."""

    tensor: torch.Tensor
    version: int | None
    data: torch.UntypedStorage
    form: tuple[Any, ...]

    @staticmethod
    def of(tensor: torch.Tensor) -> SavedMemory:
        """Save the memory of a tensor."""
        data = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
        version = None if tensor.is_inference() else tensor._version
        return SavedMemory(tensor, version, data, _form_of(tensor))

    def restore(self) -> None:
        """Make the memory, and the tensor that was written, what they were."""
        tensor, storage = self.tensor, self.tensor.untyped_storage()
        if storage.nbytes() != self.data.nbytes():
            storage.resize_(self.data.nbytes())
        storage.copy_(self.data)
        if _form_of(tensor) != self.form:
            with torch.no_grad():
                tensor.set_(storage, *self.form)
        if self.version is not None:
            torch._C._autograd._unsafe_set_version_counter((tensor,), (self.version,))


def _form_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.storage_offset(), tensor.shape, tensor.stride())


def save_generators() -> PutBack:
    """Save the states of all generators; the result makes them what they were."""
    of_torch, of_python = generators.save_generators(), random.getstate()
    of_numpy = None
    if "numpy.random" in sys.modules:
        of_numpy = sys.modules["numpy.random"].get_state()

    def restore() -> None:
        of_torch()
        random.setstate(of_python)
        if of_numpy is not None:
            sys.modules["numpy.random"].set_state(of_numpy)

    return restore


@dataclass(frozen=True)
class Failing:
    """What becomes of a graph when one of its operators raises.

    Eager runs the program again then, from where the graph began: an `except` of the
    program may catch the exception, and what Python did before it has to be seen.

    Attributes:
        inputs: Positions of the inputs whose memory has to be put back.
        draws: Whether random generators have to be put back.
        repeats: Whether the program can be run again. It can not when nothing was
            expected to raise: what has been written by then is not known.
    """

    inputs: tuple[int, ...] = ()
    draws: bool = False
    repeats: bool = True

    @property
    def harmless(self) -> bool:
        """Whether nothing has to be put back."""
        return not self.inputs and not self.draws

    def save(self, tensors: Sequence[Any]) -> PutBack:
        """Save what may change; the result puts it back."""
        written = [tensors[place] for place in self.inputs]
        memory = {storage_of(tensor): SavedMemory.of(tensor) for tensor in written}
        put_back = generators.save_generators() if self.draws else lambda: None

        def restore() -> None:
            for saved in memory.values():
                saved.restore()
            put_back()

        return restore


UNKNOWN = Failing(repeats=False)


def failing(nodes: Iterable[fx.Node], inputs: Sequence[GraphInput]) -> Failing:
    """Return what becomes of a graph when one of its operators raises.

    Args:
        nodes: The recorded operators in order.

    Raises:
        StopRecordingError: Autograd has seen a write, which nothing takes back.
    """
    written: set[int] = set()
    fallible = late = draws = acts = False
    for node in nodes:
        if node.meta.get("refusable"):
            # Autograd refuses before anything is written.
            fallible, late = True, late or acts
        acts |= has_effect(node)
        written |= node.meta.get("writes", frozenset())
        draws |= bool(node.meta.get("draws"))
        if node.meta.get("fallible"):
            fallible, late = True, acts
    if not late:
        return Failing(repeats=fallible or not acts)
    places = [
        place
        for place, item in enumerate(inputs)
        if storage_of(item.node.obj) in written
    ]
    for tensor in (inputs[place].node.obj for place in places):
        if tensor.requires_grad and not tensor.is_leaf:
            detail = "with gradients, and an operator behind it may raise"
            raise StopRecordingError("tensor-write", detail)
    return Failing(tuple(places), draws)
