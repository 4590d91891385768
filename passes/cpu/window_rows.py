"""Owns how a window moves over the rows of an image, and its nest with one long row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from magweld.bindings import ir
from magweld.passes.cpu.generic_forms import maps_of
from magweld.passes.cpu.loop_nest import Access, LoopNest, linear_form


@dataclass(frozen=True)
class WindowRows:
    """How a window moves over an image.

    Attributes:
        down: Loop over the rows of the result.
        across: Loop over their elements.
        image: Number of the input that moves with both.
        pitch: Elements from one row of the image to the next.
    """

    down: int
    across: int
    image: int
    pitch: int


def find_rows(op: ir.Operation, nest: LoopNest) -> WindowRows | None:
    """Return the loops over rows, None unless both walk one input and the result."""
    *_, result = maps_of(op)
    if len(result.results) < 2 or not result.is_projected_permutation:
        return None
    down, across = (expr.position for expr in list(result.results)[-2:])
    for number, image in enumerate(nest.inputs):
        other = nest.inputs[1 - number]
        pitch = image.strides[down]
        fits = image.strides[across] == 1 and pitch > nest.extents[across]
        still = not other.strides[down] and not other.strides[across]
        rows = WindowRows(down, across, number, pitch)
        if fits and still and nest.extents[down] > 1 and _is_image(op, nest, rows):
            return rows
    return None


def _is_image(op: ir.Operation, nest: LoopNest, rows: WindowRows) -> bool:
    """Whether the last two dimensions alone move with the rows, one step a step."""
    rank = len(nest.extents)
    forms = [linear_form(e, rank)[0] for e in maps_of(op)[rows.image].results]
    steps, _ = op.operands[rows.image].type.get_strides_and_offset()
    moved = [(form[rows.down], form[rows.across]) for form in forms]
    last = moved[-2:] == [(1, 0), (0, 1)]
    return last and not any(map(any, moved[:-2])) and steps[-2:] == [rows.pitch, 1]


def row_length(nest: LoopNest, rows: WindowRows) -> int:
    """Return the elements from the first of the first row to the last of the last."""
    return (nest.extents[rows.down] - 1) * rows.pitch + nest.extents[rows.across]


def joined_nest(nest: LoopNest, rows: WindowRows) -> LoopNest:
    """Return the nest with the loop `down` over all elements, `across` left out."""
    extents = list(nest.extents)
    extents[rows.down], extents[rows.across] = row_length(nest, rows), 1

    def walk(access: Access) -> Access:
        strides = list(access.strides)
        strides[rows.down], strides[rows.across] = strides[rows.across], 0
        return replace(access, strides=tuple(strides))

    return replace(
        nest,
        extents=tuple(extents),
        inputs=tuple(map(walk, nest.inputs)),
        outputs=tuple(map(walk, nest.outputs)),
    )
