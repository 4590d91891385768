"""Owns the joining of front end, compiler and runtime: captured graph to callable."""

from __future__ import annotations

import functools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, fx

from magweld import env
from magweld.artifact import HOST_TARGET, Program
from magweld.checking import run_checked
from magweld.columns import shorten
from magweld.compiler_options import CompileOptions
from magweld.control_graph import import_control
from magweld.control_text import control_module
from magweld.cut_graph import CompilePiece, CutGraph
from magweld.diagnostics import MagweldError, UnsupportedError
from magweld.frontend.operators.torch_state import (
    autocast_of,
    torch_state,
    without_autocast,
)
from magweld.generators import save_generator, save_generators
from magweld.graphs.autocast import autocast_as, graph_runner
from magweld.graphs.cuts import left_to_torch
from magweld.graphs.size_relation import SizeRelation
from magweld.graphs.sized_examples import Examples
from magweld.importer.first_use import prepare_first_use
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.importer.placing import stand_ins
from magweld.importer.refusals import begin_of
from magweld.importer.sizes import one_graph
from magweld.logs import show_logs, topic
from magweld.native_code import code_cache, obtain
from magweld.packed_text import unpack_text
from magweld.passes.infrastructure.phases import GRAPH_PHASES, PHASES, Phase
from magweld.piecewise import PiecewiseGraph, has_control
from magweld.report_text import describe_plan
from magweld.reports import members_of
from magweld.runtime.container import encode_parts, encode_request
from magweld.runtime.disassembly import disassemble
from magweld.runtime.fingerprint import compiler_identity, program_key
from magweld.runtime.gpu.driver import DeviceError
from magweld.runtime.gpu.machine import (
    gpu_name,
    machine_for,
    target_of,
    why_unmeasurable,
)
from magweld.runtime.machine import HOST as HOST_MACHINE
from magweld.runtime.machine import Machine
from magweld.runtime.program import LoadedProgram
from magweld.runtime.service import CompileService, decode_answer
from magweld.short_repr import short_repr
from magweld.sized_graph import SizedForm, SizedGraph
from magweld.stand_by import PutBack, StandBy
from magweld.targets import Backend, device, parse_target
from magweld.targets.catalog import HOST
from magweld.tiers import Compiled, Race, TieredGraph, Tiers, Work, exit_gate
from magweld.tile_graphs import describe_graph
from magweld.tuning.entry import tuned
from magweld.tuning.options import Tune, TuneOptions, tune_options
from magweld.tuning.outcome import would_stay
from magweld.verdicts import verdict_cache

_COMPILES: Final = topic("compiles")
_FALLBACKS: Final = topic("fallbacks")
_PLANS: Final = topic("plans")

_COMPILE_TASK = "magweld.compiler:compile_module"
_SIDE_BY_SIDE_TASK = "magweld.compiler:compile_side_by_side"
# Modules with less text are compiled by one process.
LARGE_TEXT = 40_000
# Each process takes its memory.
_MOST_PROCESSES = 4
_DEVICE_TASK = "magweld.device_compiler:compile_for_device"
# Operators that one line of the log names.
_LOGGED_NODES: Final = 6
# The target is that of the tensors.
AUTO = "auto"
# Of workers behind the calls: a third of the weight of the program, see nice(2).
_NICE = 5
_PRINT_TASK = "magweld.compiler:print_module"
_PASSES_TASK = "magweld.compiler:print_passes"
# Stage of `mlir` that is none of a module: what each pass changed.
PASSES = "passes"
# Programs keep their module at this phase.
_SCHEDULED: Final = PHASES[Backend.CPU].index(Phase.SCHEDULED)


@functools.cache
def compile_service() -> CompileService:
    """Return the compile service of this process: workers, memory and disk cache."""
    show_logs()
    return CompileService.from_environment(_COMPILE_TASK)


@functools.cache
def background_service() -> CompileService:
    """Return the service for compilations behind the calls.

    Its workers give way to the program that goes on meanwhile.
    """
    show_logs()
    return CompileService.from_environment(_COMPILE_TASK, nice=_NICE)


