"""Owns the messages between a process and its compile worker: framing, no pickle.

A message is a fixed header (magic, kind, length of the body, CRC-32 of these) and
a body of bytes. The header's checksum keeps garbage on the pipe from being taken
for the length of a message.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass
from enum import IntEnum

_MAGIC = b"MGWK"
_FIELDS = struct.Struct("<4sIQ")
_CHECK = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECK.size


class Kind(IntEnum):
    """What a message is."""

    HELLO = 1  # to the worker: `Hello`
    READY = 2  # from the worker: empty
    REQUEST = 3  # to the worker: `Request`
    RESULT = 4  # from the worker: the task's bytes
    FAILURE = 5  # from the worker: `Failure`


class ProtocolError(ValueError):
    """Bytes that are not a message."""


@dataclass(frozen=True)
class Hello:
    """First message to a worker.

    Attributes:
        search_path: The parent's `sys.path`, to find the modules of tasks.
        preload: Modules to import before the first request.
    """

    search_path: tuple[str, ...]
    preload: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """An exception that a task raised."""

    error_type: str
    message: str
    traceback: str


def pack_message(kind: Kind, body: bytes) -> bytes:
    """Return the bytes of a message."""
    fields = _FIELDS.pack(_MAGIC, kind, len(body))
    return fields + _CHECK.pack(zlib.crc32(fields)) + body


def unpack_header(header: bytes) -> tuple[Kind, int]:
    """Return the kind of a message and the length of its body.

    Raises:
        ProtocolError: Not the header of a message.
    """
    fields, check = header[: _FIELDS.size], header[_FIELDS.size :]
    magic, kind, length = _FIELDS.unpack(fields)
    if magic != _MAGIC or _CHECK.unpack(check)[0] != zlib.crc32(fields):
        raise ProtocolError(f"not a message: {header[:16]!r}")
    try:
        return Kind(kind), length
    except ValueError:
        raise ProtocolError(f"unknown kind of message {kind}") from None


def pack_hello(hello: Hello) -> bytes:
    """Return the HELLO message."""
    return pack_message(Kind.HELLO, json.dumps(asdict(hello)).encode())


def unpack_hello(body: bytes) -> Hello:
    """Return the content of a HELLO message."""
    data = json.loads(body)
    return Hello(tuple(data["search_path"]), tuple(data["preload"]))


def pack_request(target: str, timeout_seconds: float, payload: bytes) -> bytes:
    """Return the REQUEST message: `target` is "module:function"."""
    head = json.dumps({"target": target, "timeout": timeout_seconds}).encode()
    return pack_message(Kind.REQUEST, _CHECK.pack(len(head)) + head + payload)


def unpack_request(body: bytes) -> tuple[str, float, bytes]:
    """Return target, time limit in seconds and payload of a REQUEST message."""
    (length,) = _CHECK.unpack_from(body)
    end = _CHECK.size + length
    head = json.loads(body[_CHECK.size : end])
    return head["target"], head["timeout"], body[end:]


def pack_failure(failure: Failure) -> bytes:
    """Return the FAILURE message."""
    return pack_message(Kind.FAILURE, json.dumps(asdict(failure)).encode())


def unpack_failure(body: bytes) -> Failure:
    """Return the content of a FAILURE message."""
    return Failure(**json.loads(body))
