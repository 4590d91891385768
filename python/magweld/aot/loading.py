"""Owns `magweld.load`, which needs neither MLIR nor the compiler."""

from __future__ import annotations

import os
from pathlib import Path

from magweld.aot.artifact import KIND, Artifact, read_artifact
from magweld.aot.device import DeviceArtifact, read_device_artifact
from magweld.aot.files import read_archive


def load(path: str | os.PathLike[str]) -> Artifact | DeviceArtifact:
    """Load what `Artifact.save` or `DeviceArtifact.save` wrote.

    Raises:
        ArtifactError: It is no intact artifact, or its code needs another CPU.
        OSError: The file cannot be read.
    """
    manifest, members = read_archive(Path(path))
    if manifest["target"] == KIND:
        return read_artifact(manifest, members)
    return read_device_artifact(manifest, members)
