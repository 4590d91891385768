"""Owns the import of a graph with control flow as one program.

Pieces between branches and loops are imported as functions of values. What eager
promises of the results beside their values, which of them are inputs and which are one
tensor, is followed through branches and loops: it may depend on what they test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from magweld.artifact import HOST_TARGET
from magweld.control_text import control_module
from magweld.diagnostics import UnsupportedError
from magweld.graphs.autocast import switches_autocast
from magweld.graphs.control_operators import (
    IfOperator,
    WhileOperator,
    bodies_of,
)
from magweld.graphs.cuts import left_to_torch
from magweld.graphs.pieces import piece_of
from magweld.importer import refusals
from magweld.importer.dtypes import is_carried
from magweld.importer.epilogue import (
    ChoiceOutput,
    Epilogue,
    InputOutput,
    Output,
    ResultOutput,
)
from magweld.importer.importer import PLAIN_CLASSES, ImportedGraph
from magweld.importer.observation import TensorFacts, observe
from magweld.layouts import is_captured, noted_layout
from magweld.piecewise import (
    Decision,
    Part,
    Straight,
    groups_of,
    operands_of,
)

_HINT = "the parts between tests are compiled; Python decides between them"


@dataclass(frozen=True)
class Fresh:
    """A tensor that a node makes: result number `index` of it."""

    node: fx.Node
    index: int = 0


@dataclass(frozen=True)
class Input:
    """An input of the graph itself."""

    number: int


@dataclass(frozen=True)
class Choice:
    """One of two tensors, as the truth of the value of a node says."""

    test: fx.Node
    on_true: Origin
    on_false: Origin


@dataclass(frozen=True)
class Unknown:
    """One of some tensors, or a view of one."""

    leaves: frozenset[Fresh | Input]
    is_view: bool = False


Origin = Fresh | Input | Choice | Unknown


def leaves_of(origin: Origin) -> frozenset[Fresh | Input]:
    """Return the tensors of which a value may be one, or a view."""
    match origin:
        case Choice():
            return leaves_of(origin.on_true) | leaves_of(origin.on_false)
        case Unknown():
            return origin.leaves
    return frozenset([origin])


def _may_be_view(origin: Origin) -> bool:
    if isinstance(origin, Choice):
        return _may_be_view(origin.on_true) or _may_be_view(origin.on_false)
    return isinstance(origin, Unknown) and origin.is_view


def _joined(origins: Sequence[Origin]) -> Origin:
    is_view = any(map(_may_be_view, origins))
    leaves = frozenset(leaf for origin in origins for leaf in leaves_of(origin))
    return Unknown(leaves, is_view)


class ImportedPart(Part):
    """A graph that is a function of the program.

    Attributes:
        compiled: The graph once more, where it has control flow.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        examples: Sequence[Tensor],
        inner: ControlGraph | None,
    ) -> None:
        self.graph = graph
        self._forms = [(t.shape, t.stride(), t.dtype, t.device) for t in examples]
        self.compiled: Any = inner


