"""Owns operators that add the same rows to each part of a tensor of any size.

A sum with position embeddings, [batch, length, 768] + [length, 768], reads a tensor of
fewer sizes than its result has: no kernel has both. Native code writes these rows down
once for each part, as it copies those of a cache, and the operator is generated with
its neighbours.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import fx

from magweld.artifact import StandIns
from magweld.importer.inner_extents import inner_nodes, is_outermost
from magweld.importer.nodes import insert_before, values_of

aten = torch.ops.aten

# What is computed element by element with rows that are spread.
_OPERATORS: Final[frozenset[object]] = frozenset(
    {aten.add.Tensor, aten.div.Tensor, aten.mul.Tensor, aten.sub.Tensor}
)


def spread_rows(graph: fx.Graph, stand_ins: StandIns) -> None:
    """Repeat rows that such operators read, where these are generated then.

    Args:
        graph: A functional ATen graph.
        stand_ins: Extents that stand for sizes of the call.
    """
    if not stand_ins:
        return
    inner = inner_nodes(graph, stand_ins)
    for node in list(graph.nodes):
        if node not in inner or node.target not in _OPERATORS:
            continue
        rows = _rows(node, stand_ins)
        # A kernel alone between steps of torch is one step more.
        near = (*(one for one in node.all_input_nodes if one is not rows), *node.users)
        generated = (one.op == "call_function" and one not in inner for one in near)
        if rows is not None and any(generated):
            _spread(node, rows)


def _rows(node: fx.Node, stand_ins: StandIns) -> fx.Node | None:
    """Return the operand of an operator whose rows all parts read, if that is all.

    The other one has all sizes of the result, and these are outermost.
    """
    result = values_of(node)
    read = node.all_input_nodes
    tensors = [result, *map(values_of, read)]
    plain = all(
        one.dtype is torch.float32 and one.device.type == "cpu" for one in tensors
    )
    shape = tuple(result.shape)
    if len(read) != 2 or not plain or not _has_rows(shape, stand_ins):
        return None
    shapes = [tuple(values_of(one).shape) for one in read]
    for rows, of_rows, other in zip(read, shapes, reversed(shapes), strict=True):
        if other == shape and _is_part(of_rows, shape, stand_ins):
            return rows
    return None


def _has_rows(shape: tuple[int, ...], stand_ins: StandIns) -> bool:
    """Whether sizes are outermost, and a constant number of elements follows."""
    is_constant = bool(shape) and not stand_ins.depends(shape[-1])
    return is_constant and is_outermost(shape, stand_ins)


def _is_part(
    rows: tuple[int, ...], shape: tuple[int, ...], stand_ins: StandIns
) -> bool:
    """Whether rows are the last dimensions of a shape, and have a size themselves."""
    while len(rows) == len(shape) and rows[0] == 1 != shape[0]:
        rows = rows[1:]
    if not 0 < len(rows) < len(shape) or rows != shape[len(shape) - len(rows) :]:
        return False
    return any(map(stand_ins.depends, rows))


def _spread(node: fx.Node, rows: fx.Node) -> None:
    shape, own = values_of(node).shape, values_of(rows).shape
    before = len(shape) - len(own)
    pairs = zip(shape[before:], own, strict=True)
    times = [*shape[:before], *(1 if all_ == some else all_ for all_, some in pairs)]
    repeated = values_of(rows).repeat(times)
    spread = insert_before(node, aten.repeat.default, (rows, times), repeated)
    node.replace_input_with(rows, spread)
