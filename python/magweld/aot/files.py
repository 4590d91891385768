"""Owns artifact files: a zip archive with a manifest, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from magweld.aot.errors import ArtifactError

FORMAT_VERSION = 3
MANIFEST = "manifest.json"
DIGEST = "sha256"
_KIND = "magweld-artifact"


def archive_of(manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> bytes:
    """Return the content of an artifact file."""
    buffer = io.BytesIO()
    header = {"kind": _KIND, "version": FORMAT_VERSION, **manifest}
    whole = {MANIFEST: json.dumps(header, indent=1).encode(), **members}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {**whole, DIGEST: digest_of(whole)}.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step; what was there before stays if anything fails.

    Raises:
        OSError: It cannot be written.
    """
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"cannot write '{path}': {reason}") from error
    finally:
        part.unlink(missing_ok=True)


def digest_of(members: Mapping[str, bytes]) -> bytes:
    """Return what tells that no member was changed, as text."""
    digest = hashlib.sha256()
    for name in sorted(members.keys() - {DIGEST}):
        digest.update(f"{name}\n{len(members[name])}\n".encode())
        digest.update(members[name])
    return digest.hexdigest().encode()


def read_archive(
    path: Path, content: bytes | None = None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the other members of an artifact file.

    The digest of all members is verified. It finds damage and is no signature.

    Args:
        path: The file.
        content: Its bytes if they have been read.

    Raises:
        ArtifactError: It is no intact artifact of this format version.
        OSError: It cannot be read.
    """
    with path.open("rb") if content is None else io.BytesIO(content) as file:
        try:
            members = _members(file)
            manifest: dict[str, Any] = json.loads(members[MANIFEST])
            kind, version = manifest["kind"], manifest["version"]
        except Exception as error:
            # A reader of archives and of text raises whatever it likes for bytes that
            # are neither.
            raise _damaged(path, error) from error
    if kind != _KIND:
        raise _damaged(path, f"it is a {kind!r}")
    if version != FORMAT_VERSION:
        raise ArtifactError(
            "artifact-version",
            f"'{path}' has format version {version}, "
            f"expected {FORMAT_VERSION}: compile it again",
        )
    if members.pop(DIGEST, b"") != digest_of(members):
        raise _damaged(path, "the digest does not match")
    del members[MANIFEST]
    return manifest, members


def _members(file: BinaryIO) -> dict[str, bytes]:
    """Return the members of an archive that is as `archive_of` makes it.

    Raises:
        Exception: It is none.
    """
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            # What is compressed could fill the memory.
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"'{info.filename}' is compressed")
        return {name: archive.read(name) for name in archive.namelist()}


def _damaged(path: Path, reason: object) -> ArtifactError:
    if isinstance(reason, Exception):
        reason = f"{type(reason).__name__}: {reason}"
    return ArtifactError(
        "artifact-damaged", f"'{path}' is no intact artifact: {reason}"
    )
