"""Owns the compilation of a module in the torch dialect to a program for a GPU.

`compile_for_device` runs in a worker process that never imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from magweld.artifact import DeviceLaunch, ExternalStep, KernelStep, Program, Step
from magweld.bindings import gpu, ir
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.diagnostics import MagweldError
from magweld.host_function import HostCall, HostFunction, read_host_function
from magweld.kernel_code import dump_options, launch_symbol
from magweld.passes.gpu.launch_members import MEMBERS
from magweld.passes.gpu.serialize_to_binary import LAUNCH
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import node_of, operations_of
from magweld.passes.pipelines.gpu import BlockShape, gpu_phase_steps, gpu_pipeline
from magweld.runtime.container import decode_request, encode_program
from magweld.targets import Target, parse_target


def compile_for_device(payload: bytes) -> bytes:
    """Compile an encoded request, target name and module text, to an encoded program.

    If there are operators without a lowering or without code for the device, the
    program names their nodes as `unlowered`, with the reasons as `refused` in its
    report.

    Raises:
        MagweldError: The module cannot be scheduled for the device, or what is refused
            is no operator of the graph.
    """
    name, text = decode_request(payload)
    target = parse_target(name)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        try:
            lower_to_tiles(module, device_options(target), target=target)
        except UnloweredError as error:
            if not error.nodes:
                raise
            reasons = dict.fromkeys(error.nodes, "it has no lowering to linalg")
            return encode_program(_unlowered(name, reasons))
        return encode_program(_Kernels(module, target).program(name))


def device_options(target: Target) -> CompileOptions:
    """Return what a compilation for a GPU may decide."""
    return CompileOptions(device=target.reference, library="never", loops=False)


def _unlowered(target: str, reasons: dict[str, str]) -> Program:
    return Program(
        (),
        (),
        (),
        arena_bytes=0,
        unlowered=tuple(sorted(reasons)),
        report={"refused": reasons},
        target=target,
    )


@dataclass(frozen=True)
class _Compiled:
    """One launch of a kernel.

    Attributes:
        symbol: Name in its code.
        grid: Blocks in x, y and z.
        block: Threads of a block.
        shared_bytes: Dynamic shared memory of a block.
        arguments: Positions of what it takes among the operands of a member.
        members: How many members it has.
        images: Positions of its code.
    """

    symbol: str
    grid: list[int]
    block: list[int]
    shared_bytes: int
    arguments: list[int]
    members: int
    images: tuple[int, ...]


@dataclass
class _Kernels:
    """The kernels of a module as machine code.

    Attributes:
        module: The tiled module.
        target: What code is made for.
        images: Code, each piece once.
        compiled: Launches of each kernel for so many members.
        nodes: Names of the graph nodes that each kernel computes.
        refused: Why the nodes of some kernels have no code.
    """

    module: Any
    target: Target
    images: list[bytes] = field(default_factory=list)
    compiled: dict[tuple[str, int], list[_Compiled]] = field(default_factory=dict)
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def program(self, name: str) -> Program:
        """Return the program of a target, or what it would need."""
        functions = {op.name.value: op for op in self.module.body.operations}
        host = read_host_function(self.module)
        kernels = (call for call in host.calls if call.kind == "kernel")
        for callee, members in dict.fromkeys((c.callee, c.members) for c in kernels):
            self._compile(callee, functions[callee], members)
        if self.refused:
            return _unlowered(name, self.refused)
        return self._assembled(name, host)

    def _compile(self, callee: str, function: Any, members: int) -> None:
        """Compile one kernel in a module of its own: others may be refused."""
        self.nodes[callee] = nodes_in(function)
        try:
            module = compile_kernel(function, self.target, members)
        except (MagweldError, ir.MLIRError) as error:
            # An error that names no operator is about all of the kernel.
            named = [node for node in getattr(error, "nodes", ()) if node]
            nodes = named or self.nodes[callee]
            if not nodes:
                raise
            self.refused.update(dict.fromkeys(nodes, str(error)))
            return
        binaries = operations_of(module.operation, gpu.BinaryOp)
        self.compiled[callee, members] = [self._launch(binary) for binary in binaries]

    def _launch(self, binary: Any) -> _Compiled:
        attribute = binary.operation.attributes[LAUNCH]
        entries = {entry.name: entry.attr for entry in ir.DictAttr(attribute)}
        objects = [gpu.ObjectAttr(one) for one in binary.objects]
        # Machine code first: assembly has to be compiled by the driver.
        assembly = int(gpu.CompilationTarget.Assembly)
        objects.sort(key=lambda one: int(one.format) == assembly)
        return _Compiled(
            symbol=entries["symbol"].value,
            grid=list(entries["grid"]),
            block=list(entries["block"]),
            shared_bytes=entries["dynamic_shared_bytes"].value,
            arguments=list(entries["arguments"]),
            members=entries["members"].value,
            images=tuple(self._image(bytes(one.object)) for one in objects),
        )

    def _image(self, code: bytes) -> int:
        if code not in self.images:
            self.images.append(code)
        return self.images.index(code)

    def _assembled(self, name: str, host: HostFunction) -> Program:
        steps: list[Step] = []
        launches: list[DeviceLaunch] = []
        for number, call in enumerate(host.calls):
            if call.kind == "external":
                steps.append(ExternalStep(call.node, call.operands, call.results))
                continue
            symbol = launch_symbol("main", number)
            steps.append(KernelStep(symbol, call.operands, call.results))
            launches += self._launches(symbol, call)
        kernels = (call for call in host.calls if call.kind == "kernel")
        return Program(
            values=tuple(host.values),
            steps=tuple(steps),
            results=host.results,
            arena_bytes=host.arena_bytes,
            objects=tuple(self.images),
            constants=tuple(host.constants),
            report={"groups": [call.report for call in kernels], "graphs": []},
            target=name,
            launches=tuple(launches),
        )

    def _launches(self, symbol: str, call: HostCall) -> Iterator[DeviceLaunch]:
        entries, shifts = call.entries(), call.entry_shifts()
        own = len(entries) // call.members
        for made in self.compiled[call.callee, call.members]:
            places = [
                member * own + position
                for member in range(call.members)
                for position in made.arguments
            ]
            yield DeviceLaunch(
                step=symbol,
                kernel=made.symbol,
                images=made.images,
                grid=tuple(made.grid),
                block=tuple(made.block),
                shared_bytes=made.shared_bytes,
                pointers=tuple(entries[place] for place in places),
                sources=self.nodes[call.callee],
                members=made.members,
                shifts=tuple(shifts[place] for place in places) if shifts else (),
            )


def compile_kernel(function: Any, target: Target, members: int = 1) -> Any:
    """Return a module of its own with a tiled kernel as `gpu.binary`.

    Args:
        function: The kernel.
        target: What code is made for.
        members: How many times a launch runs it, each time on operands of its own.

    Raises:
        MagweldError: The kernel has no code for the target.
    """
    module = _module_with(function, members)
    run_pipeline(gpu_pipeline(target), module, dump_options("gpu"))
    return module


def compile_for_targets(
    function: Any, targets: Sequence[Target]
) -> list[MagweldError | ir.MLIRError | None]:
    """Compile a tiled kernel for targets, as far as they are alike in one go.

    Targets whose blocks are alike share the kernel in the gpu dialect.

    Returns:
        What is refused for each target, None where there is code.
    """
    lowered: dict[BlockShape, Any] = {}
    refused: list[MagweldError | ir.MLIRError | None] = []
    for target in targets:
        first, *rest = gpu_phase_steps(target).values()
        shape = BlockShape.of(target)
        try:
            if shape not in lowered:
                module = _module_with(function)
                run_pipeline(Pipeline(first), module, dump_options("gpu"))
                lowered[shape] = module
            own = lowered[shape].operation.clone()
            steps = tuple(chain.from_iterable(rest))
            run_pipeline(Pipeline(steps), own, dump_options("gpu"))
        except (MagweldError, ir.MLIRError) as error:
            refused.append(error)
        else:
            refused.append(None)
    return refused


def _module_with(function: Any, members: int = 1) -> Any:
    """Return a module that has a clone of a kernel."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        kernel = function.operation.clone()
    if members > 1:
        number = ir.IntegerType.get_signless(64)
        kernel.attributes[MEMBERS] = ir.IntegerAttr.get(number, members)
    return module


def nodes_in(function: Any) -> tuple[str, ...]:
    """Return the names of the graph nodes that a kernel computes, in order."""
    operators = operations_of(function.operation, ir.OpView)
    structured = [op for op in operators if op.operation.name.startswith("linalg.")]
    # What a sum begins from is of the sum, and comes before what it sums.
    structured.sort(key=lambda op: str(op.operation.name) == "linalg.fill")
    # What an operation computes for itself has its place in the body.
    names = dict.fromkeys(
        node_of(one.location) for op in structured for one in (*_body_of(op), op)
    )
    return tuple(name for name in names if name)


def _body_of(op: Any) -> Iterator[Any]:
    for region in op.operation.regions:
        for block in region.blocks:
            yield from block.operations
