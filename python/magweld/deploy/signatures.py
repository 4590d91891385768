"""Owns signatures over artifact files: Ed25519, in a file beside the artifact.

They are plain signatures of the bytes of the file (RFC 8032), so that other programs
can check them, as `openssl pkeyutl -verify -rawin` does.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from magweld.aot.errors import ArtifactError

_SUFFIX = ".sig"


def sign(path: str | os.PathLike[str], private_key: str | os.PathLike[str]) -> Path:
    """Sign an artifact file.

    Args:
        path: The artifact, of either kind.
        private_key: A file with an Ed25519 key as PEM, without a password, as `openssl
            genpkey -algorithm ed25519` makes it.

    Returns:
        Where the signature is: the name of the artifact, then ".sig"; 64 bytes.

    Raises:
        ArtifactError: `signature-key`: it is no such key; or `signature-library`: the
            package cryptography is not installed.
        OSError: A file cannot be read or written.
    """
    path = Path(path)
    ed25519, serialization, _ = _library()
    key = _key(Path(private_key), serialization, "private")
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _no_key(private_key, "private", f"a {type(key).__name__}")
    signature = path.with_name(path.name + _SUFFIX)
    signature.write_bytes(key.sign(path.read_bytes()))
    return signature


def read_signed(path: Path, public_key: str | os.PathLike[str]) -> bytes:
    """Return the bytes of an artifact file whose signature fits.

    Args:
        path: The artifact; its signature is beside it.
        public_key: A file with an Ed25519 key as PEM.

    Raises:
        ArtifactError: `artifact-unsigned`: there is no signature; `artifact-signature`:
            it does not fit; `signature-key` or `signature-library` as of `sign`.
        OSError: A file cannot be read.
    """
    ed25519, serialization, exceptions = _library()
    key = _key(Path(public_key), serialization, "public")
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise _no_key(public_key, "public", f"a {type(key).__name__}")
    beside = path.with_name(path.name + _SUFFIX)
    content = path.read_bytes()
    if not beside.exists():
        message = f"'{path}' has no signature: there is no '{beside}'"
        raise ArtifactError("artifact-unsigned", message)
    try:
        key.verify(beside.read_bytes(), content)
    except exceptions.InvalidSignature as error:
        message = f"'{beside}' is no signature of '{path}' by the key '{public_key}'"
        raise ArtifactError("artifact-signature", message) from error
    return content


def _library() -> tuple[ModuleType, ModuleType, ModuleType]:
    # It is optional, and only those who sign need it.
    try:
        from cryptography import exceptions
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        message = (
            "signatures need the package cryptography: pip install 'magweld[sign]'"
        )
        raise ArtifactError("signature-library", message) from error
    return ed25519, serialization, exceptions


def _key(path: Path, serialization: Any, kind: str) -> object:
    content = path.read_bytes()
    try:
        if kind == "public":
            return serialization.load_pem_public_key(content)
        return serialization.load_pem_private_key(content, password=None)
    except Exception as error:
        # Its readers raise ValueError, TypeError and errors of their own.
        raise _no_key(path, kind, str(error)) from error


def _no_key(path: str | os.PathLike[str], kind: str, reason: str) -> ArtifactError:
    message = f"'{path}' holds no {kind} Ed25519 key as PEM: {reason}"
    return ArtifactError("signature-key", message)
