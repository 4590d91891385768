"""Owns the way from a compiled program to a form of a portable artifact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor

from magweld.aot.call_plan import CallPlan
from magweld.aot.operator_call import OperatorCall
from magweld.artifact import (
    ExternalStep,
    IfStep,
    KernelStep,
    LoopStep,
    Program,
    Step,
    WhileStep,
)
from magweld.artifact import (
    Place as ValuePlace,
)
from magweld.codegen.entry import (
    Call,
    CheckCall,
    LaunchCall,
    LoopCall,
    Move,
    entry_module,
)
from magweld.codegen.host import LEVELS, HostTarget, emit_object
from magweld.codegen.linking import link
from magweld.deploy.errors import CONTROL, EXTERNAL, SHAPE, TYPE
from magweld.deploy.portable_file import (
    DTYPES,
    MAX_RANK,
    Code,
    Copy,
    Form,
    Kind,
    Place,
    Port,
    contiguous_strides,
)
from magweld.importer.epilogue import (
    BufferOutput,
    DetachedOutput,
    InputOutput,
    InputViewOutput,
    ResultOutput,
    SameOutput,
    Window,
)
from magweld.runtime.layout import Layout
from magweld.runtime.looping import table_moves
from magweld.runtime.tiling import aligned
from magweld.runtime.validation import check_parts, check_program

_ENTRY = "magweld_entry"


@dataclass(frozen=True)
class Leaf:
    """A tensor of the result: where it is after the code has run.

    Attributes:
        place: Its memory.
        window: The part of that memory, in elements.
        port: Its name and type.
    """

    place: Place
    window: Window
    port: Port


class Constants:
    """The constants of all forms, each once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._known: dict[bytes, int] = {}

    def place(self, content: bytes) -> Place:
        """Return where some bytes are."""
        if content not in self._known:
            self._known[content] = len(self.data)
            self.data += content.ljust(aligned(len(content)), b"\0")
        return Place(Kind.DATA, 0, self._known[content])


def has_native_loops(program: Program) -> bool:
    """Tell whether iterations of loops are kernels alone, as forms need it."""
    layout = Layout(program)
    loops = (step for step in program.steps if isinstance(step, LoopStep))
    return all(map(layout.is_native, loops))


@dataclass(frozen=True)
class FormSource:
    """What a form is made of.

    Attributes:
        program: The compiled function.
        plan: What happens around it.
        level: What its code is for.
        inputs: Tensors of the signature, as signed.
        state: Tensors of the model.
        leaves: For each tensor of the result "outputs", "inputs" or "state", and which.
        names: Names of these.
        failures: What an index out of range is called, by external node.
    """

    program: Program
    plan: CallPlan
    level: str
    inputs: Sequence[Tensor]
    state: Sequence[Tensor]
    leaves: Sequence[tuple[str, int]]
    names: Sequence[str]
    failures: Mapping[str, str]


