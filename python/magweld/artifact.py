"""Owns the compiled program as plain data: values, steps and machine code.

A `Program` is what the compiler returns, what the disk cache keeps and what the
runtime executes. It refers to nothing of torch or MLIR.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from magweld.short_repr import short_repr
from magweld.tensor_map import MappedParameter, TensorMap

FORMAT_VERSION = 11
HOST_TARGET = "cpu"


@dataclass(frozen=True)
class StandIns:
    """Numbers that stand for sizes which a call tells.

    While a program is compiled, an extent of k * p stands for k times the size that p
    stands for. Every p is a prime, or has a large one as factor, and divides no other
    extent of the graph.

    Attributes:
        numbers: One for each size.
        inner: Further extents that depend on sizes, as of an image behind a strided
            window. They are no products of sizes: only what torch runs as a whole has
            tensors with them, and those lie inside of it.
    """

    numbers: tuple[int, ...] = ()
    inner: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.numbers)

    def is_runtime(self, extent: int) -> bool:
        """Return whether an extent is a multiple of sizes of the call."""
        return extent > 0 and any(extent % prime == 0 for prime in self.numbers)

    def depends(self, extent: int) -> bool:
        """Return whether an extent depends on sizes in one way or another."""
        return extent in self.inner or self.is_runtime(extent)

    def told(self, extent: int) -> int:
        """Return the primes of an extent that stand for sizes, multiplied; 1 for none.

        One that depends on sizes in another way is itself.

        Args:
            extent: Some extent or other number.
        """
        if extent in self.inner:
            return extent
        found = 1
        for prime in self.numbers if extent > 0 else ():
            while extent % prime == 0:
                extent //= prime
                found *= prime
        return found

    def at(self, extent: int, sizes: Sequence[int]) -> int:
        """Return what an extent is for some sizes."""
        if extent <= 0:
            return extent
        product = 1
        for prime, size in zip(self.numbers, sizes, strict=True):
            while extent % prime == 0:
                extent //= prime
                product *= size
        return extent * product


class Place(StrEnum):
    """Where the bytes of a value live during a call."""

    INPUT = "input"  # argument `index` of the call, contiguous
    OUTPUT = "output"  # a fresh tensor of this call
    ARENA = "arena"  # at `offset` bytes in the arena of the program
    VIEW = "view"  # the bytes of value `index` under another shape
    ADOPTED = "adopted"  # the tensor that a library or external step returned
    CONSTANT = "constant"  # `Program.constants[index]`


@dataclass(frozen=True)
class Value:
    """One tensor of a program.

    Attributes:
        shape: Static extents.
        dtype: MLIR spelling: "f32", "f64", "i64", "i1", ...
        place: Where the bytes live.
        index: Argument number, viewed value or constant number; 0 otherwise.
        offset: Byte offset in the arena for `Place.ARENA`; 0 otherwise.
    """

    shape: tuple[int, ...]
    dtype: str
    place: Place
    index: int = 0
    offset: int = 0


@dataclass(frozen=True)
class KernelStep:
    """Run generated code: `symbol(table)` of the object code.

    Attributes:
        symbol: Launch function, `void symbol(int64_t* table)`; on a GPU the name that
            the launches of the step have in common.
        reads: Value ids read.
        writes: Value ids written.
    """

    symbol: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def range_symbol(launch: str) -> str:
    """Return the name of what each thread runs of a parallel launch function."""
    return f"{launch}_range"


@dataclass(frozen=True)
class LibraryStep:
    """Run a library candidate through torch, e.g. op="matmul".

    Attributes:
        op: Name in the runtime's library table.
        reads: Value ids of the operands.
        writes: Value ids of the results.
        attributes: Scalars and lists, e.g. strides.
    """

    op: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExternalStep:
    """Run one operator of the captured graph through torch.

    Attributes:
        node: Name of the node in the functional ATen graph.
        reads: Value ids of its tensor operands, in order of first appearance.
        writes: Value ids of its tensor results.
    """

    node: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class IndexCheck:
    """What a step does that copies indices and raises if one is out of range.

    Attributes:
        table: Which of the step's reads has as many rows as indices may find, None
            if `rows` tells how many.
        indices: Which of them has the indices.
        lowest: The least index that is in range, None for minus the rows.
        rows: How many rows there are, 0 for those of the table.
    """

    table: int | None
    indices: int
    lowest: int | None
    rows: int = 0

    def rows_of(self, shapes: Sequence[Sequence[int]]) -> int:
        """Return how many rows indices may find, from the shapes of what is read."""
        return self.rows if self.table is None else shapes[self.table][0]


@dataclass(frozen=True)
class BoundsCheck:
    """What a step does that copies bounds of bags and raises if they are none.

    The first is zero, none is less than the one before, and the last is the number of
    indices. Where the step writes one more than it reads, that number follows them.

    Attributes:
        indices: Which of the step's reads has the indices.
        bounds: Which of them has the bounds.
    """

    indices: int
    bounds: int


@dataclass(frozen=True)
class RowOrder:
    """What a step does that sorts indices, and raises if one is out of range.

    It writes, for each index but those that are skipped, in the order of indices and
    of places, its place over a size; and for each row where the places of its index
    begin, and behind the last row where they end. How many rows there are, this tells.

    Attributes:
        indices: Which of the step's reads has the indices.
        size: What places are divided by.
        padding: The index that is skipped, negative for none.
    """

    indices: int
    size: int
    padding: int


NativeCheck = IndexCheck | BoundsCheck | RowOrder
"""What native code does instead of a step, as long as it finds nothing wrong."""


@dataclass(frozen=True)
class TileRun:
    """One tile of a `TiledStep`.

    Attributes:
        part: Number of the program that makes it, in `Program.parts`.
        operands: For each argument of the part, which of the step's reads it is part
            of.
        starts: Where that part of it begins; its extents are the argument's.
        position: Where the result goes.
    """

    part: int
    operands: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    position: tuple[int, ...]


@dataclass(frozen=True)
class TiledStep:
    """Make one tensor tile by tile, each by a program of its own.

    Attributes:
        reads: Value ids that tiles read parts of.
        writes: The one value id that they write.
        tiles: In order; together they write all of it.
        scratch: Offset in the arena of what a tile needs: the arena of its program,
            then a copy of each argument that is not all of what it is part of.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    tiles: tuple[TileRun, ...]
    scratch: int


