"""Owns the artifact of a program for a GPU: machine code and how it is launched."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from magweld.aot.errors import ArtifactError
from magweld.aot.files import write_archive


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Attributes:
        symbol: Name of the kernel in its code.
        grid: Blocks in x, y and z.
        block: Threads of a block in x, y and z.
        dynamic_shared_bytes: Shared memory to ask for.
        arguments: Positions among operands and results, in the order of the kernel's
            parameters, which are bare pointers.
    """

    symbol: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_shared_bytes: int
    arguments: tuple[int, ...]

    @staticmethod
    def of(data: Any) -> Launch:
        """Read what the compiler says of a launch."""
        return Launch(
            data["symbol"],
            tuple(data["grid"]),
            tuple(data["block"]),
            data["dynamic_shared_bytes"],
            tuple(data["arguments"]),
        )


@dataclass(frozen=True)
class DeviceKernel:
    """A subgraph as machine code.

    Attributes:
        name: Its name in `DeviceArtifact.calls`.
        launches: Its launches in order.
        codes: For each launch the code by format: "assembly" is PTX, "binary" a cubin
            for NVIDIA and a code object for AMD.
        report: What was decided and predicted.
    """

    name: str
    launches: tuple[Launch, ...]
    codes: tuple[dict[str, bytes], ...]
    report: dict[str, Any]


@dataclass(frozen=True)
class DeviceArtifact:
    """A program for a GPU; it can be saved, not called.

    Attributes:
        target: What it was compiled for, e.g. "nvvm:sm_80".
        kernels: Machine code of the generated kernels.
        refused: What has no code here, by name, with the reason.
        values: Shape, element type and place of each value, as in `Program`.
        calls: Kernel or operator, values read and values written, in order.
    """

    target: str
    kernels: tuple[DeviceKernel, ...]
    refused: dict[str, str]
    values: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: there is no launcher for GPUs.

        Raises:
            ArtifactError: `artifact-target`.
        """
        message = f"code for {self.target} cannot be run from here"
        raise ArtifactError("artifact-target", message)

    def report(self) -> dict[str, Any]:
        """Return fused groups with their predicted traffic, and what has no code."""
        return {
            "groups": [kernel.report for kernel in self.kernels],
            "refused": self.refused,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to a file, whole or not at all.

        Raises:
            OSError: It cannot be written.
        """
        members = {
            _member(kernel.name, number, kind): data
            for kernel in self.kernels
            for number, codes in enumerate(kernel.codes)
            for kind, data in codes.items()
        }
        manifest = {
            "target": self.target,
            "kernels": [_kernel_manifest(kernel) for kernel in self.kernels],
            "refused": self.refused,
            "values": self.values,
            "calls": self.calls,
        }
        write_archive(Path(path), manifest, members)


def read_device_artifact(
    manifest: dict[str, Any], members: dict[str, bytes]
) -> DeviceArtifact:
    """Rebuild an artifact from the parts of its file.

    Raises:
        ArtifactError: The parts are damaged.
    """
    try:
        return DeviceArtifact(
            manifest["target"],
            tuple(_read_kernel(data, members) for data in manifest["kernels"]),
            manifest["refused"],
            manifest["values"],
            manifest["calls"],
        )
    except (KeyError, TypeError) as error:
        message = f"the artifact is damaged: {type(error).__name__}: {error}"
        raise ArtifactError("artifact-damaged", message) from error


def _kernel_manifest(kernel: DeviceKernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "launches": [vars(launch) for launch in kernel.launches],
        "codes": [list(codes) for codes in kernel.codes],
        "report": kernel.report,
    }


def _read_kernel(data: Any, members: dict[str, bytes]) -> DeviceKernel:
    name = data["name"]
    codes = [
        {kind: members[_member(name, number, kind)] for kind in kinds}
        for number, kinds in enumerate(data["codes"])
    ]
    launches = tuple(map(Launch.of, data["launches"]))
    return DeviceKernel(name, launches, tuple(codes), data["report"])


def _member(kernel: str, number: int, kind: str) -> str:
    return f"kernels/{kernel}.{number}.{kind}"
