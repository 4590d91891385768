"""Restormer: Zamir et al., "Restormer: Efficient Transformer for ...", CVPR 2022.

Attention between channels is that of section 3.1, the gated feed-forward network that
of section 3.2, the network that of figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PixelNorm(nn.Module):
    """Layer norm over the channels of every pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise [batch, channels, height, width]."""
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ChannelAttention(nn.Module):
    """Multi-Dconv head transposed attention (equation 1)."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        triple = 3 * channels
        self.heads = heads
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.qkv = nn.Conv2d(channels, triple, 1, bias=False)
        self.local = nn.Conv2d(triple, triple, 3, padding=1, groups=triple, bias=False)
        self.project = nn.Conv2d(channels, channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Attend between channels, over all pixels."""
        batch, channels, height, width = x.shape
        split = (batch, self.heads, channels // self.heads, height * width)
        q, k, v = (part.reshape(split) for part in self.local(self.qkv(x)).chunk(3, 1))
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        weights = (scores * self.temperature).softmax(-1)
        return self.project((weights @ v).reshape(batch, channels, height, width))


class GatedFeedForward(nn.Module):
    """Gated-Dconv feed-forward network (equation 2)."""

    def __init__(self, channels: int, expansion: float) -> None:
        super().__init__()
        hidden = int(channels * expansion)
        double = 2 * hidden
        self.expand = nn.Conv2d(channels, double, 1, bias=False)
        self.local = nn.Conv2d(double, double, 3, padding=1, groups=double, bias=False)
        self.project = nn.Conv2d(hidden, channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return an image of the same size."""
        gate, value = self.local(self.expand(x)).chunk(2, 1)
        return self.project(F.gelu(gate) * value)


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and added."""

    def __init__(self, channels: int, heads: int, expansion: float = 2.66) -> None:
        super().__init__()
        self.attention = nn.Sequential(
            PixelNorm(channels), ChannelAttention(channels, heads)
        )
        self.feed_forward = nn.Sequential(
            PixelNorm(channels), GatedFeedForward(channels, expansion)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return an image of the same size."""
        x = x + self.attention(x)
        return x + self.feed_forward(x)


def blocks(channels: int, heads: int, number: int) -> nn.Sequential:
    """Return blocks in sequence."""
    return nn.Sequential(*(Block(channels, heads) for _ in range(number)))


def resize(inputs: int, outputs: int, shuffle: nn.Module) -> nn.Sequential:
    """Return a convolution and a rearrangement of pixels."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), shuffle)


class Restormer(nn.Module):
    """Four levels of blocks, refinement, and the image added."""

    def __init__(
        self,
        width: int = 24,
        depths: Sequence[int] = (1, 1, 1, 2),
        heads: Sequence[int] = (1, 2, 4, 8),
        refinement: int = 1,
    ) -> None:
        super().__init__()
        c = [width << level for level in range(4)]
        shrink, grow = nn.PixelUnshuffle(2), nn.PixelShuffle(2)
        self.embed = nn.Conv2d(3, c[0], 3, padding=1, bias=False)
        self.encoders = nn.ModuleList(map(blocks, c, heads, depths))
        self.downs = nn.ModuleList(resize(n, n // 2, shrink) for n in c[:3])
        self.ups = nn.ModuleList(resize(n, 2 * n, grow) for n in c[:0:-1])
        self.reduce = nn.ModuleList(nn.Conv2d(2 * n, n, 1) for n in c[2:0:-1])
        self.decoders = nn.ModuleList(
            blocks(n, h, d)
            for n, h, d in zip(
                (c[2], c[1], 2 * c[0]), heads[2::-1], depths[2::-1], strict=True
            )
        )
        self.refine = blocks(2 * c[0], heads[0], refinement)
        self.last = nn.Conv2d(2 * c[0], 3, 3, padding=1, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        """Return the restored image [batch, 3, height, width]."""
        x = self.embed(image)
        kept = []
        for encoder, down in zip(self.encoders, self.downs, strict=False):
            kept.append(encoder(x))
            x = down(kept[-1])
        x = self.encoders[3](x)
        for level, (up, decoder) in enumerate(
            zip(self.ups, self.decoders, strict=True)
        ):
            x = torch.cat((up(x), kept.pop()), 1)
            x = decoder(self.reduce[level](x) if level < 2 else x)
        return self.last(self.refine(x)) + image
