"""Owns the end of a call of a graph for all sizes: how results lie in their memory.

Where a window begins, or how far that is from the end of the memory, is a product of
sizes as extents are: `y[0]`, `y[-1]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from magweld.importer.epilogue import (
    Buffer,
    BufferOutput,
    Epilogue,
    Output,
    ResultOutput,
    SameOutput,
    Window,
)

# Whether a number of one import is that of the other with the sizes exchanged.
Fits = Callable[[int, int], bool]
# What a number is for some sizes.
At = Callable[[int], int]


def sized_epilogue(ours: Epilogue, theirs: Epilogue, fits: Fits) -> Epilogue | None:
    """Return the end of a call that `epilogue_at` makes for sizes.

    Args:
        ours: Of a graph, imported for numbers that stand for sizes.
        theirs: Of the same graph, imported for others.
        fits: Compares numbers.

    Returns:
        `ours` with a negative offset where a window lies at a distance from the end;
        None if something else than windows depends on sizes, or inputs are returned or
        written to.
    """
    if ours.sequence_of_results and theirs.sequence_of_results:
        return ours
    if not _is_alike(ours, theirs):
        return None
    joiner = _Joiner(fits)
    buffers = zip(ours.buffers, theirs.buffers, strict=True)
    outputs = zip(ours.outputs, theirs.outputs, strict=True)
    joined = replace(
        ours,
        buffers=tuple(joiner.buffer(one, other) for one, other in buffers),
        outputs=tuple(joiner.output(a, b, ours, theirs) for a, b in outputs),
    )
    return None if joiner.has_failed else joined


def epilogue_at(epilogue: Epilogue, at: At) -> Epilogue:
    """Return the end of a call for some sizes.

    Args:
        epilogue: What `sized_epilogue` has returned.
        at: Returns what a number is for the sizes.
    """
    if epilogue.sequence_of_results:
        return epilogue

    def placed(window: Window, count: int) -> Window:
        begin = window.offset
        offset = at(begin) if begin >= 0 else at(count) - at(-begin)
        return Window(
            tuple(map(at, window.shape)), tuple(map(at, window.stride)), offset
        )

    def output(one: Output) -> Output:
        if isinstance(one, BufferOutput):
            count = epilogue.buffers[one.buffer].count
            return replace(one, window=placed(one.window, count))
        if isinstance(one, ResultOutput) and one.window is not None:
            return replace(one, window=placed(one.window, 0))
        return one

    buffers = (
        Buffer(b.dtype, at(b.count), tuple((n, placed(w, b.count)) for n, w in b.fills))
        for b in epilogue.buffers
    )
    outputs = tuple(map(output, epilogue.outputs))
    return replace(epilogue, buffers=tuple(buffers), outputs=outputs)


def _is_alike(ours: Epilogue, theirs: Epilogue) -> bool:
    """Whether two ends are the same but for windows, and new results are all there is.

    What compiled code has as another type is left to programs for one size.
    """
    kinds = [list(map(type, one.outputs)) for one in (ours, theirs)]
    fills = [[(b.dtype, len(b.fills)) for b in one.buffers] for one in (ours, theirs)]
    new = {BufferOutput, ResultOutput, SameOutput}
    around = (ours.writes, theirs.writes, ours.carried, theirs.carried)
    return (
        kinds[0] == kinds[1]
        and fills[0] == fills[1]
        and new.issuperset(kinds[0])
        and not any(around)
        and ours.creations == theirs.creations
        and ours.versions == theirs.versions
        and ours.structure == theirs.structure
    )


@dataclass
class _Joiner:
    """Joins what was made for two sets of sizes.

    Attributes:
        fits: Compares numbers.
        has_failed: Whether something depends on sizes in another way.
    """

    fits: Fits
    has_failed: bool = False

    def buffer(self, one: Buffer, other: Buffer) -> Buffer:
        """Return a buffer for all sizes."""
        self._require(self.fits(one.count, other.count))
        pairs = zip(one.fills, other.fills, strict=True)
        fills = []
        for (result, window), (same, shown) in pairs:
            self._require(result == same)
            fills.append((result, self._window(window, shown, one.count, other.count)))
        return replace(one, fills=tuple(fills))

    def output(
        self, one: Output, other: Output, ours: Epilogue, theirs: Epilogue
    ) -> Output:
        """Return an output for all sizes, of two of the same kind."""
        if isinstance(one, BufferOutput) and isinstance(other, BufferOutput):
            self._require(replace(other, window=one.window) == one)
            counts = ours.buffers[one.buffer].count, theirs.buffers[other.buffer].count
            window = self._window(one.window, other.window, *counts)
            return replace(one, window=window)
        if isinstance(one, ResultOutput) and isinstance(other, ResultOutput):
            self._require(replace(other, window=one.window) == one)
            if one.window is not None and other.window is not None:
                return replace(one, window=self._window(one.window, other.window, 0, 0))
            self._require(one.window is other.window)
            return one
        self._require(one == other)
        return one

    def _window(self, one: Window, other: Window, count: int, twin: int) -> Window:
        ours, theirs = (*one.shape, *one.stride), (*other.shape, *other.stride)
        self._require(len(ours) == len(theirs) and all(map(self.fits, ours, theirs)))
        if self.fits(one.offset, other.offset):
            return one
        left = count - one.offset
        self._require(left > 0 and self.fits(left, twin - other.offset))
        return replace(one, offset=-left)

    def _require(self, holds: bool) -> None:
        self.has_failed = self.has_failed or not holds
