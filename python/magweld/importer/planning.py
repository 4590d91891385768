"""Owns the plan of a call's end, and which values the compiled function returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from magweld.importer import refusals
from magweld.importer.dtypes import is_carried
from magweld.importer.epilogue import (
    Buffer,
    BufferOutput,
    ConstantOutput,
    DetachedOutput,
    Epilogue,
    InputOutput,
    InputViewOutput,
    Output,
    ResultOutput,
    SameOutput,
    Window,
)
from magweld.importer.nodes import operand, output_of, results_of
from magweld.importer.observation import Observation, TensorFacts, may_overlap
from magweld.storages import neighbours

aten = torch.ops.aten


def plan_epilogue(
    graph: fx.Graph,
    written: Sequence[int],
    observation: Observation,
    inputs: Sequence[torch.Tensor],
) -> Epilogue:
    """Plan the end of a call and make the graph return what the plan needs.

    Args:
        graph: A functional ATen graph that returns the values to write, then the
            leaves of the output; what it returns is replaced.
        written: Positions of the inputs to write to.
        observation: What eager torch returns for the same graph, its inputs apart.
        inputs: The inputs as they lie in memory.

    Raises:
        UnsupportedError: An alias cannot be made: see the refusals for aliases.
    """
    _require_private(written, inputs)
    planner = _Planner(graph, observation)
    values = results_of(graph)
    copies = [
        (input, planner.shared(value))
        for input, value in zip(written, values, strict=False)
    ]
    leaves = values[len(written) :]
    for leaf, facts in zip(leaves, observation.outputs, strict=True):
        planner.add(leaf, facts)
    planner.close()
    return Epilogue(
        tuple(copies),
        tuple(planner.buffers),
        tuple(planner.outputs),
        observation.structure,
        tuple(planner.carried()),
        observation.silently,
        tuple(planner.creations.items()),
        tuple(planner.versions.items()),
        tuple((n, count - 1) for n in written if (count := observation.counts[n]) > 1),
    )


@dataclass
class _Planner:
    """Collects outputs in order, and the results they need."""

    graph: fx.Graph
    observation: Observation
    results: list[fx.Node] = field(default_factory=list)
    owned: set[fx.Node] = field(default_factory=set)
    outputs: list[Output] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    buffer_of: dict[int, int] = field(default_factory=dict)
    position_of: dict[int, int] = field(default_factory=dict)
    creations: dict[int, str] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)

    def add(self, leaf: fx.Node | object, facts: TensorFacts | object) -> None:
        """Plan the next output."""
        if not isinstance(facts, TensorFacts):
            self.outputs.append(ConstantOutput(facts))
            return
        assert isinstance(leaf, fx.Node), f"a tensor output without a node: {leaf}"
        position = len(self.outputs)
        self.outputs.append(self._of_input(facts) or self._of_output(leaf, facts))
        version = self.observation.versions[position]
        if version and isinstance(self.outputs[-1], (BufferOutput, ResultOutput)):
            self.versions[position] = version
        if facts.creation and not isinstance(self.outputs[-1], SameOutput):
            self.creations[position] = facts.creation
        self.position_of.setdefault(facts.identity, position)

    def shared(self, node: fx.Node) -> int:
        """Return the number of a result that is only read."""
        if _root(node).op != "call_function":
            node = self._copy(node)
        if node not in self.results:
            self.results.append(node)
        return self.results.index(node)

    def carried(self) -> list[tuple[int, torch.dtype]]:
        """Return the results of types that compiled code has not, with their types."""
        dtypes = [node.meta["val"].dtype for node in self.results]
        return [(n, dtype) for n, dtype in enumerate(dtypes) if is_carried(dtype)]

    def close(self) -> None:
        """Make the graph return the results."""
        output_of(self.graph).args = (tuple(self.results),)

    def _of_input(self, facts: TensorFacts) -> Output | None:
        sources = self.observation.inputs
        for position, source in enumerate(sources):
            if source.identity == facts.identity:
                return InputOutput(position)
        for position, source in enumerate(sources):
            if source.storage != facts.storage:
                continue
            if source.dtype != facts.dtype:
                raise refusals.VIEW_DTYPE.at("the graph's outputs")
            offset = facts.offset - source.offset
            window = Window(facts.shape, facts.stride, offset)
            if facts.root == source.root:
                return InputViewOutput(position, window)
            whole = facts.root == facts.identity and _form(facts) == _form(source)
            counted = len(self.outputs) not in self.observation.uncounted
            return DetachedOutput(position, None if whole else window, counted)
        return None

    def _of_output(self, leaf: fx.Node, facts: TensorFacts) -> Output:
        earlier = self.position_of.get(facts.identity)
        if earlier is not None:
            return SameOutput(earlier)
        order = _memory_order(facts)
        others = [
            other
            for other in self.observation.outputs
            if isinstance(other, TensorFacts)
            and other.storage == facts.storage
            and other.identity != facts.identity
        ]
        if others or order is None or not facts.is_all_memory:
            return self._in_buffer(leaf, facts)
        return self._whole(leaf, facts, order)

    def _whole(
        self, leaf: fx.Node, facts: TensorFacts, order: Sequence[int]
    ) -> ResultOutput:
        if list(order) != sorted(order):
            value = leaf.meta["val"].permute(order)
            leaf = self._append(aten.permute.default, (leaf, list(order)), value)
        window = Window(facts.shape, facts.stride)
        plain = facts.stride == _contiguous(facts.shape)
        own = facts.root == facts.identity
        return ResultOutput(self._own(leaf), None if plain else window, own)

    def _in_buffer(self, leaf: fx.Node, facts: TensorFacts) -> BufferOutput:
        window = Window(facts.shape, facts.stride, facts.offset)
        fill = (self.shared(leaf), window)
        own = facts.root == facts.identity
        base = None if own else self._position(facts.root)
        number = self.buffer_of.get(facts.storage)
        if number is None:
            number = self.buffer_of[facts.storage] = len(self.buffers)
            count = facts.storage_bytes // facts.dtype.itemsize
            self.buffers.append(Buffer(facts.dtype, count, (fill,)))
            return BufferOutput(number, window, own, base)
        buffer = self.buffers[number]
        if buffer.dtype != facts.dtype:
            raise refusals.VIEW_DTYPE.at("the graph's outputs")
        fills = (*buffer.fills, fill)
        self.buffers[number] = Buffer(buffer.dtype, buffer.count, fills)
        return BufferOutput(number, window, own, base)

    def _position(self, identity: int) -> int | None:
        """Return the position of the output that is a tensor, None if none is it."""
        for position, facts in enumerate(self.observation.outputs):
            if isinstance(facts, TensorFacts) and facts.identity == identity:
                return position
        return None

    def _own(self, node: fx.Node) -> int:
        """Return the number of a result that becomes an output's memory."""
        if _root(node) in self.owned or _root(node).op != "call_function":
            node = self._copy(node)
        self.owned.add(_root(node))
        if node not in self.results:
            self.results.append(node)
        return self.results.index(node)

    def _copy(self, node: fx.Node) -> fx.Node:
        value = node.meta["val"].contiguous().clone()
        return self._append(aten.clone.default, (node,), value)

    def _append(
        self, target: torch._ops.OpOverload, args: tuple[object, ...], value: object
    ) -> fx.Node:
        with self.graph.inserting_before(output_of(self.graph)):
            node = self.graph.call_function(target, args)  # type: ignore[arg-type]
        node.meta["val"] = value
        return node


