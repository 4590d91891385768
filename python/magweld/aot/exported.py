"""Owns the way from programs of `torch.export` to captured calls."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import HigherOrderOperator
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from magweld.aot.compile import CapturedCall
from magweld.aot.errors import EXPORT_CONDITION, EXPORT_INPUTS, EXPORT_SIZES
from magweld.aot.signature import Signature
from magweld.aot.template import Tensors
from magweld.graphs.control_operators import (
    ControlOperator,
    IfOperator,
    WhileOperator,
)
from magweld.importer import refusals

_CLONE = torch.ops.aten.clone.default
_COND = torch.ops.higher_order.cond
_WHILE = torch.ops.higher_order.while_loop
# Operators that run a part of the program with gradients, or with autocast, or without.
_GRADIENTS = torch.ops.higher_order.wrap_with_set_grad_enabled
_AUTOCAST = torch.ops.higher_order.wrap_with_autocast


def arguments_of(
    program: ExportedProgram, inputs: Sequence[Any] | Mapping[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments in the structure that an exported program takes.

    Args:
        program: The program.
        inputs: Positional arguments, or keyword arguments by name; None is the
            arguments of its export.

    Raises:
        UnsupportedError: `export-inputs`: it takes others; or `export-sizes`.
    """
    expected = program.call_spec.in_spec
    assert expected is not None, "programs of torch.export have one"
    if inputs is None:
        return _arguments_of_export(program, expected)
    names = expected.child(1).context
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if not isinstance(inputs, Mapping):
        args = tuple(inputs)
    elif set(inputs) == set(names):
        kwargs = {name: inputs[name] for name in names}
    if pytree.tree_structure((args, kwargs)) != expected:
        nesting = " ".join(str(expected).split())
        raise EXPORT_INPUTS.at(f"arguments that are nested otherwise than {nesting}")
    return args, kwargs


def exported_call(
    program: ExportedProgram,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    any_sizes: bool = False,
) -> CapturedCall:
    """Return a call of an exported program, which does not run.

    It writes to buffers and inputs where `program.module()` does.

    Args:
        program: Any one; `torch.cond` and `while_loop` become branches and loops.
        args: Positional arguments, in the structure of `arguments_of`.
        kwargs: Keyword arguments.
        any_sizes: Whether sizes may be out of the ranges that the program is for.

    Raises:
        UnsupportedError: `export-inputs`: the program does not take the arguments; or
            an artifact cannot hold it.
    """
    signature = Signature.of(args, kwargs)
    values = pytree.tree_leaves((tuple(args), dict(kwargs)))
    module = program.module()
    _check(described_inputs(program), values)
    if not any_sizes:
        _check_sizes(module, args, kwargs, values)
    flat = _FlatGraph(module, values)
    numbers = {node: number for number, node in enumerate(flat.outputs)}
    outputs = [torch.empty(0) for _ in numbers]
    leaves = [
        outputs[numbers[leaf]] if isinstance(leaf, fx.Node) else leaf
        for leaf in flat.results
    ]
    result = pytree.tree_unflatten(leaves, program.call_spec.out_spec)
    return CapturedCall(
        graph=fx.GraphModule(torch.nn.Module(), flat.graph),
        example_inputs=flat.example_inputs,
        feeds=tuple(flat.feeds),
        inputs=[value for value in values if isinstance(value, Tensor)],
        state=flat.state,
        template=Tensors(outputs, (), ()).template(result),
        signature=signature,
    )


