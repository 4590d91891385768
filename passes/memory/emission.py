"""Owns the function that computes one tile: operations on parts of their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magweld.bindings import arith, ir, tensor
from magweld.dialects.tile_graph import captured_values, root_operation
from magweld.passes.analysis.operator_model import inputs_of, root_accesses
from magweld.passes.ir.cloning import (
    ValueMap,
    clone_helper,
    clone_mapped,
    shift_indices,
)
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.memory.boxes import Box, offsets, relative, sizes, whole
from magweld.passes.memory.cones import Trace
from magweld.passes.memory.demands import (
    Concat,
    Nest,
    Pad,
    Padding,
    Regroup,
    Slice,
    Window,
    padding,
    span,
)
from magweld.passes.memory.reading import ReadGraph
from magweld.passes.tiling.regions import Access


def emit_tile(read: ReadGraph, trace: Trace, arguments: dict[int, Any]) -> Any:
    """Compute one tile at the insertion point.

    Args:
        read: The subgraph.
        trace: What each operation makes for the tile.
        arguments: The part of each tensor from outside that the tile reads.

    Returns:
        The tile of the root.
    """
    return _Emitter(read, trace, arguments).run()


class _Emitter:
    def __init__(
        self, read: ReadGraph, trace: Trace, arguments: dict[int, Any]
    ) -> None:
        self._read = read
        self._trace = trace
        self._tiles = {t: (value, trace.read[t]) for t, value in arguments.items()}

    def run(self) -> Any:
        cone = self._trace.cone
        for number in cone.members:
            node, op = cone.graph.nodes[number], self._read.operations[number]
            box = self._trace.made[node.results[0]]
            with op.location:
                value = _EMIT[type(node.rule)](self, op, node, box)
            self._tiles[node.results[0]] = (value, box)
        return self._tiles[cone.root][0]

    def part(self, number: int, box: Box, kept: tuple[int, ...] | None = None) -> Any:
        """The part of a tensor, of which a tile holds it."""
        value, origin = self._tiles[number]
        return slice_of(value, relative(box, origin), kept)

    def view(self, op: Any, node: Any, box: Box) -> Any:
        demand = node.rule.demand(box)
        source = self.part(node.operands[0], demand.needs[0])
        result = _typed(op.results[0], sizes(box))
        groups = [list(group) for group in node.rule.groups]
        if node.rule.expands:
            return tensor.expand_shape(result, source, groups, [], list(result.shape))
        return tensor.collapse_shape(result, source, groups)

    def concat(self, op: Any, node: Any, box: Box) -> Any:
        parts = [
            self.part(
                node.operands[part.operand],
                part.box(inside),
                part.slice.kept if part.slice else None,
            )
            for part, inside in node.rule.inside(box)
        ]
        if len(parts) == 1:
            return parts[0]
        result = _typed(op.results[0], sizes(box))
        return tensor.ConcatOp(result, node.rule.dim, parts).result

    def slice(self, op: Any, node: Any, box: Box) -> Any:
        (need,) = node.rule.demand(box).needs
        return self.part(node.operands[0], need, node.rule.kept)

    def pad(self, op: Any, node: Any, box: Box) -> Any:
        (need,) = node.rule.demand(box).needs
        source = self.part(node.operands[0], need)
        amounts = padding(box, node.rule.low, node.rule.shape)
        return _padded(root_operation(op), source, amounts)

    def nest(self, op: Any, node: Any, box: Box) -> Any:
        rule, root = node.rule, root_operation(op)
        loops = rule.loops(box)
        helpers = ValueMap()
        inputs = inputs_of(op)
        for number, shape in rule.whole_shapes:
            helpers[inputs[number]] = self.part(node.operands[number], whole(shape))
        windows = iter(rule.windows)
        operands = []
        for value, access in zip(root.operands, root_accesses(root), strict=True):
            if access.argument < 0:
                operands.append(_made(value, access, loops, helpers))
            else:
                window = next(windows)
                number = node.operands[window.operand]
                operands.append(self._operand(value, access, number, window, loops))
        for value in captured_values(root):
            clone_helper(value, helpers)
        clone = clone_mapped(root, helpers)
        for position, value in enumerate(operands):
            clone.operands[position] = value
        clone.results[0].set_type(operands[-1].type)
        shift_indices(clone, lambda dim: _start(loops[dim][0]))
        return clone.results[0]

    def _operand(
        self, value: Any, access: Access, number: int, window: Window, loops: Box
    ) -> Any:
        part = self.part(number, window.box(loops), access.kept)
        if not access.padded:
            return part
        amounts = window.padding(loops)
        return _padded(value.owner.operation, part, amounts)


def slice_of(value: Any, box: Box, kept: tuple[int, ...] | None = None) -> Any:
    """Return a part of a tensor; the tensor itself if that is all of it.

    Args:
        value: The tensor.
        box: The part.
        kept: The dimensions of the result, all by default.
    """
    shape = sizes(box)
    result = shape if kept is None else tuple(shape[dim] for dim in kept)
    if result == tuple(ir.RankedTensorType(value.type).shape):
        return value
    return extract_slice(value, offsets(box), shape, result)


def _typed(like: Any, shape: tuple[int, ...]) -> Any:
    element = ir.RankedTensorType(like.type).element_type
    return ir.RankedTensorType.get(shape, element)


def _padded(pad: Any, source: Any, amounts: Padding) -> Any:
    """Pad as an operation does, by other amounts."""
    low, high = amounts
    if not any(low) and not any(high):
        return source
    helpers = ValueMap()
    for value in captured_values(pad):
        clone_helper(value, helpers)
    clone = clone_mapped(pad, helpers)
    clone.operands[0] = source
    clone.attributes["static_low"] = ir.DenseI64ArrayAttr.get(low)
    clone.attributes["static_high"] = ir.DenseI64ArrayAttr.get(high)
    extents = ir.RankedTensorType(source.type).shape
    shape = tuple(a + b + c for a, b, c in zip(low, extents, high, strict=True))
    clone.results[0].set_type(_typed(source, shape))
    return clone.results[0]


def _made(value: Any, access: Access, loops: Box, helpers: ValueMap) -> Any:
    """The part of an operand that the operator makes itself."""
    if not isinstance(value.type, ir.RankedTensorType):
        clone_helper(value, helpers)
        return helpers[value]
    box = tuple(
        (0, extent) if expr is None else span(expr, loops)
        for expr, extent in zip(access.index, access.shape, strict=True)
    )
    producer = value.owner.operation
    if producer.name not in ("linalg.fill", "tensor.empty"):
        clone_helper(value, helpers)
        return slice_of(helpers[value], box)
    type_ = _typed(value, sizes(box))
    empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
    if producer.name == "tensor.empty":
        return empty
    scalar = producer.operands[0]
    clone_helper(scalar, helpers)
    fill = producer.clone()
    fill.operands[0], fill.operands[1] = helpers[scalar], empty
    fill.results[0].set_type(type_)
    return fill.results[0]


def _start(offset: int) -> Any | None:
    return arith.constant(ir.IndexType.get(), offset) if offset else None


_EMIT: dict[Any, Callable[[_Emitter, Any, Any, Box], Any]] = {
    Concat: _Emitter.concat,
    Nest: _Emitter.nest,
    Pad: _Emitter.pad,
    Regroup: _Emitter.view,
    Slice: _Emitter.slice,
}
