"""Everyday programs for `everyday.py`: small models as people write them.

Each case makes a program and a function that gives the arguments of its n-th call, so
that sizes may change from call to call. The programs were chosen before they were first
run through magweld.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One program.

    Attributes:
        make: Returns the program, weights being drawn, and what gives the arguments of
            its n-th call.
        trains: Whether a call is a training step, which changes the program's weights.
    """

    make: Callable[[], tuple[Any, Callable[[int], Arguments]]]
    trains: bool = False


CASES: dict[str, Case] = {}


def case(trains: bool = False) -> Callable[[Any], Any]:
    """Register a case under the name of its function."""

    def register(make: Any) -> Any:
        CASES[make.__name__.replace("_", "-")] = Case(make, trains)
        return make

    return register


def mlp(*sizes: int, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with activations between."""
    layers: list[nn.Module] = []
    for first, second in itertools.pairwise(sizes):
        layers += [nn.Linear(first, second), act()]
    return nn.Sequential(*layers[:-1])


# Detection and images.


@case()
def detection_head() -> Any:
    """Scores and boxes of anchors, the best hundred."""

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Sequential(
                nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.SiLU(),
                nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.SiLU(),
                nn.Conv2d(64, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.SiLU(),
            )  # fmt: skip
            self.scores, self.boxes = nn.Conv2d(64, 10, 1), nn.Conv2d(64, 4, 1)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            y = self.trunk(x)
            scores = self.scores(y).flatten(2).sigmoid().amax(1)
            best, index = scores.topk(100)
            boxes = self.boxes(y).flatten(2).transpose(1, 2).exp()
            chosen = boxes.gather(1, index[..., None].expand(-1, -1, 4))
            return {"scores": best, "boxes": chosen}

    return Head().eval(), lambda n: (torch.randn(1, 3, 160, 160),)


@case()
def box_overlaps() -> Any:
    """Intersection over union of all pairs, then suppression of neighbours."""

    def suppress(boxes: Tensor, scores: Tensor) -> Tensor:
        low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        iou = shared / (area[:, None] + area[None] - shared)
        better = scores[None] > scores[:, None]
        return scores * (1 - (iou * better).amax(1)).clamp(min=0)

    def arguments(n: int) -> Arguments:
        corner = torch.rand(300, 2)
        return torch.cat([corner, corner + torch.rand(300, 2)], 1), torch.rand(300)

    return suppress, arguments


@case()
def image_sizes() -> Any:
    """A classifier on images of six sizes."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).eval()  # fmt: skip
    sizes = (48, 64, 80, 96, 72, 56)
    return model, lambda n: (torch.randn(2, 3, sizes[n % 6], sizes[n % 6]),)


@case()
def vision_block_bf16() -> Any:
    """Convolutions in bfloat16."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.SiLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.SiLU(),
    ).bfloat16()  # fmt: skip
    return model.eval(), lambda n: (torch.randn(2, 3, 64, 64).bfloat16(),)


@case()
def style_matrices() -> Any:
    """Gram matrices of features."""

    def gram(x: Tensor) -> Tensor:
        y = x.flatten(2)
        return F.normalize((y @ y.mT / y.shape[-1]).flatten(1))

    return gram, lambda n: (torch.randn(4, 64, 32, 32),)


# Language.


@case()
def char_tagger() -> Any:
    """A tagger over characters: embedding, convolutions, layer norm."""

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(100, 64)
            self.convs = nn.ModuleList(nn.Conv1d(64, 64, 3, padding=1) for _ in "abc")
            self.norm, self.out = nn.LayerNorm(64), nn.Linear(64, 12)

        def forward(self, ids: Tensor) -> Tensor:
            x = self.embed(ids).transpose(1, 2)
            for conv in self.convs:
                x = x + F.gelu(conv(x))
            return self.out(self.norm(x.transpose(1, 2))).log_softmax(-1)

    return Tagger().eval(), lambda n: (torch.randint(0, 100, (8, 120)),)


@case()
def lstm_tagger() -> Any:
    """A bidirectional LSTM with a linear layer."""

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(500, 64)
            self.lstm = nn.LSTM(64, 64, bidirectional=True, batch_first=True)
            self.out = nn.Linear(128, 9)

        def forward(self, ids: Tensor) -> Tensor:
            return self.out(self.lstm(self.embed(ids))[0]).argmax(-1)

    return Tagger().eval(), lambda n: (torch.randint(0, 500, (4, 40)),)


def encoder(layers: int, width: int) -> nn.Module:
    """A transformer encoder with learned positions."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(1000, width)
            self.positions = nn.Parameter(torch.randn(256, width) * 0.02)
            layer = nn.TransformerEncoderLayer(
                width, 4, 4 * width, batch_first=True, activation="gelu"
            )
            self.layers = nn.TransformerEncoder(
                layer, layers, enable_nested_tensor=False
            )

        def forward(self, ids: Tensor) -> Tensor:
            x = self.embed(ids) + self.positions[: ids.shape[1]]
            return F.normalize(self.layers(x).mean(1))

    return Encoder().eval()


@case()
def sentence_encoder() -> Any:
    """Sentence vectors, all of one length."""
    return encoder(3, 128), lambda n: (torch.randint(0, 1000, (4, 64)),)


@case()
def sentence_lengths() -> Any:
    """Sentence vectors of twelve lengths."""
    return encoder(2, 128), lambda n: (torch.randint(0, 1000, (2, 16 + 4 * (n % 12))),)


@case()
def sentence_encoder_bf16() -> Any:
    """Sentence vectors in bfloat16."""
    return encoder(2, 128).bfloat16(), lambda n: (torch.randint(0, 1000, (4, 64)),)


@case()
def retrieval() -> Any:
    """Two towers, similarities, the best ten."""
    query, item = mlp(64, 128, 32), mlp(64, 128, 32)

    def search(q: Tensor, items: Tensor) -> Any:
        scores = F.normalize(query(q)) @ F.normalize(item(items)).T
        return scores.topk(10, dim=-1)

    return search, lambda n: (torch.randn(8, 64), torch.randn(500, 64))


class Block(nn.Module):
    """Causal attention and feed-forward with a cache of keys and values."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = mlp(width, 4 * width, width, act=nn.GELU)

    def forward(self, x: Tensor, cache: tuple[Tensor, Tensor] | None) -> Any:
        """Return the new state, and the keys and values with those of this step."""
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1)).unbind(-3)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x)), (k, v)


@case()
def generation() -> Any:
    """Eight tokens by greedy search, with a growing cache."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(300, 64)
            self.blocks = nn.ModuleList(Block(64) for _ in range(2))
            self.head = nn.Linear(64, 300)

        def forward(self, ids: Tensor) -> Tensor:
            caches: list[Any] = [None, None]
            token, tokens = ids, [ids]
            for _ in range(8):
                x = self.embed(token)
                for i, block in enumerate(self.blocks):
                    x, caches[i] = block(x, caches[i])
                token = self.head(x[:, -1:]).argmax(-1)
                tokens.append(token)
            return torch.cat(tokens, 1)

    return Model().eval(), lambda n: (torch.randint(0, 300, (1, 12)),)


@case()
def decoding_step() -> Any:
    """One decoding step whose cache grows by a token a call."""
    block, head = Block(64).eval(), nn.Linear(64, 300)

    def step(x: Tensor, keys: Tensor, values: Tensor) -> Any:
        y, cache = block(x, (keys, values))
        return head(y).argmax(-1), cache

    def arguments(n: int) -> Arguments:
        length = 8 + n % 24
        return (
            torch.randn(1, 1, 64),
            torch.randn(1, 4, length, 16),
            torch.randn(1, 4, length, 16),
        )

    return step, arguments


@case()
def sampling() -> Any:
    """Top-k sampling with a temperature."""

    def sample(logits: Tensor, temperature: float) -> Tensor:
        values, index = (logits / temperature).topk(40)
        choice = torch.multinomial(values.softmax(-1), 1)
        return index.gather(-1, choice)

    return sample, lambda n: (torch.randn(4, 2000), 0.8)


@case()
def rotary_attention() -> Any:
    """Attention with rotary positions."""
    angles = torch.outer(torch.arange(64.0), 1e4 ** (-torch.arange(0, 32, 2) / 32))
    cos, sin = angles.cos(), angles.sin()

    def rotate(x: Tensor) -> Tensor:
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)

    return attend, lambda n: tuple(torch.randn(2, 4, 64, 32) for _ in "qkv")