@dataclass(frozen=True)
class CompiledGraph:
    """A captured graph as compiled code; call it with the graph's inputs.

    Attributes:
        imported: The functional graph and what surrounds the compiled function.
        program: The compiled function as data.
        loaded: The compiled function in memory.
        options: What the compilation was allowed to decide.
        reference: The captured graph if each call is to be compared with it.
        stand_by: What answers a call in which the compiled function raises.
        measured: Seconds of each step of the program, once `measure` has been called.
    """

    __repr__ = short_repr

    imported: ImportedGraph
    program: Program
    loaded: LoadedProgram
    options: CompileOptions
    reference: fx.GraphModule | None = None
    stand_by: StandBy | None = None
    measured: list[float] = field(default_factory=list, compare=False)

    def __call__(self, *inputs: Tensor) -> Any:
        """Run the graph; inputs are written to and aliased as the graph says.

        Raises:
            ResultMismatchError: The call is checked, and eager gives other results.
        """
        if self._direct is not None and len(inputs) == len(self.imported.arguments):
            put_back = self._save and self._save()
            try:
                return self._direct(self.loaded(inputs))
            except Exception as error:
                return self._answered_by_torch(inputs, error, put_back)
        if self.reference is not None:
            return run_checked(self._run, self.reference, inputs)
        return self._run(inputs)

    def call_alike(self, inputs: list[Tensor]) -> Any:
        """Run the graph on tensors of the form of those that it has run on.

        Class, dtype, device, shape and strides are theirs; who calls has made sure.
        """
        if self._direct is None or len(inputs) != len(self.imported.arguments):
            return self(*inputs)
        put_back = self._save and self._save()
        try:
            return self._direct(self.loaded.call_alike(inputs))
        except Exception as error:
            return self._answered_by_torch(inputs, error, put_back)

    @functools.cached_property
    def _save(self) -> Callable[[], PutBack] | None:
        return None if self.stand_by is None else self.stand_by.save

    @functools.cached_property
    def _direct(self) -> Callable[[list[Tensor]], Any] | None:
        """What ends a call if nothing else is to do around the program."""
        if self.reference is not None or not self.loaded.results_are_fresh:
            return None
        outputs = len(self.imported.epilogue.outputs)
        return self.imported.direct if outputs == len(self.program.results) else None

    def _run(self, inputs: Sequence[Tensor]) -> Any:
        put_back = self._save and self._save()
        try:
            results = self.loaded(self.imported.prepare(inputs))
        except Exception as error:
            return self._answered_by_torch(inputs, error, put_back)
        fresh = self.loaded.results_are_fresh
        return self.imported.finish(inputs, results, fresh=fresh)

    def _answered_by_torch(
        self, inputs: Sequence[Tensor], error: Exception, put_back: PutBack | None
    ) -> Any:
        """Return what torch computes where the compiled function raised `error`.

        It has written nothing yet, so that the user sees what torch does.

        Raises:
            Exception: `error`, if no graph stands by.
        """
        if self.stand_by is None:
            raise error
        return self.stand_by.answer(inputs, error, put_back)

    @property
    def held_bytes(self) -> int:
        """Bytes of code, constants and arena."""
        return self.program.held_bytes

    def mlir(self, stage: str) -> str:
        """Return the module at a stage: "torch", "linalg", ..., "llvm" for a CPU.

        "object" is no module: it gives the machine code that runs, disassembled.
        "passes" gives one module after another: behind each pass that changed it, as
        far as "tiled", below a line that names the pass.

        Raises:
            ValueError: There is no such stage on the way to this target, or nothing
                here that disassembles.
        """
        if stage == Phase.TORCH:
            return self.imported.text
        if stage == PASSES:
            text = f"{self.program.target}\n{self.imported.text}"
            payload = encode_request(self.options.text(), text)
            return compile_service().run(_PASSES_TASK, payload).decode()
        if stage == Phase.OBJECT and self.program.target == HOST_TARGET:
            return disassemble(self.program.objects)
        target, kept = self.program.target, self.program.scheduled
        if not kept or stage not in PHASES[Backend.CPU][_SCHEDULED:]:
            return _lowered(self.imported.text, stage, self.options, target)
        text = unpack_text(kept)
        if stage == Phase.SCHEDULED:
            return text
        return _lowered(text, stage, self.options, target, f" {Phase.SCHEDULED}")

    def measure(self, inputs: Sequence[Tensor], rounds: int) -> None:
        """Time each step of the program some times; the report then tells of it.

        Args:
            inputs: As of a call; nothing is written to them.
            rounds: How often; the least times count.
        """
        self.measured[:] = self.loaded.measure(self.imported.prepare(inputs), rounds)

    def report(self) -> dict[str, Any]:
        """Return what was decided and predicted, and what runs in torch.

        `groups` are the generated kernels, `graphs` the whole tile graphs as
        `magweld.passes.analysis.summary` has them, with the `sources` of nodes and
        the `modules` that they are in.
        """
        sources, modules = self.imported.sources(), self.imported.modules()
        graphs = self.program.report.get("graphs", ())
        return {
            **self.program.report,
            "graphs": [
                {
                    **graph,
                    "steps": self._timed(graph["steps"]),
                    "sources": sources,
                    "modules": modules,
                }
                for graph in graphs
            ],
            "externals": sorted(self.imported.externals),
            "reasons": self.imported.reasons,
        }

    def _timed(self, steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add `measured_seconds` to the steps that were measured."""
        # Those of one kind run in the order of the graph; batches run before others.
        times: dict[Any, deque[float]] = {_what_runs(step): deque() for step in steps}
        for ran, seconds in self._times(frozenset(times)):
            times[ran].append(seconds)
        timed = []
        for step in steps:
            # One without elements never runs.
            if times[_what_runs(step)]:
                seconds = times[_what_runs(step)].popleft()
                step = {**step, "measured_seconds": seconds}
            timed.append(step)
        return timed

    def _times(self, known: frozenset[Any]) -> Iterator[tuple[Any, float]]:
        """Yield what ran, as one of the known steps, and how long.

        A kernel that is none of them prepares for the next one.
        """
        groups = iter(self.program.report["groups"])
        before = 0.0
        kinds = self.program.step_kinds()
        for kind, seconds in zip(kinds, self.measured, strict=False):
            before += seconds
            ran: list[tuple[Any, float]] = [(kind, 1)]
            if kind == "generated":
                ran = [(m.operators, m.share) for m in members_of(next(groups))]
            if known.issuperset(made for made, _ in ran):
                whole = sum(share for _, share in ran)
                yield from ((made, before * share / whole) for made, share in ran)
                before = 0.0


def _what_runs(step: dict[str, Any]) -> Any:
    """Return the operators of a generated kernel, the kind of other steps."""
    if step["kind"] != "generated":
        return step["kind"]
    return tuple(operator["name"] for operator in step["operators"])


class ControlledGraph(PiecewiseGraph):
    """A captured graph with control flow; call it with the graph's inputs.

    Attributes:
        refused: Why it is not one program.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        examples: Sequence[Tensor],
        compile_: CompilePiece,
        refused: str,
    ) -> None:
        super().__init__(graph, examples, compile_)
        self.refused = refused

    def report(self) -> dict[str, Any]:
        """Return the reports of the compiled pieces, joined, and why they are such."""
        return {**super().report(), "control": [self.refused]}

    def mlir(self, stage: str) -> str:
        """Return the module with its control flow, or behind "linalg" its pieces.

        Raises:
            ValueError: There is no such stage on the way to this target.
        """
        if stage not in ("torch", "linalg"):
            return super().mlir(stage)
        try:
            text = control_module(self)
        except UnsupportedError:
            # A piece has effects, which functions of values cannot have.
            return super().mlir(stage)
        if stage == "torch":
            return text
        return _lowered(text, stage, CompileOptions())


