"""Owns the code that runs an external operator for the sizes of a call."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from magweld.artifact import StandIns
from magweld.codegen.attention_code import ATTENTION_CODE
from magweld.codegen.recurrent_code import RECURRENT_CODE
from magweld.codegen.shared_code import SharedCode
from magweld.codegen.window_code import WINDOW_CODE
from magweld.importer.image_code import (
    NormedConvolution,
    has_images,
    in_best_layout,
    in_place,
    is_image_convolution,
)
from magweld.importer.inner_extents import RECURRENT_LAYERS
from magweld.importer.joined_making import joined_rows, may_join_rows
from magweld.importer.joined_rows import JoinedRows
from magweld.importer.nodes import (
    absorbed_operator,
    operand,
    placeholders,
    tensors_of,
    values_of,
)
from magweld.importer.recurrent_layers import (
    is_native_layer,
    layer_arguments,
    run_layer,
)
from magweld.importer.sized_attention import (
    attention_arguments,
    is_native_attention,
    run_attention,
)
from magweld.importer.strides import Strided, viewed
from magweld.importer.window_convolutions import WindowConvolution
from magweld.importer.window_pools import is_native_pool, largest, pool_arguments

aten = torch.ops.aten

# Functions of torch's own that do what an operator does, and take half the time of the
# operator's call from Python.
_DIRECT: dict[object, Callable[..., Any]] = {
    aten.argmax.default: torch.argmax,
    aten.cat.default: torch.cat,
    aten.permute.default: torch.permute,
    aten.select.int: torch.select,
    aten.transpose.int: torch.transpose,
}

_PARTS: frozenset[object] = frozenset({aten.select.int, aten.slice.Tensor})


@dataclass(frozen=True)
class ExternalCode:
    """Runs an external operator with what runs beside it, for any sizes of the call.

    Views of operands, however many lead to one, are one `as_strided` each: operands
    are contiguous, so sizes tell where elements lie. The code is made once for all
    sizes; what it makes of these are its last arguments. Images lie as it suits their
    convolutions.

    Attributes:
        node: The operator.
        beside: Operators that run before it.
        shown: Those of them whose results others read.
        operands: What the code takes, without strides of their own.
        stand_ins: What stands for sizes of the call.
    """

    node: fx.Node
    beside: tuple[fx.Node, ...]
    shown: tuple[fx.Node, ...]
    operands: tuple[fx.Node, ...]
    stand_ins: StandIns
    _made: dict[frozenset[fx.Node], _Made] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def at(self, sizes: Sequence[int]) -> Callable[..., Any]:
        """Return what runs the operator on its operands, for some sizes.

        It returns a tuple: the results of `shown`, then that of the operator.
        """
        joined = self._joined(sizes)
        if joined is not None:
            return joined
        views = self._views(sizes)
        made = self._made.get(frozenset(views))
        if made is None:
            made = self._make(frozenset(views))
            self._made[frozenset(views)] = made
        further: list[Any] = []
        for one in made.further:
            if isinstance(one, int):
                further.append(self.stand_ins.at(one, sizes))
            else:
                view = views[one]
                further += [view.shape, view.strides, view.offset]
        function = made.function
        return lambda *tensors: function(*tensors, *further)

    @property
    def shared_code(self) -> list[SharedCode[Any]]:
        """The native code that it runs."""
        run = self.run
        found: list[SharedCode[Any]] = []
        if WindowConvolution.ends_of(run) or any(map(is_native_pool, run)):
            found.append(WINDOW_CODE)
        if any(one.target in RECURRENT_LAYERS and is_native_layer(one) for one in run):
            found.append(RECURRENT_CODE)
        if any(map(is_native_attention, run)) or self._may_join:
            found.append(ATTENTION_CODE)
        return found

    @property
    def run(self) -> tuple[fx.Node, ...]:
        """The operators, in order."""
        return (*self.beside, self.node)

    @functools.cached_property
    def _may_join(self) -> bool:
        """Whether it may be rows that are joined, by what is known without sizes."""
        return may_join_rows(self.run)

    def _joined(self, sizes: Sequence[int]) -> JoinedRows | None:
        """Return what joins rows, if it does nothing else."""
        if not self._may_join:
            return None
        given = ((*self.shown, self.node), self._dense(sizes))
        return joined_rows(self.run, *given, lambda one: self._at(one, sizes))

    def _dense(self, sizes: Sequence[int]) -> dict[fx.Node, Strided]:
        """Return where the elements of operands lie."""
        shapes = (tuple(values_of(node).shape) for node in self.operands)
        return {
            node: Strided.dense([self.stand_ins.at(n, sizes) for n in shape])
            for node, shape in zip(self.operands, shapes, strict=True)
        }

    @property
    def depends(self) -> bool:
        """Whether what runs it is another one for other sizes."""
        numbers = [
            number
            for node in self.run
            for one in (node, *node.all_input_nodes)
            for number in (
                *(extent for tensor in tensors_of(one) for extent in tensor.shape),
                *pytree.tree_leaves((node.args, node.kwargs)),
            )
        ]
        return any(type(n) is int and self.stand_ins.depends(n) for n in numbers)

    def _views(self, sizes: Sequence[int]) -> dict[fx.Node, Strided]:
        """Return the views of operands, of those and of others, and where they lie."""
        found = self._dense(sizes)
        tried: set[fx.Node] = {*self.operands}

        def visit(node: fx.Node) -> None:
            if node in tried:
                return
            tried.add(node)
            if node.op != "call_function":
                return
            for source in node.all_input_nodes:
                visit(source)
            args: Any = fx.node.map_aggregate(node.args, lambda n: self._at(n, sizes))
            of = args[0] if args and not node.kwargs else None
            if not isinstance(of, fx.Node) or of not in found:
                return
            view = viewed(node.target, found[of], *args[1:])
            if view is not None:
                found[node] = view

        for node in self.run:
            visit(node)
        return {n: view for n, view in found.items() if n not in self.operands}

    def _at(self, value: Any, sizes: Sequence[int]) -> Any:
        return self.stand_ins.at(value, sizes) if type(value) is int else value

    def _make(self, views: frozenset[fx.Node]) -> _Made:
        """Return the code in which some nodes are views of operands."""
        making = _Making(self, views)
        for node in self.beside:
            if node not in views and node not in making.replaced:
                making.value(node)
        return making.end((*self.shown, self.node))


@dataclass(frozen=True)
class _Made:
    """Code for some views.

    Attributes:
        function: Takes the operands, then what `further` gives.
        further: What stands for a number; or a view, for its shape, strides and
            offset.
    """

    function: Callable[..., Any]
    further: tuple[int | fx.Node, ...]


class _Making:
    """A graph that is being made of an external operator."""

    def __init__(self, code: ExternalCode, views: frozenset[fx.Node]) -> None:
        self._code = code
        self._views = views
        self._body = fx.Graph()
        self._has_images = has_images(self._code.run)
        self._windows = WindowConvolution.ends_of(self._code.run)
        found = (
            (node, NormedConvolution.of(node, code.beside)) for node in self._code.run
        )
        self._scaled = {
            node: one
            for node, one in found
            if one is not None and one.is_scaled and not self._is_window(node)
        }
        self._copies = {
            node: self._body.placeholder(f"operand_{number}")
            for number, node in enumerate(code.operands)
        }
        self._numbers: dict[int, fx.Node] = {}
        self._further: list[int | fx.Node] = []

    @functools.cached_property
    def replaced(self) -> frozenset[fx.Node]:
        """Operators in whose place others stand."""
        scaled = self._scaled.values()
        parts = (node for one in scaled for node in (one.convolution, one.norm))
        inner = (node for one in self._windows.values() for node in one.inner)
        return frozenset((*parts, *inner))

    def _is_window(self, node: fx.Node) -> bool:
        """Whether a node is a part of what native code computes."""
        inner = (one.inner for one in self._windows.values())
        return node in self._windows or any(node in nodes for nodes in inner)

    def value(self, node: fx.Node) -> fx.Node:
        """Return the copy of a node, made where it was not."""
        if node not in self._copies:
            is_view = node in self._views
            self._copies[node] = self._view(node) if is_view else self._copy(node)
        return self._copies[node]

    def end(self, nodes: Sequence[fx.Node]) -> _Made:
        """Return the code, whose results are those of some nodes."""
        self._body.output(tuple(map(self.value, nodes)))
        module = fx.GraphModule(torch.nn.Module(), self._body)
        return _Made(module.forward, tuple(self._further))

    def _copy(self, node: fx.Node) -> fx.Node:
        if node in self._windows:
            return self._windows[node].emit(self._body, self._any_leaf)
        if node in self._scaled:
            return self._scaled[node].emit(self._body, self._any_leaf)
        if node.target in RECURRENT_LAYERS and is_native_layer(node):
            given = tuple(map(self._any_leaf, layer_arguments(node)))
            return self._body.call_function(run_layer, given)
        if is_native_pool(node):
            given = tuple(map(self._any_leaf, pool_arguments(node)))
            return self._body.call_function(largest, given)
        if is_native_attention(node):
            given = tuple(map(self._any_leaf, attention_arguments(node)))
            return self._body.call_function(run_attention, given)
        args, kwargs = fx.node.map_aggregate((node.args, node.kwargs), self._leaf)
        target = absorbed_operator(node)
        target = _DIRECT.get(target, target)
        if is_image_convolution(node):
            image = in_best_layout(node, self._body, self.value(operand(node)))
            args = (image, *args[1:])
        elif node.target in RECURRENT_LAYERS:
            args = fx.node.map_arg(args, self._dense)
        elif self._has_images:
            target = in_place(node, self._code.beside) or target
        return self._body.call_function(target, args, kwargs)

    def _dense(self, copy: fx.Node) -> fx.Node:
        return self._body.call_method("contiguous", (copy,))

    def _any_leaf(self, value: Any) -> Any:
        return fx.node.map_aggregate(value, self._leaf)

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, fx.Node):
            return self.value(value)
        is_told = type(value) is int and self._code.stand_ins.is_runtime(value)
        if not is_told:
            return value
        if value not in self._numbers:
            self._further.append(value)
            self._numbers[value] = self._argument("number")
        return self._numbers[value]

    def _view(self, node: fx.Node) -> fx.Node:
        self._further.append(node)
        shape, strides, offset = map(self._argument, ("shape", "strides", "offset"))
        base, is_part = node, False
        while base in self._views:
            is_part |= base.target in _PARTS
            base = operand(base)
        source = self._copies[base]
        if not is_part:
            return self._body.call_method("as_strided", (source, shape, strides))
        # An operand may be a part of a memory itself.
        begin = self._body.call_method("storage_offset", (source,))
        first = self._body.call_function(operator.add, (begin, offset))
        return self._body.call_method("as_strided", (source, shape, strides, first))

    def _argument(self, name: str) -> fx.Node:
        """Add an argument behind those that there are."""
        body = self._body
        arguments = placeholders(body)
        with body.inserting_after(arguments[-1]) if arguments else nullcontext():
            return body.placeholder(f"{name}_{len(arguments)}")
