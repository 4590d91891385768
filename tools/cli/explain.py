"""Owns `magweld explain`: what becomes of a model, decision by decision."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from magweld.api import CompiledGraph, compile_graph
from magweld.compiler_options import CompileOptions
from magweld.diagnostics import did_you_mean
from magweld.frontend import Record, Traced, trace
from magweld.tools.cli.bench import in_turns
from magweld.tools.cli.program import (
    CommandLineError,
    example_inputs,
    load_model,
    memory_budget,
    require_runs,
)
from magweld.tools.output import write_output
from magweld.tools.view.differences import differences
from magweld.tools.view.timeline import Ran, course

_ROUNDS = 20
# How the ranges of calls and of their steps begin.
_RANGES = "magweld"


def run(options: argparse.Namespace) -> None:
    """Trace calls without gradients and print what was found and decided."""
    _require_page(options)
    before = _read_decisions(options.against) if options.against else []
    model, calls = load_model(options.model), list(map(example_inputs, options.inputs))
    for inputs in calls:
        require_runs(model, inputs)
    watched: list[_Watched] = []
    budget = memory_budget(options.memory_budget)
    if options.measure:
        compile_options = CompileOptions(memory_budget=budget or 0)
        traced = trace(model, backend=_watching(watched, compile_options))
    else:
        traced = trace(model, memory_budget=budget, compile="now")
    with torch.no_grad():
        for inputs in calls:
            traced(*inputs)
            if options.measure:
                # The run that records is eager; another one shows the graphs' inputs.
                traced(*inputs)
    for graph in watched:
        graph.measure()
    ran: list[Ran] = []
    times: dict[str, float] = {}
    if options.measure and options.html:
        peers = {f"torch.compile, {name}": _peer(model, name) for name in options.peers}
        ran, times = _one_call(model, traced, calls[-1], peers)
    if options.html:
        # Imported late: templates are needed for a page only.
        from magweld.tools.view.page import page

        text = page(
            *(options.model, traced.records, traced.breaks, traced.recompiles),
            course=ran,
            times=times,
            passes=options.passes,
            before=before,
        )
        write_output(text, options.html)
    if options.html != "-":
        print(_json(traced) if options.json else traced.explain(recompiles=True))


def _require_page(options: argparse.Namespace) -> None:
    """Refuse options that say what is in a page where there is none."""
    needs = {"--html": options.html, "--measure": options.measure}
    for name, given, wanted in (
        ("--passes", options.passes, ("--html",)),
        ("--against", options.against, ("--html",)),
        ("--peers", options.peers, ("--html", "--measure")),
    ):
        missing = [other for other in wanted if not needs[other]]
        if given and missing:
            raise CommandLineError(f"{name} needs {' and '.join(missing)}")


def _read_decisions(path: str) -> list[dict[str, Any]]:
    """Return what `explain --json` wrote into a file.

    Raises:
        CommandLineError: It holds something else.
        OSError: It cannot be read.
    """
    try:
        found = json.loads(Path(path).read_bytes())
        # What a page reads of another compilation, it reads now.
        differences(found, ())
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        message = f"'{path}' is no output of explain --json: {error}"
        raise CommandLineError(message) from error
    return list(found)


def _peer(model: Callable[..., Any], backend: str) -> Callable[..., Any]:
    known = torch.compiler.list_backends(exclude_tags=())
    if backend not in known:
        hint = did_you_mean(backend, known)
        raise CommandLineError(f"torch.compile has no backend '{backend}'{hint}")
    return torch.compile(model, backend=backend)


def _one_call(
    model: Callable[..., Any],
    traced: Traced,
    inputs: Sequence[Any],
    peers: Mapping[str, Callable[..., Any]],
) -> tuple[list[Ran], dict[str, float]]:
    """Return what runs in a call, and the least times of all that can make it."""
    ways: dict[str, Callable[..., Any]] = {"eager": model, "magweld": traced, **peers}
    with torch.no_grad():
        ran = course_of(lambda: traced(*inputs))
        calls = {name: partial(way, *inputs) for name, way in ways.items()}
        for call in calls.values():
            call()
        times = in_turns(calls, _ROUNDS)
    return ran, {name: min(seconds) for name, seconds in times.items()}


def course_of(call: Callable[[], Any]) -> list[Ran]:
    """Run a traced call under the profiler and return its course.

    Each range takes about a microsecond more than without a profiler.
    """
    with torch.profiler.profile() as profile:
        call()
    seen = [event for event in profile.events() if event.name.startswith(_RANGES)]
    return course([(e.name, e.time_range.start, e.time_range.end) for e in seen])


class _Watched:
    """A compiled graph that keeps the inputs of its first call."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self._inputs: tuple[Tensor, ...] | None = None

    def __call__(self, *inputs: Tensor) -> Any:
        # Copies are no part of the calls that are timed.
        if self._inputs is None:
            self._inputs = tuple(tensor.detach().clone() for tensor in inputs)
        return self.compiled(*inputs)

    def mlir(self, stage: str) -> str:
        """See `Inspectable.mlir`."""
        text: str = self.compiled.mlir(stage)
        return text

    def report(self) -> dict[str, Any]:
        """See `Inspectable.report`."""
        report: dict[str, Any] = self.compiled.report()
        return report

    def measure(self) -> None:
        """Time the steps of the graph on what it was called with."""
        if isinstance(self.compiled, CompiledGraph) and self._inputs is not None:
            self.compiled.measure(self._inputs, _ROUNDS)


def _watching(watched: list[_Watched], options: CompileOptions) -> Callable[..., Any]:
    def backend(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> _Watched:
        watched.append(_Watched(compile_graph(graph, inputs, options=options)))
        return watched[-1]

    return backend


def _json(traced: Traced) -> str:
    """Return the decisions of all records as JSON."""
    records = [{"record": r.number, **_decisions(r)} for r in traced.records]
    return json.dumps(records, indent=1)


def _decisions(record: Record) -> dict[str, Any]:
    report = {} if record.inspectable is None else record.inspectable.report()
    return {"operators": record.operators, **report}
