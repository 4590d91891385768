"""Owns what calls of kernels take on a CPU: launches of their own, or one of all.

A launch that wakes other threads takes some microseconds. A kernel that moves little
runs on the calling thread, and leaves the other cores idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph import (
    RUNTIME,
    SHIFT,
    is_kernel,
    reports_of,
    type_bytes,
)
from magweld.passes.ir.cloning import defining_op
from magweld.targets.device import LAUNCH_SECONDS

# Bytes that a kernel must move before waking other threads pays: a parallel region
# costs some microseconds, in which one core moves tens of kilobytes.
PARALLEL_BYTES = 64 * 1024


@dataclass(frozen=True)
class CallWork:
    """What a call has to do.

    Attributes:
        tensors: Bytes of its operands and destinations.
        seconds: How long one core alone takes.
        pointers: How many pointers a launch passes for it.
    """

    tensors: int
    seconds: float
    pointers: int = 0

    @property
    def share(self) -> float:
        """Its share of the work of a launch, in seconds."""
        return self.seconds

    @property
    def is_shared_out(self) -> bool:
        """Whether several threads run it where it has a launch of its own."""
        return self.tensors >= PARALLEL_BYTES


@dataclass(frozen=True)
class Launching:
    """What it takes to run calls.

    Attributes:
        units: How many cores run them.
        seconds: How long all of them take to begin and to end.
    """

    units: int
    seconds: float

    def work(self, call: Any, kernel: Any, members: int) -> CallWork | None:
        """Return what a call does; None where that is not predicted.

        Args:
            call: The call.
            kernel: The function that it runs.
            members: How many times.
        """
        seconds = core_seconds(kernel, self.units)
        if seconds is None:
            return None
        pointers = len(kernel.type.inputs) * members
        return CallWork(tensor_bytes(call), seconds * members, pointers)

    def apart(self, works: Sequence[CallWork]) -> float:
        """Return how long calls take one after another, each as a launch."""
        return sum(
            self.seconds + work.seconds / self.units
            if work.is_shared_out
            else work.seconds
            for work in works
        )

    def together(self, works: Sequence[CallWork]) -> float:
        """Return how long they take as one launch, whose cores share all tiles.

        What moves little may be one tile, which one core has to compute.
        """
        whole = max((w.seconds for w in works if not w.is_shared_out), default=0.0)
        shared = sum(work.seconds for work in works) / self.units
        return self.seconds + max(shared, whole)


def tensor_bytes(call: Any) -> int:
    """Return the bytes of the tensors of a call, each once."""
    tensors = dict.fromkeys(map(_whole, call.operands))
    return sum(type_bytes(ir.RankedTensorType(value.type)) for value in tensors)


def moved_bytes(call: Any, kernel: Any, members: int = 1) -> int:
    """Bytes that a call moves: no more than its tensors have, as it may read parts."""
    operands = dict.fromkeys(call.operands)
    whole = sum(type_bytes(ir.RankedTensorType(value.type)) for value in operands)
    planned = reports_of(kernel).get("traffic_after")
    if planned is None:
        return whole
    return min(whole, int(ir.IntegerAttr(planned).value) * members)


def core_seconds(kernel: Any, units: int) -> float | None:
    """Return how long one core takes for a kernel, None where that is not predicted."""
    predicted = reports_of(kernel).get("predicted_seconds")
    if predicted is None:
        return None
    return max(0.0, float(ir.FloatAttr(predicted).value) - LAUNCH_SECONDS) * units


def counts_its_tiles(function: Any) -> bool:
    """Whether a function is a kernel whose tiles are counted before a call."""
    return is_kernel(function) and RUNTIME not in function.attributes


def _whole(value: Any) -> Any:
    """Return the tensor that a value is from an element on, or the value."""
    maker = defining_op(value)
    while maker is not None and maker.operation.name == SHIFT:
        value = maker.operation.operands[0]
        maker = defining_op(value)
    return value
