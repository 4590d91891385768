"""Owns what the region of an operator may hold, and reading its root operation.

The root is the one operation that an operator is about. Everything else in the
region prepares its operands: fills, pads, slices, constants, views.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from magweld.bindings import ir

# Upstream's: IRDL cannot state that an op of ours ends a block, so that other tools
# would refuse it. This one takes any types and stands in any op.
YIELD = "gpu.yield"
VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
# Operations that move elements and that linalg has no operation for.
_MOVES = frozenset(
    {
        "tensor.concat",
        "tensor.gather",
        "tensor.insert_slice",
        "tensor.scatter",
    }
)
# They are roots only where there is nothing else to be one, first come first.
_SECONDARY_ROOTS = ("tensor.extract_slice", "tensor.pad", "linalg.fill")
_HELPERS = frozenset({"arith.constant", "tensor.empty", "tensor.cast", YIELD}) | VIEWS


def is_allowed_in_operator(name: str) -> bool:
    """Return whether an operation of this name may stand in an operator."""
    return name in _HELPERS or name in _SECONDARY_ROOTS or _is_primary_root(name)


def root_candidates(block: ir.Block) -> list[ir.Operation]:
    """Return the operations of an operator's block that could be its root.

    A valid operator has exactly one. Slices, pads and fills count only in a block
    without any other candidate, in this order: a pad only if there is no slice.
    Operations on memory, which have no results, are none.
    """
    operations = [op.operation for op in block.operations if len(op.results)]
    primary = [op for op in operations if _is_primary_root(op.name)]
    groups = [
        primary,
        *([op for op in operations if op.name == name] for name in _SECONDARY_ROOTS),
    ]
    return next((group for group in groups if group), [])


def root_operation(operator: ir.Operation | ir.OpView) -> ir.Operation:
    """Return the root of a valid `tile_graph.operator`."""
    return root_candidates(operator.operation.regions[0].blocks[0])[0]


def parallel_extents(root: ir.Operation) -> tuple[int, ...]:
    """Return the extents of a root's parallel dimensions, in loop order.

    A tile has one size for each. For an operation with indexing maps these are the
    loops that index its result; the dimensions of the first result otherwise, which
    is the same for every other structured operation.

    Returns:
        Extents; `ir.ShapedType.get_dynamic_size()` for those that are not static
        or that no operand states.
    """
    shape = tuple(ir.ShapedType(root.results[0].type).shape)
    # Not linalg.get_indexing_maps: it writes a memo attribute into convolutions.
    if not root.name.startswith("linalg.") or "indexing_maps" not in root.attributes:
        return shape
    maps = [map_.value for map_ in ir.ArrayAttr(root.attributes["indexing_maps"])]
    extents = _loop_extents(maps, [_shape(value) for value in root.operands])
    loops = _parallel_loops(root, maps[-1])
    unknown = ir.ShapedType.get_dynamic_size()
    return tuple(extents.get(loop, unknown) for loop in loops)


def _is_primary_root(name: str) -> bool:
    is_linalg = name.startswith("linalg.") and name not in _SECONDARY_ROOTS
    return is_linalg or name in _MOVES


def _shape(value: ir.Value) -> tuple[int, ...]:
    # Scalar operands of a linalg operation have maps without results.
    is_shaped = isinstance(value.type, ir.ShapedType)
    return tuple(value.type.shape) if is_shaped else ()


def _parallel_loops(root: ir.Operation, result_map: ir.AffineMap) -> list[int]:
    if "iterator_types" in root.attributes:
        kinds = ir.ArrayAttr(root.attributes["iterator_types"])
        # The bindings have no class for #linalg.iterator_type.
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>", root.context)
        return [i for i, kind in enumerate(kinds) if kind == parallel]
    return sorted({loop for loop, _ in _plain_dims(result_map)})


def _loop_extents(
    maps: Sequence[ir.AffineMap], shapes: Iterable[tuple[int, ...]]
) -> dict[int, int]:
    extents: dict[int, int] = {}
    for map_, shape in zip(maps, shapes, strict=True):
        for loop, position in _plain_dims(map_):
            extents.setdefault(loop, shape[position])
    return extents


def _plain_dims(map_: ir.AffineMap) -> list[tuple[int, int]]:
    """Pairs of loop and result position where a map's result is a bare loop."""
    return [
        (ir.AffineDimExpr(result).position, position)
        for position, result in enumerate(map_.results)
        if isinstance(result, ir.AffineDimExpr)
    ]


def captured_values(op: ir.Operation | ir.OpView) -> list[ir.Value]:
    """Return the values that the regions of `op` use from outside, in first use."""
    inside: set[ir.Value] = set()
    used: dict[ir.Value, None] = {}

    def visit(outer: ir.Operation) -> None:
        for region in outer.regions:
            for block in region.blocks:
                inside.update(block.arguments)
                for view in block.operations:
                    nested = view.operation
                    for value in nested.operands:
                        used[value] = None
                    inside.update(nested.results)
                    if len(nested.regions):
                        visit(nested)

    visit(op.operation)
    return [value for value in used if value not in inside]


def element_bytes(type_: Any) -> int:
    """Return the bytes that one element of a tensor type takes in memory."""
    element = type_.element_type
    if isinstance(element, ir.IndexType):
        return 8
    if isinstance(element, ir.ComplexType):
        return 2 * element_bytes(element)
    return max(1, int(element.width) // 8)


def type_bytes(type_: Any) -> int:
    """Return the bytes that a tensor of a static type takes in memory."""
    return int(math.prod(type_.shape)) * element_bytes(type_)
