"""Owns how a call ends: writes to inputs, then outputs that alias as eager's do."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.grad_mode import _unsafe_preserve_version_counter
from torch.autograd.graph import increment_version
from torch.utils import _pytree as pytree

from magweld.short_repr import short_repr

_SEQUENCES = (list, tuple)


@dataclass(frozen=True)
class Window:
    """A strided part of flat memory; offset and strides count elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    def of(self, memory: Tensor) -> Tensor:
        """Return the part of a tensor's memory, from the tensor's own start on."""
        start = memory.storage_offset() + self.offset
        return memory.as_strided(self.shape, self.stride, start)

    def fill(self, memory: Tensor, values: Tensor) -> None:
        """Write values of the window's shape; elements that coincide are equal."""
        target = self.of(memory)
        for axis, stride in enumerate(self.stride):
            if stride == 0:
                target = target.narrow(axis, 0, min(1, self.shape[axis]))
                values = values.narrow(axis, 0, min(1, self.shape[axis]))
        target.copy_(values)


@dataclass(frozen=True)
class Call:
    """What the outputs of one call are made of."""

    inputs: Sequence[Tensor]
    results: Sequence[Tensor]
    buffers: Sequence[Tensor]
    outputs: list[Any]


class Output(Protocol):
    """How one output comes about."""

    def make(self, call: Call) -> Any:
        """Return the output."""


@dataclass(frozen=True)
class ConstantOutput:
    """A value that is no tensor."""

    value: Any

    def make(self, call: Call) -> Any:
        """Return the value."""
        return self.value


@dataclass(frozen=True)
class InputOutput:
    """An input itself."""

    input: int

    def make(self, call: Call) -> Any:
        """Return the input."""
        return call.inputs[self.input]


@dataclass(frozen=True)
class InputViewOutput:
    """A view of an input; the offset counts from the start of the input."""

    input: int
    window: Window

    def make(self, call: Call) -> Any:
        """Return a new view, a leaf that requires a gradient if the input does."""
        return self.window.of(call.inputs[self.input])


@dataclass(frozen=True)
class DetachedOutput:
    """An input without its gradient, or a view of that where there is a window.

    Attributes:
        counted: Whether the version of the input counts what is written to the output.
    """

    input: int
    window: Window | None
    counted: bool = True

    def make(self, call: Call) -> Any:
        """Return a new tensor on the memory of the input."""
        whole = call.inputs[self.input]
        source = whole.detach() if self.counted else whole.data
        return source if self.window is None else self.window.of(source)


@dataclass(frozen=True)
class SameOutput:
    """The same tensor object as an earlier output."""

    position: int

    def make(self, call: Call) -> Any:
        """Return that output."""
        return call.outputs[self.position]


@dataclass(frozen=True)
class ResultOutput:
    """A result of the compiled function, with other strides where there is a window.

    Attributes:
        result: Its number.
        window: What the output shows of its memory, None for the result itself.
        own: Whether the output is no view in eager; see `_no_view`.
    """

    result: int
    window: Window | None = None
    own: bool = False

    def make(self, call: Call) -> Any:
        """Return the result or the window on all of its memory."""
        result = call.results[self.result]
        shown = result if self.window is None else self.window.of(result)
        return _no_view(shown, self.own)


@dataclass(frozen=True)
class ChoiceOutput:
    """One of two tensors, as a truth value among the results says.

    Attributes:
        result: The result that has the elements in both cases.
        test: The result that is the truth value.
        on_true: The output if it is true.
        on_false: The output if it is false.
    """

    result: int
    test: int
    on_true: Output
    on_false: Output

    def make(self, call: Call) -> Any:
        """Return the output that is due; either must be possible without data."""
        test = call.results[self.test]
        if test.is_meta:
            self.on_false.make(call)
            return self.on_true.make(call)
        return (self.on_true if bool(test) else self.on_false).make(call)


