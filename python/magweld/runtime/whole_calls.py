"""Owns calls of programs that run native code alone: each is one function of it.

It writes the addresses of arguments, has torch make the results, and runs kernels,
checks of indices, and steps that have native code of their own. A call of Python for
each result takes longer than torch takes to make it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from magweld.artifact import ExternalStep, KernelStep, NativeCheck, Place
from magweld.codegen.call_words import (
    BoundCode,
    Kind,
    Memory,
    NewTensor,
    Run,
    call_data,
)
from magweld.runtime.index_checks import words_of
from magweld.runtime.layout import Layout
from magweld.runtime.native_calls import native_calls, number_of
from magweld.runtime.native_steps import NativeStep
from magweld.short_repr import short_repr

# Bytes that a call takes at most for what it does not return. Step by step, memory is
# let go as soon as nothing needs it any more.
_MOST_BYTES: Final = 1 << 20
# Torch gives memory that begins at multiples of so many bytes.
_ALIGNMENT: Final = 64
_FLOAT_BYTES: Final = 4


@dataclass(frozen=True)
class WholeCall:
    """A call on one table of addresses.

    Attributes:
        run: Takes a list of arguments and gives one of results; None if torch refuses
            to give an address or to make a result, or an index is out of range: then
            the call is to be done step by step.
        held: What native code reads.
    """

    __repr__ = short_repr

    run: Callable[[list[Tensor]], list[Tensor] | None]
    held: tuple[object, ...]


@dataclass(frozen=True)
class WholeCalls:
    """The calls of a program, each on a table.

    Attributes:
        layout: The program; `is_whole` holds.
        address_of: Returns the address of a launch function.
        checks: Steps that are checks of indices in native code, by step number.
        natives: What runs external steps on addresses, by node.
    """

    __repr__ = short_repr

    layout: Layout
    address_of: Callable[[str], int]
    checks: Mapping[int, NativeCheck]
    natives: Mapping[str, NativeStep]

    @property
    def threads(self) -> int:
        """The threads of torch that a call must be for; 0 if they do not matter."""
        return torch.get_num_threads() if self.natives else 0

    def on(self, table: int, threads: int) -> WholeCall | None:
        """Return a call on a table; None if it would take too much memory at once.

        Args:
            table: The address of the table.
            threads: What `threads` has given.
        """
        calls = native_calls()
        assert calls is not None, "asked before"
        held = _Held([], [], [])
        if not all(self._take(n, threads, held) for n in range(len(self._steps))):
            return None
        memory = self._memory(held.codes)
        if memory.size * _FLOAT_BYTES > _MOST_BYTES:
            return None
        words = [word for run in held.runs for word in run]
        runs = (ctypes.c_int64 * len(words))(*words)
        data = call_data(
            table,
            self.layout.inputs,
            [self._new_tensor(value_id) for value_id in self.layout.program.results],
            [*self._copies()],
            (ctypes.addressof(runs), len(held.runs)),
            memory,
        )
        return WholeCall(calls.on(data), (runs, *held.objects))

    @property
    def _steps(self) -> Sequence[object]:
        return self.layout.program.steps

    def _take(self, number: int, threads: int, held: _Held) -> bool:
        """Add what a step runs."""
        step = self._steps[number]
        if isinstance(step, KernelStep):
            held.runs.append(Run(Kind.KERNEL, self.address_of(step.symbol)))
            return True
        assert isinstance(step, ExternalStep), "asked before"
        if number in self.checks:
            # Programs are loaded without llvmlite where none has a check.
            from magweld.runtime.index_scan import checker

            words = words_of(self.layout, step, self.checks[number])
            array = (ctypes.c_int64 * len(words))(*words)
            run = Run(Kind.CHECK, checker().address, ctypes.addressof(array), 1)
            held.add(run, array)
            return True
        ids = (*step.reads, *step.writes)
        code = self.natives[step.node].bound(ids, threads)
        if code is None:
            return False
        given = ctypes.c_char_p(code.words)
        address = ctypes.cast(given, ctypes.c_void_p).value or 0
        held.add(Run(Kind.STEP, code.function, address), given)
        held.codes.append(code)
        return True

    def _memory(self, codes: Sequence[BoundCode]) -> Memory:
        """Return the memory of what steps make and nobody is given, behind their own.

        Each may use its own until it ends.
        """
        layout = self.layout
        returned = {layout.roots[value_id] for value_id in layout.program.results}
        size = _rounded(max((code.floats for code in codes), default=0) * _FLOAT_BYTES)
        parts = []
        for value_id in made_by(layout, self.natives):
            if value_id not in returned:
                parts.append((value_id, size))
                size += _rounded(layout.signatures[value_id].nbytes)
        number = number_of(torch.float32) or 0
        return Memory(number, size // _FLOAT_BYTES, tuple(parts))

    def _copies(self) -> Iterator[tuple[int, int]]:
        """Yield from where to where addresses are copied: to views."""
        layout = self.layout
        made = made_by(layout, self.natives)
        roots = {layout.roots[value_id] for value_id in layout.program.results}
        for root in dict.fromkeys((*layout.inputs, *roots, *made)):
            for view in layout.aliases[root]:
                yield root, view

    def _new_tensor(self, value_id: int) -> NewTensor:
        """Return a result, which may be another shape of what a step makes."""
        root, signature = self.layout.roots[value_id], self.layout.signatures[value_id]
        number = number_of(signature.dtype)
        assert number is not None, "asked before"
        return NewTensor(root, number, tuple(signature.shape), signature.stride)


@dataclass(frozen=True)
class _Held:
    """What the steps of a call run.

    Attributes:
        runs: These, in order.
        codes: Those that have native code of their own.
        objects: What they read.
    """

    runs: list[Run]
    codes: list[BoundCode]
    objects: list[object]

    def add(self, run: Run, read: object) -> None:
        """Add a run that reads something."""
        self.runs.append(run)
        self.objects.append(read)


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def made_by(layout: Layout, natives: Mapping[str, NativeStep]) -> list[int]:
    """Return what external steps make that run on addresses, by value id."""
    return [
        value_id
        for step in layout.program.steps
        if isinstance(step, ExternalStep) and step.node in natives
        for value_id in step.writes
    ]


def is_whole(
    layout: Layout,
    checks: Mapping[int, NativeCheck],
    natives: Mapping[str, NativeStep],
) -> bool:
    """Whether calls of a program can be such functions.

    All of its steps are native code, and it returns each tensor that it makes once,
    but for what external steps make for others.

    Args:
        layout: The program.
        checks: Steps that are checks of indices in native code, by step number.
        natives: What runs external steps on addresses, by node.
    """
    for number, step in enumerate(layout.program.steps):
        external = isinstance(step, ExternalStep) and step.node in natives
        if not (isinstance(step, KernelStep) or number in checks or external):
            return False
    results = layout.program.results
    roots = [layout.roots[value_id] for value_id in results]
    outputs = {*layout.values_in(Place.OUTPUT)}
    made = {*made_by(layout, natives)}
    if len({*roots}) < len(roots) or not outputs <= {*roots} <= outputs | made:
        return False
    types, of_roots = (
        [layout.signatures[value_id].dtype for value_id in ids]
        for ids in (results, roots)
    )
    if types != of_roots or any(number_of(one) is None for one in types):
        return False
    return native_calls() is not None
