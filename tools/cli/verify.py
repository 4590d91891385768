"""Owns `magweld verify`: whether the owner of a key signed an artifact file."""

from __future__ import annotations

import argparse
from pathlib import Path

from magweld.deploy.signatures import PublicKey


def run(options: argparse.Namespace) -> None:
    """Check the signature beside a file and tell by which key it is."""
    key = PublicKey(options.key)
    key.read(Path(options.file))
    print(f"{options.file}: signed by the key {key.fingerprint}")
