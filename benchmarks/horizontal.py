"""Many equal small operators: torch, torch.compile, magweld with and without batches.

    python benchmarks/horizontal.py [--cases NAME ...] [--members N ...] [--rounds N]
        [--threads N] [--group-batch] [--iree] [-o FILE]

`apart` is magweld with a launch for each kernel, `launches` the kernel steps of both.
`compile` is the CPU time of our compiler for one cold compilation, in this process, and
`search` the part of it that finds what runs in one launch.
`--group-batch` adds torch.compile with its group-batch and split-cat fusions, which are
off by default, `--iree` adds IREE, where it takes a case. All peers of a case run in
turns; ratios are of least times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from horizontal_models import (
    WIDTH,
    Bags,
    Branches,
    Dlrm,
    Experts,
    OptimiserStep,
    Parts,
    SplitAndJoin,
    adam_step,
    linear,
    momentum_step,
    norm,
    perceptron,
)
from model_peers import iree
from reporting import report_file, reported
from rich.console import Console
from rich.table import Table
from timing import interleaved
from torch import Tensor, nn

from magweld import frontend
from magweld.api import compile_graph
from magweld.artifact import KernelStep
from magweld.bindings import ir
from magweld.compiler import compile_text
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.pipelines.middle import graph_steps
from magweld.passes.plan.batch_kernels import BatchKernels

ROWS = 32
USERS = 128
GROUP_BATCH: dict[str, dict[str, Any]] = {
    "batch_linear": {},
    "batch_layernorm": {},
    "batch_tanh": {},
    "batch_sigmoid": {},
    "batch_relu": {},
    "normalization_pass": {},
    "merge_splits_pass": {},
    "split_cat_pass": {},
    "unbind_stack_pass": {},
}


CASES: dict[str, Callable[[int], nn.Module]] = {
    "linears": partial(Branches, linear),
    "norms": partial(Branches, norm),
    "tanh": partial(Branches, nn.Tanh),
    "perceptrons": partial(Branches, perceptron),
    "experts": partial(Experts, perceptron),
    "split-norm": partial(Parts, norm),
    "split-linear": partial(Parts, linear),
    "split-norm-join": partial(SplitAndJoin, norm),
    "bags": Bags,
    "dlrm": Dlrm,
    "sgd": lambda _: OptimiserStep(momentum_step, 1),
    "adam": lambda _: OptimiserStep(adam_step, 2),
}


def arguments_of(name: str, members: int, module: nn.Module) -> list[Tensor]:
    """Return the inputs of a case."""
    if isinstance(module, OptimiserStep):
        return module.arguments(members)
    if name == "bags":
        return [torch.randint(0, 1000, (ROWS, 8)) for _ in range(members)]
    if name == "dlrm":
        return [
            torch.randn(USERS, 13),
            *chain(*(bags_of_users() for _ in range(members))),
        ]
    if name in ("split-norm", "split-linear"):
        return [torch.randn(ROWS, WIDTH * members)]
    return [torch.randn(ROWS, WIDTH) for _ in range(members)]


def bags_of_users() -> tuple[Tensor, Tensor]:
    """Return ids for each user, four of them on average, and where those begin."""
    count = 4 * USERS
    offsets = torch.randint(0, count + 1, (USERS,)).sort().values
    offsets[0] = 0
    return torch.randint(0, 1000, (count,)), offsets


def group_batched(module: nn.Module) -> Any:
    """Return a module compiled by torch with its horizontal fusions.

    Given as options, they keep its code apart from that of the peer without them.
    """
    options = {"pre_grad_fusion_options": GROUP_BATCH}
    return torch.compile(module, dynamic=False, options=options)


def ours(
    module: nn.Module, batch: bool, made: dict[str, Any], name: str
) -> Callable[..., Any]:
    """Return a traced module whose compiled graph becomes `made[name]`."""

    def backend(graph: Any, inputs: Any) -> Any:
        made[name] = compile_graph(graph, inputs, options=CompileOptions(batch=batch))
        return made[name]

    return frontend.trace(module, backend=backend)


def run_case(name: str, members: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one case; fails where a result is wrong."""
    # Cases share methods, and torch compiles each for a few modules only.
    torch._dynamo.reset()
    module = CASES[name](members).eval()
    arguments = arguments_of(name, members, module)
    made: dict[str, Any] = {}
    peers: dict[str, Callable[..., Any]] = {"eager": module}
    if not options.no_torch_compile:
        peers["torch.compile"] = torch.compile(module, dynamic=False)
    if options.group_batch:
        peers["group-batch"] = group_batched(module)
    peers["apart"] = ours(module, False, made, "apart")
    peers["magweld"] = ours(module, True, made, "magweld")
    calls = {peer: partial(run, *arguments) for peer, run in peers.items()}
    expected = module(*arguments)
    for call in calls.values():
        torch.testing.assert_close(call(), expected, rtol=1e-4, atol=1e-4)
    absent = add_iree(calls, module, arguments, expected) if options.iree else ""
    times = interleaved(calls, options.rounds)
    mine = times["magweld"].min_ms
    return {
        "case": f"{name}-{members}",
        "iree_absent": absent,
        "times": {peer: t.as_dict() for peer, t in times.items()},
        "over": {p: t.min_ms / mine for p, t in times.items() if p != "magweld"},
        "launches": {peer: launches(graph) for peer, graph in made.items()},
        "compile_cpu_s": compile_seconds(made["magweld"]),
        "search_cpu_s": search_seconds(made["magweld"]),
    }


