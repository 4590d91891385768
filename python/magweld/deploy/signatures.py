"""Owns signatures over artifact files: Ed25519, in a file beside the artifact.

They are plain signatures of the bytes of the file (RFC 8032), so that other programs
can check them: `magweld.c` does, and `openssl pkeyutl -verify -rawin`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from magweld.aot.errors import ArtifactError
from magweld.aot.files import read_archive, write_whole
from magweld.deploy.portable_file import MAGIC, decode

_SUFFIX = ".sig"


class PrivateKey:
    """An Ed25519 key that signs artifact files.

    Args:
        path: A file with the key as PEM, without a password, as `openssl genpkey
            -algorithm ed25519` makes it.

    Raises:
        ArtifactError: `signature-key`: it is no such key; or `signature-library`: the
            package cryptography is not installed.
        OSError: The file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        ed25519, self._serialization, _ = _library()
        read = partial(self._serialization.load_pem_private_key, password=None)
        self._key = _read_key(path, "private", read, ed25519.Ed25519PrivateKey)

    @property
    def fingerprint(self) -> str:
        """That of the public key, see `PublicKey.fingerprint`."""
        return _fingerprint(self._key.public_key(), self._serialization)

    def sign(self, path: str | os.PathLike[str]) -> Path:
        """Sign an artifact file of either kind; see `sign` below."""
        path = Path(path)
        content = path.read_bytes()
        _require_artifact(path, content)
        signature = _beside(path)
        write_whole(signature, self._key.sign(content))
        return signature


class PublicKey:
    """An Ed25519 key that tells whether its owner signed an artifact file.

    Args:
        path: A file with the key as PEM, as `openssl pkey -pubout` makes it.

    Raises:
        ArtifactError: `signature-key` or `signature-library`, as of `PrivateKey`.
        OSError: The file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        ed25519, self._serialization, self._exceptions = _library()
        read = self._serialization.load_pem_public_key
        self._key = _read_key(path, "public", read, ed25519.Ed25519PublicKey)
        self._path = path

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the key as DER (RFC 8410), in 64 hexadecimal digits."""
        return _fingerprint(self._key, self._serialization)

    def read(self, path: Path) -> bytes:
        """Return the bytes of an artifact file that the owner of the key signed.

        Args:
            path: The artifact; its signature is beside it.

        Raises:
            ArtifactError: `artifact-unsigned`: there is no signature; or
                `artifact-signature`: it does not fit.
            OSError: A file cannot be read.
        """
        beside, content = _beside(path), path.read_bytes()
        try:
            signature = beside.read_bytes()
        except FileNotFoundError as error:
            raise ArtifactError(
                "artifact-unsigned",
                f"'{path}' has no signature: there is no '{beside}'; "
                "`magweld sign` makes one",
            ) from error
        try:
            self._key.verify(signature, content)
        except self._exceptions.InvalidSignature as error:
            raise ArtifactError(
                "artifact-signature",
                f"'{beside}' is no signature of '{path}' by the key '{self._path}': "
                "one of the files was changed, or another key signed it",
            ) from error
        return content


def sign(path: str | os.PathLike[str], private_key: str | os.PathLike[str]) -> Path:
    """Sign an artifact file.

    Args:
        path: The artifact, of either kind.
        private_key: A file with an Ed25519 key as PEM, without a password, as `openssl
            genpkey -algorithm ed25519` makes it.

    Returns:
        Where the signature is: the name of the artifact, then ".sig"; 64 bytes.

    Raises:
        ArtifactError: `signature-key`: it is no such key; `signature-library`: the
            package cryptography is not installed; `artifact-damaged` or
            `artifact-version`: the file is no intact artifact.
        OSError: A file cannot be read or written.
    """
    return PrivateKey(private_key).sign(path)


def _beside(path: Path) -> Path:
    return path.with_name(path.name + _SUFFIX)


def _require_artifact(path: Path, content: bytes) -> None:
    """Refuse to sign what nobody could load.

    Raises:
        ArtifactError: It is no intact artifact.
    """
    if content.startswith(MAGIC):
        decode(content)
    else:
        read_archive(path, content)


def _fingerprint(key: Any, serialization: Any) -> str:
    # What `openssl pkey -pubin -outform DER | sha256sum` prints.
    data = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(data).hexdigest()


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


def _read_key(
    path: str | os.PathLike[str], kind: str, read: Callable[[bytes], Any], wanted: type
) -> Any:
    content = Path(path).read_bytes()
    try:
        key = read(content)
    except Exception as error:
        # Its readers raise ValueError, TypeError and errors of their own.
        raise _no_key(path, kind, str(error)) from error
    if not isinstance(key, wanted):
        raise _no_key(path, kind, f"it is a {type(key).__name__}")
    return key


def _no_key(path: str | os.PathLike[str], kind: str, reason: str) -> ArtifactError:
    message = f"'{path}' holds no {kind} Ed25519 key as PEM: {reason}"
    return ArtifactError("signature-key", message)
