"""Owns map-tiles-to-blocks: the tiles of a kernel become the blocks of a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import affine, func, ir
from magweld.passes.gpu.structure import (
    block_loop_of,
    block_mapping,
    kernels_of,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error

# Grid size in x: CUDA C++ programming guide, table of compute capabilities.
_MAX_BLOCKS = 2**31 - 1


@dataclass(frozen=True)
class MapTilesToBlocks(Pass):
    """Map the tile loop of every kernel to a row of blocks.

    `scf.forall (%i, %j) = (0, 0) to (512, 96) step (16, 32)` becomes
    `scf.forall (%n) in (96)` with `mapping = [#gpu.block<linear_dim_0>]`; `%i` becomes
    `(%n floordiv 3) * 16` and `%j` `(%n mod 3) * 32`. Arguments that are no
    destination are marked read-only, so that bufferization never reuses them.
    """

    name: ClassVar[str] = "map-tiles-to-blocks"

    def run(self, module: Any) -> None:
        """Map all kernels of the module."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            with kernel.location:
                _flatten(loop)
                _mark_inputs(kernel, loop)


def _flatten(loop: Any) -> None:
    """Number the tiles by one loop and compute their offsets from the number."""
    trips = _trip_counts(loop)
    bounds = list(zip(loop.staticLowerBound, loop.staticStep, strict=True))
    body = loop.body
    number = body.add_argument(ir.IndexType.get(), loop.location)
    with ir.InsertionPoint.at_block_begin(body):
        for position, offset in enumerate(_offsets(trips, bounds)):
            map_ = ir.AffineMap.get(1, 0, [offset])
            element = affine.AffineApplyOp(map_, [number]).result
            body.arguments[position].replace_all_uses_with(element)
    # Block arguments are induction variables, then destinations.
    for destination in list(body.arguments)[len(trips) : -1]:
        moved = body.add_argument(destination.type, loop.location)
        destination.replace_all_uses_with(moved)
    for _ in range(len(body.arguments) - 1 - len(loop.outputs)):
        body.erase_argument(0)
    loop.staticLowerBound = ir.DenseI64ArrayAttr.get([0])
    loop.staticUpperBound = ir.DenseI64ArrayAttr.get([math.prod(trips)])
    loop.staticStep = ir.DenseI64ArrayAttr.get([1])
    loop.mapping = block_mapping()


def _offsets(
    trips: list[int], bounds: list[tuple[int, int]]
) -> Iterator[ir.AffineExpr]:
    """Yield the element offset along each dimension, row-major over the grid."""
    number = ir.AffineDimExpr.get(0)
    inner = math.prod(trips)
    for position, (count, (lower, step)) in enumerate(zip(trips, bounds, strict=True)):
        inner //= count
        along = ir.AffineExpr.get_floor_div(number, inner) if inner > 1 else number
        if position > 0:
            along = ir.AffineExpr.get_mod(along, count)
        yield along * step + lower


def _trip_counts(loop: Any) -> list[int]:
    if loop.dynamicLowerBound or loop.dynamicUpperBound or loop.dynamicStep:
        raise located_error(loop, "expected static bounds")
    bounds = zip(
        loop.staticLowerBound, loop.staticUpperBound, loop.staticStep, strict=True
    )
    trips = []
    for lower, upper, step in bounds:
        if (upper - lower) % step:
            raise located_error(
                loop, f"expected tiles to divide the extent {upper - lower}, got {step}"
            )
        trips.append((upper - lower) // step)
    blocks = math.prod(trips)
    if blocks > _MAX_BLOCKS:
        raise located_error(
            loop, f"expected at most {_MAX_BLOCKS} blocks, got {blocks}"
        )
    return trips


def _mark_inputs(kernel: func.FuncOp, loop: Any) -> None:
    destinations = list(loop.outputs)
    attributes = []
    for position, argument in enumerate(kernel.arguments):
        known = dict(_argument_attributes(kernel, position))
        if argument not in destinations:
            known["bufferization.writable"] = ir.BoolAttr.get(False)
        attributes.append(ir.DictAttr.get(known))
    kernel.arg_attrs = ir.ArrayAttr.get(attributes)


def _argument_attributes(
    kernel: func.FuncOp, position: int
) -> list[tuple[str, ir.Attribute]]:
    if "arg_attrs" not in kernel.attributes:
        return []
    return [(a.name, a.attr) for a in ir.DictAttr(kernel.arg_attrs[position])]