def _arguments_of_export(
    program: ExportedProgram, expected: pytree.TreeSpec
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if program.example_inputs is not None:
        args, kwargs = program.example_inputs
        return tuple(args), dict(kwargs or {})
    leaves = [_without_data(value) for value in described_inputs(program)]
    args, kwargs = pytree.tree_unflatten(leaves, expected)
    return args, kwargs


def _without_data(value: object) -> object:
    """Return a tensor of the sizes of one without data."""
    if not isinstance(value, Tensor):
        return value
    if not all(isinstance(size, int) for size in (*value.shape, *value.stride())):
        raise EXPORT_SIZES.at(f"an input of shape {tuple(value.shape)}")
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def described_inputs(program: ExportedProgram) -> list[Any]:
    """Return for each argument what the program knows of it.

    A tensor without data, of sizes that may be open; an open number; or a constant.
    """
    holders = program.graph.find_nodes(op="placeholder")
    known = {node.name: node.meta.get("val") for node in holders}
    given = (
        spec.arg
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.USER_INPUT
    )
    return [
        x.value if isinstance(x, ConstantArgument) else known[x.name] for x in given
    ]


def _check(described: Sequence[object], values: Sequence[object]) -> None:
    """Refuse arguments that are not what the program knows of them."""
    for number, (value, expected) in enumerate(zip(values, described, strict=True)):
        problem = _difference(value, expected)
        if problem:
            raise EXPORT_INPUTS.at(f"argument {number}{problem}")


def _check_sizes(
    module: fx.GraphModule,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    values: Sequence[object],
) -> None:
    """Refuse sizes and numbers out of the ranges that the program is for."""
    try:
        # A program without example inputs checks in front of its graph, not inside.
        for hook in module._forward_pre_hooks.values():
            hook(module, tuple(args), dict(kwargs))
        for node in module.graph.find_nodes(op="call_module"):
            module.get_submodule(str(node.target))(*values)
    except (AssertionError, RuntimeError) as error:
        raise EXPORT_INPUTS.at(" ".join(str(error).split())) from error


def _difference(value: object, expected: object) -> str:
    """Say how an argument differs from what the program knows of it, or ""."""
    if isinstance(expected, torch.SymInt):
        return "" if type(value) is int else f" is {value!r}, exported for an int"
    if not isinstance(expected, Tensor):
        if isinstance(value, Tensor):
            return f" is a tensor, exported for {expected!r}"
        same = type(value) is type(expected) and repr(value) == repr(expected)
        return "" if same else f" is {value!r}, exported for {expected!r}"
    if not isinstance(value, Tensor):
        return f" is a {type(value).__name__}, exported for a tensor"
    fixed = [
        type(size) is not int or size == found
        for size, found in zip(expected.shape, value.shape, strict=False)
    ]
    if value.dim() != expected.dim() or not all(fixed):
        shapes = tuple(value.shape), tuple(expected.shape)
        return f" has shape {shapes[0]}, exported for {shapes[1]}"
    if value.dtype != expected.dtype:
        return f" has dtype {value.dtype}, exported for {expected.dtype}"
    return ""


class _FlatGraph:
    """A copy of a program's graph that takes all its tensors as inputs.

    Args:
        module: The program as `ExportedProgram.module` gives it: its arguments are
            placeholders, its tensors attributes.
        values: An argument for each placeholder. Those that are no tensors are fixed.

    Attributes:
        graph: The copy. It returns each node of `results` once.
        example_inputs: A tensor for each of its inputs.
        feeds: As of `CapturedCall`.
        state: Tensors of the program by name.
        results: What the program returns, in order: nodes and constants.

    Raises:
        UnsupportedError: A part of the program runs under a condition.
    """

    def __init__(self, module: fx.GraphModule, values: Sequence[Any]) -> None:
        self.graph = fx.Graph()
        self.example_inputs: list[Tensor] = []
        self.feeds: list[tuple[bool, int]] = []
        self.state: dict[str, Tensor] = {}
        # By where they are: tensors of two names, read from a file, are two objects.
        self._held: dict[Any, fx.Node] = {}
        copies: dict[fx.Node, Any] = {}
        passed = 0
        for node, value in zip(_inputs(module), values, strict=True):
            copies[node] = value
            if isinstance(value, Tensor):
                copies[node] = self._input(node.name, value, (False, passed))
                passed += 1
        self._hold_tensors(module)
        self.results = self._copy(self.graph, module, copies)
        self.graph.output(tuple(self.outputs))

    @property
    def outputs(self) -> list[fx.Node]:
        """What the graph returns."""
        return list(dict.fromkeys(x for x in self.results if isinstance(x, fx.Node)))

    def _input(self, name: str, value: Tensor, feed: tuple[bool, int]) -> fx.Node:
        self.example_inputs.append(value)
        self.feeds.append(feed)
        return self.graph.placeholder(name)

    def _hold_tensors(self, module: fx.GraphModule) -> None:
        """Make tensors of a program, and of parts of it, inputs of the graph."""
        for node in module.graph.find_nodes(op="get_attr"):
            value = _attribute(module, node)
            if isinstance(value, fx.GraphModule):
                self._hold_tensors(value)
            elif not isinstance(value, Tensor):
                detail = f"attribute {node.target} ({type(value).__name__})"
                raise refusals.NODE_KIND.at_node(node, detail)
            elif _whereabouts(value) not in self._held:
                feed = (True, len(self.state))
                self._held[_whereabouts(value)] = self._input(node.name, value, feed)
                self.state[self._unused_name(str(node.target))] = value

    def _unused_name(self, name: str) -> str:
        return name if name not in self.state else f"{name} {len(self.state)}"

    def _copy(
        self, graph: fx.Graph, module: fx.GraphModule, copies: dict[fx.Node, Any]
    ) -> list[Any]:
        """Append the calls of a program or a part of it, and return its results.

        Args:
            graph: What they are appended to.
            module: The program or part.
            copies: What stands for its nodes; more are added.
        """
        for node in module.graph.nodes:
            if node.op == "get_attr":
                copies[node] = self._attribute(graph, module, node)
            elif node.op == "call_function":
                copies[node] = self._call(graph, node, copies)
        returned: Any = module.graph.output_node().args[0]
        several = returned if isinstance(returned, list | tuple) else (returned,)
        return [copies[x] if isinstance(x, fx.Node) else x for x in several]

    def _attribute(
        self, graph: fx.Graph, module: fx.GraphModule, node: fx.Node
    ) -> object:
        value = _attribute(module, node)
        if not isinstance(value, Tensor):
            return value
        if graph is not self.graph:
            raise EXPORT_CONDITION.at(f"a tensor of an arm, {refusals.describe(node)}")
        return self._held[_whereabouts(value)]

    def _call(self, graph: fx.Graph, node: fx.Node, copies: dict[fx.Node, Any]) -> Any:
        args: Any = fx.map_arg(node.args, copies.__getitem__)
        if node.target is operator.getitem and isinstance(args[0], list):
            return args[0][args[1]]
        if node.target is _COND:
            return self._cond(graph, node, *args)
        if node.target is _WHILE:
            return self._while(graph, node, *args)
        if node.target is _GRADIENTS:
            _, part, *operands = args
        elif node.target is _AUTOCAST and not args[2]:
            _, _, _, _, part, *operands = args
        elif isinstance(node.target, HigherOrderOperator):
            raise EXPORT_CONDITION.at(refusals.describe(node))
        else:
            return graph.node_copy(node, copies.__getitem__)
        inner = dict(zip(_inputs(part), operands, strict=True))
        return self._copy(graph, part, inner)

    def _cond(
        self,
        graph: fx.Graph,
        node: fx.Node,
        test: Any,
        on_true: fx.GraphModule,
        on_false: fx.GraphModule,
        operands: Sequence[Any],
    ) -> list[Any]:
        """Append a branch on a tensor, or the arm that a constant says."""
        if not isinstance(test, fx.Node):
            arm = on_true if test else on_false
            inner = dict(zip(_inputs(arm), operands, strict=True))
            return self._copy(graph, arm, inner)
        arms = []
        for arm in (on_true, on_false):
            body = fx.Graph()
            inner = {one: body.placeholder(one.name) for one in _inputs(arm)}
            arms.append(_finished(body, self._copy(body, arm, inner), node))
        return _results(graph, IfOperator(*arms), (test, *operands))

    def _while(
        self,
        graph: fx.Graph,
        node: fx.Node,
        test: fx.GraphModule,
        step: fx.GraphModule,
        carried: Sequence[Any],
        others: Sequence[Any],
    ) -> list[Any]:
        """Append a loop: its test in front, and once more after each iteration."""
        if not all(isinstance(value, fx.Node) for value in carried):
            raise EXPORT_CONDITION.at(f"a number that changes, {node.name}")
        # It returns new tensors where there is no iteration as well.
        first = [graph.call_function(_CLONE, (value,)) for value in carried]
        given = (*first, *others)
        (truth,) = self._copy(graph, test, dict(zip(_inputs(test), given, strict=True)))
        body = fx.Graph()
        inner = {one: body.placeholder(one.name) for one in _inputs(step)}
        results = self._copy(body, step, dict(inner))
        again = (*results, *list(inner.values())[len(carried) :])
        tested = dict(zip(_inputs(test), again, strict=True))
        results += self._copy(body, test, tested)
        if not isinstance(truth, fx.Node):
            raise EXPORT_CONDITION.at(f"a loop that tests no tensor, {node.name}")
        loop = WhileOperator(_finished(body, results, node), len(carried), True)
        return _results(graph, loop, (truth, *given))


def _finished(body: fx.Graph, results: Sequence[Any], node: fx.Node) -> fx.GraphModule:
    """Return a sub-graph that returns some results."""
    if not all(isinstance(result, fx.Node) for result in results):
        raise EXPORT_CONDITION.at(f"a result that is no tensor, {node.name}")
    body.output(tuple(results))
    return fx.GraphModule(torch.nn.Module(), body)


def _results(
    graph: fx.Graph, target: ControlOperator, operands: Sequence[Any]
) -> list[Any]:
    """Append an operator with sub-graphs; return its results."""
    node = graph.call_function(target, tuple(operands))
    body: Any = target.step
    count = target.carried or len(body.graph.output_node().args[0])
    return [graph.call_function(operator.getitem, (node, n)) for n in range(count)]


def _inputs(module: fx.GraphModule) -> Sequence[fx.Node]:
    return list(module.graph.find_nodes(op="placeholder"))


def _attribute(module: fx.GraphModule, node: fx.Node) -> object:
    return operator.attrgetter(str(node.target))(module)


def _whereabouts(tensor: Tensor) -> tuple[object, ...]:
    memory, start = tensor.untyped_storage()._cdata, tensor.storage_offset()
    seen = tensor.dtype, tensor.is_conj(), tensor.is_neg()
    return memory, start, *seen, tuple(tensor.shape), tensor.stride()
