"""Owns the backend of `torch.compile`: graphs of TorchDynamo's, compiled for calls."""

from __future__ import annotations

import threading
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, fx
from torch._ops import HigherOrderOperator

from magweld import api
from magweld.compiler_options import CompileOptions, parse_bytes
from magweld.diagnostics import MagweldError, UnsupportedError, did_you_mean
from magweld.frontend.capture.operator_graph import OperatorGraph
from magweld.graphs.lifted_graph import Example, LiftedGraph
from magweld.runtime.sharing import shares_memory
from magweld.training.compile import plan_training
from magweld.tuning.options import TuneOptions, tune_options

Call = Callable[..., Any]

# Whether plans are chosen by measuring; None leaves it to `options`.
_MODES: Final[Mapping[str, bool | None]] = {
    "default": None,
    "max-autotune": True,
    "max-autotune-no-cudagraphs": True,
    "reduce-overhead": None,
}
# What `options=` knows beside the fields of `CompileOptions`.
_TUNE: Final = "tune"
_RULES: Final = "batch_rules"
_STATE_OF_TORCH: Final = ("torch.amp", "torch.autograd", "torch._functorch")


@dataclass(frozen=True)
class Settings:
    """What `torch.compile(mode=..., options=...)` asks for.

    Attributes:
        options: What the compilation may decide.
        tune: Whether plans are chosen by measuring, as `compile_graph` takes it.
    """

    options: CompileOptions
    tune: Any = None

    @staticmethod
    def of(mode: str | None, options: Mapping[str, Any] | None) -> Settings:
        """Check the arguments of `torch.compile`.

        Raises:
            ValueError: An unknown mode, option or value; it names the nearest one.
            TypeError: A value of the wrong type.
        """
        tune = _tune_of(mode)
        chosen = dict(options or {})
        types = typing.get_type_hints(CompileOptions)
        for name in chosen:
            if name not in (_TUNE, *types):
                near = did_you_mean(name, (_TUNE, *types))
                raise ValueError(f"magweld has no option {name!r}{near}")
        tune = chosen.pop(_TUNE, tune)
        if tune is not None and not isinstance(tune, bool | int | float | TuneOptions):
            raise TypeError(
                "option 'tune': expected a bool, a number of seconds or TuneOptions,"
                f" got {type(tune).__name__}"
            )
        if tune is not None:
            tune_options(tune)
        budget = parse_bytes(chosen.pop("memory_budget", None))
        for name, value in chosen.items():
            if types[name] in (bool, int):
                _check_plain(name, value, types[name])
            elif name == _RULES:
                chosen[name] = _names(name, value)
            else:
                _check_text(name, value, typing.get_args(types[name]))
        return Settings(CompileOptions(**chosen, memory_budget=budget), tune)


def _tune_of(mode: str | None) -> bool | None:
    if mode is None:
        return None
    if mode not in _MODES:
        raise ValueError(f"magweld has no mode {mode!r}{did_you_mean(mode, _MODES)}")
    if mode == "reduce-overhead":
        message = "mode 'reduce-overhead' is for GPUs; magweld compiles as by default"
        warnings.warn(message, stacklevel=2)
    return _MODES[mode]


def _check_plain(name: str, value: object, kind: type[object]) -> None:
    if type(value) is not kind:
        found = type(value).__name__
        word = "a bool" if kind is bool else "an int"
        raise TypeError(f"option {name!r}: expected {word}, got {found}")


