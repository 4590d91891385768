"""Owns the choice of a register tile for a matrix product; knows nothing of MLIR.

Every way to vectorise a product is given its cycles by the same small model, and the
cheapest is taken.
"""

from __future__ import annotations

from magweld.passes.cpu.dot_products import dot_candidates
from magweld.passes.cpu.loop_nest import LoopNest
from magweld.passes.cpu.panel_products import panel_candidates
from magweld.passes.cpu.product_costs import Candidate
from magweld.passes.cpu.register_tile import RegisterTile, VectorUnit
from magweld.passes.cpu.window_policy import window_candidates


def choose_product_tile(
    nest: LoopNest, unit: VectorUnit, lanes: int
) -> RegisterTile | None:
    """Return the cheapest register tile of a product, None if there is none.

    Args:
        nest: A nest whose body is `output + input 0 * input 1`.
        unit: The registers.
        lanes: Elements of a vector.
    """
    best = _cheapest(nest, unit, lanes)
    return best.tile if best else None


def product_cycles(nest: LoopNest, unit: VectorUnit) -> float | None:
    """Return the cycles of a product of f32, None if there is no tile."""
    best = _cheapest(nest, unit, unit.bits // 32)
    return best.cycles if best else None


def _cheapest(nest: LoopNest, unit: VectorUnit, lanes: int) -> Candidate | None:
    candidates = [
        *panel_candidates(nest, unit, lanes),
        *dot_candidates(nest, unit, lanes),
        *window_candidates(nest, unit, lanes),
    ]
    return min(candidates, key=lambda candidate: candidate.cycles, default=None)
