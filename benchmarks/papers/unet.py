"""UNet: Ronneberger, Fischer, Brox, "U-Net", MICCAI 2015, section 2 and figure 1.

Convolutions are padded and followed by batch norms, as it is used today.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def double_convolution(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions of 3x3, each with norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """A contracting and an expanding path, joined at every size."""

    def __init__(self, width: int = 32, depth: int = 4, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            double_convolution(i, o) for i, o in zip([3, *widths], widths, strict=False)
        )
        self.pool = nn.MaxPool2d(2)
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in pairs)
        self.join = nn.ModuleList(double_convolution(2 * o, o) for _, o in pairs)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of classes for every pixel.

        Args:
            x: Images [batch, 3, height, width].
        """
        kept = []
        for level, block in enumerate(self.down):
            x = block(self.pool(x) if level else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat((kept.pop(), up(x)), 1))
        return self.head(x)