class FormMaker:
    """Makes one form: the places of all values, the entry function, the copies.

    The program has no loops but those that `has_native_loops` lets pass.
    """

    def __init__(
        self, source: FormSource, constants: Constants, failures: list[str]
    ) -> None:
        """Place all values.

        Args:
            source: What the form is made of.
            constants: Where constants of the form go as well.
            failures: What the codes of all forms return; more are appended.

        Raises:
            UnsupportedError: In the form no room is for it.
        """
        self._source = source
        self._constants = constants
        self._failures = failures
        self._layout = check_program(source.program)
        self._frame_bytes = aligned(source.program.arena_bytes)
        roots = self._layout.roots
        places = {root: self._root(root) for root in dict.fromkeys(roots)}
        # The entry in front of each table is for the runtime.
        self._table = [Place(Kind.RUNTIME), *(places[root] for root in roots)]

    def make(self) -> tuple[Code, Form, list[Port]]:
        """Return an image, the form as one of `code` 0, and the outputs.

        Raises:
            UnsupportedError: Something of the program has no place in a form.
        """
        source = self._source
        calls = [call for step in source.program.steps for call in self._calls(step)]
        fills = self._fill_buffers()
        leaves = [
            self._leaf(name, kind, index)
            for name, (kind, index) in zip(source.names, source.leaves, strict=True)
        ]
        copies = [*fills, *self._deliver(leaves)]
        target = HostTarget.of(source.level)
        entry = emit_object([entry_module(_ENTRY, calls)], target)
        image = link([*source.program.objects, entry])
        level = LEVELS.index(source.level) + 3
        code = Code(level, image.data, image.text_bytes, image.imports)
        shapes = tuple(tuple(tensor.shape) for tensor in source.inputs)
        outputs = tuple(leaf.window.shape for leaf in leaves)
        if max(map(len, (*shapes, *outputs)), default=0) > MAX_RANK:
            raise SHAPE.at(f"a tensor of more than {MAX_RANK} dimensions")
        form = Form(
            code=0,
            entry=image.symbols[_ENTRY],
            frame_bytes=self._frame_bytes,
            inputs=shapes,
            outputs=outputs,
            table=tuple(self._table),
            copies=tuple(copies),
        )
        return code, form, [leaf.port for leaf in leaves]

    def _allocate(self, nbytes: int) -> Place:
        at = self._frame_bytes
        # No two places are the same.
        self._frame_bytes += aligned(max(nbytes, 1))
        return Place(Kind.FRAME, 0, at)

    def _root(self, root: int) -> Place:
        """Return where a root is, and allocate it if it is nowhere yet."""
        value = self._source.program.values[root]
        match value.place:
            case ValuePlace.INPUT:
                return self._argument(value.index)
            case ValuePlace.ARENA:
                return Place(Kind.FRAME, 0, value.offset)
            case ValuePlace.CONSTANT:
                return self._constants.place(
                    self._source.program.constants[value.index]
                )
            case _:
                return Place(Kind.NONE)

    def _argument(self, number: int) -> Place:
        plan = self._source.plan
        held, index = plan.feeds[plan.arguments[number]]
        if not held:
            return Place(Kind.INPUT, index)
        return self._constants.place(bytes_of(self._source.state[index]))

    def _calls(self, step: Step) -> list[Call]:
        roots = self._layout.roots
        for root in (roots[value_id] for value_id in step.writes):
            if self._table[1 + root].kind is Kind.NONE:
                place = self._allocate(self._layout.signatures[root].nbytes)
                for value_id in (root, *self._layout.aliases[root]):
                    self._table[1 + value_id] = place
        match step:
            case KernelStep():
                return [LaunchCall(step.symbol, 1)]
            case LoopStep():
                return [self._loop(step)]
            case ExternalStep():
                return [self._check(step, self._source.plan.externals[step.node])]
            case IfStep() | WhileStep():
                raise CONTROL.at(f"a step of kind {type(step).__name__}")
        raise EXTERNAL.at(f"a step of kind {type(step).__name__}")

    def _check(self, step: ExternalStep, call: OperatorCall) -> CheckCall:
        check = call.index_check
        if check is None:
            raise EXTERNAL.at(f"node '{step.node}'")
        indices = step.reads[check.indices]
        signature = self._layout.signatures[indices]
        rows = self._layout.signatures[step.reads[check.table]].shape[0]
        message = self._source.failures[step.node]
        if message not in self._failures:
            self._failures.append(message)
        return CheckCall(
            source=1 + indices,
            target=1 + step.writes[0],
            count=prod(signature.shape),
            bits=8 * signature.dtype.itemsize,
            lowest=-rows if check.lowest is None else check.lowest,
            end=rows,
            failure=1 + self._failures.index(message),
        )

    def _loop(self, step: LoopStep) -> LoopCall:
        """Append the table of an iteration, as `looping.bind_native_loop` does."""
        program = self._source.program
        part = check_parts(program)[step.part]
        base = len(self._table) + 1
        # Behind the values is the other buffer of each result.
        spare = len(part.program.values)
        table = [self._part_place(step, part, root) for root in part.roots]
        table += [Place(Kind.NONE)] * len(step.writes)
        handed = _handed_over(step, part)
        before = []
        for value_id, source, start in zip(
            part.inputs, step.reads, step.starts, strict=True
        ):
            add = start * part.itemsize(value_id)
            entries = (value_id, *part.aliases[value_id])
            before += [Move(base + entry, 1 + source, add) for entry in entries]
        for number, value_id in enumerate(part.program.results):
            root = part.roots[value_id]
            here, other = (root, *part.aliases[root]), (spare + number,)
            if step.trips % 2 == 0 and number in handed:
                here, other = other, here  # the last iteration writes the result
            target = 1 + step.writes[number]
            before += [Move(base + entry, target, 0) for entry in here]
            for entry in other if number in handed else ():
                table[entry] = handed[number]
        self._table += [Place(Kind.RUNTIME), *table]
        return LoopCall(
            calls=tuple(LaunchCall(symbol, base) for symbol in part.kernel_symbols),
            trips=step.trips,
            before=tuple(before),
            after_each=tuple(
                Move(base + to, base + source, add)
                for to, source, add in table_moves(step, part, spare)
            ),
        )

    def _part_place(self, step: LoopStep, part: Layout, root: int) -> Place:
        value = part.program.values[root]
        if value.place is ValuePlace.ARENA:
            return Place(Kind.FRAME, 0, step.scratch + value.offset)
        if value.place is ValuePlace.CONSTANT:
            return self._constants.place(self._source.program.constants[value.index])
        return Place(Kind.NONE)

    def _fill_buffers(self) -> list[Copy]:
        """Allocate the memory that outputs share; return what fills it."""
        self._buffers = []
        copies = []
        for buffer in self._source.plan.epilogue.buffers:
            item = buffer.dtype.itemsize
            place = self._allocate(buffer.count * item)
            self._buffers.append(place)
            for result, window in buffer.fills:
                source, whole = self._result(result)
                target = replace(place, offset=place.offset + window.offset * item)
                # Where a stride is zero, elements that coincide are equal.
                copies.append(_copy(source, whole.stride, target, window, item))
        return copies

    def _result(self, number: int) -> tuple[Place, Window]:
        value_id = self._source.program.results[number]
        shape = tuple(self._layout.signatures[value_id].shape)
        return self._table[1 + value_id], Window(shape, contiguous_strides(shape))

    def _leaf(self, name: str, kind: str, index: int) -> Leaf:
        if kind == "outputs":
            return self._output(name, index)
        tensors = self._source.inputs if kind == "inputs" else self._source.state
        return self._whole(name, tensors[index], kind == "state", index)

    def _whole(self, name: str, tensor: Tensor, held: bool, index: int) -> Leaf:
        shape = tuple(tensor.shape)
        place = Place(Kind.INPUT, index)
        if held:
            place = self._constants.place(bytes_of(self._source.state[index]))
        window = Window(shape, contiguous_strides(shape))
        return Leaf(place, window, Port(name, dtype_name(tensor.dtype)))

    def _output(self, name: str, number: int) -> Leaf:
        plan, source = self._source.plan, self._source
        output = plan.epilogue.outputs[number]
        while isinstance(output, SameOutput):
            output = plan.epilogue.outputs[output.position]
        match output:
            case ResultOutput():
                place, whole = self._result(output.result)
                value_id = source.program.results[output.result]
                dtype = self._layout.signatures[value_id].dtype
                dtype = dict(plan.epilogue.carried).get(output.result, dtype)
                port = Port(name, dtype_name(dtype))
                return Leaf(place, output.window or whole, port)
            case BufferOutput():
                dtype = plan.epilogue.buffers[output.buffer].dtype
                place = self._buffers[output.buffer]
                return Leaf(place, output.window, Port(name, dtype_name(dtype)))
            case InputOutput() | InputViewOutput() | DetachedOutput():
                held, index = plan.feeds[output.input]
                tensors = source.state if held else source.inputs
                leaf = self._whole(name, tensors[index], held, index)
                window: Any = getattr(output, "window", None)
                return leaf if window is None else replace(leaf, window=window)
        raise EXTERNAL.at(f"an output of kind {type(output).__name__}")

    def _deliver(self, leaves: Sequence[Leaf]) -> list[Copy]:
        """Let kernels write outputs where they go, and copy the others there."""
        direct: dict[Place, int] = {}
        copies = []
        roots = {
            self._table[1 + root]: root
            for root in self._layout.values_in(ValuePlace.OUTPUT)
        }
        for number, leaf in enumerate(leaves):
            strides = contiguous_strides(leaf.window.shape)
            plain = leaf.window.stride == strides and not leaf.window.offset
            root = roots.get(leaf.place)
            whole = root is not None and prod(leaf.window.shape) == prod(
                self._layout.signatures[root].shape
            )
            if plain and whole and leaf.place not in direct:
                direct[leaf.place] = number
                continue
            item = DTYPES[leaf.port.dtype]
            start = leaf.place.offset + leaf.window.offset * item
            source = replace(leaf.place, offset=start)
            target = Window(leaf.window.shape, strides)
            place = Place(Kind.OUTPUT, number)
            copies.append(_copy(source, leaf.window.stride, place, target, item))
        moved = {place: Place(Kind.OUTPUT, number) for place, number in direct.items()}
        self._table = [moved.get(place, place) for place in self._table]
        return [
            replace(copy, source=_moved(copy.source, roots, moved, self._layout))
            for copy in copies
        ]