@dataclass(frozen=True)
class BufferOutput:
    """A part of a buffer that several outputs share, or that has gaps.

    Attributes:
        buffer: Its number.
        window: The part.
        own: Whether the output is no view in eager; see `_no_view`.
        base: Position of the output that it is a view of, None if that is none.
    """

    buffer: int
    window: Window
    own: bool = False
    base: int | None = None

    def make(self, call: Call) -> Any:
        """Return a tensor on the memory of the buffer."""
        memory = call.buffers[self.buffer]
        if self.base is None:
            return _no_view(self.window.of(memory), self.own)
        # What is written to one with gradients gives the other a history, too.
        start = memory.storage_offset() + self.window.offset
        base = call.outputs[self.base]
        return base.as_strided(self.window.shape, self.window.stride, start)


@dataclass(frozen=True)
class Buffer:
    """Memory made for outputs and filled from results.

    Attributes:
        count: Number of elements.
        fills: Result number and the window it goes to, in order.
    """

    dtype: torch.dtype
    count: int
    fills: tuple[tuple[int, Window], ...]

    def make(self, results: Sequence[Tensor]) -> Tensor:
        """Return the filled memory as a tensor of one dimension."""
        devices = [results[number].device for number, _ in self.fills]
        memory = torch.empty(self.count, dtype=self.dtype, device=devices[0])
        # Outputs count the writes of the program, and not these.
        uncounted = memory.data
        for result, window in self.fills:
            window.fill(uncounted, results[result])
        return memory


@dataclass(frozen=True)
class Epilogue:
    """The end of each call.

    Attributes:
        writes: Input and the result that is copied into it.
        buffers: Memory that outputs share.
        outputs: One for each leaf of the output.
        structure: How the leaves make up the output.
        carried: Results that have another dtype in compiled code, and torch's dtype.
        silently: Inputs whose versions do not count the writes, as with `x.data += 1`.
        creations: Positions of outputs and what `creation_of` them is in eager.
        versions: Positions of new outputs and how many writes they count in eager.
        further: Inputs and how many writes they count beside one.
    """

    __repr__ = short_repr

    writes: tuple[tuple[int, int], ...]
    buffers: tuple[Buffer, ...]
    outputs: tuple[Output, ...]
    structure: Any
    carried: tuple[tuple[int, torch.dtype], ...] = ()
    silently: frozenset[int] = frozenset()
    creations: tuple[tuple[int, str], ...] = ()
    versions: tuple[tuple[int, int], ...] = ()
    further: tuple[tuple[int, int], ...] = ()

    def finish(
        self,
        inputs: Sequence[Tensor],
        results: Sequence[Tensor],
        *,
        fresh: bool = False,
    ) -> Any:
        """Write to inputs and return what the recorded graph returns.

        Args:
            inputs: The call's own inputs, not copies that were made contiguous.
            results: Contiguous results of the compiled function, in its order.
            fresh: Whether none of these is known to be an input or another result.
        """
        if self._plain is None:
            outputs = self._assemble(inputs, results, fresh)
        else:
            results = results if fresh else _fresh(results, inputs)
            outputs = [results[number] for number in self._plain]
        if self.versions:
            set_versions(outputs, self.versions)
        if self._sequence is not None:
            return self._sequence(outputs)
        return pytree.tree_unflatten(outputs, self.structure)

    def _assemble(
        self, inputs: Sequence[Tensor], results: Sequence[Tensor], fresh: bool
    ) -> list[Any]:
        if self.carried:
            results = list(results)
            for result, dtype in self.carried:
                results[result] = results[result].view(dtype)
        with torch.no_grad():
            # Before anything is written: a result may be an input that is written to.
            results = results if fresh else _fresh(results, inputs)
            for input, result in self.writes:
                self._write(inputs[input], results[result], input in self.silently)
            for input, count in self.further:
                increment_version([inputs[input]] * count)
            buffers = [buffer.make(results) for buffer in self.buffers]
        # In the caller's mode: torch refuses to write to a view that was made without
        # gradients where they are recorded.
        call = Call(inputs, results, buffers, [None] * len(self.outputs))
        creations = dict(self.creations)
        for position in self._order:
            output = self.outputs[position].make(call)
            if position in creations:
                output = as_created(output, creations[position])
            call.outputs[position] = output
        return call.outputs

    def _write(self, target: Tensor, values: Tensor, silently: bool) -> None:
        if not silently:
            target.copy_(values)
            return
        # Another run may have kept it for a backward pass that does not read it.
        with _unsafe_preserve_version_counter(target):
            target.copy_(values)

    @functools.cached_property
    def _order(self) -> tuple[int, ...]:
        """Positions of the outputs, those that are made of others behind these."""

        def depth(position: int) -> int:
            output = self.outputs[position]
            if isinstance(output, SameOutput):
                return 1 + depth(output.position)
            return int(isinstance(output, BufferOutput) and output.base is not None)

        return tuple(sorted(range(len(self.outputs)), key=depth))

    @property
    def kept_inputs(self) -> frozenset[int]:
        """Inputs that are written to, or whose memory outputs are."""
        written = (number for number, _ in self.writes)
        return frozenset([*written, *(n for o in self.outputs for n in _inputs_of(o))])

    @property
    def sequence_of_results(self) -> type[list[Any] | tuple[Any, ...]] | None:
        """List or tuple, if the outputs are that of all results in order; or None."""
        numbers = self._plain
        if numbers is None or numbers != tuple(range(len(numbers))):
            return None
        return self._sequence

    @functools.cached_property
    def _plain(self) -> tuple[int, ...] | None:
        """The results that are the outputs, if they are that as they come."""
        if self.writes or self.buffers or self.carried or self.creations:
            return None
        found = [o for o in self.outputs if isinstance(o, ResultOutput)]
        if len(found) < len(self.outputs) or any(o.window for o in found):
            return None
        return tuple(output.result for output in found)

    @functools.cached_property
    def _sequence(self) -> type[list[Any] | tuple[Any, ...]] | None:
        """What the outputs make up, if that is a list or a tuple of them."""
        flat = all(child.is_leaf() for child in self.structure.children())
        return (
            self.structure.type if flat and self.structure.type in _SEQUENCES else None
        )


