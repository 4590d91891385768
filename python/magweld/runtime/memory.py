"""Owns the memory that a program keeps between calls: arenas and constants."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from magweld.artifact import Place, Value
from magweld.runtime.layout import Layout, Signature

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register


class Block:
    """An aligned piece of memory and typed views into it.

    It is made outside of inference mode whatever the caller's mode is: an inference
    tensor could not be written by a later call in another mode.
    """

    def __init__(self, nbytes: int) -> None:
        with torch.inference_mode(False):
            spare = torch.empty(nbytes + ALIGNMENT - 1, dtype=torch.uint8, device="cpu")
            start = -spare.data_ptr() % ALIGNMENT
            self._bytes = spare[start : start + nbytes]
        self.storage_address = spare.untyped_storage().data_ptr()

    def view(self, offset: int, signature: Signature) -> Tensor:
        """Return the contiguous tensor at `offset` bytes."""
        with torch.inference_mode(False):
            piece = self._bytes[offset : offset + signature.nbytes]
            return piece.view(signature.dtype).view(signature.shape)


def load_constants(layout: Layout) -> tuple[Block, dict[int, Tensor]]:
    """Copy a program's constants into one block; return views by value id."""
    offsets, end = [], 0
    for data in layout.program.constants:
        offsets.append(end)
        end += -(-len(data) // ALIGNMENT) * ALIGNMENT
    block = Block(end)
    whole = block.view(0, Signature(torch.Size([end]), torch.uint8)).numpy()
    for offset, data in zip(offsets, layout.program.constants, strict=True):
        whole[offset : offset + len(data)] = np.frombuffer(data, dtype=np.uint8)

    def place(value_id: int, value: Value) -> Tensor:
        return block.view(offsets[value.index], layout.signatures[value_id])

    values = layout.program.values
    ids = layout.values_in(Place.CONSTANT)
    return block, {i: place(i, values[i]) for i in ids}
