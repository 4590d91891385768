"""Owns the launch functions: they find a kernel's operands and share its tiles out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from magweld.artifact import range_symbol
from magweld.codegen.kernel_signature import KernelSignature

_POINTER = ir.PointerType()
_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_VOID = ir.VoidType()
_LAUNCH = ir.FunctionType(_VOID, [_POINTER])

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
    """

    symbol: str
    kernel: KernelSignature
    entries: tuple[int, ...]
    parallel: bool
    members: int = 1
    words: int = -1
    shifts: tuple[int, ...] = ()

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

    @property
    def tiles(self) -> int:
        """How many tiles there are, those of all members one after another."""
        return self.kernel.tiles * self.members

    @property
    def has_region(self) -> bool:
        """Whether several threads may run it."""
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
        if not launch.has_region:
            function = ir.Function(module, _LAUNCH, launch.symbol)
            _emit_call(function, launch, kernel)
        elif portable:
            _define_portable_launch(module, launch, kernel)
        else:
            _define_launch(module, launch, kernel)
    return str(module)


def _declare_kernel(module: ir.Module, kernel: KernelSignature) -> ir.Function:
    numbers = 3 if kernel.has_extent else 2
    arguments = [_POINTER] * kernel.pointers + [_WORD] * numbers
    return ir.Function(module, ir.FunctionType(_VOID, arguments), kernel.symbol)