# Recommendation.


@case()
def recommendation() -> Any:
    """Embedding bags, pairwise products, a top network."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList(
                nn.EmbeddingBag(1000, 32, mode="sum") for _ in range(8)
            )
            self.bottom, self.top = mlp(13, 64, 32), mlp(32 + 36, 64, 1)

        def forward(self, dense: Tensor, ids: Tensor) -> Tensor:
            x = self.bottom(dense)
            found = [bag(ids[:, i]) for i, bag in enumerate(self.bags)]
            every = torch.stack([x, *found], 1)
            pairs = every @ every.mT
            i, j = torch.triu_indices(9, 9, offset=1)
            return self.top(torch.cat([x, pairs[:, i, j]], 1)).sigmoid()

    return Model().eval(), lambda n: (
        torch.randn(64, 13),
        torch.randint(0, 1000, (64, 8, 4)),
    )


@case()
def wide_and_deep() -> Any:
    """Categories by one embedding with offsets, beside a linear part."""
    table, deep, wide = nn.Embedding(400, 16), mlp(64, 64, 1), nn.Linear(4, 1)
    offsets = torch.tensor([0, 100, 200, 300])

    def score(ids: Tensor, numbers: Tensor) -> Tensor:
        return (deep(table(ids + offsets).flatten(1)) + wide(numbers)).squeeze(-1)

    return score, lambda n: (torch.randint(0, 100, (256, 4)), torch.randn(256, 4))


@case()
def experts() -> Any:
    """A mixture of four experts, all computed, two used."""
    gate, nets = nn.Linear(64, 4), nn.ModuleList(mlp(64, 128, 64) for _ in range(4))

    def mix(x: Tensor) -> Tensor:
        scores, index = gate(x).topk(2, -1)
        weights = torch.zeros(x.shape[0], 4).scatter(1, index, scores.softmax(-1))
        every = torch.stack([net(x) for net in nets], 1)
        return (weights[..., None] * every).sum(1)

    return mix, lambda n: (torch.randn(64, 64),)


# Audio and series.


@case()
def spectrogram() -> Any:
    """Short-time Fourier transform, mel filters, a small convolution."""
    window, filters = torch.hann_window(256), torch.rand(40, 129)
    conv = nn.Conv1d(40, 32, 3, padding=1)

    def features(x: Tensor) -> Tensor:
        spectrum = torch.stft(x, 256, 128, window=window, return_complex=True)
        return F.relu(conv((filters @ spectrum.abs().square() + 1e-6).log()))

    return features, lambda n: (torch.randn(2, 8000),)


@case()
def dilated_convolutions() -> Any:
    """A gated stack of dilated convolutions."""

    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList(
                nn.Conv1d(32, 64, 3, padding=2**i, dilation=2**i) for i in range(5)
            )

        def forward(self, x: Tensor) -> Tensor:
            for conv in self.convs:
                value, gate = conv(x).chunk(2, 1)
                x = x + value.tanh() * gate.sigmoid()
            return x

    return Stack().eval(), lambda n: (torch.randn(2, 32, 800),)


@case()
def gru_keywords() -> Any:
    """A GRU over frames of a changing number."""
    gru, out = nn.GRU(40, 64, batch_first=True), nn.Linear(64, 12)

    def classify(x: Tensor) -> Tensor:
        return out(gru(x)[0][:, -1]).softmax(-1)

    return classify, lambda n: (torch.randn(2, 40 + 10 * (n % 4), 40),)


@case()
def kalman_filter() -> Any:
    """Twenty steps of a Kalman filter in a Python loop."""
    a, q, r = torch.eye(4) + torch.randn(4, 4) * 0.01, torch.eye(4) * 0.1, torch.eye(4)

    def run(series: Tensor) -> Tensor:
        mean, cov = torch.zeros(4, 1), torch.eye(4)
        means = []
        for value in series:
            mean, cov = a @ mean, a @ cov @ a.T + q
            gain = cov @ torch.linalg.inv(cov + r)
            mean = mean + gain @ (value[:, None] - mean)
            cov = cov - gain @ cov
            means.append(mean)
        return torch.cat(means, 1)

    return run, lambda n: (torch.randn(20, 4),)


# Graphs, physics, diffusion.


@case()
def graph_network() -> Any:
    """Messages along edges, summed at their ends."""
    message, update = mlp(64, 64, 32), mlp(64, 64, 32)

    def layer(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        found = message(torch.cat([x[source], x[target]], 1))
        summed = torch.zeros_like(x).index_add(0, target, found)
        return update(torch.cat([x, summed], 1))

    def arguments(n: int) -> Arguments:
        ends = (torch.randint(0, 200, (800,)) for _ in range(2))
        return torch.randn(200, 32), *ends

    return layer, arguments


@case()
def graph_attention() -> Any:
    """Attention over neighbours with a mask."""
    value, score = nn.Linear(32, 32), nn.Linear(32, 2)

    def layer(x: Tensor, adjacency: Tensor) -> Tensor:
        left, right = score(x).unbind(-1)
        logits = F.leaky_relu(left[:, None] + right[None], 0.2)
        weights = logits.masked_fill(adjacency == 0, -math.inf).softmax(-1)
        return F.elu(weights.nan_to_num() @ value(x))

    return layer, lambda n: (torch.randn(200, 32), (torch.rand(200, 200) < 0.1).float())


@case()
def diffusion_step() -> Any:
    """Noise prediction with a step embedding, and the update of the sample."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time = mlp(32, 64, 32, act=nn.SiLU)
            self.first, self.last = (
                nn.Conv2d(4, 32, 3, padding=1),
                nn.Conv2d(32, 4, 3, padding=1),
            )
            self.down = nn.Conv2d(32, 32, 3, 2, 1)
            self.norm = nn.GroupNorm(8, 32)

        def forward(self, x: Tensor, step: Tensor) -> Tensor:
            rates = torch.exp(-torch.arange(16) * math.log(1e4) / 16)
            angles = step[:, None] * rates
            time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
            y = F.silu(self.norm(self.first(x) + time[:, :, None, None]))
            y = y + F.interpolate(F.silu(self.down(y)), scale_factor=2.0)
            noise = self.last(y)
            return (x - 0.1 * noise) / 0.995

    return Net().eval(), lambda n: (torch.randn(1, 4, 32, 32), torch.tensor([n * 1.0]))


