"""Owns loaded programs: compiled graphs that can be called with tensors."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from math import inf
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from torch import Tensor
from torch.autograd import profiler

from magweld.artifact import NativeCheck, Place, Program
from magweld.runtime.admission import Admission
from magweld.runtime.binding import (
    Binder,
    Code,
    bind_steps,
    check_library_steps,
)
from magweld.runtime.frame import Form, Frame, RunExternal, fits_all_sizes
from magweld.runtime.frames import BoundFrame, Frames
from magweld.runtime.index_checks import load_checker, native_checks
from magweld.runtime.isolation import TorchIsolation, modes_are_active
from magweld.runtime.layout import Layout
from magweld.runtime.machine import HOST, Machine
from magweld.runtime.memory import Constants
from magweld.runtime.names import step_names
from magweld.runtime.native_steps import NativeStep, native_steps
from magweld.runtime.tiling import Action
from magweld.runtime.validation import check_parts, check_program, check_sizes

if TYPE_CHECKING:
    from magweld.runtime.whole_calls import WholeCall, WholeCalls

_logger = logging.getLogger(__name__)

_NO_CHECKS: Mapping[str, NativeCheck] = MappingProxyType({})
_NO_NATIVES: Mapping[str, NativeStep] = MappingProxyType({})


class LoadedProgram:
    """A program in memory, callable from any number of threads at once.

    A call takes contiguous tensors of the machine, one for each `Place.INPUT` value in
    order, and returns the results in order. Results are fresh tensors, arguments that
    the program returns as they are, or views of those; they never show memory that the
    next call uses. Two concurrent or nested calls have an arena each, and so have two
    streams of a GPU.

    Args:
        program: What to load; it is checked as a whole.
        run_external: Runs one operator of the captured graph by its node's name on
            the tensors that the step reads; returns its tensor results.
        machine: Where the program runs, by default the CPU of this process.
        checks: External steps that check indices, by node.
        natives: What runs external steps on addresses, by node.
        fresh: Nodes of the external steps whose results are memory of their own.
        like: The program with stand-ins of which this one was made for some sizes:
            they share their code, and what does not depend on sizes.

    Attributes:
        program: What was loaded.
        machine: Where it runs.
        results_are_fresh: Whether no result is ever an argument, a view of one, or
            memory of another result.

    Raises:
        ProgramError: The program contradicts itself or its object code.
        DeviceError: The code is none for this machine.
    """

    def __init__(
        self,
        program: Program,
        run_external: RunExternal,
        machine: Machine = HOST,
        checks: Mapping[str, NativeCheck] = _NO_CHECKS,
        natives: Mapping[str, NativeStep] = _NO_NATIVES,
        fresh: Collection[str] = (),
        like: LoadedProgram | None = None,
    ) -> None:
        self.program = program
        self.machine = machine
        self._layout: Layout = (
            check_program(program)
            if like is None
            else check_sizes(program, like._layout)
        )
        self._admission = Admission(
            [self._layout.signatures[i] for i in self._layout.inputs], machine.device
        )
        parts = check_parts(program)
        self._code: Code = Code(
            kernels=machine.load(program) if like is None else like._code.kernels,
            operations=check_library_steps(self._layout),
            parts=tuple((part, check_library_steps(part)) for part in parts),
            checks=native_checks(self._layout, checks) if machine is HOST else {},
        )
        if self._code.checks:
            load_checker()
        self._constants: Constants = (
            Constants(program.constants, machine.device)
            if like is None or program.constants is not like.program.constants
            else like._constants
        )
        known = native_steps(self._layout, natives) if natives else _NO_NATIVES
        self._form = Form(self._layout.signatures, run_external, known)
        # Whose frames it takes, and they its form; None for its own.
        self._lender = like if like is not None and like.serves(program) else None
        self._frames = Frames()
        self.results_are_fresh = self._layout.makes_each(fresh)
        # Whether a call must be shielded from nothing but modes of the caller's.
        self._is_plain = self.results_are_fresh and _is_native(
            self._layout, self._code.checks
        )
        # With the threads that each is for.
        self._wholes: WeakKeyDictionary[BoundFrame, tuple[int, WholeCall | None]] = (
            WeakKeyDictionary()
        )

    @property
    def has_own_arena(self) -> bool:
        """Whether it has arenas of its own, and not those of the program it is like."""
        return self._lender is None

    def serves(self, program: Program) -> bool:
        """Whether frames of this program are as good for one of some sizes."""
        base = self.program
        same = base.constants is program.constants and base.steps == program.steps
        return same and self._fits_all_sizes

    @cached_property
    def _fits_all_sizes(self) -> bool:
        return fits_all_sizes(self._layout, self._code.checks)

    def __call__(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Run the program once.

        Raises:
            InputMismatchError: Arguments of other number, shape, dtype or layout.
            ProgramError: A step returned something else than the program says.
        """
        if not modes_are_active() and self.machine.is_current():
            if self._admission.knows(arguments):
                return self._run(list(arguments))
        with self.machine.activate(), TorchIsolation(self.machine.device.type):
            if self._admission.knows(arguments):
                return self._run(list(arguments), shielded=True)
            addresses = self._admission.addresses(arguments)
            return self._run(arguments, addresses, shielded=True)

    def call_alike(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Run the program on tensors of the form of those that it has run on.

        What a call checks is not checked again: class, dtype, device, shape, strides.
        """
        native = self._is_plain or self._whole_calls is not None
        native &= self._admission.has_admitted
        if native and self.machine.is_current() and not modes_are_active():
            return self._run(arguments)
        return self(arguments)

    def _run(
        self,
        arguments: Sequence[Tensor],
        addresses: list[int] | None = None,
        *,
        shielded: bool = False,
    ) -> list[Tensor]:
        queue = self.machine.queue()
        lender = self if self._lender is None else self._lender
        frames = lender._frames
        bound = frames.take(queue) or lender._make_frame()
        try:
            results = None
            if type(arguments) is list and not addresses:
                whole = self._whole_on(bound)
                # Profilers are shown each step by itself.
                if whole is not None and not profiler._is_profiler_enabled:
                    results = whole.run(arguments)
            if results is not None:
                return results
            if self._is_plain or shielded:
                return self._run_steps(bound, arguments, addresses)
            with TorchIsolation(self.machine.device.type):
                return self._run_steps(bound, arguments, addresses)
        finally:
            frames.put_back(queue, bound)

    @cached_property
    def _whole_calls(self) -> WholeCalls | None:
        """What makes a call one function of native code, if it can be one."""
        if not self.results_are_fresh:
            return None
        checks, natives = self._code.checks, self._form.natives
        return self._code.kernels.whole_calls(self._layout, checks, natives)

    def _whole_on(self, bound: BoundFrame) -> WholeCall | None:
        """Return the function that a call on a frame is, if it can be one."""
        calls = self._whole_calls
        if calls is None:
            return None
        threads = calls.threads
        if bound.served is not self._form or bound.threads != threads:
            found = self._wholes.get(bound)
            if found is None or found[0] != threads:
                whole = calls.on(bound.frame.table_address, threads)
                found = self._wholes[bound] = threads, whole
            bound.served, (bound.threads, bound.whole) = self._form, found
        return bound.whole

    def _run_steps(
        self,
        bound: BoundFrame,
        arguments: Sequence[Tensor],
        addresses: list[int] | None,
    ) -> list[Tensor]:
        bound.frame.form = self._form
        try:
            bound.frame.begin(arguments, addresses)
            actions = bound.actions
            if profiler._is_profiler_enabled:
                actions = self._named(bound)
            for action in actions:
                action()
            return bound.frame.results()
        finally:
            bound.frame.end()

    def _named(self, bound: BoundFrame) -> tuple[Action, ...]:
        if bound.named is None:
            bound.named = bind_steps(bound.frame, self._code, step_names(self.program))
        return bound.named

    def measure(self, arguments: Sequence[Tensor], rounds: int) -> list[float]:
        """Return the least seconds that each step took in some runs of them all.

        Steps are timed one by one: what starting a run of kernels costs counts for
        each, about a microsecond.

        Args:
            arguments: As of a call.
            rounds: How many runs are timed, after one that is not.
        """
        frame = self._new_frame()
        binder = Binder(frame, self._code)
        count = len(self.program.steps)
        steps = [tuple(binder.actions([number])) for number in range(count)]
        least = [inf] * count
        with self.machine.activate(), TorchIsolation(self.machine.device.type):
            addresses = self._admission.addresses(arguments)
            for timed in (False, *[True] * rounds):
                frame.begin(arguments, addresses)
                for number, actions in enumerate(steps):
                    start = perf_counter()
                    for action in actions:
                        action()
                    self.machine.wait()
                    seconds = perf_counter() - start
                    if timed:
                        least[number] = min(least[number], seconds)
                frame.end()
        return least

    def _new_frame(self) -> Frame:
        layout, checks = self._layout, self._code.checks
        return Frame(
            layout,
            self._form,
            self._constants,
            machine=self.machine,
            checks=checks,
            write_addresses=self._code.kernels.write_addresses,
        )

    def _make_frame(self) -> BoundFrame:
        _logger.debug("new arena of %d bytes", self.program.arena_bytes)
        frame = self._new_frame()
        return BoundFrame(frame, bind_steps(frame, self._code))


def _is_native(layout: Layout, checks: Collection[int]) -> bool:
    """Whether a call asks torch for new memory and addresses, and nothing else.

    A check of indices that fails shields itself.
    """
    steps = enumerate(layout.program.steps)
    if not all(number in checks or layout.is_native(step) for number, step in steps):
        return False
    # The tensor of a view is made by an operator.
    values = layout.program.values
    return all(values[i].place is not Place.VIEW for i in layout.program.results)