def _names(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise TypeError(f"option {name!r}: expected a list of names, got {value!r}")


def _check_text(name: str, value: object, values: Sequence[str]) -> None:
    if not isinstance(value, str):
        found = type(value).__name__
        raise TypeError(f"option {name!r}: expected a string, got {found}")
    if values and value not in values:
        near = did_you_mean(value, values)
        raise ValueError(f"option {name!r} cannot be {value!r}{near}")


def dynamo_backend(
    graph: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call:
    """Compile a graph of TorchDynamo's, as `torch.compile(backend="magweld")` does.

    A graph that is refused runs through torch as it is; a warning says why.

    Args:
        graph: The graph.
        example_inputs: Its inputs, without data.
        mode: As of `torch.compile`: "default", "max-autotune" or
            "max-autotune-no-cudagraphs", which choose plans by measuring, or
            "reduce-overhead", which is as the default.
        options: Fields of `CompileOptions`, `memory_budget` as `parse_bytes` takes
            it, and `tune` as of `compile_graph`.

    Raises:
        ValueError: An unknown mode, option or value.
        TypeError: A value of the wrong type.
    """
    return compile_dynamo_graph(graph, example_inputs, Settings.of(mode, options))


def compile_dynamo_graph(
    graph: fx.GraphModule, example_inputs: Sequence[Any], settings: Settings
) -> Call:
    """Return a callable that does what a graph of TorchDynamo's does.

    What is refused runs through torch as it is; a warning says why. Gradients and
    symbolic sizes need tensors with data: such graphs are compiled by calls, those
    with symbolic sizes for each set of sizes that comes back.

    Args:
        graph: The graph.
        example_inputs: Its inputs without data: tensors, and numbers for sizes.
        settings: How to compile.
    """
    tensors = [x for x in example_inputs if isinstance(x, Tensor)]
    trains = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    compile_for = partial(_compile, settings, trains)
    reason = _refusal(graph, example_inputs, trains)
    if reason:
        return _through_torch(graph, reason)
    if len(tensors) != len(example_inputs):
        return _for_each_size(graph, example_inputs, compile_for)
    if trains:
        return _ByFirstCall(graph, compile_for)
    return compile_for(graph, tensors)


def _refusal(graph: fx.GraphModule, inputs: Sequence[Any], trains: bool) -> str:
    """Return why a graph must run through torch, "" if it need not."""
    if torch.is_autocast_enabled("cpu"):
        return "autocast is on"
    if not all(isinstance(x, Tensor | int | torch.SymInt) for x in inputs):
        return "an input is neither a tensor nor a size"
    if trains:
        for node in graph.graph.nodes:
            if _hides_gradients(node):
                return f"its gradients depend on {node.name}"
    return ""


def _hides_gradients(node: fx.Node) -> bool:
    """Whether a node may hold operators, or switch how gradients are made."""
    target: Any = node.target
    if node.op == "call_module" or isinstance(target, HigherOrderOperator):
        return True
    module = getattr(target, "__module__", None) or ""
    return node.op == "call_function" and module.startswith(_STATE_OF_TORCH)


def _compile(
    settings: Settings, trains: bool, graph: fx.GraphModule, inputs: list[Tensor]
) -> Call:
    """Compile a graph of tensors, or say why it runs through torch."""
    half = partial(api.compile_graph, options=settings.options, tune=settings.tune)
    try:
        if trains:
            return _training(graph, inputs, half)
        compiled = half(graph, inputs)
    except MagweldError as error:
        return _through_torch(graph, str(error))
    except Exception as error:
        # A mistake of the compiler costs speed at most.
        return _through_torch(graph, f"{type(error).__name__}: {error}")
    writes = (
        isinstance(compiled, api.CompiledGraph) and compiled.imported.epilogue.writes
    )
    return _unless_shared(graph, compiled) if writes else compiled


def _training(graph: fx.GraphModule, inputs: list[Tensor], half: Call) -> Call:
    """Compile the forward half of a graph, and the backward half when it first runs."""
    wanted = OperatorGraph(
        graph, (), True, "", torch.is_grad_enabled(), examples=tuple(inputs)
    )
    try:
        plan = plan_training(wanted)
    except UnsupportedError as error:
        return _through_torch(graph, str(error))
    run = plan.compile(half, _report_half)
    return _unless_shared(graph, run) if plan.facts.written else run


def _report_half(error: Exception) -> None:
    _warn(f"a backward half is not compiled, {error}; it runs through torch")


def _unless_shared(graph: fx.GraphModule, compiled: Call) -> Call:
    """Leave calls to torch whose inputs share memory: TorchDynamo has no such guard."""

    def run(*inputs: Tensor) -> Any:
        return graph.forward(*inputs) if shares_memory(inputs) else compiled(*inputs)

    return run


class _ByFirstCall:
    """A graph that is compiled by its first call, for the tensors of that call."""

    def __init__(self, graph: fx.GraphModule, compile_for: Call) -> None:
        self._graph = graph
        self._compile_for = compile_for
        self._lock = threading.Lock()
        self._compiled: Call | None = None

    def __call__(self, *inputs: Tensor) -> Any:
        if self._compiled is None:
            with self._lock:
                if self._compiled is None:
                    self._compiled = self._compile_for(self._graph, list(inputs))
        return self._compiled(*inputs)


def _for_each_size(
    graph: fx.GraphModule, inputs: Sequence[Any], compile_for: Call
) -> Call:
    """Return a graph with symbolic sizes: by torch, or compiled for known sizes."""
    results = [
        leaf for node in graph.graph.find_nodes(op="output") for leaf in node.args[0]
    ]
    if not all(isinstance(r, fx.Node) and _is_tensor(r) for r in results):
        return _through_torch(graph, "it returns a symbolic size")
    numbers = [n for n, x in enumerate(inputs) if not isinstance(x, Tensor)]
    tensors = [n for n, x in enumerate(inputs) if isinstance(x, Tensor)]
    order = (*tensors, *numbers)
    lifted = LiftedGraph(
        _reordered(graph, order), len(numbers), compile_for, Example((), ())
    )

    def run(*arguments: Any) -> Any:
        return lifted(*[arguments[position] for position in order])

    return run


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("example_value"), Tensor)


def _reordered(graph: fx.GraphModule, order: Sequence[int]) -> fx.GraphModule:
    """Return a graph that takes its inputs in another order."""
    made = fx.Graph()
    holders = graph.graph.find_nodes(op="placeholder")
    values: dict[fx.Node, Any] = {holders[n]: made.node_copy(holders[n]) for n in order}
    for node in graph.graph.nodes:
        if node not in values:
            values[node] = made.node_copy(node, values.__getitem__)
    return fx.GraphModule(graph, made)


def _through_torch(graph: fx.GraphModule, reason: str) -> Call:
    _warn(f"a graph is not compiled, {reason}; it runs through torch")
    return graph.forward


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=2)
