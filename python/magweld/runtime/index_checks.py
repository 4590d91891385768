"""Owns checks and orders of indices in native code: neighbours are one call.

An index is in range in every call that goes well, and bounds of bags follow each other.
Torch runs, and raises its error, only where one does not: a check through torch takes
40 us, here 256 indices take 0.1 us.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from magweld.artifact import (
    ExternalStep,
    IndexCheck,
    NativeCheck,
    Place,
    RowOrder,
)
from magweld.runtime.errors import ProgramError
from magweld.runtime.frame import Frame
from magweld.runtime.isolation import TorchIsolation
from magweld.runtime.layout import Layout, Signature


def native_checks(
    layout: Layout, checks: Mapping[str, NativeCheck]
) -> dict[int, NativeCheck]:
    """Return the steps of a program that native code can do, by number.

    They are those whose copies kernels alone read: each has the same place in all
    calls.

    Args:
        layout: The program.
        checks: Its checks, by node.
    """
    return {
        number: checks[step.node]
        for number, step in enumerate(layout.program.steps)
        if isinstance(step, ExternalStep)
        and step.node in checks
        and len(step.writes) == _copies_of(checks[step.node])
        and all(_is_for_kernels(layout, value_id) for value_id in step.writes)
    }


def _copies_of(check: NativeCheck) -> int:
    return 2 if isinstance(check, RowOrder) else 1


def _is_for_kernels(layout: Layout, root: int) -> bool:
    shown = {root, *layout.aliases[root]}
    readers = (s for s in layout.program.steps if shown & {*s.reads})
    return (
        layout.program.values[root].place is Place.ADOPTED
        and not shown & {*layout.program.results}
        and all(map(layout.is_native, readers))
    )


@dataclass(frozen=True)
class _BoundCheck:
    """One check on a frame.

    Attributes:
        step: The step.
        copies: Where its indices or bounds go.
        words: What the native code reads.
    """

    step: ExternalStep
    copies: tuple[Tensor, ...]
    words: tuple[int, ...]

    @classmethod
    def of(cls, frame: Frame, step: ExternalStep, check: NativeCheck) -> _BoundCheck:
        """Give the copies their places on a frame."""
        copies = []
        for target in step.writes:
            signature: Signature = frame.layout.signatures[target]
            # Kernels follow what is there, written or not.
            copy = torch.zeros(signature.shape, dtype=signature.dtype)
            for value_id in (target, *frame.layout.aliases[target]):
                frame.table[value_id] = copy.data_ptr()
            copies.append(copy)
        words = words_of(frame.layout, step, check)
        return cls(step, tuple(copies), words)


def words_of(layout: Layout, step: ExternalStep, check: NativeCheck) -> tuple[int, ...]:
    """Return what native code reads of a check or order.

    Args:
        layout: The program.
        step: Its step; `native_checks` has found it.
        check: What it does.
    """
    from magweld.runtime.index_scan import SCANS, WORDS

    target, *others = step.writes
    bits = 8 * layout.signatures[target].dtype.itemsize
    rest: tuple[int, ...]
    if isinstance(check, RowOrder):
        source, (bounds,) = step.reads[check.indices], others
        rows = prod(layout.signatures[bounds].shape) - 1
        rest = SCANS["rows", bits], rows, check.size, check.padding, bounds
    elif isinstance(check, IndexCheck):
        source = step.reads[check.indices]
        rows = check.rows_of([layout.signatures[one].shape for one in step.reads])
        least = -rows if check.lowest is None else check.lowest
        rest = SCANS["indices", bits], least, rows - least
    else:
        source = step.reads[check.bounds]
        limit = prod(layout.signatures[step.reads[check.indices]].shape)
        behind = prod(layout.signatures[target].shape)
        behind -= prod(layout.signatures[source].shape)
        rest = SCANS["bounds", bits], limit, behind
    words = (source, target, prod(layout.signatures[source].shape), *rest)
    return (*words, *[0] * (WORDS - len(words)))


def load_checker() -> None:
    """Make the native code of all checks, so that no call waits for it."""
    # Programs for GPUs are loaded where LLVM is not installed, and have no such checks.
    from magweld.runtime.index_scan import checker

    checker()


def bind_index_checks(
    frame: Frame,
    steps: Sequence[tuple[ExternalStep, NativeCheck]],
    run_external: Callable[[str, Sequence[Tensor]], Sequence[Tensor]],
) -> Callable[[], None]:
    """Return a function that does some checks and orders, in order.

    Args:
        frame: What they read and write.
        steps: The steps; each is one that `native_checks` has found.
        run_external: Runs a step through torch: where something is out of range.
    """
    # Programs for GPUs are bound where LLVM is not installed, and have no such checks.
    from magweld.runtime.index_scan import WORDS, checker

    bound = [_BoundCheck.of(frame, step, check) for step, check in steps]
    flat = [word for one in bound for word in one.words]
    words = (ctypes.c_int64 * len(flat))(*flat)
    address, table, count = ctypes.addressof(words), frame.table_address, len(bound)
    check = checker().check

    def run() -> None:
        if check(words, count, table):
            raise_or_copy()

    def raise_or_copy() -> None:
        done = 0
        while failed := check(address + 8 * WORDS * done, count - done, table):
            done += failed
            one = bound[done - 1]
            reads = [frame.operand(value_id) for value_id in one.step.reads]
            with TorchIsolation():
                results = run_external(one.step.node, reads)
            # Another thread has written to the indices since.
            if [r.shape for r in results] != [copy.shape for copy in one.copies]:
                raise ProgramError("bad-result", f"no indices of '{one.step.node}'")
            for copy, result in zip(one.copies, results, strict=True):
                copy.copy_(result)

    return run
