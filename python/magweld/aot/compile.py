"""Owns ahead-of-time compilation: one traced call of a model to an artifact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx

from magweld.aot.artifact import Artifact, placed
from magweld.aot.call_plan import CallPlan
from magweld.aot.errors import (
    CHANGES_STATE,
    CONTROL,
    DEPENDS_ON_DATA,
    DERIVED_INPUT,
    NOT_ONE_GRAPH,
    REPEATED_INPUT,
    RETURNS_ARGUMENT,
    SHARED_STATE,
    WRITES_VALUE,
)
from magweld.aot.held_tensors import held_copy
from magweld.aot.operator_call import OperatorCall
from magweld.aot.signature import Signature, tensors_in
from magweld.aot.template import Template, Tensors
from magweld.api import compile_imported
from magweld.artifact import HOST_TARGET, StandIns
from magweld.compiler_options import CompileOptions
from magweld.control_graph import import_control
from magweld.frontend.guards.guard import Category
from magweld.frontend.records.record import Record
from magweld.frontend.state.steps import HitStep, Made, Make
from magweld.frontend.traced import trace
from magweld.graphs.gradients import has_inner_gradients
from magweld.graphs.numbers import without_numbers
from magweld.importer.epilogue import Epilogue
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.piecewise import has_control
from magweld.runtime.gpu.machine import GPU
from magweld.runtime.sharing import shares_memory
from magweld.training.without_autograd import without_autograd
from magweld.tuning.options import Tune

_CONSTANT = StandIns()
_FROM_ARGUMENTS = ("args[", "kwargs[")


@dataclass(frozen=True)
class CapturedCall:
    """One call of a model as a graph and where its tensors come from.

    Attributes:
        graph: The operators.
        example_inputs: The tensors that the graph reads.
        feeds: For each of them whether it is of the state, and which.
        inputs: Tensors that the caller passed.
        state: Tensors of the model, by the expression that reached them.
        template: How the result is put together.
        signature: The arguments of the call.
        by_value: Whether operators cannot write, as the graph is one of values.
    """

    graph: fx.GraphModule
    example_inputs: list[Tensor]
    feeds: tuple[tuple[bool, int], ...]
    inputs: list[Tensor]
    state: dict[str, Tensor]
    template: Template
    signature: Signature
    by_value: bool = False


@dataclass(frozen=True)
class ImportedCall:
    """A captured call as a graph for the compiler, and the tensors that it holds.

    Attributes:
        call: What was captured.
        imported: The graph.
        feeds: For each input of the graph whether it is of the state, and which.
        state: Copies of the tensors of the model, and constants of the graph.
    """

    call: CapturedCall
    imported: ImportedGraph
    feeds: tuple[tuple[bool, int], ...]
    state: dict[str, Tensor]

    def plan(self, imported: ImportedGraph) -> CallPlan:
        """Return what happens around the compiled function.

        Args:
            imported: The graph as it was compiled.

        Raises:
            UnsupportedError: `artifact-external`.
        """
        return CallPlan(
            self.feeds,
            imported.arguments,
            imported.converted,
            imported.epilogue,
            {name: OperatorCall.of(x) for name, x in imported.externals.items()},
        )


def import_call(
    call: CapturedCall,
    target: str,
    *,
    tileable: bool = False,
    alone: bool = False,
    stand_ins: StandIns = _CONSTANT,
) -> ImportedCall:
    """Import a captured call.

    Args:
        call: What was captured.
        target: What it is compiled for.
        tileable: As for `import_graph`.
        alone: Whether there is no torch to run operators: kernels look up rows, and
            operators of the state alone are evaluated if they have no generated code.
        stand_ins: As of `import_graph`.

    Raises:
        UnsupportedError: The graph, or the way it uses tensors, cannot be compiled.
    """
    # Copies: the artifact's parameters are its own, and each has memory of its own.
    # What runs without torch reads rows.
    copied = _row_major_copy if alone else held_copy
    state = {name: copied(tensor) for name, tensor in call.state.items()}
    held = list(state.values())
    sources = [(held if of_state else call.inputs)[i] for of_state, i in call.feeds]
    device = _device(target, sources)
    fixed = frozenset(n for n, (of_state, _) in enumerate(call.feeds) if of_state)
    if has_control(call.graph):
        if target != HOST_TARGET:
            raise CONTROL.at("the captured graph")
        imported = import_control(without_numbers(call.graph), sources)
    else:
        imported = import_graph(
            call.graph,
            sources,
            look_ups=alone,
            tileable=tileable,
            device=device,
            # What is evaluated is for one size.
            fixed=fixed if alone and not stand_ins else frozenset(),
            stand_ins=stand_ins,
        )
    if imported.epilogue.writes and call.by_value:
        raise WRITES_VALUE.at("the module")
    if imported.epilogue.writes and shares_memory(call.example_inputs):
        raise SHARED_STATE.at("the captured graph")
    seen = _seen_tensors(call, imported.epilogue, sources, held)
    for name, tensor in state.items():
        if id(tensor) not in seen:
            # The compiled function reads rows: copied once, not in each call.
            state[name] = tensor.contiguous()
    feeds = list(call.feeds)
    for number, constant in enumerate(imported.constants):
        feeds.append((True, len(state)))
        state[f"constant {number}"] = copied(constant)
    return ImportedCall(call, imported, tuple(feeds), state)


def compile_call(
    call: CapturedCall,
    target: str,
    options: CompileOptions,
    tune: Tune | None = None,
) -> Artifact:
    """Compile a captured call for a target, `tune` being as for `compile_graph`.

    Raises:
        UnsupportedError: The graph, or the way it uses tensors, cannot be compiled.
        WorkerError: The compiler refused the graph or did not come back.
    """
    ours = import_call(call, target, tileable=options.memory_budget > 0)
    imported, program = compile_imported(ours.imported, options, tune, target)
    plan = ours.plan(imported)
    held = [ours.state[name] for name in call.state]
    device = held[0].device if held and held[0].device.type != HOST_TARGET else None
    return placed(
        Artifact(program, call.signature, plan, call.template, ours.state, None),
        device,
    )


def _device(target: str, tensors: Sequence[Tensor]) -> torch.device:
    """Return where the graph is traced: where its tensors are, or on no device.

    Operators of a GPU cannot be traced without one in builds of torch for the CPU, and
    those of the CPU may be nowhere else: operators of no device are everywhere.
    """
    if target == HOST_TARGET:
        return torch.device(HOST_TARGET)
    found = {tensor.device for tensor in tensors if tensor.device.type == GPU}
    return min(found, key=str, default=torch.device("meta"))


def capture_call(
    model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> CapturedCall:
    """Run a model once without gradients and capture it.

    The run is a real one: tensors that the model updates in place are updated by it.

    Raises:
        UnsupportedError: It is not one graph, changes Python objects, or takes or
            returns what an artifact cannot hold.
    """
    signature = Signature.of(args, kwargs)
    passed = [*args, *kwargs.values()]
    inputs = list(tensors_in(passed))
    if len(set(map(id, inputs))) < len(inputs):
        raise REPEATED_INPUT.at("the example inputs")
    traced = trace(model, backend=_as_it_is)
    with torch.no_grad():
        traced(*args, **kwargs)
        if traced.breaks or not traced.records:
            reasons = "; ".join(map(str, traced.breaks)) or "nothing was captured"
            raise NOT_ONE_GRAPH.at(reasons)
        (record,) = traced.records
        fetched = record.program.check(tuple(args), dict(kwargs))
    if type(fetched) is not list:
        raise CHANGES_STATE.at("a second call would not run as the first")
    return _captured(record, fetched, inputs, signature, set(_changeable(passed)))


def _as_it_is(graph: fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    forward: Callable[..., Any] = graph.forward
    return forward


def _captured(
    record: Record,
    fetched: list[Any],
    inputs: list[Tensor],
    signature: Signature,
    containers: set[int],
) -> CapturedCall:
    for guard in record.guards:
        # An artifact checks no guards: shapes and types are in its signature, Python
        # state is fixed, but elements are new on each call.
        if guard.category is Category.PREDICATE:
            raise DEPENDS_ON_DATA.at(str(guard))
    if not all(map(_is_fresh, record.mock.steps)):
        raise CHANGES_STATE.at("a write that is repeated on each call")
    distinct = any(guard.category is Category.ALIAS for guard in record.guards)
    count = len(record.input_paths)
    example_inputs = fetched[:count]
    state: dict[str, Tensor] = {}
    feeds = [
        _feed(tensor, path, inputs, state)
        for tensor, path in zip(example_inputs, record.input_paths, strict=True)
    ]
    node = record.graph.graph.output_node()
    outputs = tuple(torch.empty(0) for _ in node.args[0])  # type: ignore[union-attr]
    result = record.mock.replay(fetched[count:], outputs)
    if not containers.isdisjoint(_changeable(result)):
        raise RETURNS_ARGUMENT.at("the result")
    tensors = Tensors(outputs, inputs, list(state.values()))
    graph = record.graph
    if has_inner_gradients(graph):
        graph = without_autograd(graph, example_inputs, grad_enabled=False)
    return CapturedCall(
        graph,
        example_inputs,
        tuple(feeds),
        inputs,
        state,
        tensors.template(result),
        replace(signature, distinct=distinct),
    )


def _changeable(value: object) -> Iterator[int]:
    """Yield which lists and dicts a value is made of."""
    if isinstance(value, list | dict):
        yield id(value)
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _changeable(item)


def _feed(
    tensor: Tensor, path: str, inputs: Sequence[Tensor], state: dict[str, Tensor]
) -> tuple[bool, int]:
    for index, candidate in enumerate(inputs):
        if candidate is tensor:
            return False, index
    if path.startswith(_FROM_ARGUMENTS):
        raise DERIVED_INPUT.at(path)
    state[path] = tensor
    return True, len(state) - 1


def _row_major_copy(tensor: Tensor) -> Tensor:
    return held_copy(tensor).contiguous()


def _seen_tensors(
    call: CapturedCall,
    epilogue: Epilogue,
    sources: Sequence[Tensor],
    held: Sequence[Tensor],
) -> set[int]:
    """Return the ids of tensors that are written to, or part of the result.

    Args:
        call: What was captured.
        epilogue: What happens after the compiled function.
        sources: The inputs of the graph.
        held: The tensors of the state.
    """
    outputs = [torch.empty(0) for _ in epilogue.outputs]
    result = Tensors(outputs, call.inputs, held).build(call.template)
    kept = (sources[number] for number in epilogue.kept_inputs if number < len(sources))
    return {id(tensor) for tensor in (*tensors_in(result), *kept)}


def _is_fresh(step: HitStep) -> bool:
    """Tell whether a step makes an object, or fills one that was made."""
    return isinstance(step, Make) or isinstance(step.target, Made)
