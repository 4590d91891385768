"""NAFNet: Chen et al., "Simple Baselines for Image Restoration", ECCV 2022.

The block is that of section 3.6 and figure 3 (c): SimpleGate instead of activations,
simplified channel attention; the network is the UNet of section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ChannelNorm(nn.Module):
    """Layer norm over the channels of every pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise [batch, channels, height, width]."""
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).square().mean(1, keepdim=True)
        return (x - mean) / (variance + 1e-6).sqrt() * self.weight + self.bias


class SimpleGate(nn.Module):
    """The product of the two halves of the channels (equation 6)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return half the channels."""
        first, second = x.chunk(2, 1)
        return first * second


class Block(nn.Module):
    """Depthwise convolution and feed-forward, each gated and added (figure 3 c)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        double = 2 * channels
        self.spatial = nn.Sequential(
            ChannelNorm(channels),
            nn.Conv2d(channels, double, 1),
            nn.Conv2d(double, double, 3, padding=1, groups=double),
            SimpleGate(),
        )
        self.attention = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels, 1)
        )
        self.project = nn.Conv2d(channels, channels, 1)
        self.feed_forward = nn.Sequential(
            ChannelNorm(channels),
            nn.Conv2d(channels, double, 1),
            SimpleGate(),
            nn.Conv2d(channels, channels, 1),
        )
        self.beta = nn.Parameter(torch.full((channels, 1, 1), 0.1))
        self.gamma = nn.Parameter(torch.full((channels, 1, 1), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        """Return an image of the same size."""
        y = self.spatial(x)
        x = x + self.project(y * self.attention(y)) * self.beta
        return x + self.feed_forward(x) * self.gamma


def blocks(channels: int, number: int) -> nn.Sequential:
    """Return blocks in sequence."""
    return nn.Sequential(*(Block(channels) for _ in range(number)))


class NAFNet(nn.Module):
    """UNet of blocks that adds its result to the image."""

    def __init__(
        self,
        width: int = 16,
        down: Sequence[int] = (1, 1, 1),
        middle: int = 1,
        up: Sequence[int] = (1, 1, 1),
    ) -> None:
        super().__init__()
        levels = range(len(down))
        deepest = width << len(down)
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.encoders = nn.ModuleList(blocks(width << i, down[i]) for i in levels)
        self.downs = nn.ModuleList(
            nn.Conv2d(width << i, width << i + 1, 2, 2) for i in levels
        )
        self.middle = blocks(deepest, middle)
        self.ups = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(deepest >> i, deepest >> i << 1, 1, bias=False),
                nn.PixelShuffle(2),
            )
            for i in levels
        )
        self.decoders = nn.ModuleList(blocks(deepest >> i + 1, up[i]) for i in levels)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        """Return the restored image [batch, 3, height, width]."""
        x = self.first(image)
        kept = []
        for encoder, down in zip(self.encoders, self.downs, strict=True):
            kept.append(encoder(x))
            x = down(kept[-1])
        x = self.middle(x)
        for decoder, up in zip(self.decoders, self.ups, strict=True):
            x = decoder(up(x) + kept.pop())
        return self.last(x) + image
