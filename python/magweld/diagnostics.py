"""Owns the errors of magweld and the collecting and rendering of MLIR diagnostics."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """Severity of a diagnostic, spelled as MLIR prints it."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"


@dataclass(frozen=True)
class Position:
    """A place in a source file; line and column count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Span:
    """Half-open range of character offsets in one line of text."""

    start: int
    end: int


@dataclass(frozen=True)
class Diagnostic:
    """One diagnostic as plain data, usable after its MLIR context is gone.

    Attributes:
        severity: Error, warning, remark or note.
        message: Text without position and severity.
        position: First source position of the MLIR location, None if unknown.
        notes: Attached notes in order.
    """

    severity: Severity
    message: str
    position: Position | None = None
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        return render_diagnostic(self)


class MagweldError(Exception):
    """Root of all errors that magweld raises on purpose.

    Attributes:
        message: What went wrong, without diagnostics.
        diagnostics: Located diagnostics that explain it, most important first.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        return "\n".join([self.message, *map(str, self.diagnostics)])


class NamedError(MagweldError):
    """An error of a kind that has a name.

    Attributes:
        id: Stable kebab-case name of the kind.
    """

    def __init__(self, id: str, message: str) -> None:
        super().__init__(f"{message} [{id}]")
        self.id = id


class VerificationError(MagweldError):
    """IR that violates an invariant."""


class PassError(MagweldError):
    """A pass that cannot do its work.

    Attributes:
        pass_name: Name of the pass, as in a pipeline; "" while it is not known.
    """

    def __init__(
        self,
        message: str,
        *,
        pass_name: str = "",
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(message, diagnostics)
        self.pass_name = pass_name

    def __str__(self) -> str:
        prefix = f"pass '{self.pass_name}' failed: " if self.pass_name else ""
        return prefix + super().__str__()


class PipelineSyntaxError(MagweldError):
    """Pipeline text that cannot be parsed; `str()` shows a caret under the span.

    Attributes:
        text: The whole pipeline text.
        span: The offending characters in `text`.
    """

    def __init__(self, message: str, text: str, span: Span) -> None:
        super().__init__(message)
        self.text = text
        self.span = span

    def __str__(self) -> str:
        before = self.text[: self.span.start]
        position = Position(
            "<pipeline>", before.count("\n") + 1, len(before) - before.rfind("\n")
        )
        diagnostic = Diagnostic(Severity.ERROR, self.message, position)
        width = max(1, self.span.end - self.span.start)
        return render_diagnostic(diagnostic, self.text, width)


class UnsupportedError(MagweldError):
    """A refusal that explains itself.

    Attributes:
        id: Stable kebab-case name of the refusal.
        reason: What is not supported here.
        where: The operation, node or source line that is refused.
        hint: What the user can do about it.
        nodes: Names of the graph nodes that are refused, as far as they are known.
    """

    def __init__(
        self,
        id: str,
        reason: str,
        *,
        where: str = "",
        hint: str,
        nodes: Sequence[str] = (),
    ) -> None:
        at = f" at {where}" if where else ""
        super().__init__(f"{reason}{at} [{id}]; hint: {hint}")
        self.id = id
        self.reason = reason
        self.where = where
        self.hint = hint
        self.nodes = tuple(nodes)


class ResultMismatchError(MagweldError):
    """Compiled code that gave another result than eager torch."""


@dataclass(frozen=True)
class Refusal:
    """One kind of program that is not compiled.

    Attributes:
        id: Stable name.
        reason: What is not supported, a format string of `detail`.
        hint: What the user can do.
    """

    id: str
    reason: str
    hint: str

    def at(self, where: str, detail: object = "") -> UnsupportedError:
        """Return the error to raise for a place; a detail goes into the reason."""
        reason = self.reason.format(detail=detail)
        return UnsupportedError(self.id, reason, where=where, hint=self.hint)


@contextmanager
def collect_diagnostics(context: Any) -> Iterator[list[Diagnostic]]:
    """Collect every diagnostic that an MLIR context emits inside the `with`.

    Without it, the bindings fold errors into the text of an exception and lose
    warnings. Nothing is printed while diagnostics are collected.

    Args:
        context: An `ir.Context`.

    Yields:
        A list that grows in order of emission; it stays valid afterwards.
    """
    collected: list[Diagnostic] = []

    def keep(diagnostic: Any) -> bool:
        collected.append(from_mlir(diagnostic))
        return True

    emits_errors = context.emit_error_diagnostics
    # Off, parse and verify errors would bypass handlers and land in MLIRError only.
    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(keep)
    try:
        yield collected
    finally:
        handler.detach()
        context.emit_error_diagnostics = emits_errors


def from_mlir(diagnostic: Any) -> Diagnostic:
    """Copy an `ir.Diagnostic` or `ir.DiagnosticInfo` into plain data."""
    return Diagnostic(
        severity=Severity[diagnostic.severity.name],
        message=diagnostic.message.strip(),
        position=position_of(diagnostic.location),
        notes=tuple(from_mlir(note) for note in diagnostic.notes),
    )


def position_of(location: Any) -> Position | None:
    """Return the first file position inside an `ir.Location`, None if it has none.

    Name locations lead to their child, call sites to the callee before the caller,
    fused locations to their parts in order.
    """
    # Locations in the diagnostics of an MLIRError come as the base class.
    location = type(location).from_attr(location.attr, location.context)
    if hasattr(location, "filename"):
        return Position(location.filename, location.start_line, location.start_col)
    parts = [
        *(getattr(location, name, None) for name in ("child_loc", "callee", "caller")),
        *getattr(location, "locations", ()),
    ]
    positions = (position_of(part) for part in parts if part is not None)
    return next((found for found in positions if found is not None), None)


def render_diagnostic(
    diagnostic: Diagnostic, source: str | None = None, width: int = 1
) -> str:
    """Render `file:line:col: error: text`, then the source line and a caret.

    Args:
        diagnostic: What to render; its notes follow it.
        source: Text that positions refer to; without it no line is shown.
        width: Number of characters that the caret underlines.
    """
    at = f"{diagnostic.position}: " if diagnostic.position else ""
    lines = [f"{at}{diagnostic.severity}: {diagnostic.message}"]
    lines += _source_lines(diagnostic.position, source, width)
    lines += [render_diagnostic(note, source) for note in diagnostic.notes]
    return "\n".join(lines)


def _source_lines(
    position: Position | None, source: str | None, width: int
) -> list[str]:
    text_lines = source.splitlines() if source is not None else []
    if position is None or not 0 < position.line <= len(text_lines):
        return []
    line = text_lines[position.line - 1]
    # Tabs before the caret are kept so that it stays under its character.
    indent = "".join("\t" if c == "\t" else " " for c in line[: position.column - 1])
    return [line, indent + "^" * width]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a clause that offers the nearest known name, or lists a few names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else "; there are none"