def _require_private(written: Sequence[int], inputs: Sequence[torch.Tensor]) -> None:
    """Refuse writes to memory that another input, or element, shows as well."""
    for position in written:
        if may_overlap(inputs[position]):
            raise refusals.OVERLAPPING_MUTATION.at(f"input {position}")
    beside = neighbours(inputs, written)
    for position, others in zip(written, beside, strict=True):
        for other, place in others:
            if place is not None:
                raise refusals.ALIASED_MUTATION.at(f"inputs {position} and {other}")


def _root(node: fx.Node) -> fx.Node:
    """Return what a node's memory belongs to: views keep it in compiled code."""
    while node.target is aten.view.default:
        node = operand(node)
    return node


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * max(1, shape[axis + 1])
    return tuple(strides)


def _form(facts: TensorFacts) -> tuple[object, ...]:
    return facts.shape, facts.stride, facts.offset


def _memory_order(facts: TensorFacts) -> list[int] | None:
    """Return the axes from outer to inner in memory; None if elements have gaps."""
    axes = range(len(facts.shape))
    order = sorted(axes, key=lambda axis: -facts.stride[axis])
    # Axes of one element have any stride: they keep their place.
    wide = iter([axis for axis in order if facts.shape[axis] != 1])
    order = [axis if facts.shape[axis] == 1 else next(wide) for axis in axes]
    expected = 1
    for axis in reversed(order):
        if facts.shape[axis] != 1 and facts.stride[axis] != expected:
            return None if math.prod(facts.shape) else list(axes)
        expected *= facts.shape[axis]
    return order
