"""Owns the names by which profilers show what a program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

# The range of a named action. The stubs lack it.
from torch._C._profiler import _RecordFunctionFast

from magweld.artifact import (
    ExternalStep,
    IfStep,
    KernelStep,
    LibraryStep,
    LoopStep,
    Program,
    Step,
    WhileStep,
    range_symbol,
)
from magweld.reports import members_of, operators_of, plain_names

_PREFIX: Final = "magweld::"
_SHOWN_OPERATORS: Final = 6


def in_range(name: str, action: Callable[[], object]) -> Callable[[], object]:
    """Return an action that profilers of torch show under a name."""

    def run() -> None:
        with _RecordFunctionFast(name):
            action()

    return run


def step_names(program: Program) -> Callable[[Step], str]:
    """Return what names the steps of a program and of its parts."""
    kernels = kernel_names(program)

    def name(step: Step) -> str:
        match step:
            case KernelStep():
                return kernels[step.symbol]
            case LibraryStep():
                return f"{_PREFIX}{step.op} (library)"
            case ExternalStep():
                return f"{_PREFIX}{'+'.join(plain_names([step.node]))} (torch)"
            case LoopStep():
                return f"{_PREFIX}loop"
            case IfStep():
                return f"{_PREFIX}if"
            case WhileStep():
                return f"{_PREFIX}while"
        return f"{_PREFIX}tiles"

    return name


def kernel_names(program: Program) -> dict[str, str]:
    """Return names for the launch functions and the kernels, by their symbols.

    They say which operators of the captured graph a kernel computes.
    """
    report = program.report
    computed = {
        _made(step): operators_of(step)
        for graph in report.get("graphs", ())
        for step in graph["steps"]
        if step["operators"]
    }
    launches = [
        step.symbol
        for one in (program, *program.parts)
        for step in one.steps
        if isinstance(step, KernelStep)
    ]
    names = {symbol: f"{_PREFIX}{symbol}" for symbol in launches}
    for symbol, group in zip(launches, report.get("groups", ()), strict=False):
        # The members of a batch do the same.
        kernels: dict[str, tuple[str, ...]] = {}
        for member in members_of(group):
            kernels.setdefault(member.kernel, member.operators)
        shown: list[str] = []
        for kernel, operators in kernels.items():
            made = operators or (symbol,)
            own = computed.get(made) or plain_names(made)
            names.setdefault(kernel, _joined(own))
            shown += own
        name = _joined(shown)
        names.update(dict.fromkeys((symbol, range_symbol(symbol)), name))
    for launch in program.launches:
        if launch.sources:
            names[launch.step] = _joined(plain_names(launch.sources))
    return names


def _made(step: Any) -> tuple[str, ...]:
    return tuple(operator["name"] for operator in step["operators"])


def _joined(operators: Sequence[str]) -> str:
    more = len(operators) - _SHOWN_OPERATORS
    shown = "+".join(operators[:_SHOWN_OPERATORS])
    return f"{_PREFIX}{shown}{f' and {more} more' if more > 0 else ''}"
