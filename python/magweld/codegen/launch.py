"""Owns the launch functions: they find a kernel's operands and share its tiles out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from magweld.artifact import range_symbol
from magweld.codegen.kernel_signature import KernelSignature

_POINTER = ir.PointerType()
_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_VOID = ir.VoidType()


@dataclass(frozen=True)
class Launch:
    """How a program starts a kernel.

    Attributes:
        symbol: Name of the launch function, `void symbol(int64_t* table)`.
        kernel: The kernel.
        entries: For each pointer of the kernel, its index in the table.
        parallel: Whether the tiles are worth sharing out among threads.
    """

    symbol: str
    kernel: KernelSignature
    entries: tuple[int, ...]
    parallel: bool

    def __post_init__(self) -> None:
        if len(self.entries) != self.kernel.pointers:
            raise ValueError(
                f"launch '{self.symbol}' expected {self.kernel.pointers} table entries"
                f" for kernel '{self.kernel.symbol}', got {len(self.entries)}"
            )


def launch_module(launches: Sequence[Launch]) -> str:
    """Return LLVM IR text that defines the launch functions.

    A parallel launch runs its tiles in a parallel region of GNU OpenMP's runtime
    (`GOMP_parallel`), a contiguous range for each thread. The others call the
    kernel on the calling thread.
    """
    module = ir.Module(name="launches")
    # Equal layers launch one kernel several times.
    used = {launch.kernel.symbol: launch.kernel for launch in launches}
    kernels = {
        symbol: _declare_kernel(module, kernel) for symbol, kernel in used.items()
    }
    for launch in launches:
        _define_launch(module, launch, kernels[launch.kernel.symbol])
    return str(module)


def _declare_kernel(module: ir.Module, kernel: KernelSignature) -> ir.Function:
    arguments = [_POINTER] * kernel.pointers + [_WORD, _WORD]
    return ir.Function(module, ir.FunctionType(_VOID, arguments), kernel.symbol)


def _define_launch(module: ir.Module, launch: Launch, kernel: ir.Function) -> None:
    kind = ir.FunctionType(_VOID, [_POINTER])
    if not launch.parallel or launch.kernel.tiles <= 1:
        function = ir.Function(module, kind, launch.symbol)
        _emit_call(function, launch, kernel, shared=False)
        return
    region = ir.Function(module, kind, range_symbol(launch.symbol))
    region.linkage = "internal"
    _emit_call(region, launch, kernel, shared=True)
    function = ir.Function(module, kind, launch.symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    start = _runtime(module, "GOMP_parallel", _VOID, [_POINTER, _POINTER, _INT, _INT])
    zero = ir.Constant(_INT, 0)
    builder.call(start, [region, function.args[0], zero, zero])
    builder.ret_void()


def _emit_call(
    function: ir.Function, launch: Launch, kernel: ir.Function, *, shared: bool
) -> None:
    builder = ir.IRBuilder(function.append_basic_block())
    pointers = []
    for entry in launch.entries:
        slot = builder.gep(
            function.args[0], [ir.Constant(_WORD, entry)], source_etype=_POINTER
        )
        pointers.append(builder.load(slot, typ=_POINTER))
    bounds = [ir.Constant(_WORD, 0), ir.Constant(_WORD, launch.kernel.tiles)]
    if shared:
        bounds = _own_range(builder, function.module, launch.kernel.tiles)
    builder.call(kernel, [*pointers, *bounds])
    builder.ret_void()


def _own_range(
    builder: ir.IRBuilder, module: ir.Module, tiles: int
) -> list[ir.Instruction]:
    """Emit the calling thread's share of the tiles: lo and hi."""
    number = _runtime(module, "omp_get_thread_num", _INT, [])
    count = _runtime(module, "omp_get_num_threads", _INT, [])
    thread = builder.zext(builder.call(number, []), _WORD)
    threads = builder.zext(builder.call(count, []), _WORD)
    total = ir.Constant(_WORD, tiles)
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
