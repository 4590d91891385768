"""Owns the clean-up of a functional ATen graph before it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import fx
from torch._ops import OpOverload

from magweld.importer import refusals
from magweld.importer.nodes import (
    RUNS_FOR_ITSELF,
    argument,
    is_check,
    is_random,
    operand,
    output_of,
    replace_by,
    results_of,
    values_of,
)
from magweld.importer.observation import may_overlap
from magweld.importer.operators import is_generated

aten = torch.ops.aten

OPERAND_STRIDES = "operand_strides"
"""Key of `node.meta`: strides of the operands in eager torch, where they matter."""

# Without mutation a copy, an alias and the tensor itself are the same value.
_IDENTITIES: frozenset[object] = frozenset(
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
WITHOUT_VALUES: frozenset[object] = frozenset(
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


# What fills a tensor draws otherwise where elements have gaps; a functional form fills
# a copy without gaps.
_IN_PLACE: Final = {
    aten.bernoulli.p: aten.bernoulli_.float,
    aten.cauchy.default: aten.cauchy_.default,
    aten.exponential.default: aten.exponential_.default,
    aten.geometric.default: aten.geometric_.default,
    aten.log_normal.default: aten.log_normal_.default,
    aten.normal_functional.default: aten.normal_.default,
    aten.random.default: aten.random_.default,
    getattr(aten.random, "from"): getattr(aten.random_, "from"),
    aten.random.to: aten.random_.to,
    aten.uniform.default: aten.uniform_.default,
}


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
        if node.target is aten.copy_.default and operand(node) in positions:
            value = operand(node, 1)
            written[positions[operand(node)]] = value
            replace_by(node, value)
        elif _keeps_elements(node):
            replace_by(node, operand(node))
        elif is_hidden_write(node):
            name = str(node.target)
            raise refusals.HIDDEN_MUTATION.at_node(node, name)
    output_of(graph).args = ((*written.values(), *results_of(graph)),)
    return list(written)


def is_hidden_write(node: fx.Node) -> bool:
    """Tell whether a node writes to a tensor that is no placeholder, or unseen."""
    if not isinstance(node.target, OpOverload) or _keeps_elements(node):
        return False
    if node.target is aten.native_batch_norm.default:
        # Its schema does not say that it updates the running statistics.
        return bool(node.args[5]) and node.args[3] is not None
    if node.target is aten.copy_.default and operand(node).op == "placeholder":
        return False
    return bool(node.target._schema.is_mutable)


def simplify(graph: fx.Graph) -> None:
    """Drop what computes nothing, in place; the order of random operators stays."""
    note_strides(graph)
    _make_truths(graph)
    kept = _read_as_memory(graph)
    for node in list(graph.nodes):
        rewrite = _REWRITES.get(node.target)
        if node in kept:
            continue
        if node.target in _IDENTITIES and _is_identity(node):
            replace_by(node, operand(node))
        elif rewrite is not None:
            rewrite(node)
    remove_dead(graph)


def _without_values(node: fx.Node) -> None:
    """Give an operator that reads but the shape of its operand one without values."""
    with node.graph.inserting_before(node):
        empty = node.graph.call_function(aten.empty_strided.default)
    empty.meta["val"] = values_of(operand(node))
    _make_empty(empty)
    node.args = (empty, *node.args[1:])


# They count elements as these lie in memory, not as the operand has them.
_READING_MEMORY: Final = frozenset(
    {
        aten.as_strided.default,
        aten.as_strided_copy.default,
        aten.as_strided_scatter.default,
    }
)


def note_strides(graph: fx.Graph) -> None:
    """Keep the operands' strides of the operators whose result depends on them."""
    for node in graph.nodes:
        if is_random(node):
            values = map(values_of, node.all_input_nodes)
            strides = tuple(value.stride() for value in values)
            node.meta[OPERAND_STRIDES] = strides
            if node.target in _IN_PLACE and strides and _has_gaps(operand(node)):
                # Its operand is a copy with these strides: operands have no gaps.
                node.target = _IN_PLACE[node.target]
        elif node.target in _READING_MEMORY:
            value = values_of(operand(node))
            used = value.numel() * value.element_size()
            whole = used == value.untyped_storage().nbytes()
            if not value.is_contiguous() or not whole or _counts_from_elsewhere(node):
                name = str(node.target)
                raise refusals.STORAGE_READ.at_node(node, name)


# Which argument is the number that fills a result.
_FILLING: Final = {
    aten.full.default: 1,
    aten.full_like.default: 1,
    aten.fill.Scalar: 1,
    aten.masked_fill.Scalar: 2,
    aten.constant_pad_nd.default: 2,
}


def _make_truths(graph: fx.Graph) -> None:
    """Make truths of numbers that fill truths: code would take their lowest bit."""
    for node in graph.nodes:
        place = _FILLING.get(node.target)
        if place is None or len(node.args) <= place:
            continue
        if values_of(node).dtype is torch.bool and type(node.args[place]) in _NUMBERS:
            node.update_arg(place, bool(node.args[place]))


_NUMBERS: Final = (int, float)


def _has_gaps(node: fx.Node) -> bool:
    value = values_of(node)
    if may_overlap(value):
        return False  # it stands for memory that nobody has written to
    # A clone of what has no gaps keeps the strides.
    return bool(torch.empty_like(value, device="meta").stride() != value.stride())


