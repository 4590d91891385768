"""Owns the table of backends and their resolution by name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx

from magweld import env
from magweld.compiler_options import CompileOptions
from magweld.diagnostics import UnsupportedError, did_you_mean
from magweld.frontend.capture.operator_graph import OperatorGraph
from magweld.frontend.operators.targets import ConstantTensor, CustomFunction
from magweld.graphs.all_sizes import CompileSizes
from magweld.graphs.autocast import graph_runner
from magweld.graphs.control_operators import all_nodes, bodies_of
from magweld.graphs.gradients import frees_history
from magweld.tiers import TieredGraph, Tiers

Compiled = Callable[..., Sequence[torch.Tensor]]
CompileGraph = Callable[[fx.GraphModule, list[torch.Tensor]], Compiled]

# Name -> "module:function"; the function takes (gm, example_inputs) and by name what
# `magweld.api.compile_graph` does.
BACKENDS: Final = {"magweld": "magweld.api:compile_graph"}
# What compiles graphs for all sizes stands beside it, see `magweld.api`.
_FOR_SIZES: Final = "compile_for_sizes"
_FOR_ALL_SIZES: Final = ("auto", "cpu")


@dataclass(frozen=True)
class Backend:
    """A way to run captured graphs.

    Attributes:
        name: For messages.
        compile: Turns a graph and example inputs into a callable on tensors.
        differentiates: Whether gradients flow through what it returns.
        tiers: How its graphs get from torch to compiled code.
        cuts: Whether it leaves to torch the operators that are marked, and no more.
        load: Imports what `compile` needs, which takes long the first time.
        compile_sizes: Compiles a graph once for all sizes, if it can.
    """

    name: str
    compile: CompileGraph
    differentiates: bool
    tiers: Tiers = field(default_factory=lambda: Tiers(False, False))
    cuts: bool = False
    load: Callable[[], object] = lambda: None
    compile_sizes: CompileSizes | None = None

    def may_have(self, graph: OperatorGraph) -> bool:
        """Return whether a graph, or what torch does not have to run of it, may go."""
        return not graph.torch_only or (self.cuts and graph.is_cut)


def run_eagerly(gm: fx.GraphModule, example_inputs: list[torch.Tensor]) -> Compiled:
    """Return the graph itself, run by torch."""
    return graph_runner(gm)


def resolve_backend(
    backend: str | CompileGraph,
    target: str,
    tune: object = None,
    memory_budget: int = 0,
    moment: str | None = None,
    program: str = "",
) -> Backend:
    """Return the backend for a name or a callable.

    Args:
        backend: "eager", a name of `BACKENDS`, one that `torch.compile` knows (it gets
            forward and backward graphs of their own), or a callable
            `(gm, example_inputs) -> callable(*tensors) -> tuple of tensors`. What it
            returns must write to its inputs as the graph does. Gradients must flow
            through it as well, unless the callable has an attribute `differentiates`
            that is False: then it gets forward and backward graphs of their own.
        target: Handed on to a named backend.
        tune: Handed on to a named backend.
        memory_budget: Bytes that a call may take, handed on likewise; 0 is no limit.
        moment: When a named backend compiles, one of `COMPILE_MOMENTS`; None asks the
            environment variable `MAGWELD_COMPILE`.
        program: What the log calls the program.

    Raises:
        ValueError: No backend has this name, no moment has it, or the chosen backend
            does not tune, knows no memory budget or compiles in the call only.
    """
    if moment is not None and moment not in env.COMPILE_MOMENTS:
        known = " or ".join(map(repr, env.COMPILE_MOMENTS))
        raise ValueError(f"compile={moment!r}: expected {known}")
    if moment == "background" and backend not in BACKENDS:
        raise ValueError(
            f"compile={moment!r} is for the backends {', '.join(BACKENDS)}"
        )
    if tune and backend not in BACKENDS:
        raise ValueError(f"tune={tune!r} is for the backends {', '.join(BACKENDS)}")
    if memory_budget and backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise ValueError(f"memory_budget is for the backends {known}, not {backend!r}")
    if not isinstance(backend, str):
        name = getattr(backend, "__name__", "callable")
        differentiates = getattr(backend, "differentiates", True)
        return Backend(name, _plainly(backend), differentiates)
    if backend == "eager":
        return Backend("eager", run_eagerly, True)
    if backend not in BACKENDS:
        return Backend(backend, _plainly(_dynamo_compiler(backend)), False)
    tiers = Tiers((moment or env.COMPILE.get()) == "background", env.RACE.get())

    module, _, name = BACKENDS[backend].partition(":")
    load = functools.partial(importlib.import_module, module)

    def compile_graph(
        gm: fx.GraphModule, example_inputs: list[torch.Tensor]
    ) -> Compiled:
        function: Any = getattr(load(), name)
        options = CompileOptions(memory_budget=memory_budget)
        compiled: Compiled = function(
            gm,
            example_inputs,
            target=target,
            tune=tune,
            options=options,
            tiers=tiers,
            program=program,
        )
        return compiled

    def compile_sizes(*described: Any) -> TieredGraph | None:
        function: Any = getattr(load(), _FOR_SIZES)
        options = CompileOptions(memory_budget=memory_budget)
        sized: TieredGraph | None = function(
            *described, options=options, tiers=tiers, program=program
        )
        return sized

    # Plans that are measured and code for a GPU are made for each size.
    for_sizes = compile_sizes if target in _FOR_ALL_SIZES and not tune else None
    return Backend(
        backend,
        compile_graph,
        False,
        tiers,
        cuts=True,
        load=load,
        compile_sizes=for_sizes,
    )


def _plainly(compile_graph: CompileGraph) -> CompileGraph:
    """Return a backend that never has a graph run as a module.

    Hooks for all modules would run for it, as for a module of the program.
    """

    def compile_plainly(gm: fx.GraphModule, inputs: list[torch.Tensor]) -> Compiled:
        compiled: Any = compile_graph(gm, inputs)
        is_module = isinstance(compiled, fx.GraphModule)
        plain: Compiled = graph_runner(compiled) if is_module else compiled
        return plain

    return compile_plainly


def _dynamo_compiler(name: str) -> CompileGraph:
    """Return what compiles graphs for a backend of `torch.compile`.

    Raises:
        ValueError: No backend has this name.
    """
    # They take long to import.
    from torch._dynamo.backends.registry import list_backends, lookup_backend
    from torch._inductor import config

    every = ("eager", *BACKENDS, *list_backends(exclude_tags=None))
    if name not in every:
        raise ValueError(f"unknown backend {name!r}{did_you_mean(name, every)}")

    def compile_graph(
        gm: fx.GraphModule, example_inputs: list[torch.Tensor]
    ) -> Compiled:
        # Random numbers are drawn from torch's generators, as eager torch does.
        with config.patch(fallback_random=True):
            compiled: Compiled = lookup_backend(name)(gm, example_inputs)
        return compiled

    return compile_graph


class LeftToTorchError(Exception):
    """A graph is left to torch as a whole.

    Attributes:
        id: Of the reason, in the catalogue.
    """

    def __init__(self, id: str, detail: str) -> None:
        super().__init__(detail)
        self.id = id


_LEFT_TO_TORCH: Final = {
    ConstantTensor: "operator-argument",
    CustomFunction: "custom-function",
}


def compile_captured(
    graph: OperatorGraph, backend: Backend, report: Callable[[Exception], None]
) -> Compiled:
    """Compile a captured graph; gradients flow through the result where they must.

    Args:
        backend: Compiles the whole graph, or its forward and backward halves if it
            does not differentiate.
        report: Gets what the backend raises later, for a backward half.

    Raises:
        LeftToTorchError: The graph must run through torch.
        Exception: What the backend raises.
    """
    if backend.differentiates:
        return backend.compile(graph.module, list(graph.examples))
    for node in all_nodes(graph.module):
        for kind, reason in _LEFT_TO_TORCH.items():
            if isinstance(node.target, kind):
                raise LeftToTorchError(reason, node.target.__name__)
    if not graph.trains:
        try:
            plain = _without_autograd(graph, graph.module, graph.examples)
        except UnsupportedError as error:
            raise LeftToTorchError("training-graph", str(error)) from error
        return backend.compile(plain, list(graph.examples))
    if any(map(frees_history, all_nodes(graph.module))):
        raise LeftToTorchError("training-graph", "gradients that free their history")
    if any(bodies_of(node) for node in graph.module.graph.nodes):
        raise LeftToTorchError("training-graph", "a branch on the value of a tensor")
    # Torch's tracing of gradients takes long to import.
    from magweld.training.compile import plan_captured

    try:
        plan = plan_captured(graph)
    except UnsupportedError as error:
        raise LeftToTorchError("training-graph", str(error)) from error
    return plan.compile(backend.compile, report)


def compile_values(graph: OperatorGraph, backend: Backend) -> CompileGraph:
    """Return what compiles a graph with lifted values for some of them."""

    def compile_graph(module: fx.GraphModule, inputs: list[torch.Tensor]) -> Compiled:
        return backend.compile(_without_autograd(graph, module, inputs), inputs)

    return compile_graph


def _without_autograd(
    graph: OperatorGraph, module: fx.GraphModule, inputs: Sequence[torch.Tensor]
) -> fx.GraphModule:
    if not graph.makes_gradients:
        return module
    from magweld.training.without_autograd import without_autograd

    return without_autograd(module, inputs, grad_enabled=graph.grad_enabled)
