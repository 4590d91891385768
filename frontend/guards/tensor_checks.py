"""Owns guards on tensors and on the modes of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._C._dynamo.guards import GlobalStateGuard, TensorGuards

from magweld.frontend.guards.guard import Mismatch
from magweld.frontend.operators.overlap import neighbours
from magweld.frontend.operators.torch_state import beside_global_state, torch_state
from magweld.frontend.operators.watch import storage_of


class StateCheck:
    """Whether the modes of torch are those of a moment.

    Most of them are compared by a guard of torch's, in one call.
    """

    def __init__(self, state: tuple[Any, ...]) -> None:
        """Take the modes as `torch_state` gave them at that moment."""
        self._state = state
        self._known: tuple[GlobalStateGuard, list[Any]] | None = None

    def holds(self) -> bool:
        """Return whether they are."""
        known = self._known
        if known is not None and known[0].check():
            return beside_global_state() == known[1]
        held = torch_state() == self._state
        if held:
            self._known = GlobalStateGuard(), beside_global_state()
        return held


class TensorCheck:
    """Class, dtype, device, layout, shape, strides, flags; pairwise distinct."""

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        names: list[str],
        lifted: Sequence[frozenset[int]] = (),
    ) -> None:
        """Take note of the form of tensors.

        Args:
            tensors: The tensors.
            names: Their paths.
            lifted: Dimensions of each that are not checked here; the strides of such a
                tensor are not either.
        """
        self._names = names
        self._lifted = lifted or [frozenset()] * len(tensors)
        self._shapes = [tuple(tensor.shape) for tensor in tensors]
        sizes: Any = None
        strides: Any = None
        if any(lifted):
            sizes = [
                [None if dim in dims else size for dim, size in enumerate(tensor.shape)]
                for tensor, dims in zip(tensors, lifted, strict=True)
            ]
            strides = [
                [None if dims else stride for stride in tensor.stride()]
                for tensor, dims in zip(tensors, lifted, strict=True)
            ]
        self._guards = TensorGuards(
            *tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
        )
        self.check = self._guards.check

    def reason(self, *tensors: torch.Tensor) -> Mismatch:
        """Return why tensors do not fit."""
        verdict = self._guards.check_verbose(*tensors, tensor_check_names=self._names)
        lifts = []
        for tensor, name, shape, dims in zip(
            tensors, self._names, self._shapes, self._lifted, strict=True
        ):
            if isinstance(tensor, torch.Tensor) and tensor.dim() == len(shape):
                sizes = zip(tensor.shape, shape, strict=True)
                for dim, (now, before) in enumerate(sizes):
                    if dim not in dims and now != before and min(now, before) > 1:
                        lifts.append(f"{name}.shape[{dim}]")
        return Mismatch(str(verdict), tuple(lifts))


class OverlapCheck:
    """How inputs share memory with inputs that the graph writes."""

    def __init__(self, tensors: Sequence[torch.Tensor], written: set[int]) -> None:
        self._written = [i for i, t in enumerate(tensors) if storage_of(t) in written]
        self._pattern = neighbours(tensors, self._written)

    def check(self, *tensors: torch.Tensor) -> bool:
        """Return whether the same inputs share memory as in the recorded run."""
        return neighbours(tensors, self._written) == self._pattern
