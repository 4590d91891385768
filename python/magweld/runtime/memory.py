"""Owns the memory that a program keeps between calls: arenas and constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from magweld.artifact import Place
from magweld.runtime.layout import Layout, Signature

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
HOST_DEVICE = torch.device("cpu")


class Block:
    """An aligned piece of memory and typed views into it.

    It is made outside of inference mode whatever the caller's mode is: an inference
    tensor could not be written by a later call in another mode.
    """

    def __init__(self, nbytes: int, device: torch.device = HOST_DEVICE) -> None:
        with torch.inference_mode(False):
            # Operators of torch may view all of a storage as elements of some type.
            whole = -(-nbytes // ALIGNMENT) * ALIGNMENT + ALIGNMENT
            spare = torch.empty(whole, dtype=torch.uint8, device=device)
            start = -spare.data_ptr() % ALIGNMENT
            self._bytes = spare[start : start + nbytes]
        self.storage_address = spare.untyped_storage().data_ptr()

    @property
    def address(self) -> int:
        """Where it begins."""
        return self._bytes.data_ptr()

    def part(self, offset: int, nbytes: int) -> Block:
        """Return a piece of this block as a block; `offset` keeps the alignment."""
        part = Block.__new__(Block)
        part._bytes = self._bytes[offset : offset + nbytes]
        part.storage_address = self.storage_address
        return part

    def view(self, offset: int, signature: Signature) -> Tensor:
        """Return the contiguous tensor at `offset` bytes."""
        with torch.inference_mode(False):
            piece = self._bytes[offset : offset + signature.nbytes]
            return piece.view(signature.dtype).view(signature.shape)


class Constants:
    """The constants of a program and its parts, in one block.

    Attributes:
        block: The block.
    """

    def __init__(
        self, constants: Sequence[bytes], device: torch.device = HOST_DEVICE
    ) -> None:
        self._offsets, end = [], 0
        for data in constants:
            self._offsets.append(end)
            end += -(-len(data) // ALIGNMENT) * ALIGNMENT
        self.block = Block(end, device)
        whole = np.zeros(end, dtype=np.uint8)
        for offset, data in zip(self._offsets, constants, strict=True):
            whole[offset : offset + len(data)] = np.frombuffer(data, dtype=np.uint8)
        everything = Signature(torch.Size([end]), torch.uint8)
        self.block.view(0, everything).copy_(torch.from_numpy(whole))

    def of(self, layout: Layout) -> dict[int, Tensor]:
        """Return views by value id of a program that was checked with these."""
        values = layout.program.values
        return {
            i: self.block.view(self._offsets[values[i].index], layout.signatures[i])
            for i in layout.values_in(Place.CONSTANT)
        }