@case()
def physics_residual() -> Any:
    """The residual of a differential equation: gradients inside of the program."""
    net = mlp(2, 32, 32, 1, act=nn.Tanh).requires_grad_(False)

    def residual(points: Tensor) -> Tensor:
        points = points.detach().requires_grad_()
        with torch.enable_grad():
            (first,) = torch.autograd.grad(net(points).sum(), points)
        return (first[:, 0] + first[:, 1]).square().mean()

    return residual, lambda n: (torch.rand(256, 2),)


@case()
def forces() -> Any:
    """An energy of atoms and the forces of it, which are its gradient."""
    energy_of = mlp(16, 64, 64, 1, act=nn.SiLU)
    centres = torch.linspace(0.5, 6, 16)

    def simulate(positions: Tensor) -> tuple[Tensor, Tensor]:
        positions = positions.detach().requires_grad_()
        with torch.enable_grad():
            apart = positions[:, None] - positions[None]
            distances = (apart.square().sum(-1) + 1e-6).sqrt()
            shells = torch.exp(-(distances[..., None] - centres).square())
            energy = energy_of(shells.sum(1)).sum()
            (slope,) = torch.autograd.grad(energy, positions)
        return energy.detach(), -slope

    return simulate, lambda n: (3 * torch.randn(32, 3),)


