"""Owns the tensors and operations of a tile graph as plain data, for memory plans."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from magweld.passes.memory.boxes import Box, volume
from magweld.passes.memory.demands import Nest, Rule


@dataclass(frozen=True)
class Tensor:
    """One tensor of a graph.

    Attributes:
        shape: Extents.
        element_bytes: Bytes of one element.
        free: It is an argument or a constant: nobody plans memory for it.
    """

    shape: tuple[int, ...]
    element_bytes: int
    free: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return math.prod(self.shape) * self.element_bytes

    def part_bytes(self, box: Box) -> int:
        """Bytes of a part of it."""
        return volume(box) * self.element_bytes


@dataclass(frozen=True)
class Node:
    """One operation.

    Attributes:
        operands: Numbers of the tensors that it reads, each once.
        results: Numbers of the tensors that it makes.
        rule: How the parts of operands follow from a part of the result; None for
            what can be computed whole alone.
        is_view: The result has the bytes of the operand.
        flops: Arithmetic operations of one iteration.
        brings_result: A library computes it: it brings its own result, and may copy
            operands and result into a layout of its own meanwhile.
    """

    operands: tuple[int, ...]
    results: tuple[int, ...]
    rule: Rule | None
    is_view: bool = False
    flops: int = 0
    brings_result: bool = False

    def work(self, box: Box) -> int:
        """Return the arithmetic operations for a part of the result."""
        if not isinstance(self.rule, Nest):
            return 0
        return self.flops * volume(self.rule.loops(box))


@dataclass(frozen=True)
class Graph:
    """Tensors, operations in an order in which they can run, and what leaves.

    Attributes:
        tensors: A tensor's number is its position.
        nodes: In order.
        outputs: Tensors that the function returns.
    """

    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    @cached_property
    def producer(self) -> dict[int, int]:
        """Number of the operation that makes each tensor but the free ones."""
        return {t: i for i, node in enumerate(self.nodes) for t in node.results}

    @cached_property
    def storage(self) -> tuple[int, ...]:
        """For each tensor the one whose bytes it has, itself but for views."""
        found: list[int] = list(range(len(self.tensors)))
        for node in self.nodes:
            if node.is_view:
                found[node.results[0]] = found[node.operands[0]]
        return tuple(found)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each tensor the operations that read it."""
        found: list[list[int]] = [[] for _ in self.tensors]
        for number, node in enumerate(self.nodes):
            for tensor in node.operands:
                found[tensor].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def returned(self) -> frozenset[int]:
        """The tensors whose bytes the function returns."""
        return frozenset(self.storage[t] for t in self.outputs)

    @cached_property
    def fixed(self) -> frozenset[int]:
        """Tensors that have to exist whole.

        The results, and what operations without a rule read or make.
        """
        found = set(self.returned)
        for node in self.nodes:
            if node.rule is None:
                found.update(self.storage[t] for t in (*node.operands, *node.results))
        return frozenset(t for t in found if not self.tensors[t].free)
