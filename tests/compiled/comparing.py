"""Owns the comparison of a compiled graph with eager torch, and what is left of one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from random_tensors import FLOATS
from torch import Tensor
from torch_graphs import Graph, Value

from magweld.api import compile_graph
from magweld.checking import copy_tensors
from magweld.compiler_options import CompileOptions
from magweld.diagnostics import UnsupportedError
from magweld.runtime.errors import TaskFailedError, WorkerError


@dataclass(frozen=True)
class Outcome:
    """What became of a graph.

    Attributes:
        failure: How it differs from eager; empty if it does not.
        refused: The id of the refusal, if it was refused.
    """

    failure: str = ""
    refused: str = ""


def options_of(seed: int) -> CompileOptions:
    """Return what the compilation of a seed may decide."""
    rng = random.Random(~seed)
    budget = 0 if rng.random() < 0.8 else 2 ** rng.randint(12, 19)
    return CompileOptions(
        library=rng.choice(("auto", "auto", "never", "never", "always")),
        fusion=rng.choice(("all", "all", "all", "registers", "none")),
        memory_budget=budget,
    )


def outcome(
    graph: Graph, options: CompileOptions, results: Sequence[Value] | None = None
) -> Outcome:
    """Compile a graph, call it twice and compare with eager."""
    results = graph.choose_results() if results is None else results
    module = graph.module(results)
    rounding = [graph.rounding(value) for value in results]
    changes = [graph.rounding(value) for value in graph.arguments]
    with torch.no_grad():
        try:
            compiled = compile_graph(module, graph.inputs, options=options)
        except UnsupportedError as error:
            return Outcome(refused=error.id)
        except WorkerError as error:
            if isinstance(error, TaskFailedError) and "memory-budget:" in str(error):
                return Outcome(refused="memory-budget")
            return Outcome(f"does not compile: {error}")
        except Exception as error:
            return Outcome(f"does not compile: {type(error).__name__}: {error}")
        theirs = copy_tensors(graph.inputs)
        expected = module(*theirs)
        mine, again = copy_tensors(graph.inputs), copy_tensors(graph.inputs)
        try:
            actual, repeated = compiled(*mine), compiled(*again)
        except Exception as error:
            return Outcome(f"does not run: {type(error).__name__}: {error}")
    differences = [
        *_all_differences("result", actual, expected, rounding),
        *_all_differences("input", mine, theirs, changes),
        *_all_differences("second result", repeated, actual, [0.0] * len(actual)),
        *_aliases(actual, mine, expected, theirs),
    ]
    return Outcome("; ".join(differences))


def _all_differences(
    name: str,
    mine: Sequence[Tensor],
    theirs: Sequence[Tensor],
    rounding: Sequence[float],
) -> list[str]:
    triples = enumerate(zip(mine, theirs, rounding, strict=True))
    found = [(number, difference(*triple)) for number, triple in triples]
    return [f"{name} {number}: {text}" for number, text in found if text]


def difference(mine: Tensor, theirs: Tensor, rounding: float) -> str:
    """Return how two tensors differ, beyond rounding."""
    for what in ("dtype", "shape", "requires_grad"):
        if getattr(mine, what) != getattr(theirs, what):
            return f"{what} {getattr(mine, what)}, not {getattr(theirs, what)}"
    if _strides(mine) != _strides(theirs):
        return f"strides {mine.stride()}, not {theirs.stride()}"
    if mine.dtype not in FLOATS:
        return "" if torch.equal(mine, theirs) else _shown(mine, theirs)
    left, right = mine.double(), theirs.double()
    finite = right.isfinite()
    odd, expected = left[~finite], right[~finite]
    if not torch.equal(odd.nan_to_num(7), expected.nan_to_num(7)):
        return f"where not finite: {_shown(odd, expected)}"
    left, right = left[finite], right[finite]
    if not left.numel():
        return ""
    # What is near zero may be the sum of what is not.
    allowed = rounding * max(0.25, float(right.abs().max()))
    error = float((left - right).abs().max())
    return "" if error <= allowed else f"by {error:.3g}: {_shown(mine, theirs)}"


def _strides(tensor: Tensor) -> list[int]:
    """Return the strides that matter: of dimensions with several elements."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride for extent, stride in pairs if extent > 1] if tensor.numel() else []


def _shown(mine: Tensor, theirs: Tensor) -> str:
    wrong = (mine != theirs) & ~((mine != mine) & (theirs != theirs))
    at = tuple(wrong.nonzero()[0].tolist()) if wrong.any() else ()
    return (
        f"{int(wrong.sum())} of {wrong.numel()} elements of {tuple(mine.shape)}, "
        f"first at {at}: {mine[at].item()}, not {theirs[at].item()}"
    )


def _aliases(
    mine: Sequence[Tensor], my_inputs: Sequence[Tensor],
    theirs: Sequence[Tensor], their_inputs: Sequence[Tensor],
) -> list[str]:  # fmt: skip
    left = _sharing([*my_inputs, *mine])
    right = _sharing([*their_inputs, *theirs])
    return [] if left == right else [f"memory is shared as {left}, not {right}"]


def _sharing(tensors: Sequence[Tensor]) -> list[int]:
    """Return for each tensor the first that shares its memory."""
    addresses = [t.untyped_storage().data_ptr() for t in tensors]
    return [
        addresses.index(address) if tensor.numel() else number
        for number, (address, tensor) in enumerate(zip(addresses, tensors, strict=True))
    ]


def explanation(graph: Graph, options: CompileOptions) -> str:
    """Return the first value of a graph that is wrong alone, and what makes it."""
    asked = f"seed {graph.seed}, {options}"
    for value in [v for v in graph.values if v.node.op != "placeholder"]:
        alone = outcome(graph, options, [value])
        if alone.failure:
            return f"{asked}: {alone.failure}\n{_text(graph, [value])}"
    return f"{asked}: {outcome(graph, options).failure}\n{_text(graph, graph.values)}"


def _text(graph: Graph, results: Sequence[Value]) -> str:
    module = graph.module(results)
    changed = True
    while changed:
        changed = False
        for node in reversed(list(module.graph.nodes)):
            if node.op == "call_function" and not node.users and not _writes(node):
                module.graph.erase_node(node)
                changed = True
    lines = [
        f"  {n.format_node()}"
        for n in module.graph.nodes
        if n.users or n.op != "placeholder"
    ]
    inputs = [
        f"  {node.name}: {tensor.dtype} {tuple(tensor.shape)} {tensor.stride()}"
        for node, tensor in zip(
            (n for n in module.graph.nodes if n.op == "placeholder"),
            graph.inputs,
            strict=True,
        )
        if node.users
    ]
    return "\n".join([*inputs, *lines])


def _writes(node: Any) -> bool:
    name = getattr(node.target, "__name__", "")
    return name == "setitem" or (name.endswith("_") and not name.endswith("__"))
