"""Owns `magweld runtime`: where the sources of the C runtime are."""

from __future__ import annotations

import argparse
from importlib import resources


def run(options: argparse.Namespace) -> None:
    """Print the folder of `magweld.h` and `magweld.c`."""
    print(resources.files("magweld.deploy"))
