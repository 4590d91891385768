"""Owns the running of a step that is a loop, and the check that it may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import addressof, c_int64
from math import prod

from torch import Tensor

from magweld.artifact import LoopStep
from magweld.runtime.errors import ProgramError
from magweld.runtime.frame import Frame
from magweld.runtime.layout import Layout, Signature
from magweld.runtime.machine import LoadedKernels
from magweld.runtime.tiling import Action, BoundPart, aligned

# Entry that is set, entry that is read, bytes that are added.
_Move = tuple[int, int, int]


def bind_native_loop(
    frame: Frame, step: LoopStep, part: Frame, kernels: LoadedKernels
) -> Action:
    """Return a function that runs a loop of kernels in one native call.

    Only addresses change from iteration to iteration: those of slices and of stacked
    results advance, a result and what the next iteration makes of it change places.

    Args:
        frame: What the step reads and writes.
        step: The step.
        part: An iteration; `Layout.runs_natively` is true for it.
        kernels: The kernels of the program.
    """
    layout = part.layout
    table = (c_int64 * (len(part.table) + len(step.writes)))(*part.table)
    spare = len(part.table)
    symbols = layout.kernel_symbols
    moves = [word for move in table_moves(step, layout, spare) for word in move]
    launch = kernels.looper(symbols, addressof(table), step.trips, moves)
    inputs = [
        (_with_views(layout, value_id), source, start * layout.itemsize(value_id))
        for value_id, source, start in zip(
            layout.inputs, step.reads, step.starts, strict=True
        )
    ]
    results = [layout.roots[value_id] for value_id in layout.program.results]
    handed = _handed_over(step, part.layout, frame)
    outputs = [
        (_with_views(layout, root), spare + number, target, handed[number])
        for number, (root, target) in enumerate(zip(results, step.writes, strict=True))
    ]
    addresses = frame.table

    def run() -> None:
        for entries, source, offset in inputs:
            address = addresses[source] + offset
            for entry in entries:
                table[entry] = address
        for entries, other, target, buffer in outputs:
            address = addresses[target]
            if buffer is not None:
                # The last iteration writes the result.
                table[other] = buffer if step.trips % 2 else address
                address = address if step.trips % 2 else buffer
            for entry in entries:
                table[entry] = address
        launch()

    return run


def _with_views(layout: Layout, root: int) -> tuple[int, ...]:
    return (root, *layout.aliases[root])


def table_moves(step: LoopStep, layout: Layout, spare: int) -> Iterator[_Move]:
    """Yield what is done to the table between two iterations.

    Args:
        step: The step.
        layout: An iteration.
        spare: Entry of the other buffer of result 0, that of result 1 behind it.
    """
    results = [layout.roots[value_id] for value_id in layout.program.results]
    fed: dict[int, int] = {}
    rows = zip(layout.inputs, step.strides, step.fed_by, strict=True)
    for value_id, stride, result in rows:
        if result >= 0:
            fed[result] = value_id
            source, add = results[result], 0
        elif stride:
            source, add = value_id, stride * layout.itemsize(value_id)
        else:
            continue
        yield value_id, source, add
        for view in layout.aliases[value_id]:
            yield view, value_id, 0
    for number, root in enumerate(results):
        if step.stacked[number]:
            yield root, root, layout.signatures[root].nbytes
        elif number in fed:
            yield root, spare + number, 0
            yield spare + number, fed[number], 0
        else:
            continue
        for view in layout.aliases[root]:
            yield view, root, 0


def _handed_over(step: LoopStep, layout: Layout, frame: Frame) -> list[int | None]:
    """Return the address of the second buffer of each result that has one."""
    offset = step.scratch + aligned(layout.program.arena_bytes)
    found: list[int | None] = []
    for number, value_id in enumerate(layout.program.results):
        signature = layout.signatures[value_id]
        if step.stacked[number]:
            found.append(None)
            continue
        buffer = frame.arena.view(offset, signature).data_ptr()
        found.append(buffer if number in step.fed_by else None)
        offset += aligned(signature.nbytes)
    return found


def bind_loop(frame: Frame, step: LoopStep, part: BoundPart) -> Action:
    """Return a function that runs a loop iteration by iteration.

    Args:
        frame: What the step reads and writes.
        step: The step.
        part: An iteration.
    """
    layout = part.frame.layout
    signatures = [layout.signatures[value_id] for value_id in layout.inputs]

    def run() -> None:
        targets = [frame.tensor(value_id) for value_id in step.writes]
        results: Sequence[Tensor] = ()
        for trip in range(step.trips):
            arguments = [
                results[step.fed_by[i]]
                if trip and step.fed_by[i] >= 0
                else _row(
                    frame.tensor(step.reads[i]),
                    step.starts[i] + trip * step.strides[i],
                    signature,
                )
                for i, signature in enumerate(signatures)
            ]
            results = part.results(arguments)
            for number, result in enumerate(results):
                if step.stacked[number]:
                    targets[number][trip].copy_(result)
        for number, result in enumerate(results):
            if not step.stacked[number]:
                targets[number].copy_(result)

    return run


def _row(tensor: Tensor, start: int, signature: Signature) -> Tensor:
    count = prod(signature.shape)
    return tensor.view(-1)[start : start + count].view(signature.shape)


def loop_scratch(step: LoopStep, parts: Sequence[Layout]) -> int:
    """Return the bytes of the arena that a loop needs from `scratch` on."""
    layout = parts[step.part]
    handed = (
        aligned(layout.signatures[value_id].nbytes)
        for value_id, stacked in zip(layout.program.results, step.stacked, strict=True)
        if not stacked
    )
    return aligned(layout.program.arena_bytes) + sum(handed)


def check_loop(layout: Layout, step: LoopStep, parts: Sequence[Layout]) -> None:
    """Check that the iterations of a step stay in their tensors.

    Raises:
        ProgramError: With the id `bad-loop`.
    """
    for problem in _problems(layout, step, parts):
        raise ProgramError("bad-loop", f"the loop {problem}")


def _problems(layout: Layout, step: LoopStep, parts: Sequence[Layout]) -> Iterator[str]:
    if not 0 <= step.part < len(parts):
        yield f"is of part {step.part}, there are {len(parts)}"
        return
    if step.trips < 1:
        yield f"has {step.trips} iterations"
    part = parts[step.part]
    lists = (step.reads, step.starts, step.strides, step.fed_by)
    if any(len(one) != len(part.inputs) for one in lists):
        yield f"has {len(step.reads)} operands for {len(part.inputs)} arguments"
        return
    if not len(step.writes) == len(step.stacked) == len(part.program.results):
        yield f"writes {len(step.writes)} of {len(part.program.results)} results"
        return
    if len({layout.roots[value_id] for value_id in step.writes}) != len(step.writes):
        yield "writes one value twice"
    yield from _input_problems(layout, step, part)
    yield from _result_problems(layout, step, part)


def _input_problems(layout: Layout, step: LoopStep, part: Layout) -> Iterator[str]:
    for number, value_id in enumerate(part.inputs):
        own, whole = part.signatures[value_id], layout.signatures[step.reads[number]]
        first = step.starts[number]
        last = first + (step.trips - 1) * step.strides[number]
        size, count = prod(own.shape), prod(whole.shape)
        inside = all(0 <= at and at + size <= count for at in (first, last))
        if own.dtype != whole.dtype or not inside:
            yield f"reads {own} from {first} to {last} of {whole}"
        result = step.fed_by[number]
        if not -1 <= result < len(step.writes):
            yield f"has no result {result}"
        elif result >= 0:
            made = part.signatures[part.program.results[result]]
            if made != own or step.strides[number]:
                yield f"reads {made} as {own}"


def _result_problems(layout: Layout, step: LoopStep, part: Layout) -> Iterator[str]:
    for number, value_id in enumerate(part.program.results):
        own, whole = part.signatures[value_id], layout.signatures[step.writes[number]]
        shape = (step.trips, *own.shape) if step.stacked[number] else tuple(own.shape)
        if own.dtype != whole.dtype or shape != tuple(whole.shape):
            yield f"writes {own} to {whole}"
