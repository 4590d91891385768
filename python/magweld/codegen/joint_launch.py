"""Owns joint launches: threads run the tiles of several launches side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from llvmlite import ir

from magweld.artifact import range_symbol
from magweld.codegen.launch import (
    LAUNCH,
    RANGE,
    ask_for_threads,
    own_range,
    start_threads,
)
from magweld.codegen.member_loop import WORD


@dataclass(frozen=True)
class JointLaunch:
    """How a program starts several kernels at one time.

    Attributes:
        symbol: Name of the launch function, `void symbol(int64_t* table)`.
        parts: Names of what runs the parts, with their shares (`launch.Launch.share`).
            They may be in other objects, so that kernels are compiled side by side.
    """

    symbol: str
    parts: tuple[tuple[str, int], ...]


def joint_module(launches: Sequence[JointLaunch], portable: bool = False) -> str:
    """Return LLVM IR text that defines the launch functions.

    The shares of all parts one after another are shared out among threads, as tiles of
    other launches are, and each part is called for what of its share a thread has.
    """
    module = ir.Module(name="joint_launches")
    for launch in launches:
        names = dict(launch.parts)
        parts = {name: ir.Function(module, RANGE, name) for name in names}
        region = ir.Function(module, RANGE, range_symbol(launch.symbol))
        region.linkage = "internal"
        _emit_parts(region, [(parts[name], share) for name, share in launch.parts])
        function = ir.Function(module, LAUNCH, launch.symbol)
        total = ir.Constant(WORD, sum(share for _, share in launch.parts))
        builder = ir.IRBuilder(function.append_basic_block())
        if portable:
            ask_for_threads(builder, region, total, ir.Constant(WORD, 0))
        else:
            thread = _thread_of(module, launch.symbol, region, total)
            start_threads(builder, thread, ir.Constant(ir.IntType(32), 0))
        builder.ret_void()
    return str(module)


def _emit_parts(region: ir.Function, parts: Sequence[tuple[ir.Function, int]]) -> None:
    """Call each part for what of its share is in a range of all shares."""
    builder = ir.IRBuilder(region.append_basic_block("entry"))
    table, low, high = region.args
    begins = accumulate((share for _, share in parts), initial=0)
    for (part, share), begin in zip(parts, begins, strict=False):
        own = [_within(builder, bound, begin, share) for bound in (low, high)]
        call, then = map(region.append_basic_block, ("call", "then"))
        builder.cbranch(builder.icmp_unsigned("<", *own), call, then)
        builder.position_at_end(call)
        builder.call(part, [table, *own])
        builder.branch(then)
        builder.position_at_end(then)
    builder.ret_void()


def _within(builder: ir.IRBuilder, bound: ir.Value, begin: int, share: int) -> ir.Value:
    """Return where a bound is in the share of a part, at its ends where outside."""
    first, size = ir.Constant(WORD, begin), ir.Constant(WORD, share)
    behind = builder.sub(bound, first)
    is_before = builder.icmp_unsigned("<", bound, first)
    is_past = builder.icmp_unsigned("<", size, behind)
    inside = builder.select(is_past, size, behind)
    return builder.select(is_before, ir.Constant(WORD, 0), inside)


def _thread_of(
    module: ir.Module, symbol: str, region: ir.Function, total: ir.Value
) -> ir.Function:
    """Define what each thread of a parallel region runs: its own range."""
    function = ir.Function(module, LAUNCH, f"{symbol}_thread")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    bounds = own_range(builder, module, total)
    builder.call(region, [function.args[0], *bounds])
    builder.ret_void()
    return function
