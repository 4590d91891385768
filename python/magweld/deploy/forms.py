"""Owns the way from a compiled program to a form of a portable artifact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor

from magweld.aot.call_plan import CallPlan
from magweld.artifact import ExternalStep, IndexCheck, Program
from magweld.artifact import (
    Place as ValuePlace,
)
from magweld.codegen.entry import Call, entry_module
from magweld.codegen.host import LEVELS, HostTarget, emit_object
from magweld.codegen.linking import link
from magweld.deploy.entry_calls import Constants, EntryCalls
from magweld.deploy.errors import EXTERNAL, SHAPE, TYPE
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
    ChoiceOutput,
    DetachedOutput,
    InputOutput,
    InputViewOutput,
    ResultOutput,
    SameOutput,
    Window,
)
from magweld.runtime.layout import Layout

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


@dataclass(frozen=True)
class FormSource:
    """What a form is made of.

    Attributes:
        program: The compiled function.
        plan: What happens around it.
        inputs: Tensors of the signature, as signed.
        state: Tensors of the model.
        leaves: For each tensor of the result "outputs", "inputs" or "state", and which.
        names: Names of these.
        failures: What an index out of range is called, by external node.
    """

    program: Program
    plan: CallPlan
    inputs: Sequence[Tensor]
    state: Sequence[Tensor]
    leaves: Sequence[tuple[str, int]]
    names: Sequence[str]
    failures: Mapping[str, str]


class FormMaker:
    """Makes one form: the places of all values, the entry function, the copies.

    Loops of the program are those that `has_native_loops` lets pass.

    Attributes:
        calls: What its entry function calls.
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
        self._code = EntryCalls(source.program, self._argument, self._check, constants)
        self._layout = self._code.layout
        self.calls = tuple(self._code.make())

    def make(self) -> tuple[Form, list[Port]]:
        """Return the form, as one of no code yet, and the outputs.

        Raises:
            UnsupportedError: Something of the program has no place in a form.
        """
        source = self._source
        fills = self._fill_buffers()
        leaves = [
            self._leaf(name, kind, index)
            for name, (kind, index) in zip(source.names, source.leaves, strict=True)
        ]
        copies = [*fills, *self._deliver(leaves)]
        shapes = tuple(tuple(tensor.shape) for tensor in source.inputs)
        outputs = tuple(leaf.window.shape for leaf in leaves)
        if max(map(len, (*shapes, *outputs)), default=0) > MAX_RANK:
            raise SHAPE.at(f"a tensor of more than {MAX_RANK} dimensions")
        form = Form(
            code=0,
            entry=0,
            frame_bytes=self._code.frame_bytes,
            inputs=shapes,
            outputs=outputs,
            table=tuple(self._code.table),
            copies=tuple(copies),
        )
        return form, [leaf.port for leaf in leaves]

    def _argument(self, number: int) -> Place:
        plan = self._source.plan
        held, index = plan.feeds[plan.arguments[number]]
        if not held:
            return Place(Kind.INPUT, index)
        return self._constants.place(bytes_of(self._source.state[index]))

    def _check(self, step: ExternalStep) -> tuple[IndexCheck, int]:
        check = self._source.plan.externals[step.node].index_check
        if check is None:
            raise EXTERNAL.at(f"node '{step.node}'")
        message = self._source.failures[step.node]
        if message not in self._failures:
            self._failures.append(message)
        return check, 1 + self._failures.index(message)

    def _fill_buffers(self) -> list[Copy]:
        """Allocate the memory that outputs share; return what fills it."""
        self._buffers = []
        copies = []
        for buffer in self._source.plan.epilogue.buffers:
            item = buffer.dtype.itemsize
            place = self._code.allocate(buffer.count * item)
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
        return self._code.place_of(value_id), Window(shape, contiguous_strides(shape))

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
            case ResultOutput() | ChoiceOutput():
                # A choice is a result with the elements of what is chosen.
                place, whole = self._result(output.result)
                value_id = source.program.results[output.result]
                dtype = self._layout.signatures[value_id].dtype
                dtype = dict(plan.epilogue.carried).get(output.result, dtype)
                port = Port(name, dtype_name(dtype))
                shown: Any = getattr(output, "window", None)
                return Leaf(place, shown or whole, port)
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
            self._code.place_of(root): root
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
        code = self._code
        code.table = [moved.get(place, place) for place in code.table]
        return [
            replace(copy, source=_moved(copy.source, roots, moved, self._layout))
            for copy in copies
        ]


def linked(
    objects: Sequence[bytes], calls: Sequence[Call], level: str
) -> tuple[Code, int]:
    """Return an image of code with an entry function, and where this is in it.

    Args:
        objects: The code of a program.
        calls: What the entry function calls.
        level: What the code is for.
    """
    entry = emit_object([entry_module(_ENTRY, calls)], HostTarget.of(level))
    image = link([*objects, entry])
    code = Code(LEVELS.index(level) + 3, image.data, image.text_bytes, image.imports)
    return code, image.symbols[_ENTRY]


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
