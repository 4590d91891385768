"""Owns the loading of artifacts that torch runs, without MLIR and the compiler."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from magweld.aot.artifact import Artifact, placed, read_artifact
from magweld.aot.files import read_archive


def load(
    path: str | os.PathLike[str],
    device: torch.device | str | None = None,
    content: bytes | None = None,
) -> Artifact:
    """Load what `Artifact.save` wrote.

    Args:
        path: The file.
        device: The GPU for code that is for one, by default the current one; without
            one the artifact can be looked at, not called.
        content: The bytes of the file if they have been read.

    Raises:
        ArtifactError: It is no intact artifact, or its code needs another CPU.
        DeviceError: The code cannot run on the device.
        OSError: The file cannot be read.
    """
    return placed(read_artifact(*read_archive(Path(path), content)), device)
