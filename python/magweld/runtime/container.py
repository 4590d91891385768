"""Owns the bytes of a program and of a compile request, without pickle.

A container is a magic, a format version, the length and SHA-256 of its body, then
the body: a label, the program's JSON header, object files and constants, each with
its length before it. Reading checks everything and executes nothing.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from magweld.artifact import Program

CONTAINER_VERSION = 1
_MAGIC = b"MAGWELD\n"
_PREFIX = struct.Struct("<8sIQ32s")
_COUNT = struct.Struct("<Q")


class ContainerError(ValueError):
    """Bytes that are not an intact container of this format version."""


def encode_program(program: Program, label: bytes = b"") -> bytes:
    """Return the container of a program.

    Args:
        program: What to keep.
        label: Bytes that the reader has to name, e.g. a cache key.
    """
    parts = [
        label,
        program.header().encode(),
        encode_parts(program.objects),
        encode_parts(program.constants),
    ]
    return seal(parts)


def seal(parts: Sequence[bytes]) -> bytes:
    """Return a container of any parts."""
    body = encode_parts(parts)
    digest = hashlib.sha256(body).digest()
    return _PREFIX.pack(_MAGIC, CONTAINER_VERSION, len(body), digest) + body


def unseal(data: bytes) -> list[bytes]:
    """Return the parts in a container.

    Raises:
        ContainerError: Truncated, altered or of another version.
    """
    return decode_parts(_checked_body(data))


def unseal_under(data: bytes, key: bytes) -> bytes:
    """Return what a container has beside its key.

    Raises:
        ContainerError: Truncated, altered, of another version or of another key.
    """
    parts = unseal(data)
    if len(parts) != 2 or parts[0] != key:
        raise ContainerError("the content belongs to another key")
    return parts[1]


def decode_program(data: bytes, label: bytes = b"") -> Program:
    """Return the program in a container.

    Raises:
        ContainerError: Truncated, altered, of another version or under another label.
    """
    parts = unseal(data)
    if len(parts) != 4:
        raise ContainerError(f"{len(parts)} parts in the body, expected 4")
    found_label, header, objects, constants = parts
    if found_label != label:
        raise ContainerError("the content belongs to another key")
    try:
        return Program.from_header(
            header.decode(),
            tuple(decode_parts(objects)),
            tuple(decode_parts(constants)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContainerError(f"no program in the header: {error}") from error


def encode_request(options: str, text: str) -> bytes:
    """Return the payload of a compile task: options and IR text."""
    return encode_parts([options.encode(), text.encode()])


def decode_request(payload: bytes) -> tuple[str, str]:
    """Return the options and the IR text of `encode_request`.

    Raises:
        ContainerError: The payload is not one.
    """
    parts = decode_parts(payload)
    if len(parts) != 2:
        raise ContainerError(f"{len(parts)} parts in a request, expected 2")
    return parts[0].decode(), parts[1].decode()


def _checked_body(data: bytes) -> bytes:
    if len(data) < _PREFIX.size:
        raise ContainerError(f"{len(data)} bytes are too short for a container")
    magic, version, length, digest = _PREFIX.unpack_from(data)
    if magic != _MAGIC:
        raise ContainerError("not a container of magweld")
    if version != CONTAINER_VERSION:
        raise ContainerError(f"format version {version}, expected {CONTAINER_VERSION}")
    body = data[_PREFIX.size :]
    if len(body) != length:
        raise ContainerError(f"{len(body)} bytes of content, expected {length}")
    if hashlib.sha256(body).digest() != digest:
        raise ContainerError("the checksum does not match")
    return body


def encode_parts(parts: Sequence[bytes]) -> bytes:
    """Return an unambiguous concatenation: their number, each after its length."""
    fields = [_COUNT.pack(len(parts))]
    for part in parts:
        fields += [_COUNT.pack(len(part)), part]
    return b"".join(fields)


def decode_parts(data: bytes) -> list[bytes]:
    """Return the parts of `encode_parts`.

    Raises:
        ContainerError: The data is not such a concatenation.
    """
    parts = []
    at = _COUNT.size
    for _ in range(_count_at(data, 0)):
        length = _count_at(data, at)
        at += _COUNT.size
        if length > len(data) - at:
            raise ContainerError("a part is longer than what is left")
        parts.append(data[at : at + length])
        at += length
    if at != len(data):
        raise ContainerError("bytes are left after the last part")
    return parts


def _count_at(data: bytes, at: int) -> int:
    if at + _COUNT.size > len(data):
        raise ContainerError("the content ends in the middle of a length")
    count: int = _COUNT.unpack_from(data, at)[0]
    return count
