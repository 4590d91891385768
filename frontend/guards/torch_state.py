"""Owns guards on tensors and on the modes of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._C._dynamo.guards import TensorGuards

from magweld.frontend.operators.watch import storage_of


def torch_state() -> tuple[Any, ...]:
    """Return the modes of torch that decide about operators and their results."""
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cpu"),
        torch.get_autocast_dtype("cuda"),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_anomaly_enabled(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        torch._C._is_torch_function_enabled(),
        torch._C._get_tracing_state() is None,
    )


class TensorCheck:
    """Class, dtype, device, layout, shape, strides, flags; pairwise distinct."""

    def __init__(self, tensors: Sequence[torch.Tensor], names: list[str]) -> None:
        self._names = names
        self._guards = TensorGuards(
            *tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None
        )
        self.check = self._guards.check

    def reason(self, *tensors: torch.Tensor) -> str:
        """Return why tensors do not fit."""
        verdict = self._guards.check_verbose(*tensors, tensor_check_names=self._names)
        return str(verdict)


class OverlapCheck:
    """Which inputs share memory with inputs that the graph writes."""

    def __init__(self, tensors: Sequence[torch.Tensor], written: set[int]) -> None:
        self._written = [i for i, t in enumerate(tensors) if storage_of(t) in written]
        self._pattern = self._of(tensors)

    def check(self, *tensors: torch.Tensor) -> bool:
        """Return whether the same inputs share memory as in the recorded run."""
        return self._of(tensors) == self._pattern

    def _of(self, tensors: Sequence[torch.Tensor]) -> list[tuple[int, ...]]:
        storages = [storage_of(tensor) for tensor in tensors]
        return [
            tuple(i for i, other in enumerate(storages) if other == storages[w])
            for w in self._written
        ]
