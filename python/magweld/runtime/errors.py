"""Owns the errors of the runtime, the compile worker and the compile cache."""

from __future__ import annotations

from collections.abc import Sequence

from magweld.diagnostics import MagweldError, NamedError


class ProgramError(NamedError):
    """A program that contradicts itself, its object code or what a step returned."""


class InputMismatchError(MagweldError):
    """An argument that a program was not compiled for.

    Attributes:
        index: Position of the argument; -1 if their number is wrong.
    """

    def __init__(self, index: int, message: str) -> None:
        super().__init__(
            f"{message} [input-mismatch]; hint: compile the graph for these inputs"
        )
        self.index = index


class WorkerError(MagweldError):
    """A compilation that did not come back from its worker process.

    Attributes:
        id: Stable kebab-case name of the kind of failure.
        reason: What happened.
        stderr_tail: Last lines that the worker wrote to its standard error.
    """

    id = "worker-failed"
    hint = "the reason above and the worker's last lines say what to report"

    def __init__(self, reason: str, stderr_tail: Sequence[str] = ()) -> None:
        message = f"{reason} [{self.id}]; hint: {self.hint}"
        if stderr_tail:
            message += "\nlast lines of the worker:\n" + "\n".join(stderr_tail)
        super().__init__(message)
        self.reason = reason
        self.stderr_tail = tuple(stderr_tail)


class WorkerStartError(WorkerError):
    """The worker process could not be started or did not get ready."""

    id = "worker-start"
    hint = "check that this interpreter may start itself as a child process"


class WorkerDiedError(WorkerError):
    """The worker ended in the middle of a request: killed, aborted, out of memory."""

    id = "worker-died"
    hint = "the graph is run without compilation; memory limits are a common cause"


class WorkerTimeoutError(WorkerError):
    """The worker did not answer in time and was killed."""

    id = "worker-timeout"
    hint = "raise the time limit if the graph is very large"


class WorkerProtocolError(WorkerError):
    """The worker answered with something that is not an answer."""

    id = "worker-protocol"
    hint = "something in the worker wrote to the pipe that belongs to magweld"


class TaskFailedError(WorkerError):
    """The task raised in the worker; the worker itself is well.

    Attributes:
        error_type: Qualified name of the exception class in the worker.
        error_message: `str()` of that exception.
        remote_traceback: Its traceback as text.
    """

    id = "task-failed"
    hint = "the compiler refused this graph; it runs without compilation"

    def __init__(
        self, error_type: str, error_message: str, remote_traceback: str
    ) -> None:
        super().__init__(f"{error_type}: {error_message}")
        self.error_type = error_type
        self.error_message = error_message
        self.remote_traceback = remote_traceback
