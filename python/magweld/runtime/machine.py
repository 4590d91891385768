"""Owns what a loaded program asks of the machine that it runs on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import torch
from torch import Tensor

# A third of the time of `torch.empty`: nothing is dispatched. The stubs lack it.
from torch._C._dynamo.guards import _empty_strided_cpu  # type: ignore[attr-defined]

from magweld import env
from magweld.artifact import KernelStep, NativeCheck, Program
from magweld.runtime.memory import HOST_DEVICE
from magweld.runtime.names import kernel_names

if TYPE_CHECKING:
    from magweld.runtime.layout import Layout
    from magweld.runtime.native_steps import NativeStep
    from magweld.runtime.whole_calls import WholeCalls

# Takes a list of tensors whose class is Tensor or Parameter and that have memory, and
# the address of where their addresses go.
WriteAddresses = Callable[[list[Tensor], int], object]


class LoadedKernels(Protocol):
    """The kernels of a program, ready to be launched.

    Attributes:
        write_addresses: Writes the addresses of tensors to memory, if native code can.
    """

    @property
    def write_addresses(self) -> WriteAddresses | None:
        """Writes the addresses of tensors to memory, if native code can."""

    def launcher(
        self, symbols: Sequence[str], table_address: int
    ) -> Callable[[], object]:
        """Return a function that launches the kernels of some steps in order.

        Args:
            symbols: `KernelStep.symbol` of the steps.
            table_address: Where the addresses of all values are, as 64-bit integers.
        """

    def looper(
        self, symbols: Sequence[str], table_address: int, trips: int, moves: list[int]
    ) -> Callable[[], object]:
        """Return a function that launches the kernels of some steps several times.

        Args:
            symbols: `KernelStep.symbol` of the steps.
            table_address: Where the addresses of all values are, as 64-bit integers.
            trips: How often.
            moves: What is done to the table each time: an entry to set, an entry to
                read and what to add to that, one such three after the other.
        """

    def address_of(self, symbol: str) -> int:
        """Return the address of a launch function."""

    def whole_calls(
        self,
        layout: Layout,
        checks: Mapping[int, NativeCheck],
        natives: Mapping[str, NativeStep],
    ) -> WholeCalls | None:
        """Return what makes a program's call one function for a table of addresses.

        None if it cannot be one.

        Args:
            layout: The program.
            checks: Steps that are checks of indices in native code, by step number.
            natives: What runs external steps on addresses, by node.
        """

    def control(self, code: int, place: int, jumps: int) -> int:
        """Carry out instructions of `magweld.runtime.sequence.Opcode`.

        Args:
            code: Their address.
            place: The one to begin with.
            jumps: How often they may go back.
        """


@dataclass(frozen=True)
class Repeated:
    """A call that is measured.

    Attributes:
        run: Does its work, and returns when that has ended.
        times: How often it does so.
    """

    run: Callable[[], object]
    times: int = 1


class Machine(Protocol):
    """Where a program runs.

    Attributes:
        device: Where its tensors are.
        alignment: Bytes of which the addresses that kernels get are multiples.
    """

    @property
    def device(self) -> torch.device:
        """Where the tensors of a program are."""

    @property
    def alignment(self) -> int:
        """Bytes of which the addresses that kernels get are multiples."""

    def load(self, program: Program) -> LoadedKernels:
        """Load the kernels of a program.

        Raises:
            MagweldError: The code is none for this machine.
        """

    def is_current(self) -> bool:
        """Whether a call of this thread needs no context of `activate`."""

    def activate(self) -> AbstractContextManager[object]:
        """Return what a call happens in."""

    def wait(self) -> None:
        """Wait until all work of calls has ended."""

    def repeated(self, call: Callable[[], object]) -> Repeated:
        """Return what does the work of a call, again and again for short ones.

        Args:
            call: It has run once, and always reads and writes the same memory.
        """

    def queue(self) -> Hashable | None:
        """Return what orders the work of calls: two of one queue never overlap.

        None if memory of this call must not be used by another one.
        """

    def empty(
        self, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        """Return a new tensor, where this machine is the current one."""


class HostMachine:
    """The CPU of this process. A call is over when it returns."""

    device = HOST_DEVICE
    alignment = 1
    empty = staticmethod(_empty_strided_cpu)
    _unchanged = nullcontext()

    def load(self, program: Program) -> LoadedKernels:
        """Load the kernels of a program.

        Raises:
            ProgramError: Not object code of this machine, or a symbol is missing.
        """
        # LLVM links object files; code for GPUs is loaded without it.
        from magweld.runtime.loader import Kernels

        kernels = Kernels(program.objects, kernel_symbols(program))
        if env.PERF.get():
            kernels.name_for_perf(kernel_names(program))
        return kernels

    def is_current(self) -> bool:
        """Return true: there is nothing to activate."""
        return True

    def activate(self) -> AbstractContextManager[object]:
        """Return a context that changes nothing."""
        return self._unchanged

    def wait(self) -> None:
        """Do nothing: work has ended when a call returns."""

    def repeated(self, call: Callable[[], object]) -> Repeated:
        """Return the call."""
        return Repeated(call)

    def queue(self) -> Hashable:
        """Return the one queue of this machine."""
        return ""


HOST: Final = HostMachine()


def kernel_symbols(program: Program) -> tuple[str, ...]:
    """Return the launch functions that a program calls, each once, in order."""
    steps = (
        step.symbol
        for one in (program, *program.parts)
        for step in one.steps
        if isinstance(step, KernelStep)
    )
    return tuple(dict.fromkeys(steps))