def set_versions(tensors: Sequence[Any], versions: Sequence[tuple[int, int]]) -> None:
    """Let new tensors count the writes that eager has made to them.

    Args:
        tensors: Some tensors.
        versions: Positions of tensors and what they count.
    """
    for position, version in versions:
        tensor = tensors[position]
        if not tensor.is_inference():
            torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))


def _no_view(tensor: Tensor, own: bool) -> Tensor:
    """Return a tensor of its own, if it is to be one, on the same memory and version.

    Torch allows more on such a one: `detach_()`, and to write to it with gradients.
    """
    return tensor.detach() if own and tensor._is_view() else tensor


def as_created(tensor: Tensor, creation: str) -> Tensor:
    """Return a view of which torch says that it came about in another way.

    Args:
        tensor: Is changed if it is a view.
        creation: See `creation_of`.
    """
    view = tensor if tensor._is_view() else tensor.view_as(tensor)
    kind = torch._C._autograd.CreationMeta.__members__[creation]
    torch._C._autograd._set_creation_meta(view, kind)
    return view


def _inputs_of(output: Output) -> Iterator[int]:
    """Yield the inputs whose memory an output may be."""
    match output:
        case InputOutput() | InputViewOutput() | DetachedOutput():
            yield output.input
        case ChoiceOutput():
            yield from _inputs_of(output.on_true)
            yield from _inputs_of(output.on_false)


def _fresh(results: Sequence[Tensor], inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """Copy results that the compiler found to be an input, or another result."""
    taken = {tensor.data_ptr() for tensor in inputs}
    fresh = []
    for result in results:
        address = result.data_ptr()
        # An input may need gradients, which no result does.
        fresh.append(result.detach().clone() if address in taken else result)
        taken.add(address)
    return fresh
