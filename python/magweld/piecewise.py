"""Owns graphs with control flow: compiled in pieces, Python decides between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, fx

from magweld.checking import copy_tensors
from magweld.diagnostics import MagweldError
from magweld.graphs.control_operators import ControlOperator, bodies_of
from magweld.graphs.pieces import piece_of
from magweld.reports import joined_reports, joined_texts
from magweld.storages import neighbours

# Fewer operators run as fast through torch.
MIN_OPERATORS: Final = 3

Compile = Callable[[fx.GraphModule, Sequence[Tensor]], Callable[..., Any]]
Values = dict[fx.Node, Any]


def has_control(graph: fx.GraphModule) -> bool:
    """Return whether a graph has operators with graphs of their own."""
    return any(bodies_of(node) for node in graph.graph.nodes)


class Part:
    """A graph that runs compiled as long as its inputs share memory as they did.

    Attributes:
        graph: The graph.
        compiled: What the compiler made of it, None if it runs through torch.
    """

    def __init__(
        self, graph: fx.GraphModule, examples: Sequence[Tensor], compile_: Compile
    ) -> None:
        self.graph = graph
        self._pattern = _sharing(examples)
        self._forms = [(t.shape, t.stride(), t.dtype, t.device) for t in examples]
        self.compiled: Callable[..., Any] | None = None
        if has_control(graph):
            self.compiled = PiecewiseGraph(graph, examples, compile_)
            return
        operators = [n for n in graph.graph.nodes if n.op.startswith("call")]
        if len(operators) < MIN_OPERATORS:
            return
        try:
            self.compiled = compile_(graph, examples)
        except MagweldError:
            # Torch runs what the compiler does not take.
            self.compiled = None

    def examples(self) -> list[Tensor]:
        """Return tensors of the form of the inputs."""
        return [
            torch.empty_strided(shape, stride, dtype=dtype, device=device)
            for shape, stride, dtype, device in self._forms
        ]

    def __call__(self, *inputs: Tensor) -> Any:
        """Return what the graph returns."""
        if self.compiled is None or _sharing(inputs) != self._pattern:
            return self.graph.forward(*inputs)
        return self.compiled(*inputs)


def _sharing(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return which tensors are one, and which share memory, and how they lie in it."""
    objects: dict[int, int] = {}
    same = [objects.setdefault(id(tensor), i) for i, tensor in enumerate(tensors)]
    return same, neighbours(tensors, range(len(tensors)))


@dataclass(frozen=True)
class Straight:
    """Operators that run one after another.

    Attributes:
        part: The operators as a graph.
        inputs: Nodes of the values that it takes.
        outputs: Nodes of the values that it returns.
    """

    part: Part
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The graphs in it."""
        return (self.part,)

    def run(self, values: Values) -> None:
        """Compute the outputs."""
        results = self.part(*(values[node] for node in self.inputs))
        values.update(zip(self.outputs, results, strict=True))


@dataclass(frozen=True)
class Decision:
    """An operator with sub-graphs.

    Attributes:
        node: The operator.
        target: The same over compiled sub-graphs.
        parts: These sub-graphs.
    """

    node: fx.Node
    target: ControlOperator
    parts: tuple[Part, ...]

    @property
    def operands(self) -> list[fx.Node]:
        """Nodes of the tested value, then of the inputs of the sub-graphs."""
        return operands_of(self.node)

    def run(self, values: Values) -> None:
        """Compute the results."""
        operands = [values[operand] for operand in self.operands]
        results = self.target(*operands)
        for part, index in self.results():
            values[part] = results[index]

    def results(self) -> Iterator[tuple[fx.Node, int]]:
        """Yield the nodes that take one of its results, with the number of that."""
        for part in self.node.users:
            index: Any = part.args[1]
            yield part, index


def operands_of(node: fx.Node) -> list[fx.Node]:
    """Return the operands of a node that are values of the graph."""
    return [operand for operand in node.args if isinstance(operand, fx.Node)]


class PiecewiseGraph:
    """A graph with control flow as compiled pieces.

    Attributes:
        graph: The graph.
        inputs: Its placeholders.
        results: Nodes of what it returns.
        examples: Tensors of the form of the inputs.
        steps: What a call does.

    Args:
        graph: The graph.
        examples: Its inputs; they are neither read nor written.
        compile_: Compiles a graph without control flow.
    """

    def __init__(
        self, graph: fx.GraphModule, examples: Sequence[Tensor], compile_: Compile
    ) -> None:
        nodes = list(graph.graph.nodes)
        self.graph = graph
        self._compile = compile_
        self.inputs = [node for node in nodes if node.op == "placeholder"]
        self.results: tuple[fx.Node, ...] = nodes[-1].args[0]
        self.examples = [torch.empty_like(tensor) for tensor in examples]
        self.steps: list[Straight | Decision] = []
        values: Values = dict(zip(self.inputs, copy_tensors(examples), strict=True))
        # The memory that values share when the pieces run is known from a run.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for group in groups_of(nodes):
                self.steps.append(self._step(group, values))
                self.steps[-1].run(values)

    def __call__(self, *inputs: Tensor) -> Any:
        """Return what the graph returns."""
        values: Values = dict(zip(self.inputs, inputs, strict=True))
        for step in self.steps:
            step.run(values)
        return tuple(values[node] for node in self.results)

    def mlir(self, stage: str) -> str:
        """Return the modules of the compiled pieces at a stage, one after another.

        Raises:
            ValueError: There is no such stage on the way to this target.
        """
        return joined_texts(self._compiled(), stage)

    def report(self) -> dict[str, Any]:
        """Return the reports of the compiled pieces, joined."""
        return joined_reports(self._compiled())

    def _compiled(self) -> Iterator[Any]:
        for step in self.steps:
            for part in step.parts:
                if isinstance(part.compiled, PiecewiseGraph):
                    yield from part.compiled._compiled()
                elif part.compiled is not None:
                    yield part.compiled

    def _step(self, group: list[fx.Node], values: Values) -> Straight | Decision:
        target: object = group[0].target
        if isinstance(target, ControlOperator):
            operands = operands_of(group[0])[target.leading :]
            examples = [values[operand] for operand in operands]
            parts = tuple(Part(body, examples, self._compile) for body in target.bodies)
            return Decision(group[0], target.over(parts), parts)
        piece, inputs, outputs = piece_of(self.graph, group)
        examples = [values[node] for node in inputs]
        return Straight(Part(piece, examples, self._compile), inputs, outputs)


def groups_of(nodes: list[fx.Node]) -> Iterator[list[fx.Node]]:
    """Yield runs of ordinary operators, and operators with sub-graphs on their own."""
    group: list[fx.Node] = []
    for node in nodes:
        if node.op in ("placeholder", "output") or _is_result(node):
            continue
        if bodies_of(node):
            if group:
                yield group
            yield [node]
            group = []
        else:
            group.append(node)
    if group:
        yield group


def _is_result(node: fx.Node) -> bool:
    return bool(node.all_input_nodes) and bool(bodies_of(node.all_input_nodes[0]))
