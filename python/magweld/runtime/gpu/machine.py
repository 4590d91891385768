"""Owns the GPUs that torch sees: which code they take, their streams and memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor

# Nothing is dispatched. The stubs lack it.
from torch._C._dynamo.guards import _empty_strided_cuda  # type: ignore[attr-defined]

from magweld import env
from magweld.artifact import HOST_TARGET, Program
from magweld.runtime.gpu.driver import CUDA, HIP, DeviceError, LibraryDriver
from magweld.runtime.gpu.kernels import GpuKernels
from magweld.runtime.machine import HOST, Machine, Repeated
from magweld.targets import (
    Target,
    device_entry,
    device_names,
    parse_target,
    target_names,
)

# torch spells AMD's GPUs like this as well.
GPU = "cuda"
# Replays between two waits: a kernel may take less time than waiting does.
_REPLAYS = 20
_SM = re.compile(r"sm_(?P<number>\d+)(?P<specific>a?)")


class GpuMachine:
    """One GPU. Work is ordered by torch's current stream.

    Args:
        device: The GPU, with its number.

    Attributes:
        device: The GPU.
        alignment: Of the widest access of a thread, which kernels make anywhere.

    Raises:
        DeviceError: `device-driver`.
    """

    alignment = 16

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._driver = gpu_driver()

    def load(self, program: Program) -> GpuKernels:
        """Load the kernels of a program.

        Raises:
            DeviceError: `device-chip`, `device-code`.
            ProgramError: The program contradicts itself.
        """
        require_chip(program.target, self.device)
        stream = partial(_stream, self.device.index)
        synchronous = env.SYNC_KERNELS.get()
        with self.activate():
            # Makes the context of this device the current one.
            torch.cuda.synchronize()
            return GpuKernels(program, self._driver, stream, synchronous=synchronous)

    def activate(self) -> AbstractContextManager[object]:
        """Return a context in which this GPU is the current one."""
        return torch.cuda.device(self.device)

    def is_current(self) -> bool:
        """Whether this GPU is the current one of this thread."""
        current: int = torch._C._cuda_getDevice()
        return current == self.device.index

    def wait(self) -> None:
        """Wait until all work on this GPU has ended."""
        torch.cuda.synchronize(self.device)

    def repeated(self, call: Callable[[], object]) -> Repeated:
        """Return replays of a call as a graph: what the host takes is not measured."""
        with self.activate():
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                call()

        def replay() -> None:
            for _ in range(_REPLAYS):
                graph.replay()
            self.wait()

        return Repeated(replay, _REPLAYS)

    def queue(self) -> Hashable | None:
        """Return the current stream; None while it is captured for a CUDA graph.

        What is allocated during a capture belongs to the graph and is used by all of
        its replays.
        """
        if torch.cuda.is_current_stream_capturing():
            return None
        return _stream(self.device.index)

    def empty(
        self, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        """Return a new tensor from torch's caching allocator, on the current GPU."""
        made: Tensor = _empty_strided_cuda(shape, stride, dtype)
        return made


def _stream(index: int) -> int:
    stream: int = torch._C._cuda_getCurrentRawStream(index)
    return stream


@cache
def gpu_driver() -> LibraryDriver:
    """Return the driver of the GPUs that this build of torch is for.

    Raises:
        DeviceError: `device-driver`.
    """
    if torch.version.hip is None:
        return LibraryDriver(CUDA)
    own = Path(torch.__file__).parent / "lib" / HIP.library
    return LibraryDriver(HIP, str(own) if own.exists() else None)


def machine_for(target: str, device: torch.device | str | None = None) -> Machine:
    """Return the machine for the code of a target.

    Args:
        target: What the code is for.
        device: The GPU; the current one by default.

    Raises:
        DeviceError: `device-missing`, `device-chip`, `device-driver`.
    """
    if target == HOST_TARGET:
        if device is not None and torch.device(device).type != HOST_TARGET:
            message = f"code for the CPU cannot run on {device}"
            raise DeviceError("device-chip", message)
        return HOST
    if not torch.cuda.is_available():
        message = f"code for {target} needs a GPU, and torch sees none"
        raise DeviceError("device-missing", message)
    chosen = torch.device(GPU if device is None else device)
    if chosen.type != GPU:
        raise DeviceError("device-chip", f"code for {target} cannot run on {chosen}")
    index = torch.cuda.current_device() if chosen.index is None else chosen.index
    chosen = torch.device(GPU, index)
    require_chip(target, chosen)
    return GpuMachine(chosen)


def why_unmeasurable(target: str) -> str:
    """Return why programs of a target cannot run here, "" if they can."""
    try:
        machine_for(target)
    except DeviceError as error:
        return str(error)
    return ""


def gpu_name() -> str:
    """Return the name of the current GPU, "" where torch sees none."""
    if not torch.cuda.is_available():
        return ""
    return str(torch.cuda.get_device_name())


def require_chip(target: str, device: torch.device) -> None:
    """Refuse code for other GPUs; it would fail in the driver or end the context.

    Raises:
        DeviceError: `device-chip`.
    """
    found = _chip(device)
    if not _runs_on(parse_target(target), found):
        message = f"code for {target} cannot run on {device}, a {found}"
        raise DeviceError("device-chip", message)


def target_of(device: torch.device) -> str:
    """Return the target that code for a device of torch's is best made for.

    Among descriptions that take the same code, the one whose memory is nearest in size
    to that of the GPU is planned for.

    Raises:
        DeviceError: `device-chip`: no code is generated for this GPU.
    """
    if device.type != GPU:
        return HOST_TARGET
    found = _chip(device)
    targets = [target for target in target_names() if target != HOST_TARGET]
    fitting = [target for target in targets if _runs_on(parse_target(target), found)]
    if not fitting:
        message = f"no code is generated for {device}, a {found}"
        raise DeviceError("device-chip", message)
    # Later chips have longer or larger names.
    best = max(fitting, key=lambda target: (len(target), target))
    entries = [device_entry(name) for name in device_names()]
    total = torch.cuda.get_device_properties(device).total_memory
    nearest = min(
        (entry.device for entry in entries if entry.target == best),
        key=lambda known: abs(known.levels[0].capacity - total),
    )
    return f"{best}@{nearest.name}"


def _runs_on(target: Target, chip: str) -> bool:
    """Whether code runs on a chip, e.g. "sm_90" or "gfx942"."""
    wanted, found = _SM.fullmatch(target.chip), _SM.fullmatch(chip)
    if wanted is None or found is None:
        return target.chip == chip
    # Code for an architecture-specific chip runs on that alone, other assembly on all
    # chips that came later.
    same = wanted["number"] == found["number"]
    later = int(wanted["number"]) < int(found["number"])
    return same or (later and not wanted["specific"])


def _chip(device: torch.device) -> str:
    if torch.version.hip is not None:
        properties = torch.cuda.get_device_properties(device)
        return str(properties.gcnArchName).partition(":")[0]
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"
