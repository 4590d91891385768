"""Owns which operators of a graph have sizes of the call inside of tensors.

Generated code has such a size as the outermost extent in memory. What computes with it
elsewhere, as attention between queries and keys of any number does, runs through torch:
neighbouring operators as one external, which runs for the sizes of a call.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from magweld.artifact import StandIns
from magweld.importer.nodes import (
    RUNS_FOR_ITSELF,
    argument,
    is_check,
    is_random,
    operand,
    tensors_of,
    values_of,
)
from magweld.importer.simplify import OPERAND_STRIDES
from magweld.importer.structure import STRUCTURE

aten = torch.ops.aten

Decompose = Callable[..., Any]

# Operators whose numbers are the shape of the result, and no part of its values.
SHAPED: frozenset[object] = frozenset(
    {
        aten._unsafe_view.default,
        aten.empty.memory_format,
        aten.expand.default,
        aten.full.default,
        aten.reshape.default,
        aten.view.default,
    }
)
# Layers of torch's library: they take the memory of their operands as it lies, so these
# have to be dense.
RECURRENT_LAYERS: frozenset[object] = frozenset({aten.mkldnn_rnn_layer.default})
# Views that exchange dimensions, and all of those that are left in a graph.
_PERMUTED: frozenset[object] = frozenset(
    {aten.permute.default, aten.t.default, aten.transpose.int}
)
# Views of some of the elements.
_PARTS: frozenset[object] = frozenset({aten.select.int, aten.slice.Tensor})
_VIEWS = _PERMUTED | _PARTS | {aten.expand.default, aten.view.default}


def left_whole(
    table: Mapping[Any, Decompose], stand_ins: StandIns
) -> dict[Any, Decompose]:
    """Return decompositions that do not take apart what will run through torch.

    Args:
        table: Operators and what they become; those that arrange elements still do.
        stand_ins: Extents that stand for sizes of the call.
    """
    if not stand_ins:
        return dict(table)
    return {
        target: apart if target in STRUCTURE else _unless_inner(apart, stand_ins)
        for target, apart in table.items()
    }


def _unless_inner(apart: Decompose, stand_ins: StandIns) -> Decompose:
    def decompose(*args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        shapes = [leaf.shape for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if all(is_outermost(shape, stand_ins) for shape in shapes):
            return apart(*args, **kwargs)
        return NotImplemented

    return decompose


def inner_regions(
    graph: fx.Graph, stand_ins: StandIns
) -> dict[fx.Node, tuple[fx.Node, ...]]:
    """Return the operators that run through torch for their extents.

    Args:
        graph: A functional ATen graph.
        stand_ins: Extents that stand for sizes of the call.

    Returns:
        The last operator of each region, and those before it in their order. What reads
        one of these beside the region comes behind it.
    """
    inner = inner_nodes(graph, stand_ins)
    order = {node: number for number, node in enumerate(graph.nodes)}
    last: dict[fx.Node, fx.Node] = {}
    regions: dict[fx.Node, list[fx.Node]] = {}
    for node in reversed(graph.nodes):
        if node not in inner and not _may_join(node, inner, stand_ins):
            continue
        reader = _reader(node, last, order)
        if reader is not None and _is_joined(node, reader):
            last[node] = reader
            regions[reader].append(node)
        elif node in inner:
            last[node] = node
            regions[node] = []
    return {node: tuple(reversed(beside)) for node, beside in regions.items()}


def _reader(
    node: fx.Node, last: Mapping[fx.Node, fx.Node], order: Mapping[fx.Node, int]
) -> fx.Node | None:
    """Return the region that a node can be made in, by its last operator.

    That is the one that reads it, if others have the result of the region behind it.

    Args:
        node: A node whose readers were visited.
        last: The regions of these.
        order: The positions of all nodes.
    """
    readers = {last[user] for user in node.users if user in last}
    if len(readers) != 1:
        return None
    (reader,) = readers
    others = [order[user] for user in node.users if user not in last]
    if not others or (_has_memory(node) and min(others) > order[reader]):
        return reader
    return None


def _has_memory(node: fx.Node) -> bool:
    """Whether a node is an operator with one result, which is no view."""
    is_view = node.target in _VIEWS or node.target in SHAPED
    is_tensor = isinstance(values_of(node), torch.Tensor)
    return isinstance(node.target, OpOverload) and is_tensor and not is_view


def _may_join(node: fx.Node, inner: set[fx.Node], stand_ins: StandIns) -> bool:
    """Whether a node runs with its readers if these are of one region.

    That is a view, which costs torch nothing, a part of a result, and a recurrent
    layer, which torch runs anyway.
    """
    if node.target is operator.getitem:
        whole = operand(node)
        return whole in inner or _is_sized_layer(whole, stand_ins)
    is_view = node.op == "call_function" and node.target in _VIEWS
    return is_view or _is_sized_layer(node, stand_ins)


def _is_sized_layer(node: fx.Node, stand_ins: StandIns) -> bool:
    if node.target not in RECURRENT_LAYERS:
        return False
    return any(map(stand_ins.depends, values_of(operand(node)).shape))


def _is_joined(node: fx.Node, reader: fx.Node) -> bool:
    """Whether a node has no effects, and neither it nor its reader needs strides."""
    needs_strides = any(OPERAND_STRIDES in one.meta for one in (node, reader))
    effects = is_random(node) or is_check(node) or RUNS_FOR_ITSELF in node.meta
    return not needs_strides and not effects


def inner_nodes(graph: fx.Graph, stand_ins: StandIns) -> set[fx.Node]:
    """Return the operators that no kernel computes for their extents.

    Args:
        graph: A functional ATen graph.
        stand_ins: Extents that stand for sizes of the call.
    """
    found: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if node.target in _VIEWS:
            # A view inside of tensors is none that a kernel can make for torch.
            is_read = any(user in found for user in node.users)
            is_inner = _is_inner_view(node, stand_ins) or (
                is_read and not _all_outermost([node], stand_ins)
            )
        else:
            around = [node, *node.all_input_nodes]
            same = len(_products(around, stand_ins)) < 2
            is_inner = not (same and _all_outermost(around, stand_ins))
        if is_inner or _has_size(node, stand_ins):
            found.add(node)
    return found


def _is_inner_view(node: fx.Node, stand_ins: StandIns) -> bool:
    """Whether a view changes how several sizes lie, or takes a part of one."""
    around = [node, *node.all_input_nodes]
    if len(_products(around, stand_ins)) > 1:
        return True
    # Kernels read rows of what was made; views between are none of memory.
    if not _all_outermost([_base(node)], stand_ins) or _is_part(node, stand_ins):
        return True
    counts = [
        sum(map(stand_ins.depends, tensor.shape))
        for near in around
        for tensor in tensors_of(near)
    ]
    exchanged = node.target in _PERMUTED or not _all_outermost(around, stand_ins)
    return max(counts, default=0) > 1 and exchanged


def _base(node: fx.Node) -> fx.Node:
    """Return what a chain of views is of."""
    while node.target in _VIEWS:
        node = operand(node)
    return node


def _is_part(node: fx.Node, stand_ins: StandIns) -> bool:
    """Whether a view takes some of the elements along a size of the call."""
    if node.target not in _PARTS:
        return False
    whole = tuple(values_of(operand(node)).shape)
    extent = whole[argument(node, "dim")]
    return stand_ins.depends(extent) and tuple(values_of(node).shape) != whole


def _products(nodes: Sequence[fx.Node], stand_ins: StandIns) -> set[int]:
    """Return the products of the sizes in tensors that have any."""
    shapes = [tensor.shape for node in nodes for tensor in tensors_of(node)]
    products = {
        math.prod(stand_ins.told(extent) for extent in shape) for shape in shapes
    }
    return products - {1}


def _all_outermost(nodes: Sequence[fx.Node], stand_ins: StandIns) -> bool:
    shapes = [tensor.shape for node in nodes for tensor in tensors_of(node)]
    return all(is_outermost(shape, stand_ins) for shape in shapes)


def is_outermost(shape: Sequence[int], stand_ins: StandIns) -> bool:
    """Whether sizes of the call are outermost in a dense tensor, side by side.

    Extents that are no products of sizes are never.
    """
    told = [dim for dim, extent in enumerate(shape) if stand_ins.depends(extent)]
    if not told:
        return True
    if any(shape[dim] in stand_ins.inner for dim in told):
        return False
    side_by_side = told[-1] - told[0] + 1 == len(told)
    return side_by_side and all(extent == 1 for extent in shape[: told[0]])


def _has_size(node: fx.Node, stand_ins: StandIns) -> bool:
    """Whether a number of an operator is a size, and not part of a shape alone."""
    if node.target in SHAPED or not isinstance(node.target, OpOverload):
        return False
    numbers = pytree.tree_leaves((node.args, node.kwargs))
    return any(type(n) is int and stand_ins.depends(n) for n in numbers)
