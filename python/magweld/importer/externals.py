"""Owns the operators of a graph that run through torch: which, and how they run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from magweld.artifact import IndexCheck
from magweld.importer.dtypes import GENERATED, carried
from magweld.importer.gathers import LEAST_INDEX
from magweld.importer.nodes import (
    RUNS_FOR_ITSELF,
    positions_read,
    tensors_of,
    values_of,
)
from magweld.importer.operators import is_generated
from magweld.importer.simplify import (
    OPERAND_STRIDES,
    WITHOUT_VALUES,
)

aten = torch.ops.aten

_VIEWS: frozenset[object] = frozenset(
    {
        aten.expand.default,
        aten.permute.default,
        aten.select.int,
        aten.slice.Tensor,
        aten.t.default,
        aten.transpose.int,
        aten.view.default,
    }
)


@dataclass(frozen=True)
class External:
    """One operator of a functional ATen graph that runs through torch.

    Attributes:
        node: The node, with its scalars and options.
        operands: Its tensor operands in order of first appearance; those of the views
            that it is given in the place of such views.
        strides: Strides to give each operand, where the operator depends on them.
        positions: Which parts of its result are read, None if it has no parts.
    """

    node: fx.Node
    operands: tuple[fx.Node, ...]
    strides: tuple[tuple[int, ...], ...] | None = None
    positions: tuple[int, ...] | None = None

    @property
    def results(self) -> list[torch.Tensor]:
        """The tensors that are read of its result, without data."""
        if self.positions is None:
            return tensors_of(self.node)
        return [values_of(self.node)[position] for position in self.positions]

    @property
    def index_check(self) -> IndexCheck | None:
        """What it compares, if all that it does is a check of indices."""
        if str(self.node.target) not in LEAST_INDEX or self.strides is not None:
            return None
        places = [
            self.operands.index(source)
            for source in self.node.args[:2]
            if source in self.operands
        ]
        least = LEAST_INDEX[str(self.node.target)]
        if len(places) != 2:
            return None
        table, indices = places
        return IndexCheck(table, indices, least)

    def __call__(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Run the operator on real operands.

        Raises:
            Exception: What torch raises, e.g. for an index out of range.
        """
        if self.strides is not None:
            strided = zip(tensors, self.strides, strict=True)
            tensors = [with_strides(tensor, stride) for tensor, stride in strided]
        pairs = zip(self.operands, tensors, strict=True)
        # Unsigned elements come as signed ones.
        values = {node: tensor.view(_dtype(node)) for node, tensor in pairs}

        def value(node: fx.Node) -> Any:
            if node not in values:
                arguments = fx.map_arg((node.args, node.kwargs), value)
                values[node] = _run_absorbed(node, *arguments)
            return values[node]

        arguments = fx.map_arg((self.node.args, self.node.kwargs), value)
        target: Callable[..., Any] = self.node.target  # type: ignore[assignment]
        return tensors_read(target(*arguments[0], **arguments[1]), self.positions)


def tensors_read(
    result: Any, positions: tuple[int, ...] | None
) -> tuple[torch.Tensor, ...]:
    """Return what is read of an operator's result, as compiled code has it."""
    if positions is None:
        parts = [] if result is None else [result]
    else:
        parts = [result[position] for position in positions]
    return tuple(map(carried, parts))


def find_externals(graph: fx.Graph, forced: frozenset[str]) -> Mapping[str, External]:
    """Return the external operators of a graph by node name, in their order.

    Tensors without values that only external operators take are made by those, and so
    are views of elements that generated code does not compute with: a product is given
    a transposed weight as eager torch has it, not a copy.

    Args:
        graph: A functional ATen graph.
        forced: Names of nodes that are external whatever the table says.
    """
    chosen = [
        node
        for node in graph.nodes
        if node.op == "call_function"
        and node.target is not operator.getitem
        and (node.name in forced or not is_generated(node))
    ]
    among = {node for node in chosen if OPERAND_STRIDES not in node.meta}
    absorbed = {
        node
        for node in chosen
        if node.target in WITHOUT_VALUES and node.users and set(chosen) >= {*node.users}
    }
    for node in reversed(graph.nodes):
        if may_be_absorbed(node) and node.users and among >= {*node.users}:
            absorbed.add(node)
            among.add(node)
    return {
        node.name: _external(node, absorbed) for node in chosen if node not in absorbed
    }


def may_be_absorbed(node: fx.Node) -> bool:
    """Tell whether a node is a view that the externals that read it may make."""
    if node.target not in _VIEWS or node.op != "call_function":
        return False
    return values_of(node).dtype not in GENERATED and RUNS_FOR_ITSELF not in node.meta


def _external(node: fx.Node, absorbed: set[fx.Node]) -> External:
    strides = node.meta.get(OPERAND_STRIDES)
    operands = list(dict.fromkeys(_sources(node, absorbed)))
    if strides is not None:
        pairs = zip(node.all_input_nodes, strides, strict=True)
        strides = tuple(stride for n, stride in pairs if n not in absorbed)
    return External(node, tuple(operands), strides, positions_read(node))


def _sources(node: fx.Node, absorbed: set[fx.Node]) -> Iterator[fx.Node]:
    for source in node.all_input_nodes:
        if source not in absorbed:
            yield source
        elif source.target in _VIEWS:
            yield from _sources(source, absorbed)


def _dtype(node: fx.Node) -> torch.dtype:
    dtype: torch.dtype = values_of(node).dtype
    return dtype


def with_strides(tensor: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor, or a copy of it, that has the given strides."""
    if tensor.stride() == stride:
        return tensor
    copy = torch.empty_strided(
        tensor.shape, stride, dtype=tensor.dtype, device=tensor.device
    )
    return copy.copy_(tensor)


def absorbed_operator(node: fx.Node) -> Any:
    """Return what makes an operand within an external that has absorbed its node."""
    # What was a view of a copy may be none without it.
    reshapes = node.target is aten.view.default
    return aten.reshape.default if reshapes else node.target


def _run_absorbed(node: fx.Node, args: Any, kwargs: Any) -> torch.Tensor:
    result: torch.Tensor = absorbed_operator(node)(*args, **kwargs)
    return result
