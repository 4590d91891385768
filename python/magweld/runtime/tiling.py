"""Owns the running of a step tile by tile, and the check that it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from torch import Tensor

from magweld.artifact import TiledStep, TileRun
from magweld.runtime.errors import ProgramError
from magweld.runtime.frame import Frame
from magweld.runtime.layout import Layout, Signature
from magweld.runtime.memory import ALIGNMENT

Action = Callable[[], object]
Slices = tuple[slice, ...]


@dataclass(frozen=True)
class BoundPart:
    """A program that is part of another one, on the arena of that."""

    frame: Frame
    actions: tuple[Action, ...]

    def run(self, arguments: Sequence[Tensor]) -> Tensor:
        """Make a tile; it is only valid until the next run of any part."""
        try:
            self._act(arguments)
            return self.frame.tensor(self.frame.layout.program.results[0])
        finally:
            self.frame.end()

    def results(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Run the program; none of its results shares memory with the arena."""
        try:
            self._act(arguments)
            return self.frame.results()
        finally:
            self.frame.end()

    def _act(self, arguments: Sequence[Tensor]) -> None:
        self.frame.begin(arguments, [tensor.data_ptr() for tensor in arguments])
        for action in self.actions:
            action()


def bind_tiles(
    frame: Frame, step: TiledStep, bind_part: Callable[[int, int], BoundPart]
) -> Action:
    """Return a function that runs the tiles of a step in order.

    Args:
        frame: What the step reads and writes.
        step: The step.
        bind_part: Binds a part, by number, to the arena at an offset.
    """
    numbers = dict.fromkeys(tile.part for tile in step.tiles)
    parts = {number: bind_part(number, step.scratch) for number in numbers}
    runs = [_Run(frame, step, tile, parts[tile.part]) for tile in step.tiles]

    def run_all() -> None:
        for run in runs:
            run()

    return run_all


class _Run:
    """One tile: reads parts of what is there, writes a part of the result."""

    def __init__(
        self, frame: Frame, step: TiledStep, tile: TileRun, part: BoundPart
    ) -> None:
        layout = part.frame.layout
        self._frame = frame
        self._part = part
        self._target = step.writes[0]
        shape = layout.signatures[layout.program.results[0]].shape
        self._place = _slices(tile.position, shape)
        self._sources: list[tuple[int, Slices, Tensor | None]] = []
        offset = step.scratch + aligned(layout.program.arena_bytes)
        for position, (operand, start) in enumerate(
            zip(tile.operands, tile.starts, strict=True)
        ):
            signature = layout.signatures[layout.inputs[position]]
            source = step.reads[operand]
            copy = None
            if signature.shape != frame.layout.signatures[source].shape:
                copy = frame.arena.view(offset, signature)
                offset += aligned(signature.nbytes)
            self._sources.append((source, _slices(start, signature.shape), copy))

    def __call__(self) -> None:
        arguments = []
        for value_id, slices, copy in self._sources:
            source = self._frame.tensor(value_id)
            # Kernels take contiguous operands, which a part of an image is not.
            arguments.append(source if copy is None else copy.copy_(source[slices]))
        self._frame.tensor(self._target)[self._place] = self._part.run(arguments)


def aligned(nbytes: int) -> int:
    """Return the bytes that a buffer takes in an arena."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def scratch_bytes(layout: Layout, step: TiledStep, parts: Sequence[Layout]) -> int:
    """Return the bytes of the arena that the tiles of a step need from `scratch` on."""
    needed = [0]
    for tile in step.tiles:
        part = parts[tile.part]
        copies = (
            aligned(part.signatures[value_id].nbytes)
            for value_id, operand in zip(part.inputs, tile.operands, strict=True)
            if part.signatures[value_id].shape
            != layout.signatures[step.reads[operand]].shape
        )
        needed.append(aligned(part.program.arena_bytes) + sum(copies))
    return max(needed)


def check_tiles(layout: Layout, step: TiledStep, parts: Sequence[Layout]) -> None:
    """Check that the tiles of a step stay in their tensors and make each element once.

    Raises:
        ProgramError: With the id `bad-tile`.
    """
    if len(step.writes) != 1:
        raise ProgramError("bad-tile", f"tiles write {len(step.writes)} values")
    target = layout.signatures[step.writes[0]]
    boxes: list[Slices] = []
    for number, tile in enumerate(step.tiles):
        problem = _problem(layout, step, tile, parts)
        if problem:
            raise ProgramError("bad-tile", f"tile {number} {problem}")
        result = parts[tile.part].program.results[0]
        shape = parts[tile.part].signatures[result].shape
        boxes.append(_slices(tile.position, shape))
    if not _covers(target, boxes):
        raise ProgramError("bad-tile", "the tiles do not make each element once")


def _problem(
    layout: Layout, step: TiledStep, tile: TileRun, parts: Sequence[Layout]
) -> str:
    if not 0 <= tile.part < len(parts):
        return f"is of part {tile.part}, there are {len(parts)}"
    part = parts[tile.part]
    if len(part.program.results) != 1:
        return f"has {len(part.program.results)} results"
    if not len(part.inputs) == len(tile.operands) == len(tile.starts):
        return f"has {len(tile.operands)} operands for {len(part.inputs)} arguments"
    if any(not 0 <= operand < len(step.reads) for operand in tile.operands):
        return f"reads operands {tile.operands} of {len(step.reads)}"
    for value_id, operand, start in zip(
        part.inputs, tile.operands, tile.starts, strict=True
    ):
        whole = layout.signatures[step.reads[operand]]
        if not _inside(part.signatures[value_id], start, whole):
            return f"reads {part.signatures[value_id]} at {start} of {whole}"
    result, target = part.program.results[0], layout.signatures[step.writes[0]]
    if not _inside(part.signatures[result], tile.position, target):
        return f"writes {part.signatures[result]} at {tile.position} of {target}"
    return ""


def _inside(part: Signature, start: Sequence[int], whole: Signature) -> bool:
    if not len(part.shape) == len(start) == len(whole.shape):
        return False
    fits = (
        0 <= first and first + size <= extent
        for first, size, extent in zip(start, part.shape, whole.shape, strict=True)
    )
    return part.dtype == whole.dtype and all(fits)


def _covers(target: Signature, boxes: Sequence[Slices]) -> bool:
    """Whether boxes are disjoint and make up a tensor."""
    # Between two neighbouring cuts nothing begins or ends.
    cuts = [
        sorted(
            {0, extent, *(edge for b in boxes for edge in (b[dim].start, b[dim].stop))}
        )
        for dim, extent in enumerate(target.shape)
    ]
    positions = [{cut: i for i, cut in enumerate(line)} for line in cuts]
    found: set[tuple[int, ...]] = set()
    for box in boxes:
        for cell in _cells(box, positions):
            if cell in found:
                return False
            found.add(cell)
    count = 1
    for line in cuts:
        count *= len(line) - 1
    return len(found) == count


def _cells(
    box: Slices, positions: Sequence[dict[int, int]]
) -> Iterator[tuple[int, ...]]:
    return product(
        *(
            range(line[part.start], line[part.stop])
            for part, line in zip(box, positions, strict=True)
        )
    )


def _slices(start: Sequence[int], shape: Sequence[int]) -> Slices:
    return tuple(
        slice(first, first + size) for first, size in zip(start, shape, strict=True)
    )
