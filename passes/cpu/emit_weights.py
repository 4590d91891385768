"""Owns the transform of a convolution's weights in the tiles that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from magweld.bindings import ir
from magweld.passes.analysis.winograd import (
    CHANNELS,
    ROWS,
    WINDOW,
    WinogradForm,
    emit_transform,
)
from magweld.passes.cpu.emit_views import (
    Offset,
    aligned_buffer,
    emit_loops,
    layer_at,
    layers,
    plus,
    view,
)
from magweld.passes.linalg_builder import build_generic

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
            _emit_transform(form, part, turned, outs)

        emit_loops([(0, channels, few)], emit_few)
        multiply(at[0], transformed)

    emit_loops([(0, depth, channels)], emit)


def _emit_transform(
    form: WinogradForm, part: ir.Value, turned: ir.Value, out: ir.Value
) -> None:
    """Emit u[p, c, f] = transform of w[f, c, i, j], rows side by side first."""
    f, c, i, j = (ir.AffineExpr.get_dim(d) for d in (3, 0, 1, 2))
    maps = [ir.AffineMap.get(4, 0, [f, c, i, j]), ir.AffineMap.get_identity(4)]
    build_generic([part], [turned], maps, lambda values: values[:1])
    c, f = (ir.AffineExpr.get_dim(d) for d in range(2))
    places = [
        (ir.AffineExpr.get_constant(i), ir.AffineExpr.get_constant(j))
        for i in range(WINDOW)
        for j in range(WINDOW)
    ]
    maps = [ir.AffineMap.get(2, 0, [c, *place, f]) for place in places]
    maps += [ir.AffineMap.get_identity(2)] * form.products
    build_generic(
        [turned] * len(places),
        [layer_at(out, p) for p in range(form.products)],
        maps,
        lambda values: emit_transform(form.weight, values[: len(places)]),
    )


def _part(number: int, most: int) -> int:
    """The largest divisor of a number up to another one, or all if it has but small."""
    found = max(d for d in range(1, most + 1) if number % d == 0)
    return found if found * SMALLEST_PART >= min(number, most) else number
