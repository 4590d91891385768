"""Owns the transform of a convolution's weights in the tiles that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from magweld.bindings import ir
from magweld.passes.analysis.winograd_weights import transform_rows, turn_rows
from magweld.passes.cpu.emit_views import (
    Offset,
    aligned_buffer,
    emit_loops,
    layer_at,
    layers,
    plus,
    view,
)
from magweld.passes.tiling.tile_sizes import largest_divisor
from magweld.passes.tiling.winograd_forms import (
    CHANNELS,
    ROWS,
    WINDOW,
    WinogradForm,
)

# Parts that are smaller than a quarter of what fits are not worth a loop.
SMALLEST_PART = 4
# Of the channels whose weights are transformed together those that are brought side by
# side at a time: they stay in a core's first cache.
TURNED = 32


def emit_in_parts(
    form: WinogradForm,
    weights: ir.Value,
    row: Offset,
    multiply: Callable[[Offset, ir.Value], None],
) -> None:
    """Emit a loop over channels that transforms weights and does something with them.

    Args:
        form: The arithmetic.
        weights: w[f, c, i, j].
        row: First of the sixteen rows that are taken.
        multiply: Emits what is done with the transformed weights u[p, c, f] of some
            channels, the first of which it is given.
    """
    depth, element = weights.type.shape[1], weights.type.element_type
    channels = _part(depth, CHANNELS)
    few = _part(channels, TURNED)
    transformed = layers((form.products, channels, ROWS), element)
    turned = aligned_buffer((few, WINDOW, WINDOW, ROWS), element)

    def emit(at: Sequence[Offset]) -> None:
        def emit_few(at_few: Sequence[Offset]) -> None:
            first = plus(at[0], at_few[0])
            part = view(weights, (row, first, 0, 0), (ROWS, few, WINDOW, WINDOW))
            outs = view(transformed, (0, at_few[0], 0), (form.products, few, ROWS))
            turn_rows(part, turned)
            layers_of_few = [layer_at(outs, p) for p in range(form.products)]
            transform_rows(form, turned, layers_of_few)

        emit_loops([(0, channels, few)], emit_few)
        multiply(at[0], transformed)

    emit_loops([(0, depth, channels)], emit)


def _part(number: int, most: int) -> int:
    """The largest divisor of a number up to another one, or all if it has but small."""
    found = largest_divisor(number, most)
    return found if found * SMALLEST_PART >= min(number, most) else number