def _read_as_memory(graph: fx.Graph) -> set[fx.Node]:
    """Return what makes the memory that operators count in: a copy is no identity.

    What is copied may begin elsewhere in its memory.
    """
    kept: set[fx.Node] = set()
    for node in graph.nodes:
        if node.target not in _READING_MEMORY:
            continue
        source = operand(node)
        while source.target in _IDENTITIES and source not in kept:
            kept.add(source)
            source = operand(source)
    return kept


def _counts_from_elsewhere(node: fx.Node) -> bool:
    """Tell whether an operator does not count from the first element of its operand.

    The operand may become an argument that is equal to it, as that of `x * 1` does,
    which begins anywhere in its memory: where counting begins with the operand, this
    is said without a number.
    """
    is_scatter = node.target is aten.as_strided_scatter.default
    place = 4 if is_scatter else 3
    if len(node.args) <= place or node.args[place] is None:
        return node.kwargs.get("storage_offset") is not None
    if is_scatter or node.args[place] != 0 or operand(node).op == "placeholder":
        return True
    node.args = (*node.args[:place], None)
    return False


def remove_dead(graph: fx.Graph) -> None:
    """Remove nodes without users and effect, last first."""
    for node in reversed(graph.nodes):
        kept = node.op in {"placeholder", "output"} or is_random(node)
        if not (kept or _acts(node) or node.users or is_check(node)):
            graph.erase_node(node)


def _acts(node: fx.Node) -> bool:
    """Tell whether a node may raise, or do more than make its result.

    Generated code does neither, nor does what makes a view or memory.
    """
    if RUNS_FOR_ITSELF not in node.meta or is_generated(node):
        return False
    target = node.target
    harmless = isinstance(target, OpOverload) and target.is_view
    return not harmless and target not in WITHOUT_VALUES and node.op == "call_function"


def _keeps_elements(node: fx.Node) -> bool:
    """Tell whether a node only gives other strides to axes of one element."""
    if node.target not in {aten.as_strided_.default, aten.as_strided.default}:
        return False
    before, after = values_of(operand(node)), values_of(node)
    if before.shape != after.shape or before.storage_offset() != after.storage_offset():
        return False
    strides = zip(before.shape, before.stride(), after.stride(), strict=True)
    return all(extent == 1 or mine == theirs for extent, mine, theirs in strides)


def _is_identity(node: fx.Node) -> bool:
    source = node.args[0]
    if not isinstance(source, fx.Node) or "val" not in source.meta:
        return False
    before, after = values_of(source), values_of(node)
    same = before.shape == after.shape and before.dtype == after.dtype
    if before.device != after.device and not _is_moved_number(node):
        return False
    return same and (node.target is not aten.permute.default or _in_order(node))


def _is_moved_number(node: fx.Node) -> bool:
    """Whether a node copies from the CPU what torch takes from there as well."""
    before, after = values_of(operand(node)), values_of(node)
    inputs = [values_of(found) for found in node.graph.find_nodes(op="placeholder")]
    is_number = before.device.type == "cpu" and before.dim() == 0
    return is_number and any(value.device == after.device for value in inputs)


def _in_order(node: fx.Node) -> bool:
    dims = argument(node, "dims")
    order = [axis % len(dims) for axis in dims]
    return order == sorted(order)


def _as_view(node: fx.Node) -> None:
    """Make any change of shape alone one view of what was not reshaped yet."""
    source = operand(node)
    if source.target is aten.view.default:
        source = operand(source)
    node.target = aten.view.default
    node.args = (source, list(values_of(node).shape))
    node.kwargs = {}
    if _is_identity(node):
        replace_by(node, source)
    else:
        _as_empty(node)


def _as_empty(node: fx.Node) -> None:
    """Make a reshaped tensor without values one that was made in that shape."""
    if operand(node).target in WITHOUT_VALUES:
        _make_empty(node)


def _make_empty(node: fx.Node) -> None:
    value = values_of(node)
    node.target = aten.empty_strided.default
    node.args = (list(value.shape), list(value.stride()))
    node.kwargs = {"dtype": value.dtype}


def _without_choice(node: fx.Node) -> None:
    """Make a choice between a tensor and itself that tensor, in the result's shape."""
    _, chosen, other = node.args
    if chosen is not other or not isinstance(chosen, fx.Node):
        return
    node.target = aten.expand.default
    node.args = (chosen, list(values_of(node).shape))
    if _is_identity(node):
        replace_by(node, chosen)


def _without_indices(node: fx.Node) -> None:
    """Use the pooling that returns no indices where nobody reads them."""
    if _only_first_result(node):
        node.target = aten.max_pool2d.default


def _without_positions(node: fx.Node) -> None:
    """Use the reduction that returns no positions where nobody reads them."""
    is_max = node.target is aten.max.dim
    dim, keepdim = argument(node, "dim"), argument(node, "keepdim")
    if _only_first_result(node):
        node.target = aten.amax.default if is_max else aten.amin.default
        node.args = (operand(node), [dim], keepdim)
        node.kwargs = {}


def _only_first_result(node: fx.Node) -> bool:
    """Make a node's first result its only one, if nobody reads another."""
    uses = list(node.users)
    if any(use.args[1] != 0 and use.users for use in uses):
        return False
    node.meta["val"] = values_of(node)[0]
    for use in uses:
        replace_by(use, node)
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
    aten.where.self: _without_choice,
    **dict.fromkeys(_SHAPE_READERS, _without_values),
}
