"""One case of the coverage table: a model run eagerly and through a front end."""

from __future__ import annotations

import contextlib
import copy
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy
import torch
from coverage_compare import compare

from magweld.frontend import trace

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Inputs = Callable[[], Arguments]


@dataclass(frozen=True)
class Case:
    """A model and how to call it.

    Attributes:
        name: Name of the architecture.
        family: What it stands for.
        build: Makes the model and a function that draws inputs of a fixed shape.
    """

    name: str
    family: str
    build: Callable[[], tuple[torch.nn.Module, Inputs]]


class FrontEnd(Protocol):
    """A way to run a model that captures graphs."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model."""

    def counters(self) -> dict[str, Any]:
        """Return graphs, breaks (texts) and recaptures so far."""


class Magweld:
    """The front end of this project."""

    def __init__(self, model: torch.nn.Module, backend: str) -> None:
        self.traced = trace(model, backend=backend, compile="now")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model."""
        return self.traced(*args, **kwargs)

    def counters(self) -> dict[str, Any]:
        """Return the public counters and the breaks."""
        stats = self.traced.stats()
        breaks = [
            {"id": item.id, "detail": item.detail, "where": item.where}
            for item in self.traced.breaks
        ]
        miss = [x for x in self.traced.explain().splitlines() if "last miss" in x]
        return {"graphs": stats["graphs"], "breaks": breaks, "miss": miss[:1]}


class Dynamo:
    """torch.compile with a backend that runs its graphs by torch."""

    def __init__(self, model: torch.nn.Module) -> None:
        import torch._dynamo

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        self._graphs = 0
        self._compiled = torch.compile(model, backend=self._run, dynamic=False)

    def _run(self, gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        self._graphs += 1
        return gm.forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model."""
        return self._compiled(*args, **kwargs)

    def counters(self) -> dict[str, Any]:
        """Return Dynamo's counters."""
        breaks: Counter[str] = torch._dynamo.utils.counters["graph_break"]
        found = [
            {"id": "graph-break", "detail": text[:200], "where": ""} for text in breaks
        ]
        return {"graphs": self._graphs, "breaks": found, "miss": []}


def _seed(value: int) -> None:
    torch.manual_seed(value)
    random.seed(value)
    numpy.random.seed(value)


def _wake_parameters(model: torch.nn.Module) -> None:
    # Parameters of zero, as many models begin with, would hide wrong graphs.
    for parameter in model.parameters():
        if parameter.is_floating_point() and not bool(parameter.any()):
            torch.nn.init.normal_(parameter, std=0.05)


def _run(call: Callable[..., Any], inputs: Inputs, seed: int) -> tuple[Any, float]:
    _seed(seed)
    args, kwargs = inputs()
    _seed(7)
    start = time.perf_counter()
    result = call(*args, **kwargs)
    return [result, args, kwargs], time.perf_counter() - start


def _difference(eager: list[Any], ours: list[Any]) -> tuple[str, float]:
    largest = 0.0
    for left, right in zip(eager, ours, strict=True):
        comparison = compare(left, right)
        largest = max(largest, comparison.largest)
        if comparison.difference:
            return comparison.difference[:300], largest
    return "", largest


@contextlib.contextmanager
def _stage(row: dict[str, Any], verdict: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        row["result"] = verdict
        row["why"] = f"{type(error).__name__}: {str(error)[:300]}"


def check(
    case: Case, front_end: Callable[[torch.nn.Module], FrontEnd]
) -> dict[str, Any]:
    """Run a case: eagerly, then recorded, repeated, and with fresh inputs."""
    row: dict[str, Any] = {"name": case.name, "family": case.family}
    with _stage(row, "eager"), torch.no_grad():
        _seed(0)
        model, inputs = case.build()
        model.eval()
        _wake_parameters(model)
        row["parameters"] = sum(p.numel() for p in model.parameters())
        twin = copy.deepcopy(model)
        first = _run(twin, inputs, 1)[0]
        again, seconds = _run(twin, inputs, 1)
        row["eager_s"] = seconds
        expected = [first, again, _run(twin, inputs, 2)[0]]
        if _difference([first[0]], [again[0]])[0]:
            raise RuntimeError("not deterministic, or it keeps state")
    if "result" not in row:
        with _stage(row, "error"), torch.no_grad():
            _check_front_end(row, front_end(model), inputs, expected)
            state = [dict(m.named_buffers()) for m in (twin, model)]
            wrong, _ = _difference([state[0]], [state[1]])
            if wrong:
                row["result"], row["why"] = "wrong", f"buffers {wrong}"
    return row


def _check_front_end(
    row: dict[str, Any], call: FrontEnd, inputs: Inputs, expected: list[list[Any]]
) -> None:
    results, times, graphs = [], [], []
    for seed in (1, 1, 2):
        result, seconds = _run(call, inputs, seed)
        results.append(result)
        times.append(seconds)
        graphs.append(call.counters()["graphs"])
    row["first_s"], row["second_s"], row["third_s"] = times
    row["graphs"] = graphs
    row.update({k: v for k, v in call.counters().items() if k != "graphs"})
    pairs = [_difference(a, b) for a, b in zip(expected, results, strict=True)]
    row["largest_difference"] = max(largest for _, largest in pairs)
    wrong = [f"call {i + 1}: {text}" for i, (text, _) in enumerate(pairs) if text]
    if wrong:
        row["result"], row["why"] = "wrong", "; ".join(wrong)[:600]
    elif row["breaks"]:
        row["result"] = "broken"
    elif graphs == [1, 1, 1]:
        row["result"] = "full"
    elif graphs == [1, 2, 2]:
        row["result"] = "settled"
    else:
        row["result"] = "broken"
