"""Owns the compilation of a module in the torch dialect to a program.

`compile_module` runs in a worker process that never imports torch: an abort in
native code costs that process and not the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from magweld.artifact import (
    ExternalStep,
    IfStep,
    KernelStep,
    LibraryStep,
    LoopStep,
    Program,
    RuntimeExtent,
    Step,
    TiledStep,
    TileRun,
    WhileStep,
)
from magweld.bindings import ir
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import is_tile_graph
from magweld.host_function import HostCall, HostFunction, read_host_function
from magweld.kernel_code import (
    KernelCode,
    compile_launches,
    dump_options,
    launch_symbol,
    launches_of,
)
from magweld.packed_text import pack_text
from magweld.passes.analysis.control_calls import IfCall, WhileCall
from magweld.passes.analysis.runtime_extents import stand_ins_of
from magweld.passes.analysis.summary import as_plain, summarize
from magweld.passes.analysis.written_out import written_out
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Pipeline, Upstream
from magweld.passes.infrastructure.pipeline import Step as PipelineStep
from magweld.passes.ir.utils import find_function, functions_of, remarks_of
from magweld.passes.memory.fit_memory import MemoryBudgetError
from magweld.passes.memory.search import BudgetSearch
from magweld.passes.pipelines.middle import CpuPipeline, graph_pipeline
from magweld.passes.plan.batch_kernels import BatchKernels
from magweld.runtime.container import (
    decode_parts,
    decode_request,
    encode_program,
)
from magweld.targets import Target, parse_target

# How the line that names a pass begins, as native passes are named.
_IR_DUMP: Final = "// -----// IR Dump After "
_CAPTURE: Final = "capture"
# Of longer constants the text has no elements.
_PRINTED_ELEMENTS: Final = 16


def compile_module(payload: bytes) -> bytes:
    """Compile an encoded request, options and module text, to an encoded program.

    Raises:
        MagweldError: The module cannot be compiled.
    """
    options, text = decode_request(payload)
    return encode_program(compile_text(text, CompileOptions.parse(options)))


def compile_side_by_side(payload: bytes) -> bytes:
    """Compile as `compile_module` does, the kernels in several forked processes.

    The payload names beside options and text how many processes may work at a time.

    Raises:
        MagweldError: The module cannot be compiled.
    """
    settings, text, most = (part.decode() for part in decode_parts(payload))
    program = compile_text(text, CompileOptions.parse(settings), int(most))
    return encode_program(program)


def print_module(payload: bytes) -> bytes:
    """Return the text of a module at a stage.

    The first line of the input names the target, the stage, and if the module is not at
    the first one the stage that it is at.

    Raises:
        ValueError: There is no such stage on the way to this target.
        MagweldError: The module cannot be lowered that far.
    """
    settings, text = decode_request(payload)
    options = CompileOptions.parse(settings)
    words, _, module_text = text.partition("\n")
    target, *stages = words.split()
    until, *at = map(Phase, stages)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_text)
        after = at[0] if at else None
        lower_to_tiles(module, options, until, after, target=parse_target(target))
        if Phase.TILED.is_before(until):
            steps = CpuPipeline(compile_from=Phase.TILED, compile_to=until).steps()
            run_pipeline(Pipeline(steps), module, dump_options("cpu"))
        return str(module).encode()


def print_passes(payload: bytes) -> bytes:
    """Return what a module becomes from pass to pass, as far as to tiled kernels.

    The text is what `mlir-opt --mlir-print-ir-after-change` writes: a line that names
    a pass, then the module behind it, for each pass that changed it. The captured
    module comes first. The first line of the input names the target.

    Raises:
        MagweldError: The module cannot be lowered that far.
    """
    settings, text = decode_request(payload)
    options = CompileOptions.parse(settings)
    target, _, module_text = text.partition("\n")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_text)
        pipeline = _graph_pipeline(options, target=parse_target(target))
        texts = [(_CAPTURE, _printed(module))]
        for step in pipeline.steps:
            run_pipeline(Pipeline((step,)), module)
            printed = _printed(module)
            if printed != texts[-1][1]:
                texts.append((_step_name(step), printed))
        dumps = (f"{_IR_DUMP}{name} //----- //\n{text}" for name, text in texts)
        return "\n".join(dumps).encode()


def _step_name(step: PipelineStep) -> str:
    return step.text if isinstance(step, Upstream) else step.name


def _printed(module: Any) -> str:
    """Return the text of a module in which an unchanged line stays as it was."""
    text: str = module.operation.get_asm(
        large_elements_limit=_PRINTED_ELEMENTS, use_local_scope=True
    )
    return text


def compile_text(text: str, options: CompileOptions, most: int = 1) -> Program:
    """Compile a module in the torch dialect for the CPU of this process.

    Args:
        text: The module.
        options: What the compilation may decide.
        most: How many processes may compile kernels; above 1 this one is forked.

    Returns:
        The program; one that names the `unlowered` nodes if there are any.

    Raises:
        MagweldError: The module cannot be compiled.
    """
    with make_context(), ir.Location.unknown():
        try:
            if options.memory_budget:
                return _compile_within(text, options)
            return compile_tiled(ir.Module.parse(text), options, most=most)
        except UnloweredError as error:
            return _unlowered_program(error)


def compile_tiled(
    module: Any, options: CompileOptions, after: Phase | None = None, *, most: int = 1
) -> Program:
    """Compile a module to a program, in place.

    Args:
        module: The module.
        options: What the compilation may decide.
        after: Phase that the module is in already; None if it is in none.
        most: As of `compile_text`.

    Raises:
        UnloweredError: Operations have no lowering.
        MagweldError: The module cannot be compiled.
    """
    hosts, told, scheduled = _lowered(module, options, after)
    launches = launches_of(hosts)
    code = compile_launches(module, launches, options.level, most)
    program = _program(hosts, code, told)
    return replace(program, scheduled=pack_text(scheduled))


def _lowered(
    module: Any, options: CompileOptions, after: Phase | None
) -> tuple[dict[str, HostFunction], dict[str, Any], str]:
    """Lower a module to tiled kernels.

    Returns:
        Its host functions, what to report, and its text with every tile chosen.
    """
    lower_to_tiles(module, options, Phase.SCHEDULED, after)
    # The pipeline has verified it: verifiers in Python take longer than the text.
    scheduled = module.operation.get_asm(assume_verified=True)
    told: dict[str, Any] = {
        "graphs": _summaries(module),
        "written_out": _written_out(module),
    }
    lower_to_tiles(module, options, after=Phase.SCHEDULED)
    told["remarks"] = remarks_of(find_function(module.operation, "main"))
    hosts = _read_hosts(module)
    hosts["main"].stand_ins = stand_ins_of(module)
    return hosts, told, scheduled


def _written_out(module: Any) -> list[dict[str, Any]]:
    return [
        {**asdict(found), "reason": found.reason}
        for found in written_out(module.operation)
    ]


def _summaries(module: Any) -> list[dict[str, Any]]:
    graphs = filter(is_tile_graph, functions_of(module.operation))
    return [as_plain(summarize(graph)) for graph in graphs]


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
            code = compile_launches(module, launches_of(hosts), options.level)
            taken += code.scratch
            if taken <= budget:
                return _program(hosts, code, {})
        search.takes(taken)
    raise search.error()


def lower_to_tiles(
    module: Any,
    options: CompileOptions,
    until: Phase = Phase.TILED,
    after: Phase | None = None,
    *,
    target: Target | None = None,
) -> None:
    """Lower a module at a phase in place, as far as to tiled kernels.

    Args:
        module: The module.
        options: What the compilation may decide.
        until: Phase to stop after.
        after: Phase that the module is in already; None if it is in none.
        target: What code is made for; None for the host.

    Raises:
        UnloweredError: Operations have no lowering.
    """
    pipeline = _graph_pipeline(options, until, after, target)
    part = "graph" if after is None else f"graph-after-{after}"
    run_pipeline(pipeline, module, dump_options(part))


def _graph_pipeline(
    options: CompileOptions,
    until: Phase = Phase.TILED,
    after: Phase | None = None,
    target: Target | None = None,
) -> Pipeline:
    return graph_pipeline(
        options.device,
        options.library,
        until,
        fusion=options.fusion,
        after=after,
        memory_budget=options.memory_budget,
        roll_loops=options.loops,
        batch=_batches(options),
        target=target,
    )


def _batches(options: CompileOptions) -> BatchKernels | None:
    if not options.batch:
        return None
    return BatchKernels(
        minimum=options.batch_minimum,
        maximum=options.batch_maximum,
        depth=options.batch_depth,
        rules=options.batch_rules,
    )


def _unlowered_program(error: UnloweredError) -> Program:
    if not error.nodes:
        raise error
    return Program((), (), (), arena_bytes=0, unlowered=tuple(error.nodes))


def _read_hosts(module: Any) -> dict[str, HostFunction]:
    """Read the host function of a module, and the functions that its calls run.

    A function comes before those that run it, but for the host function itself.
    """
    constants: list[bytes] = []
    parts: dict[str, HostFunction] = {}

    def read(name: str) -> HostFunction:
        host = read_host_function(module, name, constants)
        for part in (part for call in host.calls for part in call.functions()):
            if part not in parts:
                parts[part] = read(part)
        return host

    main = read("main")
    return {"main": main, **parts}


def _program(
    hosts: Mapping[str, HostFunction], code: KernelCode, told: dict[str, Any]
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
    report = {"groups": reports, "graphs": [], **told, "memory": memory}
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
            symbol = launch_symbol(name, kernels)
            steps.append(KernelStep(symbol, call.operands, call.results))
            kernels += 1
        else:
            steps.append(_STEPS[call.kind](call, parts))
    return Program(
        values=tuple(host.values),
        steps=tuple(steps),
        results=host.results,
        arena_bytes=host.arena_bytes,
        stand_ins=host.stand_ins,
        runtime=tuple(
            RuntimeExtent(
                number,
                call.words,
                call.runtime.extent,
                call.runtime.step,
                call.runtime.beside,
            )
            for number, call in enumerate(host.calls)
            if call.runtime is not None
        ),
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


def _loop_step(call: HostCall, parts: Sequence[str]) -> Step:
    loop = call.loop
    assert loop is not None, "the call of a loop says what it runs"
    return LoopStep(
        reads=call.operands,
        writes=call.results,
        part=parts.index(loop.function),
        trips=loop.trips,
        starts=loop.starts,
        strides=loop.strides,
        fed_by=loop.fed_by,
        stacked=loop.stacked,
        scratch=call.scratch,
    )


def _control_step(call: HostCall, parts: Sequence[str]) -> Step:
    match call.control:
        case IfCall(on_true, on_false):
            arms = (parts.index(on_true), parts.index(on_false))
            return IfStep(call.operands, call.results, *arms, call.scratch)
        case WhileCall(function):
            part = parts.index(function)
            return WhileStep(call.operands, call.results, part, call.scratch)
    raise AssertionError("the call of control flow says what it runs")


_STEPS: dict[str, Callable[[HostCall, Sequence[str]], Step]] = {
    "library": _library_step,
    "external": _external_step,
    "tiled": _tiled_step,
    "loop": _loop_step,
    "control": _control_step,
}