# Training steps.


def training(
    model: nn.Module,
    loss_of: Callable[[nn.Module, Arguments], Tensor],
    arguments: Callable[[int], Arguments],
) -> Any:
    """Return a model with `loss_of`, for steps that the benchmark takes."""
    model.loss_of = loss_of  # type: ignore[assignment]
    return model, arguments


@case(trains=True)
def train_classifier() -> Any:
    """A multilayer perceptron with dropout."""
    model = nn.Sequential(mlp(64, 256, 256), nn.Dropout(0.1), nn.Linear(256, 10))
    return training(
        model,
        lambda net, args: F.cross_entropy(net(args[0]), args[1]),
        lambda n: (torch.randn(64, 64), torch.randint(0, 10, (64,))),
    )


@case(trains=True)
def train_images() -> Any:
    """Convolutions with batch norm."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return training(
        model,
        lambda net, args: F.cross_entropy(net(args[0]), args[1]),
        lambda n: (torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))),
    )


@case(trains=True)
def train_autoencoder() -> Any:
    """A variational autoencoder."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = mlp(64, 128, 32), mlp(16, 128, 64)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, log = self.encode(x).chunk(2, -1)
            drawn = mean + torch.randn_like(mean) * (log / 2).exp()
            return self.decode(drawn), mean, log

    def loss(net: nn.Module, args: Arguments) -> Tensor:
        made, mean, log = net(args[0])
        penalty = (mean.square() + log.exp() - 1 - log).mean()
        return F.mse_loss(made, args[0]) + 0.1 * penalty

    return training(Model(), loss, lambda n: (torch.randn(64, 64),))


