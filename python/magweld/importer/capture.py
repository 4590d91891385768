"""Owns the way from a recorded graph to a functional ATen graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses import FakeTensorMode

from magweld.importer import refusals
from magweld.importer.decompositions import DECOMPOSITIONS
from magweld.importer.dtypes import LITERAL_TYPES
from magweld.importer.observation import GraphRunner, undisturbed
from magweld.importer.placing import CPU, tensors_without_data
from magweld.importer.repeated_traces import RepeatedTraces
from magweld.importer.simplify import is_hidden_write
from magweld.importer.substitutions import SUBSTITUTIONS
from magweld.importer.tracer import Decompositions, Recorder, trace_aten
from magweld.layouts import noted_dtype

# Larger ones are data: text is for programs, and the compiler must not fold them.
MAX_LITERAL_ELEMENTS = 1


Substitutions = Mapping[Any, Callable[..., Any]]


class AtenRunner(GraphRunner):
    """Runs a graph for tracing, with the calls that must not reach ATen replaced.

    Attributes:
        current: The node that is being run.
        repeated: Records calls like those before; None for no such thing.
    """

    def __init__(
        self, graph: fx.GraphModule, substitutions: Substitutions = SUBSTITUTIONS
    ) -> None:
        super().__init__(graph)
        self._substitutions = substitutions
        self.current: fx.Node | None = None
        self.repeated: RepeatedTraces | None = None

    def run_node(self, n: fx.Node) -> Any:
        """Run one node; see `GraphRunner.run_node`.

        Raises:
            UnsupportedError: It cannot run, or has elements of another type than in the
                captured run.
        """
        self.current = n
        result = self._run_node(n)
        noted = noted_dtype(n)
        if isinstance(result, torch.Tensor) and noted not in (None, result.dtype):
            # In autocast an operator may cast within, which tracing does not show.
            detail = f"{result.dtype}, not {noted}"
            raise refusals.OTHER_DTYPE.at_node(n, detail)
        return result

    def _run_node(self, n: fx.Node) -> Any:
        if self.repeated is None or n.op != "call_function":
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return self.repeated.run(n, args, kwargs, lambda: GraphRunner.run_node(self, n))

    def call_function(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        substitute = self._substitutions.get(target, _no_substitute)
        result = substitute(*args, **kwargs)
        if result is not NotImplemented:
            return result
        return super().call_function(target, args, kwargs)

    def call_method(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self.call_function(getattr(torch.Tensor, target), args, kwargs)


def _no_substitute(*args: Any, **kwargs: Any) -> Any:
    return NotImplemented


def lift_constants(graph: fx.GraphModule) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """Make the tensors that a graph holds into further inputs of a copy of it.

    Returns:
        The copy, and the tensors for its new placeholders, which follow the others.

    Raises:
        UnsupportedError: A node is no placeholder, tensor attribute, call or output.
    """
    lifted = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    constants: list[torch.Tensor] = []
    for node in _inputs_first(graph.graph):
        if node.op == "get_attr":
            value = _attribute(graph, node)
            copies[node] = lifted.placeholder(node.name)
            constants.append(value)
        elif node.op == "call_module":
            raise refusals.NODE_KIND.at(
                refusals.describe(node), f"module {node.target}"
            )
        else:
            copies[node] = lifted.node_copy(node, copies.__getitem__)
    return fx.GraphModule(torch.nn.Module(), lifted), constants


def to_aten(
    graph: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    decompositions: Decompositions = DECOMPOSITIONS,
    device: torch.device = CPU,
    substitutions: Substitutions = SUBSTITUTIONS,
) -> fx.GraphModule:
    """Trace a graph into functional ATen operators and decompose what is known.

    Writes to inputs become `aten.copy_` nodes on placeholders after everything else;
    every node has a tensor without data in `meta["val"]` and, where the recorded node
    has one, its `stack_trace`.

    Raises:
        UnsupportedError: The graph depends on data, or a write cannot be removed.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    # Gradients are no matter of a compiled graph, and a leaf that requires them
    # would refuse to be written to.
    fakes = tensors_without_data(mode, [t.detach() for t in inputs], device)

    with undisturbed():
        aten = _trace(graph, mode, fakes, decompositions, substitutions)
        if any(is_hidden_write(node) for node in aten.graph.nodes):
            # Torch's own composites write to their temporaries below the tracing of
            # writes; as nodes of a graph they are above it.
            aten = _trace(aten, mode, fakes, decompositions, substitutions)
    return aten


def _trace(
    graph: fx.GraphModule,
    mode: FakeTensorMode,
    fakes: Sequence[torch.Tensor],
    decompositions: Decompositions,
    substitutions: Substitutions,
) -> fx.GraphModule:
    runner = AtenRunner(graph, substitutions)
    functional: Callable[..., Any] = torch.func.functionalize(
        runner.run, remove="mutations"
    )
    recorder = Recorder(mode, decompositions, lambda: runner.current)
    runner.repeated = RepeatedTraces(recorder)
    return trace_aten(functional, fakes, recorder)


def lift_large_literals(aten: fx.GraphModule) -> list[torch.Tensor]:
    """Make the constants that tracing found into further placeholders, in place.

    Small ones stay: they are written into the module's text.

    Returns:
        The tensors for the new placeholders, which follow the others.
    """
    lifted: list[torch.Tensor] = []
    kept = {"placeholder", "get_attr"}
    body = next(node for node in aten.graph.nodes if node.op not in kept)
    for node in [n for n in aten.graph.nodes if n.op == "get_attr"]:
        value = _attribute(aten, node)
        if value.dtype in LITERAL_TYPES and value.numel() <= MAX_LITERAL_ELEMENTS:
            continue
        with aten.graph.inserting_before(body):
            placeholder = aten.graph.placeholder(f"lifted_{len(lifted)}")
        placeholder.meta = dict(node.meta)
        node.replace_all_uses_with(placeholder)
        aten.graph.erase_node(node)
        lifted.append(value)
    return lifted


def _inputs_first(graph: fx.Graph) -> list[fx.Node]:
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    attributes = [n for n in graph.nodes if n.op == "get_attr"]
    heads = {*placeholders, *attributes}
    return [*placeholders, *attributes, *(n for n in graph.nodes if n not in heads)]


def _attribute(graph: fx.GraphModule, node: fx.Node) -> torch.Tensor:
    value: Any = graph
    for name in str(node.target).split("."):
        value = getattr(value, name)
    if not isinstance(value, torch.Tensor):
        raise refusals.NODE_KIND.at(
            refusals.describe(node), f"attribute {node.target} ({type(value).__name__})"
        )
    return value
