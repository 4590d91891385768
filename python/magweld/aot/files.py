"""Owns artifact files: a zip archive with a manifest, written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from magweld.aot.errors import ArtifactError

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_KIND = "magweld-artifact"


def write_archive(
    path: Path, manifest: Mapping[str, Any], members: Mapping[str, bytes]
) -> None:
    """Write an artifact file; what was there before stays if anything fails.

    Raises:
        OSError: It cannot be written.
    """
    buffer = io.BytesIO()
    header = {"kind": _KIND, "version": FORMAT_VERSION, **manifest}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(MANIFEST, json.dumps(header, indent=1))
        for name, data in members.items():
            archive.writestr(name, data)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        part.write_bytes(buffer.getvalue())
        os.replace(part, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"cannot write '{path}': {reason}") from error
    finally:
        part.unlink(missing_ok=True)


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the other members of an artifact file.

    The checksums of all members are verified.

    Raises:
        ArtifactError: It is no intact artifact of this format version.
        OSError: It cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        manifest: dict[str, Any] = json.loads(members.pop(MANIFEST))
        if manifest["kind"] != _KIND:
            raise KeyError("kind")
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        message = f"'{path}' is no intact artifact: {error}"
        raise ArtifactError("artifact-damaged", message) from error
    if manifest["version"] != FORMAT_VERSION:
        raise ArtifactError(
            "artifact-version",
            f"'{path}' has format version {manifest['version']}, "
            f"expected {FORMAT_VERSION}: compile it again",
        )
    return manifest, members