def _lowered(
    text: str,
    stage: str,
    options: CompileOptions,
    target: str = "cpu",
    after: str = "",
) -> str:
    # Code for a GPU is made kernel by kernel.
    stages = PHASES[Backend.CPU][:-1] if target == "cpu" else GRAPH_PHASES
    if stage not in stages:
        names = ", ".join(stages)
        raise ValueError(f"no stage of a module is called '{stage}'; known: {names}")
    payload = encode_request(options.text(), f"{target} {stage}{after}\n{text}")
    return compile_service().run(_PRINT_TASK, payload).decode()


def compile_graph(
    graph: fx.GraphModule,
    example_inputs: Sequence[Tensor],
    target: str = "auto",
    *,
    options: CompileOptions | None = None,
    tune: Tune | None = None,
    tiers: Tiers | None = None,
    program: str = "",
) -> Compiled | PiecewiseGraph | TieredGraph:
    """Compile a captured graph for the machine that its tensors are on.

    Args:
        graph: Graph at torch level; placeholders are tensors.
        example_inputs: One tensor a placeholder; shapes, strides and dtypes count.
        target: "auto" for the device of the inputs, "cpu", or a GPU such as
            "nvvm:sm_90a" that the inputs are on.
        options: What the compilation may decide; all by default.
        tune: Whether plans are chosen by measuring, True, a number of seconds or
            options; None asks the environment variable `MAGWELD_TUNE`.
        tiers: How the graph gets from torch to compiled code; None compiles it now,
            and uses the code also where torch is faster.
        program: What the log calls the program that the graph is from.

    Raises:
        UnsupportedError: The graph or the target cannot be run from here.
        WorkerError: The compiler refused the graph or did not come back; what is
            compiled behind the calls raises nothing.
    """
    place = example_inputs[0].device if example_inputs else torch.device(HOST)
    target, machine = _machine(target, place)
    options = options_for(target, options or CompileOptions(), tune)
    name = _name_of(graph, program)
    compile_piece = partial(
        compile_graph,
        target=target,
        options=options,
        tune=tune,
        tiers=tiers,
        program=program,
    )
    if has_control(graph):
        making: _Making | str = "code for the CPU within no memory budget is one"
        if target == HOST_TARGET and not options.memory_budget:
            making = _controlled(graph, example_inputs, options, tune, name)
        if not isinstance(making, str):
            return making.controlled(tiers)
        _FALLBACKS.info("%s: Python decides about its branches: %s", name, making)
        return ControlledGraph(graph, example_inputs, compile_piece, making)
    cuts = left_to_torch(graph.graph)
    if cuts:
        left = [f"{node} ({reason})" for node, reason in cuts.items()]
        _FALLBACKS.info("%s: torch runs %s", name, shorten(left, _LOGGED_NODES))
        return CutGraph(graph, cuts, compile_piece)

    def prepare(inputs: Sequence[Tensor]) -> Work:
        try:
            imported = import_graph(
                graph,
                inputs,
                look_ups=True,
                tileable=options.memory_budget > 0,
                device=place,
            )
        except UnsupportedError as refused:
            cut = _without_refused(graph, refused, compile_piece, name)
            return Work(lambda: cut)
        making = _Making(graph, imported, options, tune, target, machine, name)
        return making.work(tiers or Tiers(in_background=False, races=False))

    if tiers is None:
        return prepare(example_inputs).compile()
    if tiers.in_background:
        # This call may take long, the next ones may not.
        prepare_first_use()
    # The import may take many calls, and must not keep the tensors of this one.
    inputs = stand_ins(example_inputs) if tiers.in_background else example_inputs
    prepared = _with_autocast_of_now(partial(prepare, inputs))
    return tiers.graph(graph_runner(graph), prepared, _surroundings, name)