@dataclass(frozen=True)
class LoopStep:
    """Run a program several times, each run on results of the one before.

    Argument `i` of the part is part of the value `reads[i]`.

    Attributes:
        reads: Value ids that iterations read.
        writes: Value ids that they write, one for each result of the part.
        part: Number of the program of an iteration, in `Program.parts`.
        trips: How many iterations.
        starts: For each argument the element where it begins in the first iteration.
        strides: How many elements later it begins in each further one.
        fed_by: For each argument which result of the iteration before it is from the
            second iteration on, -1 for none.
        stacked: For each result whether the value has those of all iterations one
            after another, and not that of the last one.
        scratch: Offset in the arena of what an iteration needs: the arena of its
            program, then a copy of each result that is not stacked.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    part: int
    trips: int
    starts: tuple[int, ...]
    strides: tuple[int, ...]
    fed_by: tuple[int, ...]
    stacked: tuple[bool, ...]
    scratch: int


@dataclass(frozen=True)
class IfStep:
    """Run one of two programs, as a truth value says.

    `reads[0]` is the truth value, one byte; the others are the arguments of both
    parts, and `writes` takes the results of the one that runs.

    Attributes:
        reads: Value ids that it reads.
        writes: Value ids that it writes.
        on_true: Number of the program that runs on true, in `Program.parts`.
        on_false: Number of the other one.
        scratch: Offset in the arena of what a part needs.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    on_true: int
    on_false: int
    scratch: int

    @property
    def parts(self) -> tuple[int, ...]:
        """Numbers of the programs that it runs."""
        return (self.on_true, self.on_false)


