"""Owns finding and running the assemblers and linkers of GPU vendors."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from magweld.codegen.device_llvm import DeviceCodegenError

# A kernel takes well under a second; what takes this long hangs.
_TIMEOUT_SECONDS = 300


def find_ptxas() -> list[str] | None:
    """Return the command that starts ptxas, None if it is not installed."""
    path = shutil.which("ptxas")
    if path is not None:
        return [path]
    for folder in _package_folders("nvidia"):
        for found in sorted(folder.glob("*/bin/ptxas")):
            return [str(found)]
    return None


def find_lld() -> list[str] | None:
    """Return the command that starts LLVM's ELF linker, None if there is none."""
    path = shutil.which("ld.lld")
    if path is not None:
        return [path]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "ld.lld"]
    return None


def run_tool(command: list[str], data: bytes) -> bytes:
    """Run a tool from one file to another and return what it wrote.

    Args:
        command: Words of the command; "{input}" and "{output}" stand for the files.
        data: Contents of the input file.

    Raises:
        DeviceCodegenError: The tool fails, or does not end.
    """
    with tempfile.TemporaryDirectory(prefix="magweld-device-") as folder:
        files = {"{input}": Path(folder, "input"), "{output}": Path(folder, "output")}
        files["{input}"].write_bytes(data)
        words = [str(files.get(word, word)) for word in command]
        try:
            subprocess.run(
                words, check=True, capture_output=True, timeout=_TIMEOUT_SECONDS
            )
            return files["{output}"].read_bytes()
        except subprocess.CalledProcessError as error:
            text = error.stderr.decode(errors="replace").strip()
            raise DeviceCodegenError(f"{command[0]} failed: {text}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeviceCodegenError(f"{command[0]} failed: {error}") from error


def _package_folders(name: str) -> list[Path]:
    spec = importlib.util.find_spec(name)
    locations = [] if spec is None else spec.submodule_search_locations or []
    return [Path(location) for location in locations]
