"""Owns the module of a graph with control flow, in the torch dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import torch
from torch import fx

from magweld.diagnostics import UnsupportedError
from magweld.graphs.control_operators import (
    CountedOperator,
    IfOperator,
    WhileOperator,
)
from magweld.importer.importer import import_values
from magweld.importer.torch_dialect import vtensor_type
from magweld.piecewise import Decision, Part, Straight, has_control

_SIGNATURE: Final = re.compile(
    r"func\.func @main\((?P<inputs>.*?)(?: -> (?P<results>.*))?\{"
)
_TYPE: Final = re.compile(r"!torch\.vtensor<\[[^\]]*\],\w+>")
_TRIPS: Final = torch.iinfo(torch.int64).max


@dataclass(frozen=True)
class Function:
    """A function of the module.

    Attributes:
        name: Its symbol.
        inputs: Types of its arguments.
        results: Types of its results.
    """

    name: str
    inputs: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """A value in a function: its name and its type."""

    name: str
    type: str


class Parted(Protocol):
    """A graph with control flow, with its parts.

    Attributes:
        inputs: Its placeholders.
        results: Nodes of what it returns.
        examples: Tensors of the form of the inputs.
        steps: What a call does.
    """

    inputs: list[fx.Node]
    results: tuple[fx.Node, ...]
    examples: list[torch.Tensor]
    steps: list[Straight | Decision]


def control_module(graph: Parted, *, alone: bool = False) -> str:
    """Return a module with `@main` over value tensors and one function a piece.

    An if operator is a `torch.prim.If`, a while operator a `torch.prim.Loop`.

    Args:
        graph: The graph.
        alone: Whether nothing may run through torch.

    Raises:
        UnsupportedError: A piece writes to its inputs, or an operator tests what is no
            truth value.
    """
    module = _Module(alone)
    main = module.add_graph(graph)
    text = "\n".join(module.functions)
    return f"module {{\n{text.replace(f'private @{main.name}(', '@main(')}\n}}\n"


@dataclass
class _Module:
    """Collects functions."""

    alone: bool
    functions: list[str] = field(default_factory=list)
    count: int = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count - 1}"

    def add_part(self, part: Part) -> Function:
        if has_control(part.graph):
            inner: Any = part.compiled
            return self.add_graph(inner)
        name = self.name("piece")
        text = import_values(part.graph, part.examples(), alone=self.alone)
        found = _SIGNATURE.search(text)
        assert found is not None, "an imported module has one main function"
        body = "\n".join(text.strip().splitlines()[1:-1])
        body = body.replace("func.func @main(", f"func.func private @{name}(")
        self.functions.append(body.replace("@external_", f"@{name}_external_"))
        inputs = tuple(_TYPE.findall(found["inputs"]))
        return Function(name, inputs, tuple(_TYPE.findall(found["results"] or "")))

    def add_graph(self, graph: Parted) -> Function:
        return _Body(self, graph).finish()


class _Body:
    """Writes the function of one graph with control flow."""

    def __init__(self, module: _Module, graph: Parted) -> None:
        self._module = module
        self._graph = graph
        self._lines: list[str] = []
        self._values: dict[fx.Node, Value] = {}
        self._count = 0

    def finish(self) -> Function:
        """Write the function and return it."""
        types = [vtensor_type(tensor) for tensor in self._graph.examples]
        inputs = [Value(f"%arg{n}", kind) for n, kind in enumerate(types)]
        self._values.update(zip(self._graph.inputs, inputs, strict=True))
        for step in self._graph.steps:
            if isinstance(step, Straight):
                if not step.outputs:
                    continue  # nothing reads what it computes
                function = self._module.add_part(step.part)
                results = self._call(function, self._of(step.inputs))
                self._values.update(zip(step.outputs, results, strict=True))
            else:
                self._decide(step)
        results = self._of(self._graph.results)
        self._lines.append(f"return {_names(results)} : {_types(results)}")
        name = self._module.name("graph")
        arguments = ", ".join(f"{value.name}: {value.type}" for value in inputs)
        body = "\n".join(f"    {line}" for line in self._lines)
        self._module.functions.append(
            f"  func.func private @{name}({arguments}) -> ({_types(results)}) {{\n"
            f"{body}\n  }}"
        )
        return Function(name, tuple(types), tuple(value.type for value in results))

    def _of(self, nodes: Sequence[fx.Node]) -> list[Value]:
        return [self._values[node] for node in nodes]

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count - 1}"

    def _results(self, types: Sequence[str]) -> tuple[str, list[Value]]:
        name = self._fresh()
        if len(types) == 1:
            return name, [Value(name, types[0])]
        values = [Value(f"{name}#{n}", kind) for n, kind in enumerate(types)]
        return f"{name}:{len(types)}", values

    def _call(self, function: Function, operands: Sequence[Value]) -> list[Value]:
        head, values = self._results(function.results)
        prefix = f"{head} = " if values else ""
        self._lines.append(
            f"{prefix}func.call @{function.name}({_names(operands)}) :"
            f" ({_types(operands)}) -> ({_types(values)})"
        )
        return values

    def _truth(self, value: Value, negated: bool) -> str:
        if value.type != "!torch.vtensor<[],i1>":
            raise UnsupportedError(
                "control-test", f"a test of {value.type}", hint="test a truth value"
            )
        if negated:
            other = self._fresh()
            self._lines.append(
                f"{other} = torch.aten.logical_not {value.name} :"
                f" {value.type} -> {value.type}"
            )
            value = Value(other, value.type)
        name = self._fresh()
        self._lines.append(
            f"{name} = torch.aten.Bool.Tensor {value.name} :"
            f" {value.type} -> !torch.bool"
        )
        return name

    def _decide(self, step: Decision) -> None:
        test, *operands = self._of(step.operands)
        functions = [self._module.add_part(part) for part in step.parts]
        if isinstance(step.target, CountedOperator):
            results = self._count_up(step.target, operands, functions[0])
        elif isinstance(step.target, IfOperator):
            results = self._if(test, operands, functions)
        elif isinstance(step.target, WhileOperator):
            results = self._while(step.target, test, operands, functions[0])
        for part, index in step.results():
            self._values[part] = results[index]

    def _if(
        self, test: Value, operands: list[Value], functions: list[Function]
    ) -> list[Value]:
        if not functions[0].results:
            return []  # nothing reads what it computes
        truth = self._truth(test, negated=False)
        head, results = self._results(functions[0].results)
        self._lines.append(f"{head} = torch.prim.If {truth} -> ({_types(results)}) {{")
        for number, function in enumerate(functions):
            values = self._call(function, operands)
            self._lines.append(
                f"torch.prim.If.yield {_names(values)} : {_types(values)}"
            )
            self._lines.append("}" if number else "} else {")
        return results

    def _count_up(
        self, target: CountedOperator, operands: list[Value], step: Function
    ) -> list[Value]:
        carried, rest = operands[: target.carried], operands[target.carried :]
        trips = self._constant("int", len(target.numbers))
        always = self._constant("bool", "true")
        start = self._constant("int", target.numbers.start)
        stride = self._constant("int", target.numbers.step)
        results, place, inner = self._begin_loop(carried, trips, always)
        scaled, number, tensor = self._fresh(), self._fresh(), self._fresh()
        binary = "!torch.int, !torch.int -> !torch.int"
        kind = "!torch.vtensor<[],si64>"
        self._lines += (
            f"{scaled} = torch.aten.mul.int {place}, {stride} : {binary}",
            f"{number} = torch.aten.add.int {scaled}, {start} : {binary}",
            f"{tensor} = torch.prim.NumToTensor.Scalar {number} : !torch.int -> {kind}",
        )
        values = self._call(step, [Value(tensor, kind), *inner, *rest])
        self._end_loop(carried, always, values)
        return results

    def _constant(self, kind: str, value: object) -> str:
        name = self._fresh()
        self._lines.append(f"{name} = torch.constant.{kind} {value}")
        return name

    def _while(
        self, target: WhileOperator, test: Value, operands: list[Value], step: Function
    ) -> list[Value]:
        carried, rest = operands[: target.carried], operands[target.carried :]
        truth = self._truth(test, negated=not target.while_true)
        trips = self._constant("int", _TRIPS)
        results, _, inner = self._begin_loop(carried, trips, truth)
        *values, tested = self._call(step, [*inner, *rest])
        again = self._truth(tested, negated=not target.while_true)
        self._end_loop(carried, again, values)
        return results

    def _begin_loop(
        self, carried: list[Value], trips: str, condition: str
    ) -> tuple[list[Value], str, list[Value]]:
        """Open a loop; return its results, the number of a trip, what is carried."""
        head, results = self._results([value.type for value in carried])
        self._lines.append(
            f"{head} = torch.prim.Loop {trips}, {condition}, init({_names(carried)}) {{"
        )
        inner = [Value(self._fresh(), value.type) for value in carried]
        arguments = "".join(f", {value.name}: {value.type}" for value in inner)
        place = self._fresh()
        self._lines.append(f"^bb0({place}: !torch.int{arguments}):")
        return results, place, inner

    def _end_loop(
        self, carried: list[Value], condition: str, values: list[Value]
    ) -> None:
        """Close a loop whose next trip gets `values` if `condition` holds."""
        self._lines.append(
            f"torch.prim.Loop.condition {condition},"
            f" iter({_names(values)} : {_types(values)})"
        )
        types = _types(carried)
        self._lines.append(f"}} : (!torch.int, !torch.bool, {types}) -> ({types})")


def _names(values: Sequence[Value]) -> str:
    return ", ".join(value.name for value in values)


def _types(values: Sequence[Value]) -> str:
    return ", ".join(value.type for value in values)
