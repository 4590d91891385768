"""Owns the clean-up of a functional ATen graph before it is imported."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from magweld.frontend.importer import refusals

aten = torch.ops.aten

OPERAND_STRIDES = "operand_strides"
"""Key of `node.meta`: strides of the operands in eager torch, where they matter."""

# Without mutation a copy, an alias and the tensor itself are the same value.
_IDENTITIES = frozenset(
    {
        aten._unsafe_view.default,
        aten.alias.default,
        aten.clone.default,
        aten.detach.default,
        aten.expand.default,
        aten.lift_fresh.default,
        aten.lift_fresh_copy.default,
        aten.permute.default,
        aten.slice.Tensor,
        aten._to_copy.default,
        aten.view.default,
    }
)
WITHOUT_VALUES = frozenset(
    {aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default}
)
"""Operators whose result has a shape and strides but no values."""

# Random operators that read no element of their operand.
_SHAPE_READERS = (
    aten.bernoulli.p,
    aten.cauchy.default,
    aten.exponential.default,
    aten.geometric.default,
    aten.log_normal.default,
    aten.normal_functional.default,
    aten.rand_like.default,
    aten.randint_like.default,
    aten.randint_like.low_dtype,
    aten.randn_like.default,
    aten.random.default,
    getattr(aten.random, "from"),
    aten.random.to,
    aten.uniform.default,
)


def is_random(node: fx.Node) -> bool:
    """Tell whether a node draws random numbers."""
    return (
        isinstance(node.target, OpOverload)
        and torch.Tag.nondeterministic_seeded in node.target.tags
    )


def take_writes(graph: fx.Graph) -> list[int]:
    """Turn the final writes to placeholders into leading results of a graph.

    Returns:
        Positions of the placeholders that are written to. The graph's output becomes a
        flat tuple: the value for each of them, then the leaves it had.

    Raises:
        UnsupportedError: Another write is left, or one that is not visible.
    """
    positions = {
        node: position
        for position, node in enumerate(n for n in graph.nodes if n.op == "placeholder")
    }
    written: dict[int, fx.Node] = {}
    for node in list(graph.nodes):
        if node.target is aten.copy_.default and node.args[0] in positions:
            written[positions[node.args[0]]] = node.args[1]
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
        elif _keeps_elements(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif is_hidden_write(node):
            name = str(node.target)
            raise refusals.HIDDEN_MUTATION.at(refusals.describe(node), name)
    output = output_of(graph)
    output.args = ((*written.values(), *pytree.tree_leaves(output.args[0])),)
    return list(written)


def is_hidden_write(node: fx.Node) -> bool:
    """Tell whether a node writes to a tensor that is no placeholder, or unseen."""
    if not isinstance(node.target, OpOverload) or _keeps_elements(node):
        return False
    if node.target is aten.native_batch_norm.default:
        # Its schema does not say that it updates the running statistics.
        return bool(node.args[5]) and node.args[3] is not None
    if node.target is aten.copy_.default and node.args[0].op == "placeholder":
        return False
    return bool(node.target._schema.is_mutable)


def output_of(graph: fx.Graph) -> fx.Node:
    """Return the output node of a graph."""
    return next(node for node in reversed(graph.nodes) if node.op == "output")


def simplify(graph: fx.Graph) -> None:
    """Drop what computes nothing, in place; the order of random operators stays."""
    note_strides(graph)
    for node in list(graph.nodes):
        rewrite = _REWRITES.get(node.target)
        if node.target in _IDENTITIES and _is_identity(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif rewrite is not None:
            rewrite(node)
    remove_dead(graph)


def _without_values(node: fx.Node) -> None:
    """Give an operator that reads but the shape of its operand one without values."""
    source = node.args[0]
    with node.graph.inserting_before(node):
        empty = node.graph.call_function(aten.empty_strided.default)
    empty.meta["val"] = source.meta["val"]
    _make_empty(empty)
    node.args = (empty, *node.args[1:])


def note_strides(graph: fx.Graph) -> None:
    """Keep the operands' strides of the operators whose result depends on them."""
    for node in graph.nodes:
        if is_random(node):
            values = [operand.meta["val"] for operand in node.all_input_nodes]
            node.meta[OPERAND_STRIDES] = tuple(value.stride() for value in values)
        elif node.target is aten.as_strided.default:
            value = node.args[0].meta["val"]
            used = value.numel() * value.element_size()
            if not value.is_contiguous() or used != value.untyped_storage().nbytes():
                name = str(node.target)
                raise refusals.STORAGE_READ.at(refusals.describe(node), name)


