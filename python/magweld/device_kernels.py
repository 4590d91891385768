"""Owns kernels as code for a GPU: alone or side by side, and what a launch takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from magweld.bindings import gpu, ir, linalg
from magweld.diagnostics import MagweldError
from magweld.kernel_code import dump_options
from magweld.passes.gpu.pointer_table import JOINT_LAUNCH, MEMBERS
from magweld.passes.gpu.serialize_to_binary import LAUNCH
from magweld.passes.gpu.tensor_maps import MAPPED
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import node_of, operations_of
from magweld.passes.pipelines.gpu import BlockShape, gpu_phase_steps, gpu_pipeline
from magweld.targets import Target
from magweld.tensor_map import MappedParameter, TensorMap


@dataclass(frozen=True)
class KernelParameters:
    """What a launch takes for a kernel.

    Attributes:
        arguments: Positions of what it takes among the operands of a member.
        members: How many members it has.
    """

    arguments: list[int]
    members: int


@dataclass(frozen=True)
class CompiledLaunch:
    """One launch of a kernel, or of several side by side.

    Attributes:
        symbol: Name in its code.
        grid: Blocks in x, y and z.
        block: Threads of a block.
        shared_bytes: Dynamic shared memory of a block.
        parameters: What it takes for each kernel.
        images: Positions of its code.
        maps: Parameters that are tensor maps.
    """

    symbol: str
    grid: list[int]
    block: list[int]
    shared_bytes: int
    parameters: tuple[KernelParameters, ...]
    images: tuple[int, ...]
    maps: tuple[MappedParameter, ...] = ()

    @classmethod
    def of(cls, binary: Any, position_of: Callable[[bytes], int]) -> CompiledLaunch:
        """Return the launch of a `gpu.binary`.

        Args:
            binary: The operation.
            position_of: Keeps code, and returns its position.
        """
        attribute = binary.operation.attributes[LAUNCH]
        entries = {entry.name: entry.attr for entry in ir.DictAttr(attribute)}
        objects = [gpu.ObjectAttr(one) for one in binary.objects]
        # Machine code first: assembly has to be compiled by the driver.
        assembly = int(gpu.CompilationTarget.Assembly)
        objects.sort(key=lambda one: int(one.format) == assembly)
        return cls(
            symbol=entries["symbol"].value,
            grid=list(entries["grid"]),
            block=list(entries["block"]),
            shared_bytes=entries["dynamic_shared_bytes"].value,
            parameters=tuple(_parameters(entries)),
            images=tuple(position_of(bytes(one.object)) for one in objects),
            maps=tuple(_maps(entries)),
        )


def _parameters(entries: Mapping[str, Any]) -> Iterator[KernelParameters]:
    """Yield what a launch takes for each of its kernels."""
    parts = ir.ArrayAttr(entries["parts"]) if "parts" in entries else [None]
    for part in parts:
        of = entries if part is None else ir.DictAttr(part)
        yield KernelParameters(
            list(ir.DenseI64ArrayAttr(of["arguments"])),
            int(ir.IntegerAttr(of["members"]).value),
        )


def _maps(entries: Mapping[str, Any]) -> Iterator[MappedParameter]:
    """Yield the parameters of a launch that are tensor maps."""
    for entry in ir.ArrayAttr(entries[MAPPED]) if MAPPED in entries else []:
        fields = {one.name: one.attr for one in ir.DictAttr(entry)}
        lists = ("extents", "strides", "box")
        forms = {name: tuple(ir.DenseI64ArrayAttr(fields[name])) for name in lists}
        yield MappedParameter(
            ir.IntegerAttr(fields["parameter"]).value,
            TensorMap(
                element=ir.StringAttr(fields["element"]).value,
                swizzle=ir.IntegerAttr(fields["swizzle"]).value,
                **forms,
            ),
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


def compile_joint(name: str, kernels: Sequence[tuple[Any, int]], target: Target) -> Any:
    """Return a module of its own with the launch of kernels side by side.

    Args:
        name: Of the launch.
        kernels: Each with how many times the launch runs it.
        target: What code is made for.

    Raises:
        MagweldError: A kernel has no code for the target, or they have none together.
    """
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        for function, members in kernels:
            kernel = _clone(function, members)
            kernel.attributes[JOINT_LAUNCH] = ir.StringAttr.get(name)
    run_pipeline(gpu_pipeline(target), module, dump_options("gpu"))
    return module


def _module_with(function: Any, members: int = 1) -> Any:
    """Return a module that has a clone of a kernel."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        _clone(function, members)
    return module


def _clone(function: Any, members: int) -> Any:
    kernel = function.operation.clone()
    if members > 1:
        number = ir.IntegerType.get_signless(64)
        kernel.attributes[MEMBERS] = ir.IntegerAttr.get(number, members)
    return kernel


def nodes_in(function: Any) -> tuple[str, ...]:
    """Return the names of the graph nodes that a kernel computes, in order."""
    structured = _structured(function)
    # What a sum begins from is of the sum, and comes before what it sums.
    structured.sort(key=lambda op: str(op.operation.name) == "linalg.fill")
    # What an operation computes for itself has its place in the body.
    names = dict.fromkeys(
        node_of(one.location) for op in structured for one in (*_body_of(op), op)
    )
    return tuple(name for name in names if name)


def products_in(function: Any) -> tuple[str, ...]:
    """Return the names of the nodes whose products or windows a kernel computes."""
    found = (
        node_of(op.location)
        for op in _structured(function)
        if linalg.isa_contraction_op(op.operation)
        or linalg.isa_convolution_op(op.operation)
    )
    return tuple(name for name in dict.fromkeys(found) if name)


def _structured(function: Any) -> list[Any]:
    operators = operations_of(function.operation, ir.OpView)
    return [op for op in operators if op.operation.name.startswith("linalg.")]


def _body_of(op: Any) -> Iterator[Any]:
    for region in op.operation.regions:
        for block in region.blocks:
            yield from block.operations
