"""Owns one arena with everything that is bound to its addresses."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import starmap
from operator import or_
from typing import Any, NamedTuple

import torch
from torch import Tensor

from magweld.artifact import Place
from magweld.runtime.admission import Likeness, describe_difference
from magweld.runtime.errors import ProgramError
from magweld.runtime.layout import Layout, Signature
from magweld.runtime.machine import HOST, Machine, WriteAddresses
from magweld.runtime.memory import Block, Constants
from magweld.runtime.native_steps import NativeStep
from magweld.runtime.runs import Run
from magweld.short_repr import short_repr

_STATIC = (Place.ARENA, Place.CONSTANT)
# Where values are memory that others have made.
_OF_OTHERS = (Place.INPUT, Place.ADOPTED)


RunExternal = Callable[[str, Sequence[Tensor]], Sequence[Tensor]]


@dataclass(frozen=True)
class Form:
    """What a frame has to know of the program whose call it serves.

    Programs for other sizes of the call may differ in nothing else, and then take the
    same frames.

    Attributes:
        signatures: Shape and dtype of every value.
        run_external: Runs one operator of the captured graph.
        natives: What runs external steps on addresses, by node.
        alike: What tells results of external steps, by value id of the first.
    """

    __repr__ = short_repr

    signatures: tuple[Signature, ...]
    run_external: RunExternal
    natives: Mapping[str, NativeStep] = field(default_factory=dict)
    alike: defaultdict[int, Likeness] = field(
        default_factory=partial(defaultdict, Likeness)
    )


class _View(NamedTuple):
    value_id: int
    shape: torch.Size
    as_tensor: bool  # read by more than kernels, which need the address alone


class Frame:
    """The values of one call at a time: an arena, its views and the address table.

    What never moves (arena, constants, views of them) is set once; a call sets
    arguments, fresh outputs and adopted tensors, and takes them out at its end.
    `tensors[i]` is set for the values that a torch step or a result needs.

    Attributes:
        layout: The checked program.
        form: What is known of the program whose call it serves.
        machine: Where it runs.
        arena: Its memory.
        constants: The constants of the program and of its parts.
        tensors: Tensor of every value id, None while it has none.
        table: Address of every value id; kernels read it.
        table_address: Address of `table`.
    """

    def __init__(
        self,
        layout: Layout,
        form: Form,
        constants: Constants,
        arena: Block | None = None,
        machine: Machine = HOST,
        checks: Collection[int] = (),
        write_addresses: WriteAddresses | None = None,
    ) -> None:
        """Bind a program to an arena, of its own by default.

        Args:
            layout: The checked program.
            form: What is known of it.
            constants: The constants of the program and of its parts.
            arena: Its memory.
            machine: Where it runs.
            checks: Numbers of steps that are checks of indices in native code.
            write_addresses: Writes addresses of tensors, if native code can.
        """
        count = len(layout.program.values)
        needed = _ids_needed_as_tensors(layout, checks)
        self.layout = layout
        self.form = form
        self.machine = machine
        self._empty = machine.empty
        self._alignment = machine.alignment
        self._copies: list[Tensor] = []
        self._arguments: Sequence[Tensor] = ()
        self.tensors: list[Tensor | None] = [None] * count
        self._views = tuple(
            tuple(_View(i, layout.signatures[i].shape, i in needed) for i in views)
            for views in layout.aliases
        )
        self.table = (ctypes.c_int64 * max(count, 1))()
        self.table_address = ctypes.addressof(self.table)
        # Kept alive by the views, too, but a program may have no arena values.
        if arena is None:
            arena = Block(layout.program.arena_bytes, machine.device)
        self.arena = arena
        self.constants = constants
        self._owned = {b.storage_address for b in (self.arena, constants.block)}
        for value_id in layout.values_in(Place.ARENA):
            self._place_in_arena(value_id, value_id in needed)
        for value_id, tensor in constants.of(layout).items():
            self.place(value_id, tensor)
        self._outputs = tuple(layout.values_in(Place.OUTPUT))
        signatures = (layout.signatures[i] for i in self._outputs)
        self._fresh = tuple((tuple(s.shape), s.stride, s.dtype) for s in signatures)
        # Ids of arguments most often follow each other, as arguments do.
        self._input_run = Run.of(layout.inputs, self.table_address, write_addresses)
        # Those of outputs do where many operators make one each; nothing views these.
        plain = not any(self._views[i] for i in self._outputs)
        self._output_run = (
            Run.of(self._outputs, self.table_address, write_addresses)
            if plain
            else None
        )
        results = layout.program.results
        self._moving = None if any(map(self.is_static, results)) else results
        # A program of many small operators most often returns what each makes.
        self._returns_run = self._output_run is not None and results == self._outputs
        self._viewed_inputs = [
            (position, value_id)
            for position, value_id in enumerate(layout.inputs)
            if value_id in needed or layout.aliases[value_id]
        ]
        viewed = {value_id for _, value_id in self._viewed_inputs}
        never = {*layout.inputs} - viewed
        never.update(self._outputs if self._output_run else ())
        self._dynamic = tuple(
            i
            for i in range(count)
            if i not in never and layout.root_value(i).place not in _STATIC
        )
        self._no_outputs = [None] * len(self._outputs)

    def is_static(self, value_id: int) -> bool:
        """Whether a value is at the same address in all calls on this frame."""
        return self.layout.root_value(value_id).place in _STATIC

    def _place_in_arena(self, root: int, as_tensor: bool) -> None:
        """Give a root of the arena its address, and a tensor where one is needed.

        Tensors take longer than all else here, and kernels need none.
        """
        offset, views = self.layout.program.values[root].offset, self._views[root]
        if as_tensor or any(view.as_tensor for view in views):
            self.place(root, self.arena.view(offset, self.layout.signatures[root]))
            return
        for value_id in (root, *(view.value_id for view in views)):
            self.table[value_id] = self.arena.address + offset

    def place(self, root: int, tensor: Tensor) -> None:
        """Give a root its tensor, and its views theirs."""
        address = tensor.data_ptr()
        self.tensors[root] = tensor
        self.table[root] = address
        for view in self._views[root]:
            self.table[view.value_id] = address
            if view.as_tensor:
                self.tensors[view.value_id] = tensor.view(view.shape)

    def begin(
        self, arguments: Sequence[Tensor], addresses: Sequence[int] | None = None
    ) -> None:
        """Set the arguments and allocate the outputs of a call.

        Args:
            arguments: The arguments.
            addresses: Where they are, None if they are to be asked: only those may be
                of which is known that they have memory.
        """
        self._arguments = arguments
        if addresses is None and self._alignment > 1:
            addresses = list(map(Tensor.data_ptr, arguments))
        if self._input_run is not None:
            self._input_run.write(self.table, arguments, addresses)
        else:
            asked = (
                list(map(Tensor.data_ptr, arguments))
                if addresses is None
                else addresses
            )
            for value_id, address in zip(self.layout.inputs, asked, strict=True):
                self.table[value_id] = address
        for position, value_id in self._viewed_inputs:
            self.place(value_id, arguments[position])
        # Most often all are aligned, which one sweep without Python's loop tells.
        if self._alignment > 1 and reduce(or_, addresses or (), 0) % self._alignment:
            for value_id, tensor in zip(self.layout.inputs, arguments, strict=True):
                self._align(value_id, tensor)
        made = list(starmap(self._empty, self._fresh))
        if self._output_run is not None:
            self.tensors[self._output_run.ids] = made
            self._output_run.write(self.table, made)
            return
        for value_id, tensor in zip(self._outputs, made, strict=True):
            self.place(value_id, tensor)

    def adopt(self, value_id: int, tensor: Tensor, source: str) -> None:
        """Make a tensor that a step returned the value.

        Raises:
            ProgramError: It is not the tensor that the program says.
        """
        self.adopt_plain(value_id, self.plain(value_id, tensor, source))

    def adopt_plain(self, value_id: int, tensor: Tensor) -> None:
        """Make a tensor the value, of which `plain` has nothing to say."""
        # A view of the arena would change when its bytes are used again, and a view
        # of a constant would let the caller write to it.
        if tensor.untyped_storage().data_ptr() in self._owned:
            tensor = tensor.clone()
        self.place(value_id, tensor)
        if self._alignment > 1:
            self._align(value_id, tensor)

    def _align(self, root: int, tensor: Tensor) -> None:
        """Let kernels read a copy of what begins between the addresses they take.

        Nothing writes to arguments and adopted tensors, and everything else sees the
        tensor itself.
        """
        if self.table[root] % self._alignment == 0:
            return
        copy = tensor.detach().clone()
        self._copies.append(copy)
        self.table[root] = copy.data_ptr()
        for view in self._views[root]:
            self.table[view.value_id] = copy.data_ptr()

    def plain(self, value_id: int, tensor: Tensor, source: str) -> Tensor:
        """Return a step's result contiguous and resolved, having checked its kind.

        Raises:
            ProgramError: Another shape, dtype, device or no tensor at all.
        """
        if isinstance(tensor, Tensor) and tensor.layout is torch.strided:
            tensor = tensor.resolve_conj().resolve_neg().contiguous()
        signature = self.form.signatures[value_id]
        problem = describe_difference(tensor, signature, self.machine.device)
        if problem:
            raise ProgramError(
                "bad-result", f"the result of {source} for value {value_id} {problem}"
            )
        return tensor

    def tensor(self, value_id: int) -> Tensor:
        """Return the tensor of a value that has one."""
        tensor = self.tensors[value_id]
        assert tensor is not None, value_id
        return tensor

    def operand(self, value_id: int) -> Tensor:
        """Return the tensor of an argument, or of a value that has one."""
        value = self.layout.program.values[value_id]
        if value.place is Place.INPUT:
            return self._arguments[value.index]
        return self.tensor(value_id)

    def results(self) -> list[Tensor]:
        """Return the results of a call; none shares memory with this frame."""
        if self._output_run is not None and self._returns_run:
            made: list[Any] = self.tensors[self._output_run.ids]
            return made
        if self._moving is not None:
            # Checked before the first call: steps write every result.
            tensors: list[Any] = self.tensors
            return [tensors[value_id] for value_id in self._moving]
        copies: dict[int, Tensor] = {}
        found = []
        for value_id in self.layout.program.results:
            if not self.is_static(value_id):
                found.append(self.tensor(value_id))
                continue
            root = self.layout.roots[value_id]
            if root not in copies:
                copies[root] = self.tensor(root).clone()
            shape = self.layout.signatures[value_id].shape
            # The root itself is the copy, so that equal results stay one tensor.
            found.append(copies[root] if value_id == root else copies[root].view(shape))
        return found

    def end(self) -> None:
        """Forget the caller's tensors."""
        for value_id in self._dynamic:
            self.tensors[value_id] = None
        if self._output_run is not None:
            self.tensors[self._output_run.ids] = self._no_outputs
        self._arguments = ()
        self._copies.clear()


def fits_all_sizes(layout: Layout, checks: Collection[int]) -> bool:
    """Whether frames of a program with stand-ins serve programs for all sizes.

    Only arguments and results of external steps have sizes of the call, no view of them
    is made for a step, and none is of indices that native code checks.

    Args:
        layout: The program with stand-ins.
        checks: Numbers of steps that are checks of indices in native code.
    """
    program = layout.program
    if program.parts or program.runtime:
        return False
    viewed = _ids_needed_as_tensors(layout, checks)
    checked = [program.steps[number] for number in checks]
    never = {i for step in checked for i in (*step.reads, *step.writes)}
    values = program.values
    return all(
        layout.root_value(i).place in _OF_OTHERS
        and (values[i].place is not Place.VIEW or i not in viewed)
        and i not in never
        for i in program.runtime_values
    )


def _ids_needed_as_tensors(layout: Layout, checks: Collection[int]) -> set[int]:
    needed = set(layout.program.results)
    for number, step in enumerate(layout.program.steps):
        if number in checks:
            # Torch reads them where an index is out of range; arguments are kept.
            needed.update({*step.reads} - {*layout.inputs})
        elif not layout.is_native(step):
            needed.update(step.reads, step.writes)
    return needed