def remove_dead(graph: fx.Graph) -> None:
    """Remove nodes without users, last first; random numbers are drawn all the same."""
    for node in reversed(graph.nodes):
        kept = node.op in {"placeholder", "output"} or is_random(node)
        if not kept and not node.users:
            graph.erase_node(node)


def _keeps_elements(node: fx.Node) -> bool:
    """Tell whether a node only gives other strides to axes of one element."""
    if node.target not in {aten.as_strided_.default, aten.as_strided.default}:
        return False
    before, after = node.args[0].meta["val"], node.meta["val"]
    if before.shape != after.shape or before.storage_offset() != after.storage_offset():
        return False
    strides = zip(before.shape, before.stride(), after.stride(), strict=True)
    return all(extent == 1 or mine == theirs for extent, mine, theirs in strides)


def _is_identity(node: fx.Node) -> bool:
    source = node.args[0]
    if not isinstance(source, fx.Node) or "val" not in source.meta:
        return False
    before, after = source.meta["val"], node.meta["val"]
    same = before.shape == after.shape and before.dtype == after.dtype
    return same and (node.target is not aten.permute.default or _in_order(node))


def _in_order(node: fx.Node) -> bool:
    order = [axis % len(node.args[1]) for axis in node.args[1]]
    return order == sorted(order)


def _as_view(node: fx.Node) -> None:
    """Make any change of shape alone one view of what was not reshaped yet."""
    source = node.args[0]
    if source.target is aten.view.default:
        source = source.args[0]
    node.target = aten.view.default
    node.args = (source, list(node.meta["val"].shape))
    node.kwargs = {}
    if _is_identity(node):
        node.replace_all_uses_with(source)
        node.graph.erase_node(node)
    else:
        _as_empty(node)


def _as_empty(node: fx.Node) -> None:
    """Make a reshaped tensor without values one that was made in that shape."""
    if node.args[0].target in WITHOUT_VALUES:
        _make_empty(node)


def _make_empty(node: fx.Node) -> None:
    value = node.meta["val"]
    node.target = aten.empty_strided.default
    node.args = (list(value.shape), list(value.stride()))
    node.kwargs = {"dtype": value.dtype}


def _without_indices(node: fx.Node) -> None:
    """Use the pooling that returns no indices where nobody reads them."""
    if _only_first_result(node):
        node.target = aten.max_pool2d.default


def _without_positions(node: fx.Node) -> None:
    """Use the reduction that returns no positions where nobody reads them."""
    operators = {aten.max.dim: aten.amax.default, aten.min.dim: aten.amin.default}
    operator_ = operators[node.target]
    if _only_first_result(node):
        source, dim, *rest = node.args
        node.target = operator_
        node.args = (source, [dim], *rest)


def _only_first_result(node: fx.Node) -> bool:
    """Make a node's first result its only one, if nobody reads another."""
    uses = list(node.users)
    if any(use.args[1] != 0 and use.users for use in uses):
        return False
    node.meta["val"] = node.meta["val"][0]
    for use in uses:
        use.replace_all_uses_with(node)
        use.graph.erase_node(use)
    return True


_REWRITES: dict[object, Callable[[fx.Node], None]] = {
    aten._unsafe_view.default: _as_view,
    aten.empty_like.default: _make_empty,
    aten.expand.default: _as_empty,
    aten.max.dim: _without_positions,
    aten.max_pool2d_with_indices.default: _without_indices,
    aten.min.dim: _without_positions,
    aten.squeeze.default: _as_view,
    aten.squeeze.dim: _as_view,
    aten.squeeze.dims: _as_view,
    aten.unsqueeze.default: _as_view,
    aten.view.default: _as_view,
    **dict.fromkeys(_SHAPE_READERS, _without_values),
}


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    """Return the tensors without data that a node results in, in order."""
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