def compile_for_sizes(
    graph: fx.GraphModule,
    inputs: Sequence[Tensor],
    examples: Callable[[], Examples | Compiled],
    reference: Callable[..., Any],
    *,
    options: CompileOptions | None = None,
    tiers: Tiers | None = None,
    program: str = "",
) -> TieredGraph | None:
    """Compile a captured graph once for all sizes of its inputs.

    Args:
        graph: The graph for the sizes of a call.
        inputs: Those of the call.
        examples: Returns what is compiled: graph and inputs for numbers that stand for
            sizes; or what another graph has compiled. It may raise what this function
            raises.
        reference: Runs the graph through torch on tensors, then numbers.
        options: What the compilation may decide; all by default.
        tiers: How the graph gets from torch to compiled code.
        program: What the log calls the program that the graph is from.

    Returns:
        What runs a `SizedGraph`, or torch until that is there; None if nothing is to
        be compiled: torch runs parts of the graph, it has control flow, is not for the
        CPU, or is to be measured or checked for each size.

    Raises:
        UnsupportedError: `size-dependent`; what compiles behind the calls raises
            nothing.
        WorkerError: The compiler refused the graph or did not come back.
    """
    on_cpu = all(tensor.device.type == "cpu" for tensor in inputs)
    chosen = options or CompileOptions()
    if not on_cpu or chosen.memory_budget or has_control(graph):
        return None
    # Plans that are measured are those of one size, and so are calls that are checked.
    measured = tune_options(env.TUNE.get()) is not None
    if measured or env.CHECK.get() or left_to_torch(graph.graph):
        return None
    chosen = replace(chosen, loops=False)
    tiers = tiers or Tiers(in_background=False, races=False)
    name = f"{_name_of(graph, program)}, all sizes"

    def prepare() -> Work:
        given = examples()
        if not isinstance(given, Examples):
            shared = given
            return Work(lambda: shared)
        relation, sets = given.relation, (given.relation.stand_ins, given.others)
        ours, theirs = (
            import_graph(one, tensors, look_ups=True, stand_ins=numbers)
            for one, tensors, numbers in zip(
                given.graphs, given.inputs, sets, strict=True
            )
        )
        ours, extents = one_graph(ours, theirs, *sets)
        one = given.graphs[0]
        making = _Making(one, ours, chosen, None, HOST_TARGET, HOST_MACHINE, name)
        background = tiers.in_background
        races = tiers.races and making.race() is not None
        sized = partial(_sized, making, relation, extents, reference)
        return Work(lambda: sized(races, background))

    prepared = _with_autocast_of_now(prepare)
    return tiers.graph(reference, prepared, _surroundings, name)


