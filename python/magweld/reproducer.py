"""Owns what a failed pipeline leaves behind: its input and a command to repeat it."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Reproducer:
    """A file and the command that makes the failure happen again on it."""

    path: Path
    command: str


def write_reproducer(directory: Path, ir_text: str, pipeline: str) -> Reproducer:
    """Write the IR that went into a pipeline, with the command on its first line.

    The file is named after its content: the same failure writes the same file.

    Args:
        directory: Made if it does not exist.
        ir_text: The module before the first pass.
        pipeline: Pipeline text.

    Raises:
        OSError: The file cannot be written.
    """
    digest = hashlib.sha256(f"{pipeline}\n{ir_text}".encode()).hexdigest()[:12]
    path = directory.resolve() / f"reproducer-{digest}.mlir"
    command = reproducer_command(pipeline, path)
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(f"// {command}\n{ir_text}\n", encoding="utf-8")
    return Reproducer(path, command)


def reproducer_command(pipeline: str, path: Path) -> str:
    """Return the shell command that runs a pipeline on a file."""
    return shlex.join(["magweld-opt", f"--pass-pipeline={pipeline}", str(path)])
