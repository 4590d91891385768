"""Owns the keys of compiled programs: everything that the result depends on."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from llvmlite import binding

import magweld
from magweld import env
from magweld.artifact import FORMAT_VERSION
from magweld.runtime.container import CONTAINER_VERSION, encode_parts
from magweld.targets.host import host_device

_TOOLCHAIN = ("torch-mlir", "llvmlite")
# Packages whose code decides what a program looks like; a change of one of their
# files is a new compiler even under the same version, as in an editable install.
_COMPILER_PACKAGES = (
    "magweld.codegen",
    "magweld.dialects",
    "magweld.passes",
    "magweld.runtime",
    "magweld.targets",
    "magweld.tuning",
)
_SOURCE_SUFFIXES = (".py", ".toml")


@cache
def compiler_identity() -> str:
    """Return what of the compiler and the host goes into a key, one fact a line.

    It does not change within a process.
    """
    return "\n".join(
        [
            f"container {CONTAINER_VERSION}",
            f"program {FORMAT_VERSION}",
            f"magweld {magweld.__version__} {_source_digest()}",
            *(f"{name} {version(name)}" for name in _TOOLCHAIN),
            f"cpu {binding.get_host_cpu_name()}",
            f"features {binding.get_host_cpu_features().flatten()}",
            f"capability {env.CPU_CAPABILITY.get()}",
            f"device {host_device()}",
        ]
    )


def program_key(identity: str, options: str, text: str) -> str:
    """Return the key of a compilation: 64 hexadecimal digits of SHA-256.

    Args:
        identity: The compiler and the host, see `compiler_identity`.
        options: Canonical text of the options.
        text: The module to compile.
    """
    parts = [identity.encode(), options.encode(), text.encode()]
    return hashlib.sha256(encode_parts(parts)).hexdigest()


def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in _source_files():
        data = path.read_bytes()
        digest.update(encode_parts([path.name.encode(), data]))
    return digest.hexdigest()


def _source_files() -> Iterator[Path]:
    yield from sorted(Path(magweld.__file__).parent.glob("*.py"))
    for package in _COMPILER_PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            paths = sorted(Path(folder).rglob("*"))
            yield from (p for p in paths if p.suffix in _SOURCE_SUFFIXES)
