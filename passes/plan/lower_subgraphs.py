"""Owns lower-subgraphs: every planned subgraph becomes a tiled, fused function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, func, ir, tensor
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import (
    DEVICE,
    KERNEL,
    OPERATORS,
    PARTS,
    RUNTIME,
    RuntimeTiles,
    device_of,
    is_tile_graph,
    operators_of,
    reports_of,
    runtime_loop,
    set_reports,
)
from magweld.passes.analysis.control_calls import control_of
from magweld.passes.analysis.library_calls import call_on
from magweld.passes.analysis.library_form import LibraryCall, Reshape
from magweld.passes.analysis.loop_calls import loop_of
from magweld.passes.analysis.operator_model import inputs_of
from magweld.passes.analysis.runtime_extents import (
    runtime_type,
    runtime_violations,
    stand_ins_of,
)
from magweld.passes.analysis.structure import Structure, structure_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import ValueMap, clone_mapped
from magweld.passes.ir.utils import (
    callee_of,
    functions_of,
    located_error,
    unused_names,
)
from magweld.passes.plan.plan_execution import is_empty, is_planned
from magweld.passes.plan.tiled_body import build_tiled_body


@dataclass(frozen=True)
class LowerSubgraphs(Pass):
    """Lower the plans of subgraphs to functions of tiled and fused linalg.

    Each plan becomes `@kernel_N(inputs..., destinations...)`: one `scf.forall` over
    the tiles of each shape, in which loads are slices of the inputs, allocations empty
    tensors or slices of the destinations that they are stored to, and computations
    linalg on these. Where tiles have several shapes `tile_graph.parts` says how many.
    Library subgraphs become declarations `@library_N` with `magweld.library`. The
    graph itself dissolves into calls and reshapes; calls of loops and branches get
    destinations.

    In a module with `magweld.stand_ins` extents that a call tells are dynamic in
    kernels, which take them from a destination. The host function keeps the numbers
    that stand for them, with a cast around each such tensor of a kernel.
    `tile_graph.runtime` of a kernel tells of its tiles along the extent.
    """

    name: ClassVar[str] = "lower-subgraphs"

    def run(self, module: Any) -> None:
        """Lower all graphs of the module."""
        callees = _Callees(module)
        for function in list(functions_of(module)):
            if is_tile_graph(function):
                _Lowering(callees, function).run()


# How names of functions begin that subgraphs become.
_KINDS = ("kernel", "library")


class _Callees:
    """The functions made for subgraphs, in the module that they stand in.

    Attributes:
        of_plans: The kernel of a plan, by its structure and the operand that each
            tensor is that it loads.
    """

    def __init__(self, module: Any) -> None:
        self._symbols = ir.SymbolTable(module)
        self._names = {kind: unused_names(self._symbols, kind) for kind in _KINDS}
        self._block = module.regions[0].blocks[0]
        self._kernels: dict[str, Any] = {}
        self.of_plans: dict[tuple[Structure, tuple[int, ...]], Any] = {}

    def function(self, call: Any) -> Any:
        """Return the function that a call is of."""
        return self._symbols[callee_of(call)]

    def declare(self, name: str, signature: tuple[list[Any], list[Any]]) -> Any:
        """Make a private function of a name that may be taken already."""
        with ir.InsertionPoint(self._block):
            return func.FuncOp(name, signature, visibility="private")

    def add_library(self, function: Any) -> Any:
        """Give a declaration a name of its own."""
        self._rename(function, "library")
        return function

    def add_kernel(self, function: Any) -> Any:
        """Give a kernel a name of its own, or drop it for an equal one: layers repeat.

        Returns:
            The function to call.
        """
        # Not verified here: the pass manager does that once the pass is through.
        # Only in local scope is the module around it not read again for each kernel.
        text = function.operation.get_asm(
            enable_debug_info=False, assume_verified=True, use_local_scope=True
        )
        if text in self._kernels:
            function.erase()
        else:
            self._rename(function, "kernel")
            self._kernels[text] = function
        return self._kernels[text]

    def _rename(self, function: Any, kind: str) -> None:
        name = next(self._names[kind])
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        self._symbols.insert(function)


class _Lowering:
    def __init__(self, callees: _Callees, function: Any) -> None:
        self._callees = callees
        self._function = function
        self._values = ValueMap()
        self._stand_ins = stand_ins_of(function)

    def run(self) -> None:
        block = self._function.regions[0].blocks[0]
        old = [op.operation for op in block.operations]
        terminator = old.pop()
        with ir.InsertionPoint(old[0] if old else terminator):
            for op in old:
                self._lower(op)
        for position, value in enumerate(terminator.operands):
            terminator.operands[position] = self._values[value]
        for op in reversed(old):
            op.erase()
        del self._function.attributes[DEVICE]

    def _lower(self, op: Any) -> None:
        makers: dict[str, Callable[[Any], None]] = {
            "func.call": self._call,
            "tile_graph.connect": self._edge,
            "tile_graph.for_tiles": self._kernel,
            "tile_graph.operator": self._unwrapped,
            "tile_graph.subgraph": self._subgraph,
        }
        with op.location:
            makers.get(op.name, self._other)(op)

    def _other(self, op: Any) -> None:
        clone_mapped(op, self._values)

    def _call(self, call: Any) -> None:
        """Give a loop or branch destinations, as the calls of kernels have."""
        callee = self._callees.function(call)
        if loop_of(callee) is None and control_of(callee) is None:
            self._other(call)
            return
        results = [value.type for value in call.results]
        operands = [*(self._values[v] for v in call.operands), *map(_empty, results)]
        types = ir.FunctionType.get([value.type for value in operands], results)
        callee.attributes["function_type"] = ir.TypeAttr.get(types)
        new = func.CallOp(callee, operands)
        for old, value in zip(call.results, new.results, strict=True):
            self._values[old] = value

    def _edge(self, connect: Any) -> None:
        self._values[connect.results[0]] = self._values[connect.operands[0]]

    def _unwrapped(self, operator: Any) -> None:
        raise located_error(operator, "expected extract-subgraphs to have wrapped it")

    def _subgraph(self, subgraph: Any) -> None:
        """Call a library, or nothing where there are no elements to compute."""
        if is_empty(subgraph):
            for value in subgraph.results:
                self._values[value] = _empty(value.type)
        elif is_planned(subgraph):
            raise located_error(subgraph, "expected plan-execution to have planned it")
        else:
            self._library(subgraph, inputs_of(subgraph))

    def _kernel(self, plan: Any) -> None:
        """Make the function of a plan and call it with fresh destinations."""
        for violation in runtime_violations(plan, self._stand_ins):
            raise located_error(plan, f"runtime-extent: {violation}")
        inputs = inputs_of(plan)
        # Two edges from one tensor are one operand.
        operands = list(dict.fromkeys(self._values[value] for value in inputs))
        places = {value: number for number, value in enumerate(operands)}
        numbers = {value: places[self._values[value]] for value in inputs}
        known = self._callees.of_plans
        key = (structure_of(plan), tuple(numbers.values()))
        if key not in known:
            kernel = self._build_kernel(plan, numbers, [v.type for v in operands])
            known[key] = self._callees.add_kernel(kernel)
        function = known[key]
        made = [_empty(value.type) for value in plan.results]
        given = [_cast(v, self._dynamic(v.type)) for v in (*operands, *made)]
        call = func.CallOp(function, given)
        call.attributes[OPERATORS] = plan.attributes["operators"]
        for old, new in zip(plan.results, call.results, strict=True):
            self._values[old] = _cast(new, old.type)

    def _dynamic(self, type_: Any) -> Any:
        return runtime_type(type_, self._stand_ins) if self._stand_ins else type_

    def _build_kernel(
        self, plan: Any, numbers: dict[Any, int], operands: list[Any]
    ) -> Any:
        """Make the kernel of a plan.

        Args:
            plan: What to compute.
            numbers: Operand number of each tensor that the plan loads.
            operands: Types of the operands.
        """
        results = [self._dynamic(value.type) for value in plan.results]
        signature = ([*map(self._dynamic, operands), *results], results)
        function = self._callees.declare("kernel", signature)
        function.attributes[KERNEL] = ir.UnitAttr.get()
        set_reports(function, reports_of(plan))
        parts = len(plan.regions[0].blocks)
        if parts > 1:
            function.attributes[PARTS] = i64(parts)
        runtime = _runtime_tiles(plan)
        if runtime is not None:
            function.attributes[RUNTIME] = runtime.attribute()
        with ir.InsertionPoint(function.add_entry_block()):
            arguments = list(function.arguments)
            destinations = arguments[len(operands) :]
            extent = None
            if runtime is not None:
                extent = self._extent(plan, destinations, runtime.extent)
            inputs = {value: arguments[number] for value, number in numbers.items()}
            func.ReturnOp(build_tiled_body(plan, inputs, destinations, extent))
        return function

    def _extent(self, plan: Any, destinations: list[Any], stand_in: int) -> Any:
        """Read the extent that a number stands for from a destination that has it."""
        for result, destination in zip(plan.results, destinations, strict=True):
            shape = list(result.type.shape)
            if stand_in in shape:
                dim = arith.ConstantOp(ir.IndexType.get(), shape.index(stand_in))
                return tensor.DimOp(destination, dim.result).result
        raise located_error(
            plan, f"runtime-extent: no result has the extent {stand_in} of its tiles"
        )

    def _library(self, subgraph: Any, inputs: list[Any]) -> None:
        call = call_on(device_of(self._function), operators_of(subgraph))
        if not isinstance(call, LibraryCall):
            raise located_error(subgraph, f"has no library call: {call.detail}")
        reshapes = call.reshapes or (None,) * (len(call.operands) + 1)
        used = [
            _reshaped(self._values[inputs[i]], reshape)
            for i, reshape in zip(call.operands, reshapes, strict=False)
        ]
        ours = ir.RankedTensorType(subgraph.results[0].type)
        result = _library_type(ours, reshapes[-1])
        signature = ([*(v.type for v in used), result], [result])
        function = self._callees.declare("library", signature)
        function.attributes["magweld.library"] = call.attribute()
        if call.adopts:
            function.attributes["magweld.adopts"] = ir.UnitAttr.get()
        self._callees.add_library(function)
        made = func.CallOp(function, [*used, _empty(result)]).results[0]
        back = reshapes[-1]
        if back is not None:
            made = _reshaped(made, Reshape(back.groups, not back.expand), ours)
        self._values[subgraph.results[0]] = made


def _cast(value: Any, type_: Any) -> Any:
    return value if value.type == type_ else tensor.CastOp(type_, value).result


def _runtime_tiles(plan: Any) -> RuntimeTiles | None:
    """Return the tiles of a plan along an extent that a call tells, if it has one."""
    extents = [extent.value for extent in plan.attributes["extents"]]
    steps = [step.value for step in plan.attributes["steps"]]
    for loop in runtime_loop(plan):
        others = [n for n in range(len(steps)) if n != loop]
        beside = math.prod(extents[n] // steps[n] for n in others)
        if any(extents[n] % steps[n] for n in others):
            raise located_error(plan, "runtime-extent: its other tiles differ in shape")
        return RuntimeTiles(extents[loop], steps[loop], beside)
    return None


def _empty(type_: Any) -> Any:
    ranked = ir.RankedTensorType(type_)
    return tensor.EmptyOp(list(ranked.shape), ranked.element_type).result


def _library_type(type_: Any, reshape: Reshape | None) -> Any:
    if reshape is None:
        return type_
    shape = reshape.shape(tuple(type_.shape))
    return ir.RankedTensorType.get(shape, type_.element_type)


def _reshaped(value: Any, reshape: Reshape | None, to: Any = None) -> Any:
    """Reshape a tensor as a library call wants it, or to a given type."""
    if reshape is None:
        return value
    type_ = to or _library_type(ir.RankedTensorType(value.type), reshape)
    groups = [list(group) for group in reshape.groups]
    if not reshape.expand:
        return tensor.collapse_shape(type_, value, groups)
    return tensor.expand_shape(type_, value, groups, [], list(type_.shape))
