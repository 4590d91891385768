"""Owns `magweld.load`: it tells artifacts apart and imports no more than each needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from magweld.deploy.portable_artifact import PortableArtifact
from magweld.deploy.portable_file import is_portable

if TYPE_CHECKING:
    import torch

    from magweld.aot.artifact import Artifact


def load(
    path: str | os.PathLike[str],
    device: torch.device | str | None = None,
    *,
    threads: int | None = None,
) -> Artifact | PortableArtifact:
    """Load what `magweld.compile` or `magweld.compile_portable` made, from a file.

    A portable artifact needs numpy alone; others need torch.

    Args:
        path: The file.
        device: The GPU for code that is for one, by default the current one; without
            one the artifact can be looked at, not called.
        threads: How many threads a call of a portable artifact uses, by default one
            for each usable CPU. Other artifacts use those of torch.

    Raises:
        ArtifactError: It is no intact artifact, or its code needs another CPU.
        DeviceError: The code cannot run on the device.
        OSError: The file cannot be read.
    """
    if is_portable(Path(path)):
        return PortableArtifact(Path(path).read_bytes(), threads)
    # torch is not where portable artifacts are loaded.
    from magweld.aot.loading import load

    return load(path, device)
