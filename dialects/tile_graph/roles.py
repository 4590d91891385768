"""Owns what an allocation of an execution plan is for, beside holding a tile."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """What lies in an allocation.

    A window is a tile. The others belong to the next computation, beside its tiles.
    """

    WINDOW = "window"
    """A tile with the border around it."""
    IMAGE = "image"
    """An image that is enlarged to whole tiles of Winograd's filtering."""
    RESULT = "result"
    """The result of such an image."""
    TRANSFORMED = "transformed"
    """Transformed tiles of an image."""
    PRODUCTS = "products"
    """Products of transformed tiles and weights."""
    WEIGHTS = "weights"
    """Transformed weights of some channels."""
    TURNED = "turned"
    """The weights that they are made of, side by side."""
    SUM = "sum"
    """The sum that tells whether all results are finite."""

    @property
    def is_tile(self) -> bool:
        """Whether it is something to compute into."""
        return self is Role.WINDOW
