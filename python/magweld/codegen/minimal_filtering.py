"""Owns the matrices of Winograd's minimal filtering, F(2 x 2, 3 x 3).

For tiles x of 4 x 4 points and windows w, `result (weight w weightT * input x inputT)
resultT` is the convolution, `*` element by element: 16 products for four results
instead of 36. Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", section
4.1, with the points 0, 1, -1 and infinity.
"""

from __future__ import annotations

from typing import Final

# Points of a window, results of a tile, and points that it reads, along a dimension.
WINDOW: Final = 3
TILE: Final = 2
SIDE: Final = 4
PRODUCTS: Final = SIDE * SIDE

INPUT: Final = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
WEIGHT: Final = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
RESULT: Final = ((1, 1, 1, 0), (0, 1, -1, -1))
