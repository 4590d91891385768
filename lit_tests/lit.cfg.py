"""Configures the lit suite: where tools are, and which optional ones there are."""

import atexit
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats

# Ends what hangs; a loaded machine needs many times the second that most tests take.
TIMEOUT_SECONDS = 300


def _in_package(package: str, *relative: str) -> Path | None:
    """Return a file of an installed package, None if there is no such file."""
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations or ()) if spec else ()
    found = (Path(folder, *relative) for folder in folders)
    return next((path for path in found if path.is_file()), None)


def _runs(tool: Path) -> bool:
    """Return whether a tool starts: the wheel of mlir-opt needs a second one."""
    return subprocess.run([tool, "--version"], capture_output=True).returncode == 0


def _mlir_opt() -> str | None:
    tool = _in_package("mlir", "bin", "mlir-opt")
    return str(tool) if tool and _runs(tool) else shutil.which("mlir-opt")


def _mlir_translate() -> str | None:
    tool = _in_package("mlir", "bin", "mlir-translate")
    return str(tool) if tool and _runs(tool) else shutil.which("mlir-translate")


def _ptxas() -> str | None:
    tool = _in_package("nvidia", "cu13", "bin", "ptxas")
    return str(tool) if tool else shutil.which("ptxas")


def _amd_lld() -> str | None:
    if importlib.util.find_spec("ziglang"):
        return f"{sys.executable} -m ziglang ld.lld"
    return shutil.which("ld.lld")


def _start_fork_server(tools: tuple[str, ...]) -> str:
    """Return a folder of commands that a server runs, which ends with this process."""
    here = Path(__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="magweld-lit-"))
    client = (here / "fork_client.py").read_text(encoding="utf-8")
    for name in tools:
        command = folder / name
        # Isolated and without site packages: the client needs none.
        command.write_text(f"#!{sys.executable} -IS\n{client}", encoding="utf-8")
        command.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "server"))
        listener.listen()
        server = subprocess.Popen(
            [sys.executable, here / "fork_server.py", str(listener.fileno()), folder],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    assert server.stdin is not None
    atexit.register(server.stdin.close)
    return str(folder)


config = globals()["config"]  # put into this file's namespace by lit
config.name = "magweld"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir", ".py"]
config.excludes = ["Inputs", "fork_client.py", "fork_server.py", "lit.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.maxIndividualTestTime = TIMEOUT_SECONDS

config.environment["PATH"] = os.pathsep.join(
    [
        _start_fork_server(("device-code", "filecheck", "magweld-opt")),
        str(Path(sys.prefix, "bin")),
        os.environ["PATH"],
    ]
)
for name in ("HOME", "PYTHONPATH", "XDG_CACHE_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions += [
    ("%roundtrip", "magweld-opt %s | magweld-opt -"),
    ("%python", sys.executable),
]

# A feature is a tool that may be missing; `%<feature>` in a RUN line is its command.
_OPTIONAL_TOOLS = {
    "mlir-opt": _mlir_opt(),
    "torch-mlir-opt": shutil.which("torch-mlir-opt", path=config.environment["PATH"]),
    "mlir-translate": _mlir_translate(),
    "iree-compile": shutil.which("iree-compile", path=config.environment["PATH"]),
    "ptxas": _ptxas(),
    "amd-lld": _amd_lld(),
}
for name, command in _OPTIONAL_TOOLS.items():
    if command is not None:
        config.available_features.add(name)
        config.substitutions.append((f"%{name}\\b", command))
