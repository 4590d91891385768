"""Owns the reading of the host function of a tiled module: values and calls."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy

from magweld.artifact import WORDS, Place, StandIns, Value
from magweld.bindings import ir
from magweld.diagnostics import MagweldError
from magweld.dialects.tile_graph import (
    EXTERNAL,
    OPERATORS,
    SHIFT,
    RuntimeTiles,
    TileAttr,
    element_bytes,
    is_kernel,
    reports_of,
)
from magweld.passes.analysis.batch_calls import batch_of, verify_batch
from magweld.passes.analysis.control_calls import ControlCall, control_of
from magweld.passes.analysis.joint_calls import JointCall, joint_of, verify_joint
from magweld.passes.analysis.loop_calls import LoopCall, loop_of
from magweld.passes.ir.utils import callee_of, located_error
from magweld.passes.memory.plan_memory import CAST
from magweld.passes.memory.tile_list import TILES, Tile, tiles_of

_VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
# The only resource of a printed module, in hexadecimal: four bytes of its alignment
# come first.
_RESOURCE = re.compile(r': "0x(?P<data>[0-9A-Fa-f]*)"\s*\}\s*\}\s*#-\}\s*$')
_RESOURCE_ALIGNMENT = 4


@dataclass(frozen=True)
class HostCall:
    """One call of the host function.

    Attributes:
        kind: "kernel", "library", "external", "tiled", "loop" or "control".
        callee: Symbol that is called.
        operands: Value ids read.
        results: Value ids written.
        members: How many times a kernel runs, each time on its part of the operands
            and results.
        attributes: Of a library call, `op` among them.
        node: Graph node of an external.
        tiles: What a tiled call runs.
        loop: What a loop call runs.
        control: What a call runs that is a branch, or a loop on a truth value.
        scratch: Offset in the arena of what its tiles, iterations or arms need.
        report: What was decided and predicted, for people.
        runtime: Tiles of a kernel along an extent that a call tells.
        words: Value id of what such a kernel reads of the call, -1 for others.
        shifts: For each operand of a kernel, at which byte of it the kernel begins.
        parts: The kernels of a launch of several, whose callee stands for it.
        shares: For each part its share of the work.
    """

    kind: str
    callee: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    members: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)
    node: str = ""
    tiles: tuple[Tile, ...] = ()
    loop: LoopCall | None = None
    control: ControlCall | None = None
    scratch: int = 0
    report: dict[str, Any] = field(default_factory=dict)
    runtime: RuntimeTiles | None = None
    words: int = -1
    shifts: tuple[int, ...] = ()
    parts: tuple[HostCall, ...] = ()
    shares: tuple[int, ...] = ()

    def functions(self) -> tuple[str, ...]:
        """Return the functions that it runs, tiles, iterations or arms."""
        called = [one.function for one in (*self.tiles, self.loop) if one is not None]
        return (*called, *(self.control.functions if self.control else ()))

    def entries(self) -> tuple[int, ...]:
        """Return what a kernel takes: operands, then results, for each member."""
        return self._by_members(self.operands, self.results)

    def entry_shifts(self) -> tuple[int, ...]:
        """Return at which byte of each entry the kernel begins; none for zeros."""
        if not any(self.shifts):
            return ()
        return self._by_members(self.shifts, (0,) * len(self.results))

    def _by_members(self, *lists: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            number
            for member in range(self.members)
            for numbers in lists
            for number in _share(numbers, member, self.members)
        )


@dataclass
class HostFunction:
    """Values, calls and results of `@main`, ids being positions in `values`."""

    values: list[Value] = field(default_factory=list)
    element_sizes: list[int] = field(default_factory=list)
    calls: list[HostCall] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)
    results: tuple[int, ...] = ()
    arena_bytes: int = 0
    transient_bytes: int = 0
    stand_ins: StandIns = field(default_factory=StandIns)

    def bytes_of(self, value: int) -> int:
        """Return the bytes of a value."""
        return math.prod(self.values[value].shape) * self.element_sizes[value]


def read_host_function(
    module: Any, name: str = "main", constants: list[bytes] | None = None
) -> HostFunction:
    """Read the host function of a module after plan-memory.

    Args:
        module: The module.
        name: The function: that of a call, or one that makes a tile of it.
        constants: Where constants are added; a list of its own by default.

    Raises:
        MagweldError: It holds something that the runtime cannot carry out.
    """
    functions = {op.name.value: op for op in module.body.operations}
    host = HostFunction(constants=[] if constants is None else constants)
    return _Reader(functions, host).read(functions[name])


class _Reader:
    def __init__(self, functions: dict[str, Any], host: HostFunction) -> None:
        self._functions = functions
        self._host = host
        self._ids: dict[Any, int] = {}
        self._shifts: dict[Any, int] = {}

    def read(self, main: Any) -> HostFunction:
        block = main.regions[0].blocks[0]
        for number, argument in enumerate(block.arguments):
            self._add(argument, Place.INPUT, index=number)
        for op in block.operations:
            self._operation(op.operation)
        arena = main.attributes["magweld.arena_bytes"]
        self._host.arena_bytes = ir.IntegerAttr(arena).value
        transient = main.attributes["magweld.transient_bytes"]
        self._host.transient_bytes = ir.IntegerAttr(transient).value
        return self._host

    def _operation(self, op: Any) -> None:
        if op.name in _VIEWS:
            source = self._ids[op.operands[0]]
            self._add(op.results[0], Place.VIEW, index=source)
        elif op.name == SHIFT:
            self._shift(op)
        elif op.name == CAST:
            # Extents that a call tells are dynamic in kernels alone.
            self._ids[op.results[0]] = self._ids[op.operands[0]]
        elif op.name == "tensor.empty":
            self._destination(op)
        elif op.name == "arith.constant":
            self._constant(op)
        elif op.name == "func.call":
            self._call(op)
        elif op.name == "func.return":
            self._host.results = tuple(self._ids[v] for v in op.operands)
        else:
            raise MagweldError(f"the host function holds '{op.name}'")

    def _add(self, value: Any, place: Place, index: int = 0, offset: int = 0) -> int:
        type_ = ir.RankedTensorType(value.type)
        identity = len(self._host.values)
        self._host.values.append(
            Value(tuple(type_.shape), str(type_.element_type), place, index, offset)
        )
        self._host.element_sizes.append(element_bytes(type_))
        self._ids[value] = identity
        return identity

    def _shift(self, op: Any) -> None:
        """Know a tensor from an element on as the whole one and a number of bytes."""
        source, made = op.operands[0], op.results[0]
        type_ = ir.RankedTensorType(source.type)
        offsets = _python_value(op.attributes["offsets"])
        rows = zip(offsets, _strides(list(type_.shape)), strict=True)
        elements = sum(offset * stride for offset, stride in rows)
        self._ids[made] = self._ids[source]
        begun = self._shifts.get(source, 0)
        self._shifts[made] = begun + elements * element_bytes(type_)

    def _destination(self, op: Any) -> None:
        place = Place(ir.StringAttr(op.attributes["magweld.place"]).value)
        offset = 0
        if place is Place.ARENA:
            offset = ir.IntegerAttr(op.attributes["magweld.offset"]).value
        self._add(op.results[0], place, offset=offset)

    def _constant(self, op: Any) -> None:
        if not isinstance(op.results[0].type, ir.RankedTensorType):
            return
        self._add(op.results[0], Place.CONSTANT, index=len(self._host.constants))
        self._host.constants.append(_constant_bytes(op))

    def _call(self, op: Any) -> None:
        callee = callee_of(op)
        function = self._functions[callee]
        if not _is_kernel_call(function) and any(
            v in self._shifts for v in op.operands
        ):
            raise located_error(op, "expected kernels alone to read shifted tensors")
        if EXTERNAL in function.attributes:
            self._external(op, callee, function)
            return
        loop, control = loop_of(function), control_of(function)
        inputs = len(op.operands) - len(op.results)
        operands = tuple(self._ids[v] for v in list(op.operands)[:inputs])
        results = tuple(self._ids[v] for v in list(op.operands)[inputs:])
        for value, identity in zip(op.results, results, strict=True):
            self._ids[value] = identity
        if "magweld.library" in function.attributes:
            attributes = _plain(function.attributes["magweld.library"])
            call = HostCall("library", callee, operands, results, attributes=attributes)
        elif loop is not None:
            scratch = ir.IntegerAttr(op.attributes["magweld.scratch"]).value
            call = HostCall(
                "loop", callee, operands, results, loop=loop, scratch=scratch
            )
        elif control is not None:
            scratch = ir.IntegerAttr(op.attributes["magweld.scratch"]).value
            call = HostCall(
                "control", callee, operands, results, control=control, scratch=scratch
            )
        else:
            call = self._kernel(op, callee, operands, results)
        if TILES in function.attributes:
            scratch = ir.IntegerAttr(op.attributes["magweld.scratch"]).value
            tiles = tuple(tiles_of(function))
            call = replace(call, kind="tiled", tiles=tiles, scratch=scratch)
        self._host.calls.append(call)

    def _kernel(
        self, op: Any, callee: str, operands: tuple[int, ...], results: tuple[int, ...]
    ) -> HostCall:
        inputs = list(op.operands)[: len(operands)]
        call = HostCall(
            *("kernel", callee, operands, results),
            shifts=tuple(self._shifts.get(value, 0) for value in inputs),
        )
        names = op.attributes[OPERATORS]
        joint = joint_of(self._functions[callee])
        if joint is None:
            return self._part(call, names)
        return self._joint(call, joint, names)

    def _part(self, call: HostCall, names: Any) -> HostCall:
        """Complete the call of a kernel, or of a batch of one.

        Args:
            call: What it reads and writes.
            names: Of the operators that it computes, a list for each member of a batch.
        """
        function = self._functions[call.callee]
        batch = batch_of(function)
        if batch is None:
            runtime = RuntimeTiles.of(function)
            return replace(
                call,
                report=_report(names, call.callee, function),
                runtime=runtime,
                words=-1 if runtime is None else self._words(),
            )
        kernel = self._functions[batch.kernel]
        verify_batch(function, batch, kernel)
        report = _report(names, batch.kernel, kernel)
        members = report["operators"]
        report |= {
            "operators": [name for names in members for name in names],
            "members": members,
        }
        return replace(call, callee=batch.kernel, members=batch.members, report=report)

    def _joint(self, call: HostCall, joint: JointCall, names: Any) -> HostCall:
        """Complete the call of several kernels in one launch."""
        verify_joint(self._functions[call.callee], joint, self._functions)
        parts = tuple(
            self._part(
                HostCall(
                    *("kernel", part.callee, call.operands[read], call.results[made]),
                    shifts=call.shifts[read],
                ),
                own,
            )
            for (part, read, made), own in zip(
                joint.slices(self._functions), names, strict=True
            )
        )
        shares = tuple(part.share for part in joint.parts)
        report = _joint_report(call.callee, parts, shares)
        return replace(call, parts=parts, shares=shares, report=report)

    def _words(self) -> int:
        """Add what a kernel reads of the sizes of a call; a call sets it."""
        number = len(self._host.constants)
        self._host.constants.append(bytes(8 * WORDS))
        self._host.values.append(Value((WORDS,), "i64", Place.CONSTANT, number))
        self._host.element_sizes.append(8)
        return len(self._host.values) - 1

    def _external(self, op: Any, callee: str, function: Any) -> None:
        operands = tuple(self._ids[v] for v in op.operands)
        results = tuple(self._add(v, Place.ADOPTED) for v in op.results)
        node = ir.StringAttr(function.attributes[EXTERNAL]).value
        self._host.calls.append(
            HostCall("external", callee, operands, results, node=node)
        )


def _is_kernel_call(function: Any) -> bool:
    joint = joint_of(function) is not None
    return joint or is_kernel(function) or batch_of(function) is not None


def _strides(shape: list[int]) -> list[int]:
    """Elements from one place along each dimension to the next one."""
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def _share(ids: tuple[int, ...], member: int, members: int) -> tuple[int, ...]:
    """Return what belongs to a member of what lies one member after another."""
    size = len(ids) // members
    return ids[member * size : (member + 1) * size]


def _constant_bytes(op: Any) -> bytes:
    type_ = ir.RankedTensorType(op.results[0].type)
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr):
        return _resource_bytes(op)
    if isinstance(type_.element_type, ir.BF16Type):
        return _bfloat_bytes(op, attribute)
    if attribute.is_splat:
        attribute = ir.DenseElementsAttr.get(
            [attribute.get_splat_value()] * math.prod(type_.shape), type_
        )
    # The buffer protocol of the bindings: one byte an element for i1 as well.
    return bytes(numpy.ascontiguousarray(numpy.array(attribute)).tobytes())


def _bfloat_bytes(op: Any, attribute: Any) -> bytes:
    """Return the data of a constant of bf16, which numpy does not know.

    Raises:
        PassError: Its elements differ: the bindings do not read those.
    """
    if not attribute.is_splat:
        raise located_error(op, f"has different elements of {attribute.type}")
    wide = numpy.float32(attribute.get_splat_value().value).view(numpy.uint32)
    element = numpy.uint16(wide >> 16).tobytes()
    return bytes(element * math.prod(attribute.type.shape))


def _resource_bytes(op: Any) -> bytes:
    """Return the data of a constant that is kept beside the module.

    Raises:
        PassError: There is no data, or not one number of whole bytes an element.
    """
    type_ = ir.RankedTensorType(op.results[0].type)
    # The bindings read resources in no other way than a printed module has them.
    alone = ir.Module.create(op.location)
    alone.body.append(op.clone())
    found = _RESOURCE.search(alone.operation.get_asm())
    data = bytes.fromhex(found["data"])[_RESOURCE_ALIGNMENT:] if found else b""
    whole = isinstance(type_.element_type, ir.FloatType | ir.IntegerType)
    bits = type_.element_type.width if whole else 0
    if bits % 8 or not bits or len(data) * 8 != math.prod(type_.shape) * bits:
        raise located_error(op, f"has no data for {type_}")
    return data


def _plain(attribute: Any) -> dict[str, Any]:
    return {entry.name: _python_value(entry.attr) for entry in ir.DictAttr(attribute)}


def _python_value(attribute: Any) -> Any:
    if isinstance(attribute, ir.ArrayAttr):
        return [_python_value(item) for item in attribute]
    if isinstance(attribute, ir.DictAttr):
        return _plain(attribute)
    return attribute.value


def _report(names: Any, callee: str, function: Any) -> dict[str, Any]:
    report: dict[str, Any] = {
        "kernel": callee,
        "operators": _python_value(names),
    }
    for name, attribute in reports_of(function).items():
        is_tile = isinstance(attribute, TileAttr)
        report[name] = list(attribute.sizes) if is_tile else _python_value(attribute)
    return report


def _joint_report(
    callee: str, parts: tuple[HostCall, ...], shares: tuple[int, ...]
) -> dict[str, Any]:
    """Tell what a launch of several kernels computes, as one of a batch does.

    `kernels` and `shares` are those of each member beside `members`.
    """
    found: dict[str, Any] = {
        name: [] for name in ("operators", "members", "kernels", "shares")
    }
    for part, share in zip(parts, shares, strict=True):
        members = part.report.get("members", [part.report["operators"]])
        found["operators"] += part.report["operators"]
        found["members"] += members
        found["kernels"] += [part.callee] * len(members)
        found["shares"] += [share / len(members)] * len(members)
    return {"kernel": callee, **found, "parts": [part.report for part in parts]}