@dataclass(frozen=True)
class WhileStep:
    """Run a program as long as a truth value is true, each time on its own results.

    `reads[0]` is the first truth value, one byte; the others are the arguments of the
    part, those that are carried first. The results of the part are the next carried
    values, then the next truth value. `writes` takes what is carried in the end: the
    operands where there was no iteration.

    Attributes:
        reads: Value ids that it reads.
        writes: Value ids that it writes.
        part: Number of the program of an iteration, in `Program.parts`.
        scratch: Offset in the arena of what an iteration needs: the arena of its
            program, then a buffer for each of its results.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    part: int
    scratch: int

    @property
    def parts(self) -> tuple[int, ...]:
        """Number of the program that it runs."""
        return (self.part,)


@dataclass(frozen=True)
class DeviceLaunch:
    """One launch of a kernel on a GPU.

    Attributes:
        step: `KernelStep.symbol` of the step that it is part of.
        kernel: Name of the kernel in its code.
        images: Positions of its code in `Program.objects`, the preferred one first:
            machine code, then assembly that the driver compiles.
        grid: Blocks in x, y and z.
        block: Threads of a block in x, y and z.
        shared_bytes: Dynamic shared memory of a block.
        pointers: Value ids of the kernel's parameters, which are bare pointers; those
            of one member after another in a batch.
        members: How many members the launch has; a kernel of several takes its
            pointers as one table.
        shifts: At which byte of each pointer's value it begins; none for zeros.
        sources: Names of the graph nodes that it computes, for messages.
        kernels: How many kernels it runs side by side; of several, the pointers are
            those of one after another, and one table as well.
        maps: Parameters that are tensor maps of what their pointers are to; a table
            has none.
    """

    step: str
    kernel: str
    images: tuple[int, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    pointers: tuple[int, ...]
    sources: tuple[str, ...] = ()
    members: int = 1
    shifts: tuple[int, ...] = ()
    kernels: int = 1
    maps: tuple[MappedParameter, ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether its pointers are one parameter together."""
        return self.members > 1 or self.kernels > 1


# What a kernel reads of the sizes of a call, in numbers of 64 bits.
WORDS = 3


@dataclass(frozen=True)
class RuntimeExtent:
    """What a kernel reads of the sizes of a call.

    It reads three words: the extent, how many tiles there are, and how many threads
    may run them, 0 for all.

    Attributes:
        step: Position of the kernel's step.
        words: Value id of the words, a constant.
        extent: The number that stands for the extent.
        tile: Size of the largest tiles along it, a power of two.
        beside: How many tiles there are for each one along the extent.
    """

    step: int
    words: int
    extent: int
    tile: int
    beside: int


Step = (
    KernelStep | LibraryStep | ExternalStep | TiledStep | LoopStep | IfStep | WhileStep
)
_STEP_KINDS: dict[str, type[Step]] = {
    "kernel": KernelStep,
    "library": LibraryStep,
    "external": ExternalStep,
    "tiled": TiledStep,
    "loop": LoopStep,
    "if": IfStep,
    "while": WhileStep,
}
_KIND_OF_STEP = {cls: kind for kind, cls in _STEP_KINDS.items()}


