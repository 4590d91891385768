"""Owns the launch functions: they find a kernel's operands and share its tiles out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from magweld.artifact import range_symbol
from magweld.codegen.kernel_signature import KernelSignature
from magweld.codegen.member_loop import (
    POINTER,
    WORD,
    MemberLoop,
    load_pointer,
    shifted,
)

_INT = ir.IntType(32)
_VOID = ir.VoidType()
# Of a launch, and of what threads run of it: the second takes a range.
LAUNCH = ir.FunctionType(_VOID, [POINTER])
RANGE = ir.FunctionType(_VOID, [POINTER, WORD, WORD])

# What portable code calls to run tiles in several threads.
PARALLEL_SYMBOL = "magweld_parallel"


@dataclass(frozen=True)
class Launch:
    """How a program starts a kernel.

    Attributes:
        symbol: Name of the launch function, `void symbol(int64_t* table)`.
        kernel: The kernel.
        entries: For each pointer of the kernel, its index in the table; those of one
            member after another.
        parallel: Whether the tiles are worth sharing out among threads.
        members: How many times the kernel runs.
        words: Index in the table of the words of `magweld.artifact.RuntimeExtent`,
            where the kernel has an extent that a call tells; -1 otherwise.
        shifts: For each entry at which byte of it the kernel begins; none for zeros.
        share: Of a part of a joint launch, its share of the work (`joint_launch`):
            the function is `void symbol(int64_t* table, lo, hi)` then, and runs the
            tiles in that range of the share. 0 for other launches.
    """

    symbol: str
    kernel: KernelSignature
    entries: tuple[int, ...]
    parallel: bool
    members: int = 1
    words: int = -1
    shifts: tuple[int, ...] = ()
    share: int = 0

    def __post_init__(self) -> None:
        expected = self.kernel.pointers * self.members
        if len(self.entries) != expected:
            raise ValueError(
                f"launch '{self.symbol}' expected {expected} table entries"
                f" for kernel '{self.kernel.symbol}', got {len(self.entries)}"
            )
        if self.shifts and len(self.shifts) != expected:
            raise ValueError(
                f"launch '{self.symbol}' expected {expected} shifts,"
                f" got {len(self.shifts)}"
            )
        if self.kernel.has_extent != (self.words >= 0):
            raise ValueError(f"launch '{self.symbol}' expected words for an extent")
        if self.kernel.has_extent and self.share:
            raise ValueError(f"launch '{self.symbol}' expected a number of tiles")

    @property
    def tiles(self) -> int:
        """How many tiles there are, those of all members one after another."""
        return self.kernel.tiles * self.members

    @property
    def has_region(self) -> bool:
        """Whether it starts several threads."""
        return self.kernel.has_extent or (self.parallel and self.tiles > 1)


def launch_module(launches: Sequence[Launch], portable: bool = False) -> str:
    """Return LLVM IR text that defines the launch functions.

    A parallel launch runs its tiles in a parallel region of GNU OpenMP's runtime
    (`GOMP_parallel`), a contiguous range for each thread. The others call the
    kernel on the calling thread. The tiles of a batch are those of all members one
    after another; what each member takes is in a constant table.

    Portable code asks what loads it for threads instead:
    `void magweld_parallel(table, range, tiles, threads)` calls
    `void range(table, lo, hi)` for ranges that make up all tiles, in at most so many
    threads, 0 being all.
    """
    module = ir.Module(name="launches")
    # Equal layers launch one kernel several times.
    used = {launch.kernel.symbol: launch.kernel for launch in launches}
    kernels = {
        symbol: _declare_kernel(module, kernel) for symbol, kernel in used.items()
    }
    for launch in launches:
        kernel = kernels[launch.kernel.symbol]
        if launch.share:
            _define_part(module, launch, kernel)
        elif not launch.has_region:
            function = ir.Function(module, LAUNCH, launch.symbol)
            _emit_call(function, launch, kernel)
        elif portable:
            _define_portable_launch(module, launch, kernel)
        else:
            _define_launch(module, launch, kernel)
    return str(module)


def _declare_kernel(module: ir.Module, kernel: KernelSignature) -> ir.Function:
    numbers = 3 if kernel.has_extent else 2
    arguments = [POINTER] * kernel.pointers + [WORD] * numbers
    return ir.Function(module, ir.FunctionType(_VOID, arguments), kernel.symbol)


def _define_launch(module: ir.Module, launch: Launch, kernel: ir.Function) -> None:
    region = ir.Function(module, LAUNCH, range_symbol(launch.symbol))
    region.linkage = "internal"
    _emit_call(region, launch, kernel, own_range)
    function = ir.Function(module, LAUNCH, launch.symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    threads: ir.Value = ir.Constant(_INT, 0)
    if launch.kernel.has_extent:
        threads = builder.trunc(_word(builder, function, launch, 2), _INT)
    start_threads(builder, region, threads)
    builder.ret_void()


def _define_portable_launch(
    module: ir.Module, launch: Launch, kernel: ir.Function
) -> None:
    region = ir.Function(module, RANGE, range_symbol(launch.symbol))
    region.linkage = "internal"
    _emit_call(region, launch, kernel, lambda *_: list(region.args[1:]))
    function = ir.Function(module, LAUNCH, launch.symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    tiles: ir.Value = ir.Constant(WORD, launch.tiles)
    threads: ir.Value = ir.Constant(WORD, 0)
    if launch.kernel.has_extent:
        tiles, threads = (_word(builder, function, launch, n) for n in (1, 2))
    ask_for_threads(builder, region, tiles, threads)
    builder.ret_void()


def _define_part(module: ir.Module, launch: Launch, kernel: ir.Function) -> None:
    """Define what runs the tiles of a part of a joint launch in a range of its share.

    A tile is in the range in which its middle is: of two parts that are one tile each,
    of nearly half of all work, no thread gets both. A kernel without a loop over tiles
    computes all of them whatever its range is, so it is not called for none.
    """
    function = ir.Function(module, RANGE, launch.symbol)
    share, twice = (ir.Constant(WORD, n * launch.share) for n in (1, 2))

    def tiles_before(builder: ir.IRBuilder, bound: ir.Value) -> ir.Value:
        doubled = builder.mul(bound, ir.Constant(WORD, 2 * launch.tiles))
        up = builder.add(doubled, builder.sub(share, ir.Constant(WORD, 1)))
        return builder.udiv(up, twice)

    def tiles_of_range(builder: ir.IRBuilder, *_: Any) -> list[ir.Value]:
        bounds = [tiles_before(builder, bound) for bound in function.args[1:]]
        with builder.if_then(builder.icmp_unsigned(">=", *bounds)):
            builder.ret_void()
        return bounds

    _emit_call(function, launch, kernel, tiles_of_range)


def start_threads(
    builder: ir.IRBuilder, region: ir.Function, threads: ir.Value
) -> None:
    """Emit a parallel region of GNU OpenMP, 0 threads being as many as there are."""
    arguments = [POINTER, POINTER, _INT, _INT]
    start = _runtime(builder.module, "GOMP_parallel", _VOID, arguments)
    table = builder.function.args[0]
    builder.call(start, [region, table, threads, ir.Constant(_INT, 0)])


def ask_for_threads(
    builder: ir.IRBuilder, region: ir.Function, tiles: ir.Value, threads: ir.Value
) -> None:
    """Emit the call by which portable code runs ranges in threads."""
    arguments = [POINTER, POINTER, WORD, WORD]
    start = _runtime(builder.module, PARALLEL_SYMBOL, _VOID, arguments)
    builder.call(start, [builder.function.args[0], region, tiles, threads])


def own_range(
    builder: ir.IRBuilder, module: ir.Module, total: ir.Value
) -> list[ir.Instruction]:
    """Emit the calling thread's share of the tiles: lo and hi."""
    number = _runtime(module, "omp_get_thread_num", _INT, [])
    count = _runtime(module, "omp_get_num_threads", _INT, [])
    thread = builder.zext(builder.call(number, []), WORD)
    threads = builder.zext(builder.call(count, []), WORD)
    after = builder.add(thread, ir.Constant(WORD, 1))
    low = builder.udiv(builder.mul(thread, total), threads)
    high = builder.udiv(builder.mul(after, total), threads)
    return [low, high]