@dataclass
class ControlGraph:
    """A graph with control flow, read without running it.

    Attributes:
        graph: The graph.
        inputs: Its placeholders.
        results: Nodes of what it returns.
        examples: Tensors of the form of the inputs.
        steps: What a call does.
        origins: Where the tensor of each node comes from.
        values: A tensor of the form of each node's.
        with_gaps: Nodes whose tensors may not fill their memory row by row.
    """

    graph: fx.GraphModule
    examples: list[Tensor]
    inputs: list[fx.Node] = field(init=False)
    results: tuple[fx.Node, ...] = field(init=False)
    steps: list[Straight | Decision] = field(default_factory=list)
    origins: dict[fx.Node, Origin] = field(default_factory=dict)
    values: dict[fx.Node, Tensor] = field(default_factory=dict)
    with_gaps: set[fx.Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        nodes = list(self.graph.graph.nodes)
        self.inputs = [node for node in nodes if node.op == "placeholder"]
        returned: Any = nodes[-1].args[0]
        self.results = tuple(returned)
        if not all(isinstance(node, fx.Node) for node in self.results):
            raise _refused("control-result", "a result that is no tensor")
        for number, (node, value) in enumerate(
            zip(self.inputs, self.examples, strict=True)
        ):
            self.values[node] = value
            self.origins[node] = Input(number)
        for group in groups_of(nodes):
            if bodies_of(group[0]):
                self._decide(group[0])
            else:
                self._straight(group)

    def results_of(self, nodes: Sequence[fx.Node]) -> list[Origin]:
        """Return where the tensors of some results come from.

        Raises:
            UnsupportedError: One is a view, or has gaps in memory.
        """
        for node in nodes:
            origin = self.origins[node]
            if _may_be_view(origin):
                raise _refused("control-view", "a view leaves it", node)
            made = {leaf.node for leaf in leaves_of(origin) if isinstance(leaf, Fresh)}
            if made & self.with_gaps:
                raise _refused(
                    "control-strides",
                    "a result with gaps, or strides unknown, leaves it",
                    node,
                )
        return [self.origins[node] for node in nodes]

    def makers(self) -> dict[Fresh, fx.Node]:
        """Return the node that has each tensor which is made here."""
        made: dict[Fresh, fx.Node] = {}
        for step in self.steps:
            if isinstance(step, Straight):
                made.update((Fresh(node), node) for node in step.outputs)
            else:
                made.update((Fresh(step.node, n), node) for node, n in step.results())
        return made

    def _straight(self, group: list[fx.Node]) -> None:
        module, inputs, outputs = piece_of(self.graph, group)
        examples = [self.values[node] for node in inputs]
        facts = observe(module, examples)
        captured = is_captured(self.graph.graph)
        known: dict[int, Origin] = {}
        memory: dict[int, Origin] = {}
        for node, fact in zip(inputs, facts.inputs, strict=True):
            known[fact.identity] = memory[fact.storage] = self.origins[node]
        for node, found in zip(outputs, facts.outputs, strict=True):
            if not isinstance(found, TensorFacts):
                raise _refused("control-value", "a value that is no tensor", node)
            origin = known.get(found.identity)
            if origin is None:
                base = memory.get(found.storage)
                origin = Fresh(node) if base is None else _view(base)
            known[found.identity] = origin
            memory.setdefault(found.storage, origin)
            self.origins[node] = origin
            self.values[node] = _like(found)
            if not _is_plain(found) or (captured and not _is_as_noted(node, found)):
                self.with_gaps.add(node)
        part = ImportedPart(module, examples, None)
        self.steps.append(Straight(part, tuple(inputs), tuple(outputs)))

    def _decide(self, node: fx.Node) -> None:
        target: Any = node.target
        if not isinstance(target, IfOperator | WhileOperator):
            raise _refused("control-kind", f"a {target}", node)
        test, *operands = operands_of(node)
        if len(operands) + 1 != len(node.args):
            raise _refused("control-value", "a number that a test changes", node)
        examples = [self.values[operand] for operand in operands]
        bodies = [ControlGraph(body, examples) for body in target.bodies]
        parts = tuple(ImportedPart(body.graph, examples, body) for body in bodies)
        step = Decision(node, target.over(parts), parts)
        self.steps.append(step)
        given = [self.origins[operand] for operand in operands]
        if isinstance(target, IfOperator):
            made = self._branch(node, test, bodies, given)
        else:
            made = self._loop(node, test, target, bodies[0], given)
        for result, index in step.results():
            self.origins[result] = made[index]
            self.values[result] = bodies[0].values[bodies[0].results[index]]

    def _branch(
        self,
        node: fx.Node,
        test: fx.Node,
        bodies: Sequence[ControlGraph],
        given: Sequence[Origin],
    ) -> list[Origin]:
        arms = []
        for body in bodies:
            origins = body.results_of(body.results)
            _require_apart(origins, node)
            arms.append([_outside(o, given, node, n) for n, o in enumerate(origins)])
        forms = [[_form(b.values[r]) for r in b.results] for b in bodies]
        if forms[0] != forms[1]:
            raise _refused("control-form", "arms that return different tensors", node)
        return [
            one if one == other else Choice(test, one, other)
            for one, other in zip(*arms, strict=True)
        ]

    def _loop(
        self,
        node: fx.Node,
        test: fx.Node,
        target: WhileOperator,
        body: ControlGraph,
        given: Sequence[Origin],
    ) -> list[Origin]:
        count = target.carried
        results = body.results[:count]
        inner = body.results_of(results)
        _require_apart(inner, node)
        forms = [_form(body.values[result]) for result in results]
        if forms != [_form(value) for value in body.examples[:count]]:
            raise _refused("control-form", "an iteration that changes a form", node)
        made: list[Origin] = []
        for number, origin in enumerate(inner):
            first = given[number]
            if origin == Input(number):
                made.append(first)
                continue
            own = Fresh(node, number)
            later: Origin = own
            if _handed_on(origin):
                later = _joined([own, *(_reached(number, inner, given))])
            either = (later, first) if target.while_true else (first, later)
            made.append(Choice(test, *either))
        return made


def _reached(
    number: int, inner: Sequence[Origin], given: Sequence[Origin]
) -> Iterator[Origin]:
    """Yield what a carried value may have been before the first iteration."""
    found: set[int] = set()
    open_ = _handed_on(inner[number])
    while open_:
        at = open_.pop()
        if at in found:
            continue
        found.add(at)
        yield given[at]
        if at < len(inner):
            open_ += _handed_on(inner[at])


def _handed_on(origin: Origin) -> list[int]:
    return [leaf.number for leaf in leaves_of(origin) if isinstance(leaf, Input)]


def _outside(
    origin: Origin, given: Sequence[Origin], node: fx.Node, index: int
) -> Origin:
    """Return what a result of an arm is in the graph around it."""
    outside = [
        given[leaf.number] if isinstance(leaf, Input) else Fresh(node, index)
        for leaf in sorted(leaves_of(origin), key=str)
    ]
    return outside[0] if len(set(outside)) == 1 else _joined(outside)


def _view(base: Origin) -> Origin:
    return Unknown(leaves_of(base), is_view=True)


def _require_apart(origins: Sequence[Origin], node: fx.Node) -> None:
    for one, other in combinations(map(leaves_of, origins), 2):
        if one & other:
            raise _refused("control-alias", "two results may be one tensor", node)


def _form(tensor: Tensor) -> tuple[Any, ...]:
    return (tensor.dtype, tensor.shape, tensor.stride())


def _is_plain(facts: TensorFacts) -> bool:
    """Whether elements lie row by row, and nothing else is in their memory."""
    plain = torch.empty(facts.shape, dtype=facts.dtype)
    whole = plain.untyped_storage().nbytes() == facts.storage_bytes
    return whole and not facts.offset and plain.stride() == facts.stride


def _is_as_noted(node: fx.Node, facts: TensorFacts) -> bool:
    """Whether the captured run laid a tensor out as a run without data does."""
    noted = noted_layout(node)
    return noted is not None and noted.is_like(facts.shape, facts.stride)


def _like(facts: TensorFacts) -> Tensor:
    return torch.empty_strided(facts.shape, facts.stride, dtype=facts.dtype)


def _refused(id_: str, reason: str, node: fx.Node | None = None) -> UnsupportedError:
    where = "the graph" if node is None else refusals.describe(node)
    return UnsupportedError(id_, reason, where=where, hint=_HINT)


def import_control(
    graph: fx.GraphModule, example_inputs: Sequence[Tensor]
) -> ImportedGraph:
    """Import a graph with control flow, e.g. one that the monitor has recorded.

    Args:
        graph: As of `import_graph`, with operators that have sub-graphs.
        example_inputs: One tensor a placeholder; they are neither read nor written.

    Raises:
        UnsupportedError: It cannot be one program: it writes to tensors, runs operators
            through torch, or which tensors its results are is not known.
    """
    _require_compiled(graph, example_inputs)
    forms = [
        torch.empty_strided(t.shape, t.stride(), dtype=t.dtype) for t in example_inputs
    ]
    control = ControlGraph(graph, forms)
    results = _Results(control)
    outputs = results.outputs()
    control.results = tuple(results.returned)
    carried = [
        (number, control.values[node].dtype)
        for node, number in results.returned.items()
        if is_carried(control.values[node].dtype)
    ]
    return ImportedGraph(
        text=control_module(control, alone=True),
        aten=graph,
        arguments=tuple(range(len(forms))),
        constants=(),
        externals={},
        epilogue=Epilogue(
            writes=(),
            buffers=(),
            outputs=tuple(outputs),
            structure=pytree.tree_structure(tuple(range(len(outputs)))),
            carried=tuple(carried),
        ),
        alone=True,
        converted=tuple(
            number
            for number, tensor in enumerate(forms)
            if not tensor.is_contiguous() or is_carried(tensor.dtype)
        ),
    )


def _require_compiled(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> None:
    """Check what is known without a closer look.

    Raises:
        UnsupportedError: Something of the graph runs through torch.
    """
    for tensor in inputs:
        if tensor.device.type != HOST_TARGET:
            raise _refused("control-device", f"a tensor on {tensor.device}")
        if type(tensor) not in PLAIN_CLASSES or tensor.layout is not torch.strided:
            raise _refused("control-input", f"a {type(tensor).__name__}")
    for one in _graphs(graph):
        if switches_autocast(one.graph):
            raise _refused("control-autocast", "a region of autocast")
        for node, reason in left_to_torch(one.graph).items():
            raise _refused("control-external", f"torch runs {node}: {reason}")


def _graphs(graph: fx.GraphModule) -> Iterator[fx.GraphModule]:
    yield graph
    for node in graph.graph.nodes:
        for body in bodies_of(node):
            yield from _graphs(body)


class _Results:
    """What a program returns, and how outputs are made of that.

    Attributes:
        returned: Nodes of what the program returns, with their positions.
    """

    def __init__(self, control: ControlGraph) -> None:
        self._control = control
        self._origins = control.results_of(control.results)
        self._makers = control.makers()
        self.returned: dict[fx.Node, int] = {}

    def outputs(self) -> list[Output]:
        """Return the outputs.

        Raises:
            UnsupportedError: Which tensor one of them is cannot be known.
        """
        pairs = list(zip(self._control.results, self._origins, strict=True))
        for node, origin in pairs:
            if _may_be_input(origin):
                raise _refused("control-alias", "it may be an input", node)
        for (node, one), (other_node, other) in combinations(pairs, 2):
            if node is not other_node and _meet(one, other):
                raise _refused("control-alias", "it may be another result", node)
        return [self._output(node, origin) for node, origin in pairs]

    def _result(self, node: fx.Node) -> int:
        return self.returned.setdefault(node, len(self.returned))

    def _output(self, node: fx.Node, origin: Origin) -> Output:
        match origin:
            case Input(number):
                return InputOutput(number)
            case Fresh():
                return ResultOutput(self._result(self._makers[origin]), own=True)
            case Choice(test, on_true, on_false):
                if not any(isinstance(leaf, Input) for leaf in leaves_of(origin)):
                    others = leaves_of(origin) - self._own(node)
                    if not others & self._elsewhere(node):
                        return ResultOutput(self._result(node), own=True)
                return ChoiceOutput(
                    self._result(node),
                    self._result(test),
                    self._output(node, on_true),
                    self._output(node, on_false),
                )
        return ResultOutput(self._result(node), own=True)

    def _own(self, node: fx.Node) -> frozenset[Fresh]:
        return frozenset(fresh for fresh, n in self._makers.items() if n is node)

    def _elsewhere(self, node: fx.Node) -> frozenset[Fresh | Input]:
        pairs = zip(self._control.results, self._origins, strict=True)
        return frozenset().union(*(leaves_of(o) for n, o in pairs if n is not node))


def _may_be_input(origin: Origin) -> bool:
    """Whether a value may be an input, and when is not known."""
    if isinstance(origin, Choice):
        return _may_be_input(origin.on_true) or _may_be_input(origin.on_false)
    leaves = origin.leaves if isinstance(origin, Unknown) else ()
    return any(isinstance(leaf, Input) for leaf in leaves)


def _meet(one: Origin, other: Origin) -> bool:
    """Whether two values may be one tensor, and when is not known."""
    if isinstance(one, Choice) and isinstance(other, Choice) and one.test == other.test:
        both = ((one.on_true, other.on_true), (one.on_false, other.on_false))
        return any(_meet(*pair) for pair in both)
    for choice, value in ((one, other), (other, one)):
        if isinstance(choice, Choice):
            return _meet(choice.on_true, value) or _meet(choice.on_false, value)
    known = not (isinstance(one, Unknown) or isinstance(other, Unknown))
    return not known and bool(leaves_of(one) & leaves_of(other))
