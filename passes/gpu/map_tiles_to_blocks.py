"""Owns map-tiles-to-blocks: the tiles of a kernel become the blocks of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import affine, func, ir
from magweld.passes.base import Pass
from magweld.passes.gpu.structure import (
    MAX_MAPPED_DIMENSIONS,
    block_loop_of,
    block_mapping,
    kernels_of,
)
from magweld.passes.ir_utils import located_error

# Grid size in x: CUDA C++ programming guide, table of compute capabilities.
_MAX_BLOCKS = 2**31 - 1


@dataclass(frozen=True)
class MapTilesToBlocks(Pass):
    """Map the tile loop of every kernel to a row-major grid of blocks.

    `scf.forall (%i) = (0) to (512) step (16)` becomes `scf.forall (%n) in (32)` with
    `mapping = [#gpu.block<linear_dim_0>]`, and `%i` becomes `%n * 16`. Arguments that
    are no destination are marked read-only, so that bufferization never reuses them.
    """

    name: ClassVar[str] = "map-tiles-to-blocks"

    def run(self, module: Any) -> None:
        """Map all kernels of the module."""
        for kernel in kernels_of(module):
            loop = block_loop_of(kernel)
            with kernel.location:
                _normalize(loop)
                _mark_inputs(kernel, loop)


def _normalize(loop: Any) -> None:
    """Count tiles instead of elements and set the mapping."""
    trips = _trip_counts(loop)
    body = loop.body
    for position, (lower, step) in enumerate(
        zip(loop.staticLowerBound, loop.staticStep, strict=True)
    ):
        if (lower, step) == (0, 1):
            continue
        iv = body.arguments[position]
        d0 = ir.AffineExpr.get_dim(0)
        map_ = ir.AffineMap.get(1, 0, [d0 * step + lower])
        with ir.InsertionPoint.at_block_begin(body):
            element = affine.AffineApplyOp(map_, [iv])
        iv.replace_all_uses_except(element.result, element.operation)
    rank = len(trips)
    loop.staticLowerBound = ir.DenseI64ArrayAttr.get([0] * rank)
    loop.staticUpperBound = ir.DenseI64ArrayAttr.get(trips)
    loop.staticStep = ir.DenseI64ArrayAttr.get([1] * rank)
    loop.mapping = block_mapping(rank)


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
    if len(trips) > MAX_MAPPED_DIMENSIONS:
        raise located_error(
            loop,
            f"expected at most {MAX_MAPPED_DIMENSIONS} dimensions, got {len(trips)}",
        )
    blocks = 1
    for count in trips:
        blocks *= count
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