def add_iree(
    calls: dict[str, Callable[[], Any]],
    module: nn.Module,
    arguments: Sequence[Tensor],
    expected: Any,
) -> str:
    """Add IREE to the calls of a case; return why it is not there, if it is not."""
    # What goes wrong in a peer is its row, whatever it is.
    try:
        call = iree(module, tuple(arguments))
        torch.testing.assert_close(call(), expected, rtol=1e-4, atol=1e-4)
    except Exception as reason:
        return f"{type(reason).__name__}: {reason}".splitlines()[0][:200]
    calls["iree"] = call
    return ""


def launches(graph: Any) -> int:
    """Return how many kernel steps a compiled graph has."""
    return sum(isinstance(step, KernelStep) for step in graph.program.steps)


def compile_seconds(graph: Any) -> float:
    """Return the CPU seconds of one compilation in this process."""
    start = time.process_time()
    compile_text(graph.imported.text, graph.options)
    return time.process_time() - start


def search_seconds(graph: Any) -> float:
    """Return the CPU seconds of the search for members of launches, in this process."""
    options = graph.options
    phases = graph_steps(options.device, options.library, batch=BatchKernels())
    seconds = 0.0
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(graph.imported.text)
        for step in chain.from_iterable(phases.values()):
            start = time.process_time()
            run_pipeline(Pipeline((step,)), module)
            if isinstance(step, BatchKernels):
                seconds += time.process_time() - start
    return seconds


def show(results: Sequence[dict[str, Any]]) -> None:
    """Print the results as a table."""
    # A peer may not take every case.
    names = list(dict.fromkeys(name for r in results for name in r["times"]))
    table = Table(
        "case",
        *(f"{name} us" for name in names),
        *(f"x {name}" for name in names if name != "magweld"),
        "launches",
        "search s",
        "compile s",
    )
    for result in results:
        counts = result["launches"]
        table.add_row(
            result["case"],
            *(_microseconds(result, name) for name in names),
            *(_ratio(result, name) for name in names if name != "magweld"),
            f"{counts['apart']} -> {counts['magweld']}",
            f"{result['search_cpu_s']:.2f}",
            f"{result['compile_cpu_s']:.1f}",
        )
    Console(width=120).print(table)


def _microseconds(result: dict[str, Any], name: str) -> str:
    found = result["times"].get(name)
    return "-" if found is None else f"{found['min_ms'] * 1e3:.0f}"


def _ratio(result: dict[str, Any], name: str) -> str:
    found = result["over"].get(name)
    return "-" if found is None else f"{found:.2f}"


def parsed() -> argparse.Namespace:
    """Parse the command line and set the number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--members", nargs="*", type=int, default=[4, 32, 48, 128])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--no-torch-compile", action="store_true")
    parser.add_argument("--group-batch", action="store_true")
    parser.add_argument("--iree", action="store_true")
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    return options


def main() -> None:
    """Run the chosen cases."""
    torch.manual_seed(0)
    options = parsed()
    with torch.no_grad():
        runs = (
            run_case(name, members, options)
            for name in options.cases
            for members in options.members
        )
        show(reported(runs, options, show))


if __name__ == "__main__":
    main()
