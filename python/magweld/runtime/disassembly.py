"""Owns machine code as text: what a disassembler of the machine shows of objects."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_TOOLS: Final = ("objdump", "llvm-objdump")


def disassemble(objects: Sequence[bytes]) -> str:
    """Return the instructions of x86-64 objects, in the syntax of AT&T.

    A line `<name>:` is before those of each function.

    Raises:
        ValueError: There is no disassembler here, or it does not take the objects.
    """
    tool = next(filter(None, map(shutil.which, _TOOLS)), None)
    if tool is None:
        raise ValueError(f"machine code is shown by one of {', '.join(_TOOLS)}")
    with tempfile.TemporaryDirectory(prefix="magweld-code-") as folder:
        paths = [Path(folder, f"{number}.o") for number in range(len(objects))]
        for path, code in zip(paths, objects, strict=True):
            path.write_bytes(code)
        if not paths:
            return ""
        command = [tool, "-d", "--no-show-raw-insn", *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{tool} cannot show the code: {done.stderr.strip()}")
    return done.stdout
