"""Owns the transform of a convolution's weights in the tiles that need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from magweld.bindings import ir
from magweld.dialects.tile_graph import PlaceAttr, Role
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
from magweld.passes.tiling.winograd_buffers import WinogradBuffers
from magweld.passes.tiling.winograd_forms import ROWS, WINDOW, WinogradForm


def emit_in_parts(
    form: WinogradForm,
    weights: ir.Value,
    row: Offset,
    buffers: WinogradBuffers,
    places: Mapping[Role, PlaceAttr],
    multiply: Callable[[Offset, ir.Value], None],
) -> None:
    """Emit a loop over channels that transforms weights and does something with them.

    Args:
        form: The arithmetic.
        weights: w[f, c, i, j].
        row: First of the sixteen rows that are taken.
        buffers: What the convolution has beside its tiles.
        places: Where the plan has that.
        multiply: Emits what is done with the transformed weights u[p, c, f] of some
            channels, the first of which it is given.
    """
    depth, element = weights.type.shape[1], weights.type.element_type
    _, channels, _ = buffers.weights
    few, *_ = buffers.turned
    transformed = layers(buffers.weights, element, places.get(Role.WEIGHTS))
    turned = aligned_buffer(buffers.turned, element, places.get(Role.TURNED))

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
