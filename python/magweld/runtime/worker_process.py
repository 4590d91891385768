"""Owns one compile worker process, seen from its parent."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence

from magweld.runtime.errors import (
    TaskFailedError,
    WorkerDiedError,
    WorkerError,
    WorkerProtocolError,
    WorkerStartError,
    WorkerTimeoutError,
)
from magweld.runtime.protocol import (
    HEADER_BYTES,
    Hello,
    Kind,
    ProtocolError,
    pack_hello,
    pack_request,
    unpack_failure,
    unpack_header,
)
from magweld.runtime.yielding import Yielding

START_SECONDS = 120.0  # importing MLIR takes 0.4 s; a cold network disk much longer
_GRACE_SECONDS = 2.0  # for the worker to end itself and say where it was
_POLL_SECONDS = 0.25  # a dead worker whose socket a grandchild holds is seen by this
_REAP_SECONDS = 5.0
_CHUNK = 1 << 20
_TAIL_LINES = 20
_TAIL_BYTES = 64 * 1024


class WorkerProcess:
    """A worker process and the socket to it; for one thread at a time.

    Args:
        preload: Modules that the worker imports before its first task.
        nice: By how much it gives way to other processes, see nice(2). If at all, it
            begins each task where nothing else wants the processor.

    Raises:
        WorkerStartError: The process cannot be started.
    """

    def __init__(self, preload: Sequence[str] = (), nice: int = 0) -> None:
        self._owner = os.getpid()
        self._is_ready = False
        self._stderr_bytes: deque[bytes] = deque()
        self._link, self._process = _start(nice)
        self._yielding = Yielding(self.pid) if nice else None
        if self._yielding is not None:
            self._yielding.begin()
        self._link.setblocking(False)
        os.set_blocking(self._stderr_fd, False)
        hello = pack_hello(Hello(tuple(sys.path), tuple(preload)))
        # Sent now, so that a worker started ahead imports ahead, too. It fits the
        # socket's buffer; a worker that is dead already is found by the first read.
        with contextlib.suppress(OSError):
            self._link.send(hello, socket.MSG_NOSIGNAL)

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs, as far as is known."""
        return self._process.poll() is None

    @property
    def is_usable(self) -> bool:
        """Whether an idle worker runs and has said nothing unasked."""
        if not self.is_alive:
            return False
        if not self._is_ready:
            return True  # what there is to read is that it is ready
        try:
            self._link.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def request(self, target: str, payload: bytes, timeout_seconds: float) -> bytes:
        """Run "module:function" on `payload` in the worker and return its bytes.

        Raises:
            TaskFailedError: The task raised; the worker can be used again.
            WorkerError: The worker died, hung or broke the protocol; it must be
                killed, also after any other exception.
        """
        if not self._is_ready:
            self._await_ready()
        message = pack_request(target, timeout_seconds, payload)
        try:
            kind, body = self._exchange(message, timeout_seconds + _GRACE_SECONDS)
        except WorkerDiedError as error:
            if time.monotonic() - self._exchange_start < timeout_seconds:
                raise
            # It ended itself, having printed where it was.
            raise self._timeout_error(timeout_seconds) from error
        except TimeoutError as error:
            raise self._timeout_error(timeout_seconds) from error
        if kind is Kind.FAILURE:
            failure = unpack_failure(body)
            raise TaskFailedError(
                failure.error_type, failure.message, failure.traceback
            )
        if kind is not Kind.RESULT:
            raise WorkerProtocolError(f"{kind.name} message for a result", self._tail())
        return body

    def kill(self) -> None:
        """End the process and free what belongs to it; may be called twice."""
        self._link.close()
        # In a forked child the worker still belongs to the parent.
        if self._owner == os.getpid():
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_SECONDS)
        if self._process.stderr is not None:
            self._process.stderr.close()

    @property
    def _stderr_fd(self) -> int:
        assert self._process.stderr is not None
        return self._process.stderr.fileno()

    def _await_ready(self) -> None:
        try:
            kind, _ = self._exchange(b"", START_SECONDS)
        except TimeoutError as error:
            reason = f"the worker was not ready after {START_SECONDS:g} s"
            raise WorkerStartError(reason, self._tail()) from error
        except WorkerError as error:
            raise WorkerStartError(error.reason, error.stderr_tail) from error
        if kind is not Kind.READY:
            raise WorkerStartError(f"{kind.name} message at start", self._tail())
        self._is_ready = True

    def _exchange(self, message: bytes, seconds: float) -> tuple[Kind, bytes]:
        """Send a message while receiving one, and the worker's stderr all along.

        Raises:
            TimeoutError: No whole message in time.
            WorkerDiedError: The worker ended.
            WorkerProtocolError: What came is not a message.
        """
        self._exchange_start = time.monotonic()
        if self._yielding is not None and message:
            self._yielding.begin()
        deadline = self._exchange_start + seconds
        unsent = memoryview(message)
        received = bytearray()
        read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
        with selectors.DefaultSelector() as selector:
            selector.register(self._link, read | (write if unsent else 0))
            selector.register(self._stderr_fd, read)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                # Asked before looking at the socket, so that all it said is read.
                was_alive = self.is_alive
                if self._yielding is not None:
                    self._yielding.go_on()
                ready = selector.select(min(left, _POLL_SECONDS))
                events = {key.fd: mask for key, mask in ready}
                if self._stderr_fd in events and not self._drain_stderr():
                    selector.unregister(self._stderr_fd)
                mask = events.get(self._link.fileno(), 0)
                if mask & write:
                    unsent = unsent[self._send(unsent) :]
                    if not unsent:
                        selector.modify(self._link, read)
                if mask & read and self._receive(received):
                    return self._message(received)
                if not ready and not was_alive:
                    raise self._death()

    def _send(self, data: memoryview) -> int:
        try:
            return self._link.send(data[:_CHUNK], socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._death() from error

    def _receive(self, received: bytearray) -> bool:
        """Read what there is; return whether a whole message is in `received`."""
        try:
            data = self._link.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._death() from error
        if not data:
            raise self._death()
        received += data
        if len(received) < HEADER_BYTES:
            return False
        _, length = self._header(received)
        if len(received) > HEADER_BYTES + length:
            raise WorkerProtocolError("bytes after the end of an answer", self._tail())
        return len(received) == HEADER_BYTES + length

    def _message(self, received: bytearray) -> tuple[Kind, bytes]:
        kind, _ = self._header(received)
        return kind, bytes(memoryview(received)[HEADER_BYTES:])

    def _header(self, received: bytearray) -> tuple[Kind, int]:
        try:
            return unpack_header(bytes(received[:HEADER_BYTES]))
        except ProtocolError as error:
            raise WorkerProtocolError(str(error), self._tail()) from error

    def _drain_stderr(self) -> bool:
        """Read what there is of stderr; return False at its end."""
        try:
            while data := os.read(self._stderr_fd, _CHUNK):
                self._stderr_bytes.append(data[-_TAIL_BYTES:])
                while sum(map(len, self._stderr_bytes)) > 2 * _TAIL_BYTES:
                    self._stderr_bytes.popleft()
        except BlockingIOError:
            return True
        return False

    def _tail(self) -> list[str]:
        self._drain_stderr()
        text = b"".join(self._stderr_bytes).decode(errors="replace")
        return text.splitlines()[-_TAIL_LINES:]

    def _timeout_error(self, seconds: float) -> WorkerTimeoutError:
        return WorkerTimeoutError(f"no answer within {seconds:g} s", self._tail())

    def _death(self) -> WorkerDiedError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        return WorkerDiedError(_describe(self._process.returncode), self._tail())


def _start(nice: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise WorkerStartError(f"no socket for the worker: {error}") from error
    # -P: the current folder must not provide modules to the worker.
    command = [sys.executable, "-P", "-m", "magweld.runtime.worker"]
    command += [str(theirs.fileno()), str(os.getpid()), str(nice)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        ours.close()
        raise WorkerStartError(f"cannot run {sys.executable!r}: {error}") from error
    finally:
        theirs.close()
    return ours, process


def _describe(status: int | None) -> str:
    if status is None:
        return "the worker closed its socket"
    if status >= 0:
        return f"the worker exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the worker was killed by {name}"