def _sized(
    making: _Making,
    relation: SizeRelation,
    extents: frozenset[int],
    reference: Callable[..., Any],
    races: bool,
    in_background: bool,
) -> SizedGraph:
    """Compile a graph with stand-ins.

    Raises:
        UnsupportedError: `size-dependent`: the program does not follow from them.
    """
    # It is the one module here that imports parts of the compiler.
    from magweld.program_sizes import program_at, require_sizes

    known = set(making.imported.externals)
    compiled = making.compiled(in_background)
    require_sizes(compiled.program, extents)
    if set(compiled.imported.externals) != known:
        raise UnsupportedError(
            "size-dependent",
            "an operator without a lowering runs through torch",
            hint="a program is compiled for each size that comes back",
        )
    only_torch = all(kind == "external" for kind in compiled.program.step_kinds())
    # It runs images in a layout that suits it better than that of the call.
    if only_torch and not compiled.imported.has_images:
        raise UnsupportedError(
            "size-dependent",
            "torch runs every operator: sizes of the call lie inside of its tensors",
            hint="a program is compiled for each size that comes back",
        )

    def at(sizes: Sequence[int]) -> SizedForm:
        program = program_at(compiled.program, sizes)
        imported = compiled.imported.at(sizes)
        loaded = LoadedProgram(
            program,
            imported.run_external,
            checks=imported.index_checks,
            natives=imported.natives,
            fresh=imported.fresh,
            like=compiled.loaded,
        )
        numbers = relation.numbers_at(sizes)
        form = replace(
            compiled,
            imported=imported,
            program=program,
            loaded=loaded,
            stand_by=StandBy(
                lambda *tensors: reference(*tensors, *numbers), compiled._save
            ),
        )
        arena_bytes = program.arena_bytes if loaded.has_own_arena else 0
        return SizedForm(form, len(relation.shapes), arena_bytes)

    is_whole = not compiled.imported.has_inner_extents
    return SizedGraph(relation, compiled, at, reference, races, is_whole)


