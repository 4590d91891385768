"""Owns the insertion of what a function of torch does into an ATen graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, fx

from magweld.importer.decompositions import DECOMPOSITIONS
from magweld.importer.nodes import operand, output_of, placeholders, values_of
from magweld.importer.simplify import simplify
from magweld.importer.tracer import Recorder, trace_aten


def inlined(
    node: fx.Node, run: Callable[..., Tensor], operands: Sequence[fx.Node]
) -> fx.Node:
    """Insert what a function does with some operands before a node.

    Args:
        node: The node, whose origin the new ones have.
        run: Takes the tensors of the operands, without data, and returns one.
        operands: At least one.

    Returns:
        The node of what the function returns.
    """
    values = [values_of(source) for source in operands]
    mode = values[0].fake_mode
    traced = trace_aten(run, values, Recorder(mode, DECOMPOSITIONS, lambda: None))
    simplify(traced.graph)
    inner = placeholders(traced.graph)
    copies: dict[fx.Node, fx.Node] = dict(zip(inner, operands, strict=True))
    origin = {key: value for key, value in node.meta.items() if key != "val"}
    for one in traced.graph.nodes:
        if one.op != "call_function":
            continue
        with node.graph.inserting_before(node):
            copy = node.graph.node_copy(one, copies.__getitem__)
        copy.meta = {**origin, "val": values_of(one)}
        copies[one] = copy
    return copies[operand(output_of(traced.graph))]
