"""Owns the building of linalg.generic operations, on tensors and on buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from magweld.bindings import ir, linalg

Body = Callable[[Sequence[Any]], Sequence[Any]]


def build_generic(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    maps: Sequence[ir.AffineMap],
    body: Body,
    reduced: Collection[int] = (),
) -> linalg.GenericOp:
    """Build a `linalg.generic` at the insertion point; on tensors it has results.

    Args:
        inputs: What it reads.
        outputs: What it writes.
        maps: The indexing maps of all of them.
        body: Makes what is yielded of the block's arguments.
        reduced: The loops that reduce.
    """
    generic = linalg.GenericOp(
        [v.type for v in outputs if isinstance(v.type, ir.RankedTensorType)],
        list(inputs),
        list(outputs),
        map_array(maps),
        iterator_array(maps[0].n_dims, reduced),
    )
    elements = [ir.ShapedType(v.type).element_type for v in (*inputs, *outputs)]
    places = [ir.Location.current] * len(elements)
    block = generic.regions[0].blocks.append(*elements, arg_locs=places)
    with ir.InsertionPoint(block):
        linalg.YieldOp(list(body(list(block.arguments))))
    return generic


def map_array(maps: Sequence[ir.AffineMap]) -> ir.ArrayAttr:
    """Return the attribute that holds maps."""
    return ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])


def iterator_array(loops: int, reduced: Collection[int] = ()) -> ir.ArrayAttr:
    """Return the attribute that says which of so many loops reduce."""
    # The bindings have no class for #linalg.iterator_type.
    parallel, reduction = (
        ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")
        for kind in ("parallel", "reduction")
    )
    return ir.ArrayAttr.get(
        [reduction if loop in reduced else parallel for loop in range(loops)]
    )
