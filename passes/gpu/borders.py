"""Owns images with a border, as plans make them, and the same of a few channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, linalg, tensor


@dataclass(frozen=True)
class Border:
    """An image with a border.

    Attributes:
        window: The part of the bordered image that is read, None for all of it.
        inserted: The image put into a filled one.
        fill: What fills it.
    """

    window: Any | None
    inserted: Any
    fill: Any

    @property
    def bordered(self) -> ir.RankedTensorType:
        """The type of the image with its border."""
        return ir.RankedTensorType(self.inserted.result.type)

    def is_whole(self, dimension: int) -> bool:
        """Tell whether a dimension has no border and all of it is read."""
        whole = self.bordered.shape[dimension]
        return all(
            (part.static_offsets[dimension], part.static_sizes[dimension]) == (0, whole)
            for part in (self.window, self.inserted)
            if part is not None
        )

    def of_step(self, step: Any, channel: int) -> ir.Value:
        """Build the window on a bordered image of the channels that a slice takes.

        Args:
            step: The slice of the window.
            channel: The dimension of the channels, which has to be whole.
        """
        inserted, window = self.inserted, self.window
        element = self.bordered.element_type
        count = step.static_sizes[channel]

        def narrowed(sizes: Any) -> list[int]:
            return [count if d == channel else size for d, size in enumerate(sizes)]

        sizes = narrowed(inserted.static_sizes)
        image = _slice(inserted.source, step, sizes, element)
        empty = tensor.EmptyOp(narrowed(self.bordered.shape), element).result
        filled = linalg.fill(self.fill.operation.operands[0], outs=[empty])
        whole: ir.Value = tensor.InsertSliceOp(
            image,
            filled,
            list(inserted.offsets),
            [],
            [],
            list(inserted.static_offsets),
            sizes,
            [1] * len(sizes),
        ).result
        if window is None:
            return whole
        return _slice(whole, window, narrowed(window.static_sizes), element)


def border_of(value: ir.Value) -> Border | None:
    """Return the image with a border that a value is a window of, None for others."""
    window = maker_of(value, tensor.ExtractSliceOp)
    # A tile of all pixels of an image reads its border whole.
    bordered = value if window is None else window.source
    inserted = maker_of(bordered, tensor.InsertSliceOp)
    fill = inserted and maker_of(inserted.dest, linalg.FillOp)
    if not fill or maker_of(fill.operation.operands[1], tensor.EmptyOp) is None:
        return None
    rank = len(inserted.result.type.shape)
    same_rank = rank == len(value.type.shape) == len(inserted.source.type.shape)
    parts = (inserted,) if window is None else (window, inserted)
    strides = [stride for part in parts for stride in part.static_strides]
    plain = same_rank and all(stride == 1 for stride in strides)
    return Border(window, inserted, fill) if plain else None


def maker_of(value: ir.Value, kind: type) -> Any:
    """Return the operation of a kind that makes a value, None for others."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.opview
    return op if isinstance(op, kind) else None


def _slice(source: ir.Value, at: Any, sizes: list[int], element: Any) -> ir.Value:
    """Build a slice that begins where another one does."""
    made: ir.Value = tensor.ExtractSliceOp(
        ir.RankedTensorType.get(sizes, element),
        source,
        list(at.offsets),
        [],
        [],
        list(at.static_offsets),
        sizes,
        [1] * len(sizes),
    ).result
    return made