def _controlled(
    graph: fx.GraphModule,
    inputs: Sequence[Tensor],
    options: CompileOptions,
    tune: Tune | None,
    name: str,
) -> _Making | str:
    """Return a graph with control flow that is to be one program, or why it is none."""
    try:
        imported = import_control(graph, inputs)
    except UnsupportedError as refused:
        return str(refused)
    return _Making(graph, imported, options, tune, HOST_TARGET, HOST_MACHINE, name)


def _without_refused(
    graph: fx.GraphModule,
    refused: UnsupportedError,
    compile_piece: CompilePiece,
    name: str,
) -> CutGraph:
    """Return a graph that leaves to torch what was refused.

    Raises:
        UnsupportedError: What was refused, if nothing would be compiled then.
    """
    found = [node for node in graph.graph.nodes if node.name in refused.nodes]
    targets = {node.target for node in found}
    alike = [node.name for node in graph.graph.nodes if node.target in targets]
    names = [*dict.fromkeys([*(node.name for node in found), *alike])]
    cut = CutGraph(graph, dict.fromkeys(names, refused.id), compile_piece)
    if not names or not cut.compiles:
        raise refused
    _FALLBACKS.info("%s: torch runs %d of them: %s", name, len(names), refused)
    return cut


def _surroundings() -> tuple[Any, ...]:
    """Return what an import takes from its thread: modes.

    It sets those of autograd and autocast itself.
    """
    _grad, _inference, *others = without_autocast(torch_state())
    return tuple(others)


def _with_autocast_of_now(prepare: Callable[[], Work]) -> Callable[[], Work]:
    """Return a preparation that may go on in threads and calls with other casts."""
    modes = autocast_of(torch_state())

    def prepared() -> Work:
        with autocast_as(modes):
            return prepare()

    return prepared


def _name_of(graph: fx.GraphModule, program: str) -> str:
    """Return of which program a graph is, its size, and where it begins."""
    count = sum(node.op.startswith("call") for node in graph.graph.nodes)
    begins = begin_of(graph.graph)
    of = f"{program}: " if program else ""
    return f"{of}graph of {count} operators{f', from {begins} on' if begins else ''}"


