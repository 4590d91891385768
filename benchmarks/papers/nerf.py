"""NeRF's MLP: Mildenhall et al., "NeRF", ECCV 2020, section 5.1 and figure 7."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Encoding(nn.Module):
    """Positional encoding (equation 4), the coordinates themselves first."""

    def __init__(self, frequencies: int) -> None:
        super().__init__()
        rates = torch.pi * 2.0 ** torch.arange(frequencies)
        self.register_buffer("rates", rates)

    def forward(self, x: Tensor) -> Tensor:
        """Encode [points, 3] as [points, 3 + 6 * frequencies]."""
        angles = (x[:, None, :] * self.rates[:, None]).flatten(1)
        return torch.cat((x, angles.sin(), angles.cos()), 1)


class NeRF(nn.Module):
    """Density and colour of points that are seen from a direction."""

    def __init__(self, width: int = 256, depth: int = 8, skip: int = 4) -> None:
        super().__init__()
        self.skip = skip
        self.encode_position, self.encode_direction = Encoding(10), Encoding(4)
        self.layers = nn.ModuleList(
            nn.Linear((63 if i == 0 else width) + (63 if i == skip + 1 else 0), width)
            for i in range(depth)
        )
        self.density = nn.Linear(width, 1)
        self.feature = nn.Linear(width, width)
        self.view = nn.Linear(width + 27, width // 2)
        self.colour = nn.Linear(width // 2, 3)

    def forward(self, position: Tensor, direction: Tensor) -> Tensor:
        """Return red, green, blue and density, [points, 4].

        Args:
            position: [points, 3].
            direction: [points, 3], of length one.
        """
        start = self.encode_position(position)
        x = start
        for index, layer in enumerate(self.layers):
            x = torch.relu(layer(x))
            x = torch.cat((start, x), 1) if index == self.skip else x
        density = torch.relu(self.density(x))
        seen = torch.cat((self.feature(x), self.encode_direction(direction)), 1)
        colour = self.colour(torch.relu(self.view(seen))).sigmoid()
        return torch.cat((colour, density), 1)
