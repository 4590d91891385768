"""Owns the compilation of a module in the torch dialect to a program.

`compile_module` runs in a worker process that never imports torch: an abort in
native code costs that process and not the user's.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from magweld import env
from magweld.artifact import (
    ExternalStep,
    KernelStep,
    LibraryStep,
    Program,
    Step,
    TiledStep,
    TileRun,
)
from magweld.bindings import ir
from magweld.codegen.host import HostTarget
from magweld.codegen.kernel_signature import KernelSignature
from magweld.codegen.kernels import compile_kernels
from magweld.codegen.launch import Launch
from magweld.codegen.llvm_text import kernel_signatures
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import is_kernel, is_tile_graph
from magweld.host_function import HostCall, HostFunction, read_host_function
from magweld.passes.analysis.summary import summarize
from magweld.passes.cpu.pipeline import cpu_pipeline
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.execution import RunOptions, run_pipeline
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.ir_utils import functions_of
from magweld.passes.memory.fit_memory import MemoryBudgetError
from magweld.passes.memory.search import BudgetSearch
from magweld.passes.phases import Phase
from magweld.passes.pipelines import graph_pipeline
from magweld.runtime.container import decode_request, encode_program
from magweld.targets import device

# Bytes that a kernel must move before waking other threads pays: a parallel region
# costs some microseconds, in which one core moves tens of kilobytes.
PARALLEL_BYTES = 64 * 1024


def compile_module(payload: bytes) -> bytes:
    """Compile an encoded request, options and module text, to an encoded program.

    Raises:
        MagweldError: The module cannot be compiled.
    """
    options, text = decode_request(payload)
    return encode_program(compile_text(text, CompileOptions.parse(options)))


def print_module(payload: bytes) -> bytes:
    """Return the text of a module at a stage; the first line of the input names it.

    Raises:
        ValueError: There is no such stage on the way to this target.
        MagweldError: The module cannot be lowered that far.
    """
    options, text = decode_request(payload)
    stage, _, module_text = text.partition("\n")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_text)
        lower_to_tiles(module, CompileOptions.parse(options), Phase(stage))
        return str(module).encode()


def compile_text(text: str, options: CompileOptions) -> Program:
    """Compile a module in the torch dialect for the CPU of this process.

    Returns:
        The program; one that names the `unlowered` nodes if there are any.

    Raises:
        MagweldError: The module cannot be compiled.
    """
    with make_context(), ir.Location.unknown():
        try:
            if options.memory_budget:
                return _compile_within(text, options)
            return compile_tiled(ir.Module.parse(text), options)
        except UnloweredError as error:
            return _unlowered_program(error)


def compile_tiled(
    module: Any, options: CompileOptions, after: Phase | None = None
) -> Program:
    """Compile a module to a program, in place.

    Args:
        module: The module.
        options: What the compilation may decide.
        after: Phase that the module is in already; None if it is in none.

    Raises:
        UnloweredError: Operations have no lowering.
        MagweldError: The module cannot be compiled.
    """
    lower_to_tiles(module, options, Phase.SCHEDULED, after)
    graphs = _summaries(module)
    lower_to_tiles(module, options, after=Phase.SCHEDULED)
    hosts = _read_hosts(module)
    return _program(hosts, _compile_kernels(module, hosts), graphs)


def _summaries(module: Any) -> list[dict[str, Any]]:
    graphs = filter(is_tile_graph, functions_of(module.operation))
    return [asdict(summarize(graph)) for graph in graphs]


def _compile_within(text: str, options: CompileOptions) -> Program:
    """Compile a module within its memory budget.

    What code takes is known when it is planned, so that a plan which turns out to take
    too much is made again for less.
    """
    budget = options.memory_budget
    search = BudgetSearch(budget)
    for planned in search:
        module = ir.Module.parse(text)
        try:
            lower_to_tiles(module, replace(options, memory_budget=planned))
        except MemoryBudgetError as error:
            search.refused(error)
            continue
        hosts = _read_hosts(module)
        taken = hosts["main"].arena_bytes + hosts["main"].transient_bytes
        if taken <= budget:
            code = _compile_kernels(module, hosts)
            taken += code.scratch
            if taken <= budget:
                return _program(hosts, code, [])
        search.takes(taken)
    raise search.error()


def lower_to_tiles(
    module: Any,
    options: CompileOptions,
    until: Phase = Phase.TILED,
    after: Phase | None = None,
) -> None:
    """Lower a module at a phase in place, as far as to tiled kernels.

    Args:
        module: The module.
        options: What the compilation may decide.
        until: Phase to stop after.
        after: Phase that the module is in already; None if it is in none.

    Raises:
        UnloweredError: Operations have no lowering.
    """
    pipeline = graph_pipeline(
        options.device,
        options.library,
        until,
        fusion=options.fusion,
        after=after,
        memory_budget=options.memory_budget,
    )
    part = "graph" if after is None else f"graph-after-{after}"
    run_pipeline(pipeline, module, dump_options(part))


def dump_options(part: str) -> RunOptions:
    """Return what `MAGWELD_DUMP_DIR` asks of a pipeline.

    Args:
        part: Name of the pipeline; each run of it gets a folder of its own.
    """
    folder = env.DUMP_DIR.get()
    if folder is None:
        return RunOptions()
    folder.mkdir(parents=True, exist_ok=True)
    dump = Path(tempfile.mkdtemp(prefix=f"{part}-", dir=folder))
    return RunOptions(dump_directory=dump, reproducer_directory=folder)


def _unlowered_program(error: UnloweredError) -> Program:
    if not error.nodes:
        raise error
    return Program((), (), (), arena_bytes=0, unlowered=tuple(error.nodes))


def _read_hosts(module: Any) -> dict[str, HostFunction]:
    """Read the host function of a module, and the functions that make its tiles."""
    constants: list[bytes] = []
    main = read_host_function(module, "main", constants)
    names = [tile.function for call in main.calls for tile in call.tiles]
    parts = {n: read_host_function(module, n, constants) for n in dict.fromkeys(names)}
    return {"main": main, **parts}


@dataclass(frozen=True)
class _Code:
    """Object code, and the most bytes that a kernel of it allocates."""

    objects: tuple[bytes, ...] = ()
    scratch: int = 0


def _compile_kernels(module: Any, hosts: Mapping[str, HostFunction]) -> _Code:
    calls = [
        (name, host, call)
        for name, host in hosts.items()
        for call in host.calls
        if call.kind == "kernel"
    ]
    if not calls:
        return _Code()
    target = HostTarget.detect()
    signatures = lower_kernels(module, target, dump_options("cpu"))
    numbers: Counter[str] = Counter()
    launches = []
    for name, host, call in calls:
        symbol = _launch_symbol(name, numbers[name])
        launches.append(_launch(host, call, signatures[call.callee], symbol))
        numbers[name] += 1
    scratch = max(_scratch_bytes(launch) for launch in launches)
    return _Code((compile_kernels(module, launches, target),), scratch)


def lower_kernels(
    module: Any, target: HostTarget, options: RunOptions
) -> dict[str, KernelSignature]:
    """Lower the kernels of a tiled module to the LLVM dialect; all else leaves it.

    Returns:
        What each kernel is called with, by its name.
    """
    for op in list(module.body.operations):
        if not is_kernel(op):
            op.erase()
    unit = VectorUnit(target.vector_bits, target.vector_registers)
    run_pipeline(cpu_pipeline(unit), module, options)
    return {s.symbol: s for s in kernel_signatures(module)}


def _scratch_bytes(launch: Launch) -> int:
    """Bytes that a kernel allocates, in as many threads as run it at most."""
    threads = min(device("cpu").units, launch.kernel.tiles) if launch.parallel else 1
    return launch.kernel.scratch * threads


def _launch(
    host: HostFunction, call: HostCall, kernel: KernelSignature, symbol: str
) -> Launch:
    entries = (*call.operands, *call.results)
    moved = sum(host.bytes_of(value) for value in entries)
    parallel = moved >= PARALLEL_BYTES
    return Launch(symbol, kernel, entries, parallel)


def _launch_symbol(function: str, number: int) -> str:
    prefix = "" if function == "main" else f"{function}_"
    return f"{prefix}launch_{number}"


def _program(
    hosts: Mapping[str, HostFunction], code: _Code, graphs: list[dict[str, Any]]
) -> Program:
    main, *parts = hosts
    host = hosts[main]
    reports = [c.report for h in hosts.values() for c in h.calls if c.kind == "kernel"]
    tiled = [
        {**call.report, "tiles": len(call.tiles)}
        for call in host.calls
        if call.kind == "tiled"
    ]
    memory = {
        "arena_bytes": host.arena_bytes,
        "transient_bytes": host.transient_bytes,
        "scratch_bytes": code.scratch,
        "tiled": tiled,
    }
    report = {"groups": reports, "graphs": graphs, "memory": memory}
    return replace(
        _part(main, host, parts),
        objects=code.objects,
        constants=tuple(host.constants),
        parts=tuple(_part(name, hosts[name], parts) for name in parts),
        report=report,
    )


def _part(name: str, host: HostFunction, parts: Sequence[str]) -> Program:
    """The values and steps of one host function."""
    steps: list[Step] = []
    kernels = 0
    for call in host.calls:
        if call.kind == "kernel":
            symbol = _launch_symbol(name, kernels)
            steps.append(KernelStep(symbol, call.operands, call.results))
            kernels += 1
        else:
            steps.append(_STEPS[call.kind](call, parts))
    return Program(
        values=tuple(host.values),
        steps=tuple(steps),
        results=host.results,
        arena_bytes=host.arena_bytes,
    )


def _library_step(call: HostCall, parts: Sequence[str]) -> Step:
    attributes = dict(call.attributes)
    op = attributes.pop("op")
    return LibraryStep(op, call.operands, call.results, attributes)


def _external_step(call: HostCall, parts: Sequence[str]) -> Step:
    return ExternalStep(call.node, call.operands, call.results)


def _tiled_step(call: HostCall, parts: Sequence[str]) -> Step:
    runs = tuple(
        TileRun(parts.index(tile.function), tile.operands, tile.starts, tile.position)
        for tile in call.tiles
    )
    return TiledStep(call.operands, call.results, runs, call.scratch)


_STEPS: dict[str, Callable[[HostCall, Sequence[str]], Step]] = {
    "library": _library_step,
    "external": _external_step,
    "tiled": _tiled_step,
}
