"""A model with many kinds of results, and inputs for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Kinds(nn.Module):
    """Products in threads, look-ups, loops of 7 and 8, views, constants, inputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(11, 48)
        self.wide = nn.Linear(48, 256)
        self.narrow = nn.Linear(256, 6)
        self.register_buffer("order", torch.tensor([[2, 0, 1]]))
        self.register_buffer("pairs", torch.arange(6).reshape(1, 6))

    def forward(self, ids: Tensor, y: Tensor, *, scale: float, mask: Tensor) -> Any:
        hidden = torch.relu(self.wide(self.table(ids)))
        scores = self.narrow(hidden).softmax(-1) * scale
        odd = even = y
        for _ in range(7):
            odd = odd * (2 - y * odd)
        for _ in range(8):
            even = even * (2 - 0.5 * even)
        shared = y * 3
        return {
            "scores": scores,
            "turned": scores.transpose(0, 1),
            "loops": (odd, even),
            "any": [(mask & (y > 0)).any(), 3, None],
            "shared": (shared, shared[1:]),
            "ids": ids,
            # Of constants alone, by an operator without generated code.
            "picked": self.pairs.gather(1, self.order),
        }


def inputs(batch: int, seed: int = 0) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 11, (batch, 64), generator=generator)
    y = torch.rand(batch + 1, 5, generator=generator)
    mask = torch.rand(batch + 1, 5, generator=generator) > 0.5
    return (ids, y), {"scale": 0.5, "mask": mask}