@case(trains=True)
def train_encoder() -> Any:
    """A transformer encoder, contrastive loss."""

    def loss(net: nn.Module, args: Arguments) -> Tensor:
        vectors = net(args[0])
        scores = vectors @ vectors.T / 0.1
        return F.cross_entropy(scores, torch.arange(len(scores)))

    return training(
        encoder(1, 64).train(), loss, lambda n: (torch.randint(0, 1000, (8, 32)),)
    )


@case(trains=True)
def train_bf16() -> Any:
    """A multilayer perceptron in bfloat16."""
    model = mlp(64, 256, 256, 10, act=nn.GELU).bfloat16()
    return training(
        model,
        lambda net, args: F.cross_entropy(net(args[0]).float(), args[1]),
        lambda n: (torch.randn(64, 64).bfloat16(), torch.randint(0, 10, (64,))),
    )


@case(trains=True)
def train_residual() -> Any:
    """A network that solves the heat equation: its loss is made of its derivatives."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.solution = mlp(2, 32, 32, 1, act=nn.Tanh)

        def forward(self, points: Tensor) -> Tensor:
            points = points.detach().requires_grad_()
            u = self.solution(points)
            (first,) = torch.autograd.grad(u.sum(), points, create_graph=True)
            slope = first[:, 0].sum()
            (second,) = torch.autograd.grad(slope, points, create_graph=True)
            return first[:, 1] - 0.1 * second[:, 0]

    def loss(net: nn.Module, args: Arguments) -> Tensor:
        found: Tensor = net(args[0])
        return found.square().mean()

    return training(Residual(), loss, lambda n: (torch.rand(256, 2),))
