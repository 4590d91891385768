"""Programs of many equal small parts, for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

WIDTH = 64


class Branches(nn.Module):
    """Modules, each with an input of its own."""

    def __init__(self, make: Callable[[], nn.Module], count: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(make() for _ in range(count))

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        """Apply each module to its input."""
        return [b(x) for b, x in zip(self.branches, inputs, strict=True)]


class Experts(Branches):
    """Modules with one input."""

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        """Apply each module to the first input."""
        return [branch(inputs[0]) for branch in self.branches]


class Parts(Branches):
    """Modules on the parts of one tensor."""

    def forward(self, joined: Tensor) -> list[Tensor]:
        """Apply each module to its columns."""
        parts = joined.split(WIDTH, -1)
        return [b(x) for b, x in zip(self.branches, parts, strict=True)]


class SplitAndJoin(Branches):
    """Modules between a split and a concatenation."""

    def forward(self, *inputs: Tensor) -> Tensor:
        """Apply each module to its columns of the joined inputs."""
        parts = torch.cat(inputs, -1).split(WIDTH, -1)
        return torch.cat([b(x) for b, x in zip(self.branches, parts, strict=True)], -1)


class Bags(nn.Module):
    """Sums of rows of tables, and the products of each two of them."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(1000, WIDTH, mode="sum") for _ in range(count)
        )

    def forward(self, *inputs: Tensor) -> Tensor:
        """Look up ids of shape [rows, 8], one tensor for each table."""
        found = [t(ids) for t, ids in zip(self.tables, inputs, strict=True)]
        stacked = torch.stack(found, 1)
        return stacked @ stacked.transpose(1, 2)


class Dlrm(nn.Module):
    """A recommendation model: bags of ids, their products, perceptrons."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(1000, WIDTH, mode="sum") for _ in range(count)
        )
        self.bottom = nn.Sequential(
            nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, WIDTH), nn.ReLU()
        )
        self.top = nn.Sequential(
            nn.Linear(WIDTH + (count + 1) * count // 2, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
        )
        rows, columns = torch.tril_indices(count + 1, count + 1, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, dense: Tensor, *sparse: Tensor) -> Tensor:
        """Take dense features, then ids and offsets of bags, a pair for each table."""
        bottom = self.bottom(dense)
        pairs = zip(self.tables, sparse[::2], sparse[1::2], strict=True)
        features = [bottom, *(table(ids, offsets) for table, ids, offsets in pairs)]
        stacked = torch.stack(features, 1)
        products = stacked @ stacked.transpose(1, 2)
        joined = torch.cat([bottom, products[:, self.rows, self.columns]], 1)
        return self.top(joined).sigmoid()


def perceptron() -> nn.Module:
    """Return a multilayer perceptron with a norm."""
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
    )


linear = partial(nn.Linear, WIDTH, WIDTH)
norm = partial(nn.LayerNorm, WIDTH)
