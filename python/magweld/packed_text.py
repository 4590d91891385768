"""Owns texts that are kept compressed: modules beside the programs made of them."""

from __future__ import annotations

import base64
import zlib


def pack_text(text: str) -> str:
    """Return a text compressed, in ASCII; modules get a tenth of their length."""
    return base64.b64encode(zlib.compress(text.encode())).decode()


def unpack_text(packed: str) -> str:
    """Return the text of `pack_text`.

    Raises:
        ValueError: It is no such text.
    """
    try:
        return zlib.decompress(base64.b64decode(packed)).decode()
    except zlib.error as error:
        raise ValueError(f"no packed text: {error}") from error
