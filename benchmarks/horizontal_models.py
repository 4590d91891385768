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


class Interactions(nn.Module):
    """One layer of `Dhen`: what an ensemble makes of features, and their residual."""

    def __init__(self, features: int, experts: int) -> None:
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(features))
        self.experts = nn.ModuleList(perceptron() for _ in range(experts))
        self.mix = nn.Linear(features * features, features * WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(features))

    def forward(self, features: list[Tensor]) -> list[Tensor]:
        """Take and return tensors of shape [rows, WIDTH], one for each feature."""
        stacked = torch.stack(features, 1)
        products = (stacked @ stacked.transpose(1, 2)).flatten(1)
        crossed = self.mix(products).chunk(len(features), -1)
        pooled = stacked.mean(1)
        expert = torch.stack([one(pooled) for one in self.experts]).sum(0)
        linear = [one(x) for one, x in zip(self.linears, features, strict=True)]
        made = zip(self.norms, features, linear, crossed, strict=True)
        return [norm(x + a.relu() + b + expert) for norm, x, a, b in made]


class Dhen(nn.Module):
    """Layers of ensembles of interactions, after DHEN (arXiv 2203.11014, section 3)."""

    def __init__(self, features: int = 16, experts: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            Interactions(features, experts) for _ in range(layers)
        )
        self.top = nn.Linear(features * WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Take features of shape [rows, features * WIDTH]."""
        features = list(x.split(WIDTH, -1))
        for layer in self.layers:
            features = layer(features)
        return self.top(torch.cat(features, -1)).sigmoid()


class OptimiserStep(nn.Module):
    """A step of an optimiser on many parameters, as a function of all that it reads."""

    def __init__(self, update: Callable[..., tuple[Tensor, ...]], states: int) -> None:
        super().__init__()
        self.update, self.states = update, states

    def forward(self, *tensors: Tensor) -> list[Tensor]:
        """Take all parameters, their gradients, then their states, kind by kind."""
        count = len(tensors) // (2 + self.states)
        rows = [tensors[k : k + count] for k in range(0, len(tensors), count)]
        made = [self.update(*one) for one in zip(*rows, strict=True)]
        return [tensor for kind in zip(*made, strict=True) for tensor in kind]

    def arguments(self, count: int) -> list[Tensor]:
        """Return parameters of layers of two sizes, their gradients and states."""
        shapes = [PARAMETERS[k % len(PARAMETERS)] for k in range(count)]
        kinds = [[torch.randn(s) for s in shapes] for _ in range(2 + self.states)]
        # Second moments are not negative.
        kinds[2:] = [[x.abs() for x in kind] for kind in kinds[2:]]
        return [tensor for kind in kinds for tensor in kind]


# Weights and biases of small layers.
PARAMETERS = ((WIDTH, WIDTH), (WIDTH,), (2 * WIDTH, WIDTH), (2 * WIDTH,))


def momentum_step(x: Tensor, gradient: Tensor, momentum: Tensor) -> tuple[Tensor, ...]:
    """Return a parameter and its momentum as torch.optim.SGD makes them."""
    momentum = momentum * 0.9 + gradient
    return x - 0.01 * momentum, momentum


def adam_step(
    x: Tensor, gradient: Tensor, first: Tensor, second: Tensor
) -> tuple[Tensor, ...]:
    """Return a parameter and its moments as torch.optim.Adam makes them, step 10."""
    first = first.lerp(gradient, 0.1)
    second = second * 0.999 + 0.001 * gradient * gradient
    scale = second.sqrt() / (1 - 0.999**10) ** 0.5 + 1e-8
    return x - 0.001 / (1 - 0.9**10) * (first / scale), first, second


def perceptron() -> nn.Module:
    """Return a multilayer perceptron with a norm."""
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
    )


linear = partial(nn.Linear, WIDTH, WIDTH)
norm = partial(nn.LayerNorm, WIDTH)
