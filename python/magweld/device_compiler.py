"""Owns the compilation of a module in the torch dialect to a program for a GPU.

`compile_for_device` runs in a worker process that never imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from magweld.artifact import (
    DeviceLaunch,
    ExternalStep,
    KernelStep,
    LibraryStep,
    Program,
    Step,
)
from magweld.bindings import gpu, ir
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.device_kernels import (
    CompiledLaunch,
    compile_joint,
    compile_kernel,
    nodes_in,
    products_in,
)
from magweld.diagnostics import MagweldError
from magweld.host_function import HostCall, HostFunction, read_host_function
from magweld.kernel_code import launch_symbol
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.ir.utils import operations_of
from magweld.runtime.container import decode_request, encode_program
from magweld.targets import Target, parse_target

# Nothing of a library.
GENERATED: Final = CompileOptions(library="never")


def compile_for_device(payload: bytes) -> bytes:
    """Compile an encoded request to an encoded program.

    Its options are the name of the target and, on the next line, the text of
    `CompileOptions`; without these code is generated alone.

    If there are operators without a lowering or without code for the device, the
    program names their nodes as `unlowered`, with the reasons as `refused` in its
    report.

    Raises:
        MagweldError: The module cannot be scheduled for the device, or what is refused
            is no operator of the graph.
    """
    settings, text = decode_request(payload)
    name, _, wanted = settings.partition("\n")
    options = CompileOptions.parse(wanted) if wanted else GENERATED
    with make_context(), ir.Location.unknown():
        try:
            program = compile_on_device(ir.Module.parse(text), name, options)
        except UnloweredError as error:
            if not error.nodes:
                raise
            reasons = dict.fromkeys(error.nodes, "it has no lowering to linalg")
            program = _unlowered(name, reasons)
        return encode_program(program)


def compile_on_device(
    module: Any, name: str, wanted: CompileOptions, after: Phase | None = None
) -> Program:
    """Compile a module to a program for a GPU, in place.

    Args:
        module: The module.
        name: Of the target.
        wanted: What the compilation may decide.
        after: Phase that the module is in already; None if it is in none.

    Returns:
        The program; one that names nodes as `unlowered` if they have no code.

    Raises:
        UnloweredError: Operations have no lowering.
        MagweldError: The module cannot be compiled.
    """
    target = parse_target(name)
    options = device_options(target, wanted)
    lower_to_tiles(module, options, after=after, target=target)
    return _Kernels(module, target).program(name)


def device_options(
    target: Target, wanted: CompileOptions = GENERATED
) -> CompileOptions:
    """Return what a compilation for a GPU may decide.

    Args:
        target: The GPU.
        wanted: What a caller lets it decide; by default generated code alone.
    """
    return replace(wanted, device=target.reference, loops=False)


def _library_step(call: HostCall) -> LibraryStep:
    attributes = dict(call.attributes)
    op = attributes.pop("op")
    return LibraryStep(op, call.operands, call.results, attributes)


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


@dataclass
class _Kernels:
    """The kernels of a module as machine code.

    Attributes:
        module: The tiled module.
        target: What code is made for.
        images: Code, each piece once.
        compiled: Launches of each kernel for so many members.
        joint: Launches of kernels side by side, by what stands for them.
        nodes: Names of the graph nodes that each kernel computes.
        refused: Why the nodes of some kernels have no code.
    """

    module: Any
    target: Target
    images: list[bytes] = field(default_factory=list)
    compiled: dict[tuple[str, int], list[CompiledLaunch]] = field(default_factory=dict)
    joint: dict[str, CompiledLaunch] = field(default_factory=dict)
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def program(self, name: str) -> Program:
        """Return the program of a target, or what it would need."""
        functions = {op.name.value: op for op in self.module.body.operations}
        host = read_host_function(self.module)
        kernels = [call for call in host.calls if call.kind == "kernel"]
        for call in (call for call in kernels if call.parts):
            self._compile_joint(call, functions)
        alone = (
            part
            for call in kernels
            for part in call.parts or (call,)
            if call.callee not in self.joint
        )
        for callee, members in dict.fromkeys((c.callee, c.members) for c in alone):
            self._compile(callee, functions[callee], members)
        if self.refused:
            return _unlowered(name, self.refused)
        return self._assembled(name, host)

    def _compile_joint(self, call: HostCall, functions: Mapping[str, Any]) -> None:
        """Compile kernels side by side; those that cannot be are launches apart."""
        parts = [(functions[part.callee], part.members) for part in call.parts]
        try:
            module = compile_joint(call.callee, parts, self.target)
        except (MagweldError, ir.MLIRError):
            return
        for part, (function, _) in zip(call.parts, parts, strict=True):
            self.nodes[part.callee] = nodes_in(function)
        (binary,) = operations_of(module.operation, gpu.BinaryOp)
        self.joint[call.callee] = self._launch(binary)

    def _compile(self, callee: str, function: Any, members: int) -> None:
        """Compile one kernel in a module of its own: others may be refused."""
        self.nodes[callee] = nodes_in(function)
        try:
            module = compile_kernel(function, self.target, members)
        except (MagweldError, ir.MLIRError) as error:
            # An error that names no operator is about all of the kernel. What is left
            # without its products may have code.
            named = [node for node in getattr(error, "nodes", ()) if node]
            nodes = named or products_in(function) or self.nodes[callee]
            if not nodes:
                raise
            self.refused.update(dict.fromkeys(nodes, str(error)))
            return
        binaries = operations_of(module.operation, gpu.BinaryOp)
        self.compiled[callee, members] = [self._launch(binary) for binary in binaries]

    def _launch(self, binary: Any) -> CompiledLaunch:
        return CompiledLaunch.of(binary, self._image)

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
            if call.kind == "library":
                steps.append(_library_step(call))
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
        parts = call.parts or (call,)
        if call.callee in self.joint:
            yield self._device_launch(symbol, self.joint[call.callee], parts)
            return
        for part in parts:
            for made in self.compiled[part.callee, part.members]:
                yield self._device_launch(symbol, made, (part,))

    def _device_launch(
        self, symbol: str, made: CompiledLaunch, parts: Sequence[HostCall]
    ) -> DeviceLaunch:
        pointers: list[int] = []
        shifts: list[int] = []
        for call, taken in zip(parts, made.parameters, strict=True):
            entries = call.entries()
            begin = call.entry_shifts() or (0,) * len(entries)
            own = len(entries) // call.members
            places = [
                member * own + position
                for member in range(call.members)
                for position in taken.arguments
            ]
            pointers += [entries[place] for place in places]
            shifts += [begin[place] for place in places]
        return DeviceLaunch(
            step=symbol,
            kernel=made.symbol,
            images=made.images,
            grid=tuple(made.grid),
            block=tuple(made.block),
            shared_bytes=made.shared_bytes,
            pointers=tuple(pointers),
            sources=tuple(
                dict.fromkeys(node for c in parts for node in self.nodes[c.callee])
            ),
            members=1 if len(parts) > 1 else made.parameters[0].members,
            shifts=tuple(shifts) if any(shifts) else (),
            kernels=len(parts),
            maps=made.maps,
        )
