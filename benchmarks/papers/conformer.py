"""Conformer: Gulati et al., "Conformer: Convolution-augmented Transformer", 2020.

The block is that of section 2.4 and figure 1: half-step feed-forward networks around
attention with relative positions (section 2.1, as in Transformer-XL) and convolution
(section 2.2). Sizes are those of Conformer (S), table 1.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def feed_forward(width: int) -> nn.Sequential:
    """Return the feed-forward module of section 2.3."""
    return nn.Sequential(
        nn.LayerNorm(width),
        nn.Linear(width, 4 * width),
        nn.SiLU(),
        nn.Linear(4 * width, width),
    )


class RelativeAttention(nn.Module):
    """Self-attention with a term for the distance of two frames."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.position = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))

    def forward(self, x: Tensor, distances: Tensor) -> Tensor:
        """Attend between frames.

        Args:
            x: Frames [batch, frames, width].
            distances: Encodings of the distances from frames - 1 to 1 - frames.
        """
        batch, frames, width = x.shape
        shape = (batch, frames, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(self.norm(x)).view(shape).permute(2, 0, 3, 1, 4).unbind(0)
        p = self.position(distances).view(-1, self.heads, width // self.heads)
        content = (q + self.content_bias) @ k.transpose(-2, -1)
        relative = (q + self.position_bias) @ p.permute(1, 2, 0)
        scores = (content + shifted(relative)) / math.sqrt(width // self.heads)
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, frames, width))


def shifted(scores: Tensor) -> Tensor:
    """Turn columns that count distances into columns that count frames.

    Args:
        scores: [batch, heads, frames, 2 * frames - 1].
    """
    batch, heads, rows, columns = scores.shape
    padded = F.pad(scores, (1, 0)).view(batch, heads, columns + 1, rows)
    return padded[:, :, 1:].reshape(batch, heads, rows, columns)[..., :rows]


class Convolution(nn.Module):
    """Pointwise, gated, depthwise over frames, pointwise (figure 2)."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(
            width, width, kernel, padding=kernel // 2, groups=width
        )
        self.batch_norm = nn.BatchNorm1d(width)
        self.project = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve [batch, frames, width] along the frames."""
        y = F.glu(self.expand(self.norm(x).transpose(1, 2)), 1)
        y = F.silu(self.batch_norm(self.depthwise(y)))
        return self.project(y).transpose(1, 2)


class Block(nn.Module):
    """Half a feed-forward, attention, convolution, half a feed-forward, norm."""

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__()
        self.before = feed_forward(width)
        self.attention = RelativeAttention(width, heads)
        self.convolution = Convolution(width, kernel)
        self.after = feed_forward(width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, distances: Tensor) -> Tensor:
        """Return frames of the same shape."""
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x, distances)
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.after(x))


def encodings(frames: int, width: int) -> Tensor:
    """Return sines and cosines of the distances frames - 1 to 1 - frames."""
    distances = torch.arange(frames - 1, -frames, -1.0)[:, None]
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
    return torch.stack(((distances * rates).sin(), (distances * rates).cos()), -1).view(
        2 * frames - 1, width
    )


class Conformer(nn.Module):
    """Convolution subsampling by four and blocks."""

    def __init__(
        self,
        width: int = 144,
        depth: int = 16,
        heads: int = 4,
        kernel: int = 31,
        bands: int = 80,
    ) -> None:
        super().__init__()
        self.width = width
        self.subsample = nn.Sequential(
            nn.Conv2d(1, width, 3, 2),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 2),
            nn.ReLU(),
        )
        self.project = nn.Linear(width * (((bands - 1) // 2 - 1) // 2), width)
        self.blocks = nn.ModuleList(Block(width, heads, kernel) for _ in range(depth))

    def forward(self, spectrum: Tensor) -> Tensor:
        """Encode spectra.

        Args:
            spectrum: [batch, time, bands].
        """
        x = self.subsample(spectrum[:, None]).transpose(1, 2).flatten(2)
        x = self.project(x)
        distances = encodings(x.shape[1], self.width).to(x.dtype)
        for block in self.blocks:
            x = block(x, distances)
        return x