@dataclass(frozen=True)
class _Making:
    """An imported graph that is to be compiled.

    Attributes:
        graph: The captured graph.
        imported: The same, imported.
        options: What the compilation may decide.
        tune: Whether plans are measured.
        target: What is compiled for.
        machine: Where the code runs.
        name: What the log calls it.
    """

    graph: fx.GraphModule
    imported: ImportedGraph
    options: CompileOptions
    tune: Tune | None
    target: str
    machine: Machine
    name: str

    def work(self, tiers: Tiers) -> Work:
        """Return what makes the compiled graph."""
        compiled = partial(self.compiled, in_background=tiers.in_background)
        return Work(compiled, self.race() if tiers.races else None)

    def controlled(self, tiers: Tiers | None) -> Compiled | TieredGraph:
        """Return a graph with control flow, in tiers if there are any."""
        if tiers is None:
            return self.compiled()
        work = self.work(tiers)
        runner = graph_runner(self.graph)
        return tiers.graph(runner, lambda: work, _surroundings, self.name)

    def compiled(self, in_background: bool = False) -> CompiledGraph:
        """Return the compiled graph."""
        service = background_service() if in_background else compile_service()
        where = "behind the calls" if in_background else "in the call"
        _COMPILES.info("%s: compiling %s", self.name, where)
        start = time.perf_counter()
        try:
            imported, program = compile_imported(
                self.imported, self.options, self.tune, self.target, service
            )
            _load_shared_code(imported, service)
            with exit_gate().native_code():
                loaded = LoadedProgram(
                    program,
                    imported.run_external,
                    self.machine,
                    checks=imported.index_checks,
                    fresh=imported.fresh,
                )
        except Exception as error:
            seconds = time.perf_counter() - start
            _COMPILES.info("%s: failed after %.3f s: %s", self.name, seconds, error)
            raise
        seconds = time.perf_counter() - start
        _COMPILES.info("%s: ready after %.3f s", self.name, seconds)
        reference = self.graph if env.CHECK.get() else None
        save = None
        if imported.draws:
            on_cpu = self.machine is HOST_MACHINE
            save = save_generator if on_cpu else save_generators
        stand_by = StandBy(graph_runner(self.graph), save)
        compiled = CompiledGraph(
            imported, program, loaded, self.options, reference, stand_by
        )
        self._log_plans(compiled)
        return compiled

    def _log_plans(self, compiled: CompiledGraph) -> None:
        if not _PLANS.isEnabledFor(logging.INFO):
            return
        report = compiled.report()
        lines = [line for graph in report["graphs"] for line in describe_graph(graph)]
        lines += map(describe_plan, report.get("tuning", ()))
        # A table, which a name before each line would tear apart.
        _PLANS.info("%s:\n%s", self.name, "\n".join(lines))

    def race(self) -> Race | None:
        """Return how compiled code is compared with torch; None if it is not.

        Results must not depend on times where torch is to be deterministic, checked
        calls run both tiers, and a call on a GPU returns before its work is done.
        """
        fixed = torch.are_deterministic_algorithms_enabled() or env.CHECK.get()
        if fixed or self.target != HOST_TARGET:
            return None
        verdicts = verdict_cache()
        if verdicts is None:
            return Race()
        tune = tune_options(env.TUNE.get() if self.tune is None else self.tune)
        settings = (
            self.options.text(),
            "untuned" if tune is None else f"tuned in {tune.text()}",
            f"{torch.get_num_threads()} threads of torch {torch.__version__}",
            torch.backends.cpu.get_cpu_capability(),
        )
        identity = compiler_identity()
        key = program_key(identity, "\n".join(settings), self.imported.text)
        return Race(verdicts.get(key), partial(verdicts.put, key))


def _load_shared_code(imported: ImportedGraph, service: CompileService) -> None:
    """Load the native code of externals, which their first call would compile."""
    for code in imported.shared_code:
        if not code.is_loaded:
            data = obtain(code, service.run, code_cache())
            with exit_gate().native_code():
                code.load(data)


def options_for(
    target: str, options: CompileOptions, tune: Tune | None
) -> CompileOptions:
    """Return the options of a compilation for a target.

    Raises:
        UnsupportedError: `unknown-target`; or code for a GPU is to be tuned where there
            is none, or to keep within a memory budget.
    """
    chosen = parse_target(target)
    if chosen.backend is Backend.CPU:
        return options
    wanted = tune_options(tune) if tune else None
    reason = "" if wanted is None else _why_untunable(wanted, target)
    if reason:
        raise UnsupportedError(
            "tune-target",
            f"plans for {target} cannot be measured: {reason}",
            hint="leave out tune: the model of the device chooses plans",
        )
    if options.memory_budget:
        raise UnsupportedError(
            "memory-budget-target",
            f"code for {target} is not made for a memory budget",
            hint="leave memory_budget out, or compile for the CPU",
        )
    return replace(options, device=chosen.reference, loops=False)


def _why_untunable(tune: TuneOptions, target: str) -> str:
    """Return why plans for a target cannot be measured, "" if they can."""
    # Whoever brings workers says that they are such machines.
    return "" if tune.executor is not None else why_unmeasurable(target)


def _machine(target: str, device: torch.device) -> tuple[str, Machine]:
    """Return target and machine for tensors of a device.

    Raises:
        UnsupportedError: The device and the target do not fit.
    """
    try:
        target = target_of(device) if target == AUTO else target
        parse_target(target)
        return target, machine_for(target, device)
    except DeviceError as error:
        raise UnsupportedError(
            "target-cannot-run",
            str(error),
            hint="use magweld.compile(..., target=...) to make a binary",
        ) from error


