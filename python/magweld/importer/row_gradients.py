"""Owns gradients of tables whose rows are looked up: sums of bags of gradients.

An index tells to which row of the table the gradient of what it has found is added. In
the order of these rows, the indices of one row are a bag of rows of the gradient: the
gradient of the table is the sums of bags, as they are looked up forwards. The order is
one pass over the indices in native code; torch sorts them, or adds row by row.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, fx

from magweld.artifact import StandIns
from magweld.importer.dtypes import GENERATED_FLOATS, INDICES
from magweld.importer.gathers import LIBRARY
from magweld.importer.nodes import (
    REASON,
    argument,
    insert_before,
    operand,
    replace_by,
    values_of,
)
from magweld.importer.placing import CPU
from magweld.importer.ragged_bags import BAG_MODES, RAGGED_BAGS

aten = torch.ops.aten

_SUM: Final = BAG_MODES.index("sum")
_MOST_NARROW: Final = torch.iinfo(torch.int32).max
_SAME: Final = frozenset({aten.alias.default, aten.detach.default})


def size_of_bags(offsets: fx.Node, count: int) -> int:
    """Return how many indices each bag has, 0 where they are not all of one size.

    Args:
        offsets: Where bags begin; there is none of where the last one ends.
        count: How many indices there are.
    """
    while offsets.target in _SAME:
        offsets = operand(offsets)
    if offsets.target is not aten.arange.start_step:
        return 0
    begin, end, step = (argument(offsets, name) for name in ("start", "end", "step"))
    return step if begin == 0 and end == count and count % step == 0 else 0


def replace_bag_gradients(joint: fx.GraphModule) -> None:
    """Let gradients of sums of bags of one size read that size alone.

    Torch's operator reads what the one for bags returns beside them. The forward half
    would have to make that, and so torch would have to make the bags.

    Args:
        joint: A functional ATen graph of forward and backward.
    """
    graph, target = joint.graph, aten._embedding_bag_backward.default
    for node in graph.find_nodes(op="call_function", target=target):
        size = _size_of_summed(node)
        if not size:
            continue
        rows, padding = argument(node, "num_weights"), argument(node, "padding_idx")
        operands = operand(node, 0), operand(node, 1)
        arguments = (*operands, rows, size, padding)
        replace_by(node, insert_before(node, ROW_GRADIENTS, arguments, values_of(node)))
    joint.recompile()


def _size_of_summed(node: fx.Node) -> int:
    """Return the size of bags whose gradient a node is, 0 for others than such sums."""
    # A mean is scaled by a library, which may round a product and a sum at once.
    others = (
        argument(node, "mode") != _SUM
        or argument(node, "per_sample_weights") is not None
        or argument(node, "scale_grad_by_freq")
        or argument(node, "sparse")
        or values_of(node).device != CPU
    )
    count = values_of(operand(node, 1)).numel()
    size = 0 if others or not count else size_of_bags(operand(node, 2), count)
    # With an offset behind the last bag there is one bag less.
    return size if values_of(operand(node)).shape[0] * size == count else 0


def expand_row_gradients(graph: fx.Graph, stand_ins: StandIns) -> None:
    """Split gradients of tables into the order of the indices, and sums of bags.

    Others stay operators of torch, with the reason in their `meta`.

    Args:
        graph: A functional ATen graph.
        stand_ins: Extents that stand for sizes of the call.
    """
    for node in list(graph.nodes):
        if node.target not in (ROW_GRADIENTS, aten.embedding_dense_backward.default):
            continue
        reason = _reason(node, stand_ins)
        if reason:
            node.meta[REASON] = reason
        else:
            _expand(node)


def _reason(node: fx.Node, stand_ins: StandIns) -> str:
    """Return why torch makes a gradient, an id in front; nothing if it does not."""
    gradient, indices = (values_of(operand(node, number)) for number in range(2))
    result = values_of(node)
    shapes = [gradient.shape, indices.shape, result.shape]
    if any(stand_ins.is_runtime(extent) for shape in shapes for extent in shape):
        return "row-gradient-sizes: how many rows there are differs from call to call"
    if result.device != CPU:
        return "row-gradient-device: kernels for CPUs alone take bags of any size"
    if result.dtype not in GENERATED_FLOATS or indices.dtype not in INDICES:
        return f"row-gradient-rounding: torch rounds sums of {result.dtype} as it adds"
    if node.target is not ROW_GRADIENTS and argument(node, "scale_grad_by_freq"):
        return "row-gradient-scale: it is scaled by how often a row is looked up"
    if not (gradient.numel() and result.numel()):
        return "row-gradient-empty: there are no rows"
    narrow = indices.dtype is torch.int32
    if narrow and max(indices.numel(), result.shape[0]) > _MOST_NARROW:
        return "row-gradient-indices: they have too few bits for so many rows"
    return ""


def _expand(node: fx.Node) -> None:
    gradient, indices = operand(node, 0), operand(node, 1)
    # Their order is the same in every shape.
    shapes = [indices]
    while shapes[-1].target is aten.view.default:
        shapes.append(operand(shapes[-1]))
    *views, indices = shapes
    result, places = values_of(node), values_of(indices)
    size = argument(node, "size") if node.target is ROW_GRADIENTS else 1
    padding = argument(node, _PADDING[node.target])
    insert = partial(insert_before, node)
    count, (rows, columns) = places.numel(), result.shape
    shape = [count // size, columns]
    if list(values_of(gradient).shape) != shape:
        flat = values_of(gradient).new_empty(shape)
        gradient = insert(aten.view.default, (gradient, shape), flat)
    order = (places.new_empty(count), places.new_empty(rows + 1))
    ordered = insert(PLACES_BY_ROW, (indices, rows, size, padding), order)
    bags, bounds = (
        insert(operator.getitem, (ordered, number), like)
        for number, like in enumerate(order)
    )
    sums = insert(RAGGED_BAGS, (gradient, bags, bounds, None, None, _SUM, -1), result)
    replace_by(node, sums)
    for view in views:
        if not view.users:
            view.graph.erase_node(view)


def _row_gradients(
    gradient: Tensor, indices: Tensor, rows: int, size: int, padding: int
) -> Tensor:
    count = gradient.shape[0]
    bags = torch.arange(count, dtype=indices.dtype).repeat_interleave(size)
    sizes = indices.new_full((count,), size)
    found: Tensor = aten._embedding_bag_dense_backward(
        gradient, indices, bags, sizes, sizes, rows, False, _SUM, None, padding
    )
    return found


def _without_data(
    gradient: Tensor, indices: Tensor, rows: int, size: int, padding: int
) -> Tensor:
    return gradient.new_empty((rows, gradient.shape[-1]))


def _places_by_row(
    indices: Tensor, rows: int, size: int, padding: int
) -> tuple[Tensor, Tensor]:
    flat = indices.reshape(-1)
    least, most = torch.aminmax(flat)
    if int(least) < 0 or int(most) >= rows:
        raise IndexError("index out of range in self")
    # What is skipped comes last, behind the last bound.
    sorted_by = torch.where(flat == padding, rows, flat)
    places = torch.argsort(sorted_by, stable=True) // size
    counts = torch.bincount(sorted_by, minlength=rows)[:rows]
    bounds = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return places.to(indices.dtype), bounds.to(indices.dtype)


def _register() -> tuple[torch._ops.OpOverload, torch._ops.OpOverload]:
    arguments = "Tensor indices, int rows, int size, int padding"
    LIBRARY.define(  # type: ignore[no-untyped-call]
        f"row_gradients(Tensor gradient, {arguments}) -> Tensor"
    )
    LIBRARY.impl("row_gradients", _row_gradients, "CPU")  # type: ignore[no-untyped-call]
    LIBRARY.impl("row_gradients", _without_data, "Meta")  # type: ignore[no-untyped-call]
    LIBRARY.define(  # type: ignore[no-untyped-call]
        f"places_by_row({arguments}) -> (Tensor, Tensor)"
    )
    LIBRARY.impl("places_by_row", _places_by_row, "CPU")  # type: ignore[no-untyped-call]
    ours = torch.ops.magweld
    return ours.row_gradients.default, ours.places_by_row.default


ROW_GRADIENTS, PLACES_BY_ROW = _register()
_PADDING: Final[dict[Any, str]] = {
    ROW_GRADIENTS: "padding",
    aten.embedding_dense_backward.default: "padding_idx",
}