def _define_launch(module: ir.Module, launch: Launch, kernel: ir.Function) -> None:
    region = ir.Function(module, _LAUNCH, range_symbol(launch.symbol))
    region.linkage = "internal"
    _emit_call(region, launch, kernel, _own_range)
    function = ir.Function(module, _LAUNCH, launch.symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    start = _runtime(module, "GOMP_parallel", _VOID, [_POINTER, _POINTER, _INT, _INT])
    zero = ir.Constant(_INT, 0)
    threads = zero
    if launch.kernel.has_extent:
        threads = builder.trunc(_word(builder, function, launch, 2), _INT)
    builder.call(start, [region, function.args[0], threads, zero])
    builder.ret_void()


def _define_portable_launch(
    module: ir.Module, launch: Launch, kernel: ir.Function
) -> None:
    kind = ir.FunctionType(_VOID, [_POINTER, _WORD, _WORD])
    region = ir.Function(module, kind, range_symbol(launch.symbol))
    region.linkage = "internal"
    _emit_call(region, launch, kernel, lambda *_: list(region.args[1:]))
    function = ir.Function(module, _LAUNCH, launch.symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    arguments = [_POINTER, _POINTER, _WORD, _WORD]
    start = _runtime(module, PARALLEL_SYMBOL, _VOID, arguments)
    tiles, threads = ir.Constant(_WORD, launch.tiles), ir.Constant(_WORD, 0)
    if launch.kernel.has_extent:
        tiles, threads = (_word(builder, function, launch, n) for n in (1, 2))
    builder.call(start, [function.args[0], region, tiles, threads])
    builder.ret_void()


def _emit_call(
    function: ir.Function,
    launch: Launch,
    kernel: ir.Function,
    own_range: Callable[..., Sequence[ir.Value]] | None = None,
) -> None:
    """Emit the call of a kernel, on all tiles or on what `own_range` returns."""
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    tiles: ir.Value = ir.Constant(_WORD, launch.tiles)
    if launch.kernel.has_extent:
        tiles = _word(builder, function, launch, 1)
    bounds: Sequence[ir.Value] = [ir.Constant(_WORD, 0), tiles]
    if own_range is not None:
        bounds = own_range(builder, function.module, tiles)
    if launch.members > 1:
        _emit_members(builder, launch, kernel, bounds)
    else:
        entries = [ir.Constant(_WORD, entry) for entry in launch.entries]
        shifts = launch.shifts or (0,) * len(entries)
        pointers = [
            _shifted(builder, _pointer(builder, entry), ir.Constant(_WORD, shift))
            if shift
            else _pointer(builder, entry)
            for entry, shift in zip(entries, shifts, strict=True)
        ]
        if launch.kernel.has_extent:
            pointers.append(_word(builder, function, launch, 0))
        builder.call(kernel, [*pointers, *bounds])
    builder.ret_void()


def _pointer(builder: ir.IRBuilder, entry: ir.Value) -> ir.Instruction:
    """Load an entry of the table of addresses."""
    table = builder.function.args[0]
    return builder.load(
        builder.gep(table, [entry], source_etype=_POINTER), typ=_POINTER
    )


def _shifted(
    builder: ir.IRBuilder, pointer: ir.Value, shift: ir.Value
) -> ir.Instruction:
    """Move an address by some bytes."""
    return builder.gep(pointer, [shift], source_etype=ir.IntType(8))


def _emit_members(
    builder: ir.IRBuilder,
    launch: Launch,
    kernel: ir.Function,
    bounds: Sequence[ir.Value],
) -> None:
    """Emit a loop over the members that have tiles in a range.

    A member `m` has the tiles from `m * tiles`; its kernel takes numbers from zero.
    """
    name = f"{launch.symbol}_entries"
    entries = _table(builder.module, name, launch.entries)
    shifts = None
    if launch.shifts:
        shifts = _table(builder.module, f"{launch.symbol}_shifts", launch.shifts)
    low, high = bounds
    tiles = ir.Constant(_WORD, launch.kernel.tiles)
    before = builder.block
    first = builder.udiv(low, tiles)
    head, body, done = map(
        builder.function.append_basic_block, ("head", "body", "done")
    )
    builder.branch(head)
    builder.position_at_end(head)
    member = builder.phi(_WORD)
    member.add_incoming(first, before)
    start = builder.mul(member, tiles)
    builder.cbranch(builder.icmp_unsigned("<", start, high), body, done)
    builder.position_at_end(body)
    begin = builder.select(
        builder.icmp_unsigned("<", start, low),
        builder.sub(low, start),
        ir.Constant(_WORD, 0),
    )
    rest = builder.sub(high, start)
    end = builder.select(builder.icmp_unsigned("<", rest, tiles), rest, tiles)
    row = builder.mul(member, ir.Constant(_WORD, launch.kernel.pointers))
    pointers = []
    for number in range(launch.kernel.pointers):
        place = builder.add(row, ir.Constant(_WORD, number))
        pointer = _pointer(builder, _element(builder, entries, place))
        if shifts is not None:
            pointer = _shifted(builder, pointer, _element(builder, shifts, place))
        pointers.append(pointer)
    builder.call(kernel, [*pointers, begin, end])
    member.add_incoming(builder.add(member, ir.Constant(_WORD, 1)), builder.block)
    builder.branch(head)
    builder.position_at_end(done)


def _table(module: ir.Module, name: str, words: Sequence[int]) -> ir.GlobalVariable:
    """Define constant words, those of one member after another."""
    kind = ir.ArrayType(_WORD, len(words))
    table = ir.GlobalVariable(module, kind, name)
    table.linkage = "internal"
    table.global_constant = True
    table.initializer = ir.Constant(kind, list(words))
    return table


def _element(
    builder: ir.IRBuilder, table: ir.GlobalVariable, place: ir.Value
) -> ir.Instruction:
    """Load a word of a constant table."""
    slot = builder.gep(table, [place], source_etype=_WORD)
    return builder.load(slot, typ=_WORD)


def _word(
    builder: ir.IRBuilder, function: ir.Function, launch: Launch, number: int
) -> ir.Instruction:
    """Load one of the words of a kernel with an extent that a call tells."""
    entry = [ir.Constant(_WORD, launch.words)]
    slot = builder.gep(function.args[0], entry, source_etype=_POINTER)
    words = builder.load(slot, typ=_POINTER)
    place = builder.gep(words, [ir.Constant(_WORD, number)], source_etype=_WORD)
    return builder.load(place, typ=_WORD)


def _own_range(
    builder: ir.IRBuilder, module: ir.Module, total: ir.Value
) -> list[ir.Instruction]:
    """Emit the calling thread's share of the tiles: lo and hi."""
    number = _runtime(module, "omp_get_thread_num", _INT, [])
    count = _runtime(module, "omp_get_num_threads", _INT, [])
    thread = builder.zext(builder.call(number, []), _WORD)
    threads = builder.zext(builder.call(count, []), _WORD)
    after = builder.add(thread, ir.Constant(_WORD, 1))
    low = builder.udiv(builder.mul(thread, total), threads)
    high = builder.udiv(builder.mul(after, total), threads)
    return [low, high]


def _runtime(
    module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type]
) -> ir.Function:
    known = module.globals.get(name)
    if known is not None:
        return known
    return ir.Function(module, ir.FunctionType(result, arguments), name)
