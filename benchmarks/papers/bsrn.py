"""BSRN: Li et al., "Blueprint Separable Residual Network", CVPR workshops 2022.

Blueprint separable convolutions are those of section 3.1, the efficient separable
distillation block with its two attentions that of section 3.2, the network figure 1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class BlueprintConvolution(nn.Module):
    """A pointwise convolution, then a depthwise one of 3x3."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.depthwise = nn.Conv2d(outputs, outputs, 3, padding=1, groups=outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return an image of the same size."""
        return self.depthwise(self.pointwise(x))


class SpatialAttention(nn.Module):
    """Enhanced spatial attention: weights from a small image, enlarged again."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        hidden = channels // 4
        self.reduce = nn.Conv2d(channels, hidden, 1)
        self.skip = nn.Conv2d(hidden, hidden, 1)
        self.stride = nn.Conv2d(hidden, hidden, 3, stride=2)
        self.small = nn.Sequential(
            BlueprintConvolution(hidden, hidden),
            nn.GELU(),
            BlueprintConvolution(hidden, hidden),
            nn.GELU(),
            BlueprintConvolution(hidden, hidden),
        )
        self.expand = nn.Conv2d(hidden, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Weigh the pixels of an image."""
        reduced = self.reduce(x)
        small = self.small(F.max_pool2d(self.stride(reduced), 7, 3))
        large = F.interpolate(small, x.shape[2:], mode="bilinear", align_corners=False)
        return x * self.expand(large + self.skip(reduced)).sigmoid()


class ChannelAttention(nn.Module):
    """Contrast-aware channel attention: mean and deviation weigh each channel."""

    def __init__(self, channels: int, reduction: int = 4) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.Conv2d(channels, channels // reduction, 1),
            nn.ReLU(),
            nn.Conv2d(channels // reduction, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Weigh the channels of an image."""
        mean = x.mean((2, 3), keepdim=True)
        deviation = (x - mean).square().mean((2, 3), keepdim=True).sqrt()
        return x * self.weigh(mean + deviation)


class DistillationBlock(nn.Module):
    """Efficient separable distillation block (figure 2 d)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.distil = nn.ModuleList(nn.Conv2d(channels, half, 1) for _ in range(3))
        self.refine = nn.ModuleList(
            BlueprintConvolution(channels, channels) for _ in range(3)
        )
        self.last = BlueprintConvolution(channels, half)
        self.join = nn.Conv2d(4 * half, channels, 1)
        self.spatial = SpatialAttention(channels)
        self.channel = ChannelAttention(channels)

    def forward(self, image: Tensor) -> Tensor:
        """Return an image of the same size."""
        x = image
        kept = []
        for distil, refine in zip(self.distil, self.refine, strict=True):
            kept.append(F.gelu(distil(x)))
            x = F.gelu(refine(x) + x)
        kept.append(F.gelu(self.last(x)))
        joined = self.join(torch.cat(kept, 1))
        return self.channel(self.spatial(joined)) + image


class BSRN(nn.Module):
    """Super-resolution: features, blocks that are all joined, pixel shuffle."""

    def __init__(self, channels: int = 64, number: int = 5, scale: int = 4) -> None:
        super().__init__()
        self.copies = 4
        self.first = BlueprintConvolution(3 * self.copies, channels)
        self.blocks = nn.ModuleList(DistillationBlock(channels) for _ in range(number))
        self.join = nn.Conv2d(number * channels, channels, 1)
        self.refine = BlueprintConvolution(channels, channels)
        self.enlarge = nn.Sequential(
            nn.Conv2d(channels, 3 * scale * scale, 3, padding=1),
            nn.PixelShuffle(scale),
        )

    def forward(self, image: Tensor) -> Tensor:
        """Return images `scale` times as large as [batch, 3, height, width]."""
        features = self.first(torch.cat([image] * self.copies, 1))
        x = features
        kept = []
        for block in self.blocks:
            x = block(x)
            kept.append(x)
        joined = self.refine(F.gelu(self.join(torch.cat(kept, 1))))
        return self.enlarge(joined + features)
