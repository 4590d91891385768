"""Owns the turning of a program's steps into calls on the addresses of one frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import is_, itemgetter

from torch import Tensor

from magweld.artifact import (
    ExternalStep,
    IfStep,
    KernelStep,
    LibraryStep,
    LoopStep,
    NativeCheck,
    Place,
    Step,
    TiledStep,
    WhileStep,
)
from magweld.runtime.control import bind_control
from magweld.runtime.errors import ProgramError
from magweld.runtime.frame import Form, Frame
from magweld.runtime.index_checks import bind_index_checks
from magweld.runtime.layout import Layout
from magweld.runtime.library import LibraryOperation, make_operation
from magweld.runtime.looping import bind_loop, bind_native_loop
from magweld.runtime.machine import LoadedKernels
from magweld.runtime.names import in_range
from magweld.runtime.native_steps import bind_native
from magweld.runtime.tiling import Action, BoundPart, bind_tiles
from magweld.short_repr import short_repr


def check_library_steps(layout: Layout) -> dict[int, LibraryOperation]:
    """Return the operation of every library step, by step number.

    Raises:
        ProgramError: An unknown operation, or operands and result that do not fit.
    """
    operations = {}
    for number, step in enumerate(layout.program.steps):
        if isinstance(step, LibraryStep):
            operations[number] = make_operation(step)
            _check_library_step(layout, step, operations[number])
    return operations


def _check_library_step(
    layout: Layout, step: LibraryStep, operation: LibraryOperation
) -> None:
    reads = [layout.signatures[i] for i in step.reads]
    writes = [layout.signatures[i] for i in step.writes]
    try:
        shape = tuple(operation.result_shape(*(s.shape for s in reads)))
    except (ValueError, TypeError) as error:
        raise ProgramError("bad-library-step", f"{step.op}: {error}") from error
    # A wrong `out` would be resized by torch, away from its place in the arena.
    if len(writes) != 1 or tuple(writes[0].shape) != shape:
        found = [tuple(s.shape) for s in writes]
        raise ProgramError("bad-library-step", f"{step.op}: {shape} into {found}")
    dtypes = {s.dtype for s in (*reads, *writes)}
    if len(dtypes) != 1:
        raise ProgramError("bad-library-step", f"{step.op}: mixed types {dtypes}")


@dataclass(frozen=True)
class Code:
    """What the steps of a program run.

    Attributes:
        kernels: All kernels, those of the parts among them.
        operations: Operation of each library step, by step number.
        parts: For each part its layout and the operations of its library steps.
        checks: Steps that are checks of indices in native code, by step number.
    """

    __repr__ = short_repr

    kernels: LoadedKernels
    operations: Mapping[int, LibraryOperation]
    parts: tuple[tuple[Layout, Mapping[int, LibraryOperation]], ...]
    checks: Mapping[int, NativeCheck] = field(default_factory=dict)


def bind_steps(
    frame: Frame, code: Code, name_of: Callable[[Step], str] | None = None
) -> tuple[Action, ...]:
    """Return calls that run all steps in order and free adopted tensors.

    Args:
        frame: What they work on.
        code: What they run.
        name_of: Names each step for profilers of torch. Without it consecutive
            kernels become one call.
    """
    binder = Binder(frame, code, name_of)
    steps, alone = frame.layout.program.steps, name_of is not None
    groups = _groups(steps, code.checks, alone=alone)
    return tuple(action for numbers in groups for action in binder.actions(numbers))


@dataclass(frozen=True)
class Binder:
    """What the steps of a program are bound to, and what names them, if anything."""

    frame: Frame
    code: Code
    name_of: Callable[[Step], str] | None = None

    def actions(self, numbers: Sequence[int]) -> Iterator[Action]:
        """Yield calls that run some steps: kernels, or checks, or one step.

        The last of them frees adopted tensors.
        """
        frame = self.frame
        action = self._action(numbers)
        if self.name_of is not None:
            step = frame.layout.program.steps[numbers[0]]
            action = in_range(self.name_of(step), action)
        yield action
        released = _released_after(frame.layout, numbers)
        if released:
            yield partial(_release, frame.tensors, released)

    def _action(self, numbers: Sequence[int]) -> Action:
        frame, code = self.frame, self.code
        step = frame.layout.program.steps[numbers[0]]
        match step:
            case KernelStep():
                return _bind_kernels(frame, numbers, code.kernels)
            case LibraryStep():
                return _bind_library(frame, step, code.operations[numbers[0]])
            case ExternalStep() if numbers[0] in code.checks:
                return self._bind_checks(numbers)
            case ExternalStep():
                return bind_native(frame, step, _bind_external(frame, step))
            case TiledStep():
                return bind_tiles(frame, step, self._bind_part)
            case LoopStep():
                return self._bind_loop(step)
            case IfStep() | WhileStep():
                return bind_control(self, step)

    def _bind_checks(self, numbers: Sequence[int]) -> Action:
        steps, checks = self.frame.layout.program.steps, self.code.checks
        found = [
            (step, checks[number])
            for number in numbers
            if isinstance(step := steps[number], ExternalStep)
        ]
        return bind_index_checks(self.frame, found, self.frame.form.run_external)

    def _bind_loop(self, step: LoopStep) -> Action:
        part = self._bind_part(step.part, step.scratch)
        if self.frame.layout.is_native(step):
            return bind_native_loop(self.frame, step, part.frame, self.code.kernels)
        return bind_loop(self.frame, step, part)

    def _bind_part(self, number: int, scratch: int) -> BoundPart:
        """Bind a part to the arena of the program that it is part of."""
        part = self.part(number, scratch)
        return BoundPart(part.frame, bind_steps(part.frame, part.code, self.name_of))

    @property
    def kernels(self) -> LoadedKernels:
        """All kernels of the program."""
        return self.code.kernels

    def part(self, number: int, scratch: int) -> Binder:
        """Return the binder of a part on the arena of the frame, from an offset on."""
        layout, operations = self.code.parts[number]
        frame = self.frame
        arena = frame.arena.part(scratch, layout.program.arena_bytes)
        form = Form(layout.signatures, frame.form.run_external)
        part = Frame(layout, form, frame.constants, arena, frame.machine)
        code = replace(self.code, operations=operations, checks={})
        return Binder(part, code, self.name_of)


def _groups(
    steps: Sequence[Step], checks: Collection[int], alone: bool
) -> Iterator[list[int]]:
    """Yield the numbers of the steps, unless each is alone kernels as they follow.

    So do checks of indices in native code.
    """

    def key(number: int, step: Step) -> int:
        if alone:
            return number
        if isinstance(step, KernelStep):
            return -1
        return -2 if number in checks else number

    keys = (key(number, step) for number, step in enumerate(steps))
    for _, group in groupby(enumerate(keys), key=itemgetter(1)):
        yield [number for number, _ in group]


def _bind_kernels(
    frame: Frame, numbers: Sequence[int], kernels: LoadedKernels
) -> Action:
    steps = (frame.layout.program.steps[number] for number in numbers)
    symbols = [step.symbol for step in steps if isinstance(step, KernelStep)]
    return kernels.launcher(symbols, frame.table_address)


def _bind_library(
    frame: Frame, step: LibraryStep, operation: LibraryOperation
) -> Action:
    target = step.writes[0]
    into_buffer = operation.writes_out and _has_buffer(frame.layout, target)
    deliver = _deliverer(frame, target, f"library operation {step.op}")

    def operands() -> list[Tensor]:
        return [
            operation.arrange(position, frame.tensor(value_id))
            for position, value_id in enumerate(step.reads)
        ]

    if into_buffer and all(map(frame.is_static, (*step.reads, target))):
        return partial(operation.compute, operands(), frame.tensor(target))
    if into_buffer:
        return lambda: operation.compute(operands(), frame.tensor(target))
    return lambda: deliver(operation.compute(operands(), None))


def _bind_external(frame: Frame, step: ExternalStep) -> Action:
    source = f"external node {step.node!r}"
    deliver = [_deliverer(frame, value_id, source) for value_id in step.writes]
    node, reads, writes = step.node, step.reads, step.writes
    are_adopted = bool(writes) and not any(_has_buffer(frame.layout, i) for i in writes)

    def run() -> None:
        form = frame.form
        results = form.run_external(node, [frame.tensor(i) for i in reads])
        # To ask all of a result takes longer than small operators do: where an earlier
        # one has been asked, one call of native code tells that this one is alike.
        alike = form.alike[writes[0]] if are_adopted else None
        if alike is not None and alike.knows(results):
            for value_id, result in zip(writes, results, strict=True):
                frame.adopt_plain(value_id, result)
            return
        if len(results) != len(deliver):
            raise ProgramError(
                "bad-result",
                f"{source} returned {len(results)} tensors, expected {len(deliver)}",
            )
        if alike is None:
            for put, result in zip(deliver, results, strict=True):
                put(result)
            return
        plain = list(map(partial(frame.plain, source=source), writes, results))
        for value_id, result in zip(writes, plain, strict=True):
            frame.adopt_plain(value_id, result)
        if all(map(is_, plain, results)):
            alike.learn(results)

    return run


def _deliverer(frame: Frame, target: int, source: str) -> Callable[[Tensor], object]:
    if _has_buffer(frame.layout, target):
        # `copy_` alone would broadcast and convert what does not fit.
        return lambda tensor: frame.tensor(target).copy_(
            frame.plain(target, tensor, source)
        )
    return lambda tensor: frame.adopt(target, tensor, source)


def _has_buffer(layout: Layout, value_id: int) -> bool:
    return layout.root_value(value_id).place is not Place.ADOPTED


def _released_after(layout: Layout, numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        value_id
        for root, (_, last) in layout.lifetimes.items()
        if last in numbers and layout.program.values[root].place is Place.ADOPTED
        for value_id in (root, *layout.aliases[root])
    )


def _release(tensors: list[Tensor | None], value_ids: tuple[int, ...]) -> None:
    for value_id in value_ids:
        tensors[value_id] = None
