"""Owns the compilation of a module in the torch dialect to a program.

`compile_module` runs in a worker process that never imports torch: an abort in
native code costs that process and not the user's.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from magweld import env
from magweld.artifact import (
    ExternalStep,
    KernelStep,
    LibraryStep,
    Program,
    Step,
)
from magweld.bindings import ir
from magweld.codegen.host import HostTarget
from magweld.codegen.kernel_signature import KernelSignature
from magweld.codegen.kernels import compile_kernels
from magweld.codegen.launch import Launch
from magweld.codegen.llvm_text import kernel_signatures
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import is_tile_graph
from magweld.host_function import HostCall, HostFunction, read_host_function
from magweld.passes.analysis.summary import summarize
from magweld.passes.cpu.pipeline import cpu_pipeline
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.execution import RunOptions, run_pipeline
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.ir_utils import functions_of
from magweld.passes.phases import Phase
from magweld.passes.pipelines import graph_pipeline
from magweld.runtime.container import decode_request, encode_program

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
        module = ir.Module.parse(text)
        try:
            return compile_tiled(module, options)
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
    host = read_host_function(module)
    objects = _compile_kernels(module, host)
    return _program(host, objects, graphs)


def _summaries(module: Any) -> list[dict[str, Any]]:
    graphs = filter(is_tile_graph, functions_of(module.operation))
    return [asdict(summarize(graph)) for graph in graphs]


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
        options.device, options.library, until, fusion=options.fusion, after=after
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


def _compile_kernels(module: Any, host: HostFunction) -> tuple[bytes, ...]:
    calls = [call for call in host.calls if call.kind == "kernel"]
    if not calls:
        return ()
    for op in list(module.body.operations):
        if "tile_graph.kernel" not in op.attributes:
            op.erase()
    target = HostTarget.detect()
    unit = VectorUnit(target.vector_bits, target.vector_registers)
    run_pipeline(cpu_pipeline(unit), module, dump_options("cpu"))
    signatures = {s.symbol: s for s in kernel_signatures(module)}
    launches = [
        _launch(host, call, signatures[call.callee], number)
        for number, call in enumerate(calls)
    ]
    return (compile_kernels(module, launches, target),)


def _launch(
    host: HostFunction, call: HostCall, kernel: KernelSignature, number: int
) -> Launch:
    entries = (*call.operands, *call.results)
    moved = sum(host.bytes_of(value) for value in entries)
    parallel = moved >= PARALLEL_BYTES
    return Launch(_launch_symbol(number), kernel, entries, parallel)


def _launch_symbol(number: int) -> str:
    return f"launch_{number}"


def _program(
    host: HostFunction, objects: tuple[bytes, ...], graphs: list[dict[str, Any]]
) -> Program:
    steps: list[Step] = []
    kernels = 0
    for call in host.calls:
        if call.kind == "kernel":
            symbol = _launch_symbol(kernels)
            steps.append(KernelStep(symbol, call.operands, call.results))
            kernels += 1
        elif call.kind == "library":
            attributes = dict(call.attributes)
            op = attributes.pop("op")
            steps.append(LibraryStep(op, call.operands, call.results, attributes))
        else:
            steps.append(ExternalStep(call.node, call.operands, call.results))
    return Program(
        values=tuple(host.values),
        steps=tuple(steps),
        results=host.results,
        arena_bytes=host.arena_bytes,
        objects=objects,
        constants=tuple(host.constants),
        report={
            "groups": [call.report for call in host.calls if call.report],
            "graphs": graphs,
        },
    )
