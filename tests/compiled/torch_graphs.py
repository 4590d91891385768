"""Owns random graphs of torch functions that grow by one call at a time."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from random_tensors import DTYPES, FLOATS, MOST_ELEMENTS, RandomTensors
from torch import Tensor, fx

from magweld.checking import copy_tensors

# Whole numbers up to these are added and multiplied without rounding.
EXACT_LIMITS = {
    torch.float64: 2.0**50,
    torch.float32: 2.0**22,
    torch.float16: 2.0**9,
    torch.bfloat16: 2.0**6,
}
LARGEST = 1e4
# Of the largest element, for what is rounded somewhere on the way.
TOLERANCES = {
    torch.float64: 1e-10,
    torch.float32: 2e-4,
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}


class Refused(Exception):
    """A call that would not make a good test: too large, or torch refuses it."""


@dataclass(eq=False)
class Value:
    """A tensor of the graph.

    Attributes:
        node: What makes it.
        tensor: What eager torch makes there.
    """

    node: fx.Node
    tensor: Tensor


@dataclass
class Graph:
    """A graph, what it is called with, and the values it has so far.

    Attributes:
        seed: What the graph is made from.
        special: Whether inputs hold infinities and NaN.
        most: The elements of the largest tensors, in about.
        inputs: What it is called with, before any call.
        arguments: The values of the inputs, as the calls leave them.
        values: What later calls may read.
    """

    seed: int
    special: bool = False
    most: int = MOST_ELEMENTS
    inputs: list[Tensor] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.special = self.random.random() < 0.15
        self.tensors = RandomTensors(self.random, self.special)
        self.graph = fx.Graph()
        self._anchor = self.graph.call_function(torch.is_grad_enabled)
        self._rounding: dict[int, float] = {}
        self._kept: list[Tensor] = []

    # Inputs

    def shape(self, rank: int | None = None, most: int = MOST_ELEMENTS) -> list[int]:
        """Return a random shape."""
        return self.tensors.shape(rank, most)

    def input(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        values: range | None = None,
        *,
        dense: bool = False,
    ) -> Value:
        """Add an input, contiguous in memory or, unless `dense`, not."""
        tensor = self.tensors.tensor(list(shape), dtype, values, dense=dense)
        with self.graph.inserting_before(self._anchor):
            node = self.graph.placeholder(f"input_{len(self.inputs)}")
        # Calls may write to it.
        self.inputs += copy_tensors([tensor])
        value = Value(node, tensor)
        self.arguments.append(value)
        self.values.append(value)
        return value

    # What there is

    def rounding(self, value: Value) -> float:
        """Return how far from eager's a value may be, of its largest element."""
        return self._rounding.get(_memory(value.tensor), 0.0)

    def is_exact(self, value: Value) -> bool:
        """Tell whether a value holds what any order of operations gives."""
        return not self.rounding(value)

    def expect_rounding(self, value: Value) -> None:
        """Let a value be no longer exact, e.g. because a call updates it unseen."""
        self._round(value.tensor, [value])

    def _round(self, tensor: Tensor, operands: Sequence[Value]) -> None:
        types = [v.tensor.dtype for v in operands if v.tensor.dtype in FLOATS]
        found = [TOLERANCES[dtype] for dtype in (*types, tensor.dtype)]
        memory = _memory(tensor)
        known = [*map(self.rounding, operands), self._rounding.get(memory, 0.0)]
        self._rounding[memory] = max(*found, *known)

    def pick(
        self,
        accept: Callable[[Tensor], bool] = lambda tensor: True,
        exact: bool = False,
    ) -> Value:
        """Return a value, rather one that nothing reads yet.

        Raises:
            Refused: There is none.
        """
        found = [
            value
            for value in self.values
            if accept(value.tensor) and (not exact or self.is_exact(value))
        ]
        if not found:
            raise Refused
        unread = [value for value in found if not value.node.users]
        return self.random.choice(
            unread if unread and self.random.random() < 0.7 else found
        )

    def partner(self, like: Value, dtype: torch.dtype | None = None) -> Value:
        """Return a value that broadcasts to another one's shape, maybe a new input."""
        shape = like.tensor.shape
        dtype = dtype or (
            like.tensor.dtype
            if self.random.random() < 0.85
            else self.random.choice(DTYPES)
        )
        fitting = [
            value
            for value in self.values
            if value is not like
            and value.tensor.dtype == dtype
            and _broadcasts(value.tensor.shape, shape)
        ]
        if fitting and self.random.random() < 0.6:
            return self.random.choice(fitting)
        kept = [1 if self.random.random() < 0.25 else extent for extent in shape]
        if self.random.random() < 0.3:
            kept = kept[self.random.randint(0, len(kept)) :]
        return self.input(kept, dtype)

    # Calls

    def call(
        self,
        function: Any,
        *args: Any,
        exact: bool = True,
        finite: bool = True,
        **more: Any,
    ) -> Any:
        """Add a call of a function, and what it makes as values.

        Args:
            function: A function of torch, or an operator of Python's.
            args: Its arguments; values stand for their tensors.
            exact: Whether exact operands have an exact result.
            finite: Whether results of other than finite numbers are refused.
            more: Arguments with names.

        Returns:
            The value, or a list of values.

        Raises:
            Refused: The call is refused or makes too much of something.
        """
        operands = _values_of([args, more])
        exact = exact and all(map(self.is_exact, operands))
        try:
            result = function(*_tensors(args), **_tensors(more))
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            raise Refused(str(error)) from error
        parts = [result] if isinstance(result, Tensor) else list(result)
        for part in parts:
            self._check(part, exact, finite)
        node = self.graph.call_function(function, _nodes(args), _nodes(more))
        for part in parts:
            if not exact and part.dtype in FLOATS:
                self._round(part, operands)
        if isinstance(result, Tensor):
            return self._keep(node, result)
        return [
            self._keep(self.graph.call_function(operator.getitem, (node, at)), part)
            for at, part in enumerate(parts)
        ]

    def write(self, function: Any, target: Value, *args: Any, **more: Any) -> Value:
        """Add a call that writes to its first argument."""
        operands = _values_of([target, args, more])
        exact = all(map(self.is_exact, operands))
        try:
            copy = target.tensor.clone()
            function(copy, *_tensors(args), **_tensors(more))
            self._check(copy, exact, finite=True)
            function(target.tensor, *_tensors(args), **_tensors(more))
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            raise Refused(str(error)) from error
        node = self.graph.call_function(function, _nodes((target, *args)), _nodes(more))
        if not exact and target.tensor.dtype in FLOATS:
            self._round(target.tensor, operands)
        if function is operator.setitem:
            return target
        return self._keep(node, target.tensor)

    def _keep(self, node: fx.Node, tensor: Tensor) -> Value:
        value = Value(node, tensor)
        self._kept.append(tensor)
        self.values.append(value)
        return value

    def _check(self, tensor: Tensor, exact: bool, finite: bool) -> None:
        if tensor.numel() > 4 * self.most or tensor.is_complex():
            raise Refused
        if not tensor.is_floating_point() or not tensor.numel():
            return
        numbers = tensor[tensor.isfinite()].double().abs()
        if finite and not self.special and len(numbers) < tensor.numel():
            raise Refused
        largest = float(numbers.max()) if len(numbers) else 0.0
        if largest > (EXACT_LIMITS[tensor.dtype] if exact else LARGEST):
            raise Refused

    # The end

    def module(self, results: Sequence[Value]) -> fx.GraphModule:
        """Return the graph with results."""
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        graph.graph_copy(self.graph, copies)
        graph.erase_node(copies[self._anchor])
        graph.output(tuple(copies[value.node] for value in results))
        return fx.GraphModule(torch.nn.Module(), graph)

    def choose_results(self) -> list[Value]:
        """Return what nothing reads, and some more."""
        made = [v for v in self.values if v.node.op != "placeholder"]
        results = [v for v in made if not v.node.users]
        results += [v for v in made if v.node.users and self.random.random() < 0.15]
        if not made:
            results = self.values[:1]
        if self.random.random() < 0.05:
            results.append(self.random.choice(self.values))
        return results


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    if len(shape) > len(to):
        return False
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return all(extent in (1, other) for extent, other in pairs)


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.numel() else id(tensor)


def _values_of(tree: Any) -> list[Value]:
    leaves = torch.utils._pytree.tree_leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, Value)]


def _tensors(tree: Any) -> Any:
    return torch.utils._pytree.tree_map_only(Value, lambda v: v.tensor, tree)


def _nodes(tree: Any) -> Any:
    return torch.utils._pytree.tree_map_only(Value, lambda v: v.node, tree)
