"""Owns the worker's side of compilation: a process that runs tasks one by one.

Started as `python -m magweld.runtime.worker`; it never imports torch by itself. It
ends when its parent does: reading from the socket ends then, a thread notices that
the process has another parent, and a timer outside of Python ends a task that
overran its time while nobody was left to kill it.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import BinaryIO, Never

from magweld.runtime.protocol import (
    HEADER_BYTES,
    Failure,
    Hello,
    Kind,
    ProtocolError,
    pack_failure,
    pack_message,
    unpack_header,
    unpack_hello,
    unpack_request,
)

Task = Callable[[bytes], bytes]

_PARENT_CHECK_SECONDS = 1.0
# Objects after which cycles among the youngest are looked for, 700 by default. Plans
# are many objects that live to the end of a compilation, and a full collection walks
# all of them: that took 15 % of the time in which MobileNetV2 was planned.
_YOUNG_OBJECTS = 50_000
# An executor of the user's may have threads, and MLIR's bindings crash where one thread
# loads dialects and another reads operations.
_ONE_BY_ONE = threading.Lock()


def run_task(target: str, payload: bytes) -> bytes:
    """Run `target`, "module:function", on a payload; a process runs one at a time.

    Raises:
        ValueError: `target` has another form.
        TypeError: The task returned no bytes.
    """
    module_name, separator, function_name = target.partition(":")
    if not separator:
        raise ValueError(f"task {target!r} is not of the form 'module:function'")
    task: Task = getattr(importlib.import_module(module_name), function_name)
    with _ONE_BY_ONE:
        result: object = task(payload)
    if not isinstance(result, bytes):
        raise TypeError(f"task {target!r} returned {type(result).__name__}, not bytes")
    return result


def main(arguments: Sequence[str]) -> int:
    """Serve requests until the parent closes its end of the socket.

    Args:
        arguments: File descriptor of the socket, process id of the parent, and by how
            much this process gives way to others.
    """
    fd, parent, nice = map(int, arguments)
    os.nice(nice)
    _detach(fd)
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    with socket.socket(fileno=fd) as link, link.makefile("rb") as incoming:
        try:
            _serve(link, incoming)
        except (EOFError, ConnectionError):
            # The parent is gone or does not want this worker any more.
            return 0


def _serve(link: socket.socket, incoming: BinaryIO) -> Never:
    _prepare(unpack_hello(_read_message(incoming, Kind.HELLO)))
    link.sendall(pack_message(Kind.READY, b""))
    while True:
        request = unpack_request(_read_message(incoming, Kind.REQUEST))
        link.sendall(_answer(*request))


def _detach(fd: int) -> None:
    # An interrupt at the terminal goes to the whole group; the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The socket belongs to this process alone: a child of a task that kept it open
    # would hide this process's end from the parent.
    os.set_inheritable(fd, False)
    # What tasks print, in Python or native code, must not end up among answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    faulthandler.enable()


def end_with_parent(parent: int) -> Never:
    """End this process as soon as it has another parent; for a thread of its own."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)


def _prepare(hello: Hello) -> None:
    sys.path.extend(p for p in hello.search_path if p and p not in sys.path)
    for name in hello.preload:
        try:
            importlib.import_module(name)
        except Exception:
            # The request that needs it will say so; others are not concerned.
            traceback.print_exc()
    gc.freeze()  # modules stay: not even a full collection has to walk them
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


def _answer(target: str, timeout_seconds: float, payload: bytes) -> bytes:
    # Prints where the task is, then ends the process, even if the task holds the
    # interpreter lock in native code.
    faulthandler.dump_traceback_later(timeout_seconds, exit=True)
    try:
        return pack_message(Kind.RESULT, run_task(target, payload))
    except BaseException as error:
        kind = type(error)
        name = f"{kind.__module__}.{kind.__qualname__}"
        return pack_failure(Failure(name, str(error), traceback.format_exc()))
    finally:
        faulthandler.cancel_dump_traceback_later()


def _read_message(stream: BinaryIO, expected: Kind) -> bytes:
    kind, length = unpack_header(_read_exactly(stream, HEADER_BYTES))
    if kind is not expected:
        raise ProtocolError(f"{kind.name} message where {expected.name} is due")
    return _read_exactly(stream, length)


def _read_exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError(f"{len(data)} of {count} bytes")
    return data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
