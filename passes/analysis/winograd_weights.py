"""Owns the transform of weights for fewer products, on tensors and on buffers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from magweld.bindings import ir, linalg
from magweld.passes.analysis.winograd import emit_transform
from magweld.passes.ir.linalg_builder import build_generic
from magweld.passes.tiling.winograd_forms import (
    WINDOW,
    WinogradForm,
)


def turn_rows(part: Any, into: Any) -> linalg.GenericOp:
    """Bring the rows of weights side by side: t[c, i, j, f] = w[f, c, i, j]."""
    f, c, i, j = (ir.AffineExpr.get_dim(d) for d in (3, 0, 1, 2))
    maps = [ir.AffineMap.get(4, 0, [f, c, i, j]), ir.AffineMap.get_identity(4)]
    return build_generic([part], [into], maps, lambda values: values[:1])


def transform_rows(
    form: WinogradForm, turned: Any, outs: Sequence[Any]
) -> linalg.GenericOp:
    """Build u[p, c, f] = transform of t[c, i, j, f].

    Args:
        form: The arithmetic.
        turned: The weights, rows side by side.
        outs: Where each layer p goes, or what it is on tensors.
    """
    c, f = (ir.AffineExpr.get_dim(d) for d in range(2))
    places = [
        tuple(ir.AffineExpr.get_constant(n) for n in place)
        for place in product(range(WINDOW), repeat=2)
    ]
    maps = [ir.AffineMap.get(2, 0, [c, *place, f]) for place in places]
    maps += [ir.AffineMap.get_identity(2)] * form.products
    return build_generic(
        [turned] * len(places),
        outs,
        maps,
        lambda values: emit_transform(form.weight, values[: len(places)]),
    )
