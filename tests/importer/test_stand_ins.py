"""Tensors that stand in for the inputs of a graph while it is imported."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.importer.placing import stand_ins


def forms(tensors: list[Tensor]) -> list[object]:
    return [(t.shape, t.stride(), t.storage_offset(), t.dtype) for t in tensors]


def sharing(tensors: list[Tensor]) -> list[int]:
    memory = [t.untyped_storage()._cdata for t in tensors]
    return [memory.index(storage) for storage in memory]


def test_they_lie_in_memory_as_the_tensors_do() -> None:
    base = torch.arange(24.0)
    tensors = [
        base,
        base[4:20].view(4, 4).T,
        base.view(torch.int32),
        torch.empty(0, 3),
        torch.tensor(1.5, dtype=torch.float64),
        torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last),
        torch.zeros(3).expand(5, 3),
        torch.ones(3, requires_grad=True),
    ]
    with torch.inference_mode():
        tensors.append(torch.ones(2))
    found = stand_ins(tensors)
    assert forms(found) == forms(tensors)
    assert sharing(found) == sharing(tensors)
    assert not set(map(id, found)) & set(map(id, tensors))
    own = {t.untyped_storage()._cdata for t in tensors}
    assert not own & {t.untyped_storage()._cdata for t in found}


@pytest.mark.parametrize(
    "tensor",
    [
        nn.Parameter(torch.ones(2)),
        torch.ones(2).to_sparse(),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.ones(2, device="meta"),
    ],
)
def test_what_is_not_plain_stands_for_itself(tensor: Tensor) -> None:
    assert stand_ins([tensor])[0] is tensor


def test_modes_see_no_new_tensors() -> None:
    seen: list[object] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(3)
    with Mode():
        assert stand_ins([x])[0] is x
    assert not seen