def _handed_over(step: LoopStep, part: Layout) -> dict[int, Place]:
    """Return the second buffer of each result that the next iteration reads."""
    offset = step.scratch + aligned(part.program.arena_bytes)
    found = {}
    for number, value_id in enumerate(part.program.results):
        if step.stacked[number]:
            continue
        if number in step.fed_by:
            found[number] = Place(Kind.FRAME, 0, offset)
        offset += aligned(part.signatures[value_id].nbytes)
    return found


def _moved(
    source: Place,
    roots: dict[Place, int],
    moved: dict[Place, Place],
    layout: Layout,
) -> Place:
    """Return where a source of a copy is once kernels write to outputs."""
    for place, target in moved.items():
        begin = source.offset - place.offset
        size = layout.signatures[roots[place]].nbytes
        same = source.kind is place.kind and source.index == place.index
        if same and 0 <= begin < max(size, 1):
            return replace(target, offset=begin)
    return source


def _copy(
    source: Place, strides: Sequence[int], target: Place, window: Window, item: int
) -> Copy:
    axes = zip(window.shape, strides, window.stride, strict=True)
    return Copy(
        source, target, item, tuple((n, a * item, b * item) for n, a, b in axes)
    )


def bytes_of(tensor: Tensor) -> bytes:
    """Return the elements of a tensor, row by row."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return plain.view(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name that portable artifacts have for a type.

    Raises:
        UnsupportedError: `portable-type`.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise TYPE.at(f"a tensor of {name}")
    return name
