"""Owns the server that forks a ready process for each command of the lit suite.

A test runs `magweld-opt` and `filecheck` a few times on a few lines: starting Python,
importing MLIR's bindings and passes would take nearly all of its time. The server
imports them once. What a command runs is the tool's entry point, in a process of its
own.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

# Entry points as pyproject.toml and the filecheck package declare them, and a tool that
# is run as a module.
TOOLS = {
    "device-code": "magweld.tools.device_code",
    "filecheck": "filecheck.main",
    "magweld-opt": "magweld.tools.magweld_opt",
}
_PRELOADED = ("magweld.tools.driver", "magweld.tools.installed_passes")
_REGISTRY = "magweld.passes.infrastructure.registry"
_DESCRIPTORS = 3  # stdin, stdout and stderr of the client


def serve(listener: socket.socket) -> None:
    """Answer requests until nothing can come from stdin any more."""
    _preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    while True:
        ready, _, _ = select.select([listener, sys.stdin.fileno()], [], [])
        if listener not in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.sendall(bytes([_answer(connection)]))
            os._exit(0)
        connection.close()


def _preload() -> None:
    """Import what commands import, each of which would do so anew."""
    for module in (*TOOLS.values(), *_PRELOADED):
        importlib.import_module(module)
    passes = importlib.import_module(_REGISTRY).PASSES
    for name in passes.names():
        passes.get(name)
    for name in passes.pipeline_names():
        passes.pipeline(name)
    # All of that stays: collections neither look at it nor write to its pages, which
    # processes share until then.
    gc.collect()
    gc.freeze()


def _answer(connection: socket.socket) -> int:
    """Run the tool that a client asks for in its place; return the exit code."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, _DESCRIPTORS)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # Those of the server know whether its files can seek, which others may not.
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
    with connection.makefile("rb") as request:
        arguments, folder, environment = marshal.load(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    return _run(importlib.import_module(TOOLS[Path(arguments[0]).name]).main)


def _run(main: Callable[[], int | None]) -> int:
    try:
        code: object = main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    descriptor, tools = sys.argv[1:]
    serve(socket.socket(fileno=int(descriptor)))
    shutil.rmtree(tools)
