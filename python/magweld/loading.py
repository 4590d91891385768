"""Owns `magweld.load`: it tells artifacts apart and imports no more than each needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from magweld.deploy.portable_artifact import PortableArtifact
from magweld.deploy.portable_file import MAGIC, is_portable
from magweld.deploy.signatures import PublicKey

if TYPE_CHECKING:
    import torch

    from magweld.aot.artifact import Artifact


def load(
    path: str | os.PathLike[str],
    device: torch.device | str | None = None,
    *,
    threads: int | None = None,
    public_key: str | os.PathLike[str] | None = None,
) -> Artifact | PortableArtifact:
    """Load what `magweld.compile` or `magweld.compile_portable` made, from a file.

    A portable artifact needs numpy alone; others need torch.

    Args:
        path: The file.
        device: The GPU for code that is for one, by default the current one; without
            one the artifact can be looked at, not called.
        threads: How many threads a call of a portable artifact uses; None and 0 are
            one for each usable CPU. Other artifacts use those of torch.
        public_key: A file with an Ed25519 key as PEM: the artifact must be signed by
            its owner, by `magweld sign` or `magweld.deploy.signatures.sign`. What is
            checked are the bytes that are loaded, before they are looked at. It needs
            the package cryptography, the extra `magweld[sign]`.

    Raises:
        ArtifactError: It is no intact artifact, or its code needs another CPU; with a
            key `artifact-unsigned`, `artifact-signature`, `signature-key` or
            `signature-library`.
        DeviceError: The code cannot run on the device.
        ValueError: The number of threads is negative.
        OSError: The file cannot be read.
    """
    # What was signed is what is read: the file may change meanwhile.
    content = None if public_key is None else PublicKey(public_key).read(Path(path))
    if is_portable(Path(path)) if content is None else content.startswith(MAGIC):
        found = Path(path).read_bytes() if content is None else content
        return PortableArtifact(found, threads)
    # torch is not where portable artifacts are loaded.
    from magweld.aot.loading import load

    return load(path, device, content)
