"""Keys, signed artifacts and what refuses them, in Python and in C."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import c_runtime
import pytest
from cryptography.hazmat.primitives import serialization

import magweld
from magweld.aot.errors import ArtifactError

# What C calls the errors of Python.
STATUS = {
    "artifact-unsigned": 10,
    "artifact-signature": 11,
    "signature-key": 12,
    "signature-library": 13,
}


@dataclass(frozen=True)
class Keys:
    """Two files: a key that signs, and one that checks."""

    private: Path
    public: Path


@dataclass(frozen=True)
class Signed:
    """An artifact of its own, and the keys that it was signed with."""

    path: Path
    keys: Keys

    @property
    def signature(self) -> Path:
        return Path(f"{self.path}.sig")


def key_files(folder: Path, name: str, key: Any) -> Keys:
    """Write both halves of a key."""
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    keys = Keys(folder / f"{name}.pem", folder / f"{name}-public.pem")
    content = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    keys.private.write_bytes(content)
    keys.public.write_bytes(key.public_key().public_bytes(pem, kind))
    return keys


def flipped(data: bytes, at: int) -> bytes:
    """Change one bit of a byte."""
    return data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]


def python_refuses(path: Path, key: Path) -> str:
    """Return the id of the error."""
    with pytest.raises(ArtifactError) as caught:
        magweld.load(path, public_key=key)
    assert f"[{caught.value.id}]" in str(caught.value)
    return caught.value.id


def c_refuses(library: ctypes.CDLL, path: Path, key: Path) -> tuple[int, str]:
    """Return the status and the text of the error."""
    with pytest.raises(c_runtime.RuntimeFailure) as caught:
        c_runtime.Model(library, path, public_key=key)
    return caught.value.status, str(caught.value)
