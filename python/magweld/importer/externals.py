"""Owns the operators of a graph that run through torch: which, and how they run."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from magweld.artifact import (
    BoundsCheck,
    IndexCheck,
    NativeCheck,
    RowOrder,
    StandIns,
)
from magweld.importer.dtypes import GENERATED, carried
from magweld.importer.gathers import CHECKED_BOUNDS, LEAST_INDEX, index_check_of
from magweld.importer.inner_extents import inner_regions
from magweld.importer.nodes import (
    RUNS_FOR_ITSELF,
    absorbed_operator,
    operand,
    positions_read,
    tensors_of,
    values_of,
)
from magweld.importer.operators import is_generated
from magweld.importer.row_gradients import PLACES_BY_ROW
from magweld.importer.simplify import (
    OPERAND_STRIDES,
    WITHOUT_VALUES,
)

if TYPE_CHECKING:
    from magweld.codegen.shared_code import SharedCode
    from magweld.importer.external_code import ExternalCode
    from magweld.importer.joined_rows import JoinedRows

aten = torch.ops.aten

_CONSTANT = StandIns()
# Operators that make new memory for each result, whatever they are given.
_MAKING: frozenset[object] = frozenset(
    {
        aten.argmax.default,
        aten.argmin.default,
        aten.cat.default,
        aten.gather.default,
        aten.sort.default,
        aten.topk.default,
    }
)
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
        beside: Operators that run with it, in order.
        code: Runs it for some sizes of the call, where it was made for these; it takes
            operands that are contiguous, and returns `shown` and what it results in.
    """

    node: fx.Node
    operands: tuple[fx.Node, ...]
    strides: tuple[tuple[int, ...], ...] | None = None
    positions: tuple[int, ...] | None = None
    beside: tuple[fx.Node, ...] = ()
    code: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    @functools.cached_property
    def shown(self) -> tuple[fx.Node, ...]:
        """Operators beside it whose results others read; each results in a tensor."""
        run = {*self.beside, self.node}
        return tuple(node for node in self.beside if not run >= {*node.users})

    @property
    def results(self) -> list[torch.Tensor]:
        """The tensors that are read of its results, without data: `shown` first."""
        shown = [values_of(node) for node in self.shown]
        if self.positions is None:
            return [*shown, *tensors_of(self.node)]
        return [*shown, *(values_of(self.node)[n] for n in self.positions)]

    @property
    def native(self) -> JoinedRows | None:
        """What runs it on addresses, if that makes all that is read of it."""
        # Programs are loaded without llvmlite, which makes native code.
        from magweld.importer.joined_rows import JoinedRows

        code = self.code
        if not isinstance(code, JoinedRows) or self.positions not in (None, (0,)):
            return None
        return code if code.shows_all else None

    @property
    def is_fresh(self) -> bool:
        """Whether its results are memory that it has made, and none of another.

        Of most operators that is not known: they may return an operand.
        """
        alone = self.node.target in _MAKING and not self.beside
        return alone or self.native is not None

    @property
    def index_check(self) -> IndexCheck | None:
        """What it compares, if all that it does is a check of indices."""
        if self.strides is not None or self.beside:
            return None

        def place_of(value: Any) -> int | None:
            return self.operands.index(value) if value in self.operands else None

        return index_check_of(str(self.node.target), self.node.args, place_of)

    @property
    def bounds_check(self) -> BoundsCheck | None:
        """What it compares, if all that it does is a check of bounds of bags."""
        alone = self.strides is None and not self.beside
        if self.node.target is not CHECKED_BOUNDS or not alone:
            return None
        _, *sources = self.node.args[:3]
        if not all(source in self.operands for source in sources):
            return None
        indices, bounds = map(self.operands.index, sources)
        return BoundsCheck(indices, bounds)

    @property
    def row_order(self) -> RowOrder | None:
        """How it sorts, if all that it does is to sort indices by what they name."""
        alone = self.strides is None and not self.beside
        if self.node.target is not PLACES_BY_ROW or not alone:
            return None
        arguments: Any = self.node.args
        indices, _, size, padding = arguments
        if indices not in self.operands or self.positions != (0, 1):
            return None
        return RowOrder(self.operands.index(indices), size, padding)

    def __call__(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Run the operator on real operands.

        Raises:
            Exception: What torch raises, e.g. for an index out of range.
        """
        if self.strides is not None:
            strided = zip(tensors, self.strides, strict=True)
            tensors = [with_strides(tensor, stride) for tensor, stride in strided]
        # Unsigned elements come as signed ones.
        tensors = [
            tensor if tensor.dtype is dtype else tensor.view(dtype)
            for tensor, dtype in zip(tensors, self._dtypes, strict=True)
        ]
        if self.code is not None:
            *shown, result = self.code(*tensors)
            return (*map(carried, shown), *tensors_read(result, self.positions))
        values = dict(zip(self.operands, tensors, strict=True))

        def value(node: fx.Node) -> Any:
            if node not in values:
                arguments = fx.map_arg((node.args, node.kwargs), value)
                values[node] = _run_absorbed(node, *arguments)
            return values[node]

        arguments = fx.map_arg((self.node.args, self.node.kwargs), value)
        result = self._target(*arguments[0], **arguments[1])
        shown = map(carried, map(value, self.shown))
        return (*shown, *tensors_read(result, self.positions))

    @property
    def shared_code(self) -> list[SharedCode[Any]]:
        """The native code that it runs."""
        # Programs are loaded without llvmlite, which makes native code.
        from magweld.codegen.recurrent_code import RECURRENT_CODE

        return [] if self._target is self.node.target else [RECURRENT_CODE]

    @functools.cached_property
    def _target(self) -> Callable[..., Any]:
        """The operator, or native code for it."""
        target: Callable[..., Any] = self.node.target  # type: ignore[assignment]
        # Programs are loaded without llvmlite, which makes native code.
        from magweld.importer.recurrent_layers import native_layer

        return native_layer(self.node) or target

    @functools.cached_property
    def _dtypes(self) -> tuple[torch.dtype, ...]:
        """Element types of the operands."""
        return tuple(values_of(node).dtype for node in self.operands)

    def sized(self, stand_ins: StandIns) -> ExternalCode | None:
        """Return what runs it for sizes of a call; None if it needs no such code.

        Args:
            stand_ins: What stands for the sizes.
        """
        checks = self.index_check or self.bounds_check or self.row_order
        if self.strides is not None or checks:
            return None
        # Programs are loaded without llvmlite, which makes native code.
        from magweld.importer.external_code import ExternalCode

        operators = (self.node, self.beside, self.shown, self.operands)
        return ExternalCode(*operators, stand_ins)


def index_checks_of(externals: Mapping[str, Any]) -> dict[str, NativeCheck]:
    """Return what operators do that only check or sort indices, by node name.

    Args:
        externals: Each an `External`, or one as data, which has the same checks.
    """
    found = {
        name: one.index_check or one.bounds_check or one.row_order
        for name, one in externals.items()
    }
    return {name: check for name, check in found.items() if check is not None}


def tensors_read(
    result: Any, positions: tuple[int, ...] | None
) -> tuple[torch.Tensor, ...]:
    """Return what is read of an operator's result, as compiled code has it."""
    if positions is None:
        parts = [] if result is None else [result]
    else:
        parts = [result[position] for position in positions]
    return tuple(map(carried, parts))


def find_externals(
    graph: fx.Graph, forced: frozenset[str], stand_ins: StandIns = _CONSTANT
) -> Mapping[str, External]:
    """Return the external operators of a graph by node name, in their order.

    Tensors without values that only external operators take are made by those, and so
    are views of elements that generated code does not compute with, and broadcasts: a
    product is given a transposed weight as eager torch has it, not a copy.

    Args:
        graph: A functional ATen graph.
        forced: Names of nodes that are external whatever the table says.
        stand_ins: Extents that stand for sizes of the call; what has some of them
            inside of tensors is external.
    """
    regions = inner_regions(graph, stand_ins) if stand_ins else {}
    beside = {node for region in regions.values() for node in region}
    chosen = [
        node
        for node in graph.nodes
        if node.op == "call_function"
        and node.target is not operator.getitem
        and node not in beside
        and (node in regions or node.name in forced or not is_generated(node))
    ]
    readers = {*chosen, *beside}
    among = {node for node in readers if OPERAND_STRIDES not in node.meta}
    absorbed = {
        node
        for node in chosen
        if node.target in WITHOUT_VALUES and node.users and readers >= {*node.users}
    }
    # Native code compares the indices that lie in memory.
    plain = {node for node in among if not _is_native_check(node)}
    for node in reversed(graph.nodes):
        if node in regions or not node.users or not may_be_absorbed(node):
            continue
        takers = plain if values_of(node).dtype in GENERATED else among
        if takers >= {*node.users}:
            absorbed.add(node)
            among.add(node)
            plain.add(node)
    return {
        node.name: _external(node, absorbed, regions.get(node, ()))
        for node in chosen
        if node not in absorbed
    }


def may_be_absorbed(node: fx.Node) -> bool:
    """Tell whether a node is a view that the externals that read it may make.

    That are views of elements that generated code does not compute with, and those
    that have more elements than there are in memory: a kernel would write them all.
    """
    if node.target not in _VIEWS or node.op != "call_function":
        return False
    if RUNS_FOR_ITSELF in node.meta:
        return False
    return values_of(node).dtype not in GENERATED or _is_broadcast(node)


def _is_broadcast(node: fx.Node) -> bool:
    """Whether a view has elements of its operand more than once."""
    if node.target is not aten.expand.default:
        return False
    return bool(values_of(node).numel() > values_of(operand(node)).numel())


def _is_native_check(node: fx.Node) -> bool:
    return str(node.target) in LEAST_INDEX or node.target is CHECKED_BOUNDS


def _external(
    node: fx.Node, absorbed: set[fx.Node], beside: tuple[fx.Node, ...]
) -> External:
    strides = node.meta.get(OPERAND_STRIDES)
    run = (*beside, node)
    sources = (source for one in run for source in _sources(one, absorbed))
    operands = [one for one in dict.fromkeys(sources) if one not in beside]
    if strides is not None:
        pairs = zip(node.all_input_nodes, strides, strict=True)
        strides = tuple(stride for n, stride in pairs if n not in absorbed)
    return External(node, tuple(operands), strides, positions_read(node), beside)


def _sources(node: fx.Node, absorbed: set[fx.Node]) -> Iterator[fx.Node]:
    for source in node.all_input_nodes:
        if source not in absorbed:
            yield source
        elif source.target in _VIEWS:
            yield from _sources(source, absorbed)


def with_strides(tensor: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor, or a copy of it, that has the given strides."""
    if tensor.stride() == stride:
        return tensor
    copy = torch.empty_strided(
        tensor.shape, stride, dtype=tensor.dtype, device=tensor.device
    )
    return copy.copy_(tensor)


def _run_absorbed(node: fx.Node, args: Any, kwargs: Any) -> torch.Tensor:
    result: torch.Tensor = absorbed_operator(node)(*args, **kwargs)
    return result
