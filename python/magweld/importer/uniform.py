"""Owns the evaluation of operators whose operands have one number in all elements.

torch computes what the program says about constants. What is left to the compiler
would be folded there, and its rules for that are others: a negative integer among
floats is taken for an unsigned one, and the sign of zero is one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from magweld.importer.dtypes import is_arranged
from magweld.importer.nodes import argument, is_random, operand, values_of

aten = torch.ops.aten

_FILLS: frozenset[object] = frozenset(
    {aten.full.default, aten.full_like.default, aten.scalar_tensor.default}
)
# Whatever they move or repeat, all elements stay that number.
_MOVES: frozenset[object] = frozenset(
    {
        aten.expand.default,
        aten.flip.default,
        aten.permute.default,
        aten.repeat.default,
        aten.select.int,
        aten.slice.Tensor,
        aten.t.default,
        aten.transpose.int,
        aten.view.default,
    }
)


def evaluate_uniform(graph: fx.Graph) -> None:
    """Replace operators on tensors of one number each by the tensor they make.

    Args:
        graph: A functional ATen graph with a tensor without data in each `meta["val"]`.
    """
    known: dict[fx.Node, torch.Tensor] = {}
    for node in list(graph.nodes):
        if not _is_plain(node):
            continue
        element = _element(node, known)
        if element is None:
            continue
        known[node] = element
        if node.op == "call_function" and node.target not in _FILLS:
            _make_full(node, element)


def _is_plain(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and is_arranged(value) and value.numel() > 0


def _element(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    """Return the number in all elements of a node, as a tensor of its rank."""
    if node.op == "get_attr":
        return _literal(node)
    if node.target in _FILLS:
        return _shaped(_filled(node), node)
    operands = node.all_input_nodes
    if node.target is aten.where.self and operand(node) not in known:
        return _chosen(node, known)
    if not operands or not all(source in known for source in operands):
        return None
    if node.target in _MOVES:
        return _shaped(known[operand(node)], node)
    if not _is_elementwise(node):
        return None
    arguments = fx.map_arg((node.args, node.kwargs), known.__getitem__)
    target: Any = node.target
    return _shaped(target(*arguments[0], **arguments[1]), node)


def _chosen(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    """Return what a choice gives whichever way it falls, if that is known."""
    branches = [known.get(operand(node, place)) for place in (1, 2)]
    dtype = values_of(node).dtype
    one, other = (x if x is None else x.to(dtype).reshape(1) for x in branches)
    if one is None or other is None:
        return None
    same = torch.allclose(one, other, 0, 0, equal_nan=True)
    same = same and torch.equal(one.signbit(), other.signbit())
    return _shaped(one, node) if same else None


def _is_elementwise(node: fx.Node) -> bool:
    if not isinstance(node.target, OpOverload) or is_random(node):
        return False
    is_pointwise = torch.Tag.pointwise in node.target.tags
    return is_pointwise or node.target is aten._to_copy.default


def _literal(node: fx.Node) -> torch.Tensor | None:
    assert node.graph.owning_module is not None, "a constant needs its module"
    tensor = getattr(node.graph.owning_module, str(node.target))
    return tensor if tensor.numel() == 1 else None


def _filled(node: fx.Node) -> torch.Tensor:
    name = "s" if node.target is aten.scalar_tensor.default else "fill_value"
    return torch.full([1], argument(node, name), dtype=values_of(node).dtype)


def _shaped(element: torch.Tensor, node: fx.Node) -> torch.Tensor:
    return element.reshape([1] * values_of(node).dim())


def _make_full(node: fx.Node, element: torch.Tensor) -> None:
    value = values_of(node)
    node.target = aten.full.default
    node.args = (list(value.shape), element.item())
    node.kwargs = {"dtype": value.dtype}