@dataclass(frozen=True)
class Program:
    """A compiled graph.

    Attributes:
        values: All tensors; a value id is its position.
        steps: In execution order.
        results: Value ids that the call returns, in order.
        arena_bytes: Size of the arena.
        objects: Object files of the host with all symbols of the kernel steps, or
            code images for a GPU.
        constants: Raw bytes of `Place.CONSTANT` values.
        parts: Programs that make tiles, are iterations or arms of branches. They have
            neither parts, objects nor constants but those of this program, and run only
            parts that come before them.
        report: What was decided and predicted, for `explain()`: groups, tile graphs.
        unlowered: Graph nodes that turned out to have no lowering. Such a program has
            no steps: it is the answer that the graph must be compiled again with
            these nodes as externals, and caches keep it like any other.
        target: What the code is for: "cpu", "nvvm:sm_90a", ...
        launches: On a GPU the launches of all kernel steps, those of a step in order.
        stand_ins: Numbers that stand for sizes of the call; empty where all sizes are
            constants.
        runtime: What kernels read of these sizes.
        scheduled: The module with every tile chosen, as `pack_text` gives it: choosing
            takes most of a compilation, and who looks at later stages needs not do it
            again. "" where it is not kept.
    """

    __repr__ = short_repr

    values: tuple[Value, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    arena_bytes: int
    objects: tuple[bytes, ...] = field(default=(), repr=False)
    constants: tuple[bytes, ...] = field(default=(), repr=False)
    parts: tuple[Program, ...] = ()
    report: dict[str, Any] = field(default_factory=dict)
    unlowered: tuple[str, ...] = ()
    target: str = HOST_TARGET
    launches: tuple[DeviceLaunch, ...] = ()
    stand_ins: StandIns = StandIns()
    runtime: tuple[RuntimeExtent, ...] = ()
    scheduled: str = field(default="", repr=False)

    @functools.cached_property
    def runtime_values(self) -> tuple[int, ...]:
        """Ids of the values whose shapes depend on sizes of the call."""
        is_runtime = self.stand_ins.is_runtime
        numbered = enumerate(self.values)
        return tuple(n for n, value in numbered if any(map(is_runtime, value.shape)))

    @property
    def arena_depends_on_sizes(self) -> bool:
        """Whether shapes of values in the arena depend on sizes of the call."""
        return any(self.values[n].place is Place.ARENA for n in self.runtime_values)

    @property
    def held_bytes(self) -> int:
        """Bytes that a loaded program holds: code, constants, its text, one arena."""
        held = (*self.objects, *self.constants, self.scheduled)
        return self.arena_bytes + sum(map(len, held))

    def step_kinds(self) -> tuple[str, ...]:
        """Return how each step runs: "generated", "library", "tiled", "loop", "if", ...

        The rest are "external".
        """
        words = {
            KernelStep: "generated",
            LibraryStep: "library",
            TiledStep: "tiled",
            LoopStep: "loop",
            IfStep: "if",
            WhileStep: "while",
        }
        return tuple(words.get(type(step), "external") for step in self.steps)

    def header(self) -> str:
        """Return everything but the binary parts as JSON."""
        header = {"version": FORMAT_VERSION, **_header(self)}
        return json.dumps(header, sort_keys=True)

    @staticmethod
    def from_header(
        header: str, objects: tuple[bytes, ...], constants: tuple[bytes, ...]
    ) -> Program:
        """Rebuild a program from `header()` and its binary parts.

        Raises:
            ValueError: The text is not a header of this format version.
        """
        data = json.loads(header)
        if data.get("version") != FORMAT_VERSION:
            raise ValueError(
                f"program format {data.get('version')!r}, expected {FORMAT_VERSION}"
            )
        return _program(data, objects, constants)


def _header(program: Program) -> dict[str, Any]:
    return {
        "values": [asdict(v) for v in program.values],
        "steps": [{"kind": _KIND_OF_STEP[type(s)], **asdict(s)} for s in program.steps],
        "results": list(program.results),
        "arena_bytes": program.arena_bytes,
        "parts": [_header(part) for part in program.parts],
        "report": program.report,
        "unlowered": list(program.unlowered),
        "target": program.target,
        "launches": [asdict(launch) for launch in program.launches],
        "stand_ins": list(program.stand_ins.numbers),
        "runtime": [asdict(extent) for extent in program.runtime],
        "scheduled": program.scheduled,
    }


def _program(
    data: dict[str, Any],
    objects: tuple[bytes, ...] = (),
    constants: tuple[bytes, ...] = (),
) -> Program:
    return Program(
        values=tuple(_value(v) for v in data["values"]),
        steps=tuple(_step(s) for s in data["steps"]),
        results=tuple(data["results"]),
        arena_bytes=data["arena_bytes"],
        objects=objects,
        constants=constants,
        parts=tuple(_program(part) for part in data["parts"]),
        report=data["report"],
        unlowered=tuple(data["unlowered"]),
        target=data["target"],
        launches=tuple(_launch(launch) for launch in data["launches"]),
        stand_ins=StandIns(tuple(data["stand_ins"])),
        runtime=tuple(RuntimeExtent(**extent) for extent in data["runtime"]),
        scheduled=data["scheduled"],
    )


def _value(data: dict[str, Any]) -> Value:
    data = dict(data)
    return Value(tuple(data.pop("shape")), place=Place(data.pop("place")), **data)


def _step(data: dict[str, Any]) -> Step:
    data = dict(data)
    cls = _STEP_KINDS[data.pop("kind")]
    reads, writes = tuple(data.pop("reads")), tuple(data.pop("writes"))
    if cls is TiledStep:
        data["tiles"] = tuple(_tile(tile) for tile in data["tiles"])
    if cls is LoopStep:
        lists = ("starts", "strides", "fed_by", "stacked")
        data.update({name: tuple(data[name]) for name in lists})
    return cls(reads=reads, writes=writes, **data)


def _tile(data: dict[str, Any]) -> TileRun:
    return TileRun(
        part=data["part"],
        operands=tuple(data["operands"]),
        starts=tuple(tuple(start) for start in data["starts"]),
        position=tuple(data["position"]),
    )


def _launch(data: dict[str, Any]) -> DeviceLaunch:
    lists = ("images", "grid", "block", "pointers", "sources", "shifts")
    known = {name: tuple(data[name]) for name in lists}
    maps = tuple(_mapped(one) for one in data["maps"])
    return DeviceLaunch(**{**data, **known, "maps": maps})


def _mapped(data: dict[str, Any]) -> MappedParameter:
    lists = ("extents", "strides", "box")
    fields = {**data["map"], **{name: tuple(data["map"][name]) for name in lists}}
    return MappedParameter(data["position"], TensorMap(**fields))
