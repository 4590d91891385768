"""Owns `magweld sign`: a signature beside an artifact file."""

from __future__ import annotations

import argparse
from pathlib import Path

from magweld.deploy.signatures import PrivateKey


def run(options: argparse.Namespace) -> None:
    """Sign a file and tell by which key."""
    print(signed(Path(options.file), PrivateKey(options.key)))


def signed(path: Path, key: PrivateKey) -> str:
    """Sign a file and return what to tell about it."""
    return f"{key.sign(path)}: signature by the key {key.fingerprint}"