def _emit_call(
    function: ir.Function,
    launch: Launch,
    kernel: ir.Function,
    bounds_of: Callable[..., Sequence[ir.Value]] | None = None,
) -> None:
    """Emit the call of a kernel, on all tiles or on what `bounds_of` returns."""
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    tiles: ir.Value = ir.Constant(WORD, launch.tiles)
    if launch.kernel.has_extent:
        tiles = _word(builder, function, launch, 1)
    bounds: Sequence[ir.Value] = [ir.Constant(WORD, 0), tiles]
    if bounds_of is not None:
        bounds = bounds_of(builder, function.module, tiles)
    if launch.members > 1:
        loop = MemberLoop(
            launch.symbol,
            launch.entries,
            launch.shifts,
            launch.kernel.tiles,
            launch.kernel.pointers,
        )
        loop.emit(builder, kernel, bounds)
    else:
        pointers = _pointers(builder, launch)
        if launch.kernel.has_extent:
            pointers.append(_word(builder, function, launch, 0))
        builder.call(kernel, [*pointers, *bounds])
    builder.ret_void()


def _pointers(builder: ir.IRBuilder, launch: Launch) -> list[ir.Value]:
    """Load what the only member of a launch takes."""
    entries = [ir.Constant(WORD, entry) for entry in launch.entries]
    shifts = launch.shifts or (0,) * len(entries)
    return [
        shifted(builder, load_pointer(builder, entry), ir.Constant(WORD, shift))
        if shift
        else load_pointer(builder, entry)
        for entry, shift in zip(entries, shifts, strict=True)
    ]


def _word(
    builder: ir.IRBuilder, function: ir.Function, launch: Launch, number: int
) -> ir.Instruction:
    """Load one of the words of a kernel with an extent that a call tells."""
    entry = [ir.Constant(WORD, launch.words)]
    slot = builder.gep(function.args[0], entry, source_etype=POINTER)
    words = builder.load(slot, typ=POINTER)
    place = builder.gep(words, [ir.Constant(WORD, number)], source_etype=WORD)
    return builder.load(place, typ=WORD)


def _runtime(
    module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type]
) -> ir.Function:
    known = module.globals.get(name)
    if known is not None:
        return known
    return ir.Function(module, ir.FunctionType(result, arguments), name)
