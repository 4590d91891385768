"""Owns the backward half for outputs of which some got no gradient.

Eager torch leaves out what only those would have reached: the gradients of such inputs
are None, not zero, and nothing is multiplied by an infinity on the way.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any, Final

import torch
from torch import fx

from magweld.importer.nodes import output_of, placeholders, values_of

aten = torch.ops.aten

# They read the shape of their operand, not its values.
_SHAPE_READERS: Final = frozenset(
    {
        aten.empty_like.default,
        aten.full_like.default,
        aten.new_empty.default,
        aten.new_empty_strided.default,
        aten.new_full.default,
        aten.new_ones.default,
        aten.new_zeros.default,
        aten.ones_like.default,
        aten.zeros_like.default,
    }
)
_SUMS: Final = frozenset({aten.add.Tensor, aten.sub.Tensor})


def without_tangents(
    backward: fx.GraphModule, tangents: Collection[str], missing: Collection[str]
) -> fx.GraphModule:
    """Return a backward half for tangents of which some are not there.

    What depends on tangents is linear in them: it is zero where all that it depends on
    is missing.

    Args:
        backward: Takes all tangents.
        tangents: Names of its placeholders for them.
        missing: Names of those that are not there; the others stay arguments.
    """
    half = copy.deepcopy(backward)
    _Zeros(half.graph, tangents, missing).remove()
    half.graph.eliminate_dead_code()
    for node in placeholders(half.graph):
        if node.name in missing:
            half.graph.erase_node(node)
    half.graph.lint()
    half.recompile()
    return half


class _Zeros:
    """Finds the values of a graph that are zero, and takes them out."""

    def __init__(
        self, graph: fx.Graph, tangents: Collection[str], missing: Collection[str]
    ) -> None:
        self._graph = graph
        self._linear: set[fx.Node] = set()
        self._zero: set[fx.Node] = set()
        for node in graph.nodes:
            if node.op == "placeholder" and node.name in tangents:
                self._linear.add(node)
                if node.name in missing:
                    self._zero.add(node)

    def remove(self) -> None:
        """Rewrite the graph."""
        for node in list(self._graph.nodes):
            if node.op == "call_function":
                self._visit(node)
        end = output_of(self._graph)
        end.args = (
            tuple(None if leaf in self._zero else leaf for leaf in end.args[0]),  # type: ignore[union-attr]
        )

    def _visit(self, node: fx.Node) -> None:
        sources = self._linear.intersection(node.all_input_nodes)
        zeros = self._zero & sources
        if node.target in _SHAPE_READERS:
            self._fill_in(node, zeros)
            return
        if not sources:
            return
        self._linear.add(node)
        if zeros == sources:
            self._zero.add(node)
        elif zeros and not self._drop_term(node, zeros):
            self._fill_in(node, zeros)

    def _drop_term(self, node: fx.Node, zeros: set[fx.Node]) -> bool:
        """Replace a sum by its other term, where that is the same tensor."""
        left: Any = node.args[0]
        right: Any = node.args[1]
        kept = right if left in zeros else left
        if node.target not in _SUMS or not isinstance(kept, fx.Node):
            return False
        if node.kwargs or (node.target is aten.sub.Tensor and left in zeros):
            return False
        mine, other = values_of(node), values_of(kept)
        if (mine.shape, mine.dtype) != (other.shape, other.dtype):
            return False
        node.replace_all_uses_with(kept)
        return True

    def _fill_in(self, node: fx.Node, zeros: set[fx.Node]) -> None:
        for source in zeros:
            value = values_of(source)
            with self._graph.inserting_before(node):
                made = self._graph.call_function(
                    aten.zeros.default,
                    (list(value.shape),),
                    {"dtype": value.dtype, "device": value.device},
                )
            made.meta["val"] = value
            node.replace_input_with(source, made)