def compile_imported(
    imported: ImportedGraph,
    options: CompileOptions,
    tune: Tune | None = None,
    target: str = HOST_TARGET,
    service: CompileService | None = None,
) -> tuple[ImportedGraph, Program]:
    """Compile an imported graph, `tune` and `target` being as for `compile_graph`.

    Args:
        imported: The graph.
        options: What the compilation may decide.
        tune: Whether plans are chosen by measuring.
        target: What is compiled for.
        service: What compiles; that of this process by default.

    Returns:
        The graph, in which nodes that have no lowering after all run through torch,
        and its program.

    Raises:
        WorkerError: The compiler refused the graph or did not come back.
    """
    wanted = tune_options(env.TUNE.get() if tune is None else tune)
    if options.memory_budget:
        wanted = None  # plans that were measured know no budget
    if wanted is not None and _why_untunable(wanted, target):
        wanted = None  # the environment asks for all graphs
    refused: dict[str, str] = {}
    service = service or compile_service()
    while True:
        if target == HOST_TARGET:
            program = _compile_text(imported.text, options, wanted, service)
        else:
            program = _compile_for_device(imported.text, target, options, service)
        if not program.unlowered:
            if wanted is not None and target != HOST_TARGET:
                program = _tuned_for_device(
                    imported.text, target, options, wanted, service
                )
            if imported.externals and _FALLBACKS.isEnabledFor(logging.INFO):
                left = list(map(imported.where, imported.externals))
                _FALLBACKS.info("torch runs %s", shorten(left, _LOGGED_NODES))
            report = {**program.report, "refused": refused} if refused else None
            return imported, replace(program, report=report or program.report)
        refused.update(program.report.get("refused", {}))
        if not set(program.unlowered) - set(imported.externals):
            nodes = ", ".join(program.unlowered)
            raise MagweldError(f"the compiler refuses externals: {nodes}")
        with exit_gate().native_code():
            imported = imported.with_externals(program.unlowered)


def _compile_for_device(
    text: str, target: str, options: CompileOptions, service: CompileService
) -> Program:
    settings = _device_settings(target, options)

    def make() -> Program:
        return decode_answer(service.run(_DEVICE_TASK, encode_request(settings, text)))

    # The numbers behind a name are those of a file, which may change.
    return service.compile(text, settings, make, str(parse_target(target).device))


def _tuned_for_device(
    text: str,
    target: str,
    options: CompileOptions,
    tune: TuneOptions,
    service: CompileService,
) -> Program:
    """Compile what has code for a GPU, with plans that are measured there."""
    settings, gpu = _device_settings(target, options), gpu_name()

    def make() -> Program:
        threads = torch.get_num_threads()
        return tuned(service.runner, tune, text, settings, threads, gpu)

    key = f"{settings}\ntuned for {gpu} of torch {torch.__version__}"
    suffices = partial(would_stay, seconds=tune.seconds)
    facts = str(parse_target(target).device)
    return service.compile(text, key, make, facts, suffices)


def _device_settings(target: str, options: CompileOptions) -> str:
    return f"{target}\n{options.text()}"


def _compile_text(
    text: str,
    options: CompileOptions,
    tune: TuneOptions | None,
    service: CompileService,
) -> Program:
    settings = options.text()
    # The numbers behind a name are those of a file, which may change.
    facts = "" if options.device == HOST else str(device(options.device))
    if tune is None:
        most = min(env.WORKERS.get() or device(HOST).units, _MOST_PROCESSES)
        if len(text) < LARGE_TEXT or most == 1:
            return service.compile(text, settings, facts=facts)

        def side_by_side() -> Program:
            parts = (settings, text, str(most))
            payload = encode_parts([part.encode() for part in parts])
            return decode_answer(service.run(_SIDE_BY_SIDE_TASK, payload))

        return service.compile(text, settings, side_by_side, facts)
    threads = torch.get_num_threads()

    def make() -> Program:
        return tuned(service.runner, tune, text, settings, threads)

    key = f"{settings}\ntuned for {threads} threads of torch {torch.__version__}"
    suffices = partial(would_stay, seconds=tune.seconds)
    return service.compile(text, key, make, facts, suffices)
