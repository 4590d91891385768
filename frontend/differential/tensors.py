"""Owns tensors in the differential mode: what is compared of them, and how closely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch

from magweld.frontend.operators.history import gradient_node

# Name of what differs where only elements do.
VALUES: Final = "values"


@dataclass(frozen=True)
class TensorData:
    """What is compared of one tensor.

    Attributes:
        form: Readable facts by name.
        values: A copy of its elements, None when a storage cannot be read.
    """

    form: dict[str, Any]
    values: torch.Tensor | None


def is_strided(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has memory of its own that can be copied."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return plain and tensor.layout is torch.strided and not tensor.is_meta


_HISTORY: Final = frozenset({"history", "requires_grad", "grad_fn", "is_leaf"})


def history(tensor: torch.Tensor) -> dict[str, Any]:
    """Return what autograd tells of a tensor.

    It does not tell it of some views whose base was written since.
    """
    try:
        return {
            "requires_grad": tensor.requires_grad,
            "grad_fn": gradient_node(tensor) is not None,
            "is_leaf": tensor.is_leaf,
        }
    except RuntimeError as error:
        return {"history": str(error)}


def tensor_data(tensor: torch.Tensor, storage: int, exact: bool) -> TensorData:
    """Describe a tensor.

    Args:
        storage: Number of its storage in the order of appearance.
        exact: Whether the place in the storage is compared too.
    """
    form = {
        "type": type(tensor).__name__,
        "dtype": tensor.dtype,
        "device": tensor.device,
        "shape": tuple(tensor.shape),
        **history(tensor),
    }
    if not is_strided(tensor):
        return TensorData(form, None)
    form["strides"] = tensor.stride()
    form["storage"] = storage
    if exact:
        form["storage_offset"] = tensor.storage_offset()
    with torch.no_grad():
        values = tensor.detach().clone().resolve_conj().resolve_neg()
    return TensorData(form, values)


def difference(
    expected: TensorData, found: TensorData, exact: bool
) -> tuple[str, Any, Any] | None:
    """Return the first fact in which two tensors differ: name, expected, found."""
    untold = "history" in expected.form or "history" in found.form
    for name, value in expected.form.items():
        # Compiled results are no views of what was written, and tell their history.
        if untold and not exact and name in _HISTORY:
            continue
        if found.form.get(name) != value:
            return name, value, found.form.get(name)
    if expected.values is None or found.values is None:
        return None
    if _same_values(expected.values, found.values, exact):
        return None
    return VALUES, expected.values.flatten()[:8], found.values.flatten()[:8]


def _same_values(left: torch.Tensor, right: torch.Tensor, exact: bool) -> bool:
    if exact:
        return torch.equal(_bits(left), _bits(right))
    try:
        torch.testing.assert_close(left, right, equal_nan=True)
    except AssertionError:
        return False
    return True


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    # Not contiguous(): a single element keeps its stride, whatever that is.
    packed = tensor.flatten().clone(memory_format=torch.contiguous_format)
    return packed.view(torch.uint8)
