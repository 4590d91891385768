"""Owns `--verify-diagnostics`: expected diagnostics in comments against emitted ones.

The comments are upstream's: `expected-error {{text}}`, with `@+1`, `@-2`, `@above`,
`@below` or `@unknown` for the line, and `expected-error-re {{a {{[0-9]+}} b}}` with
regular expressions inside inner braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from magweld.diagnostics import Diagnostic, MagweldError, Position, Severity

_DESIGNATOR = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)? *"
    r"(?P<where>@(?:[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\}\s*$"
)
_INNER = re.compile(r"\{\{(.*?)\}\}")
# MLIR adds it to every error of a verifier; upstream's drivers turn it off instead.
_ECHO = "see current operation"


class ExpectationSyntaxError(MagweldError):
    """A comment that looks like an expectation and is none."""


@dataclass(frozen=True)
class Expectation:
    """A diagnostic that has to be emitted.

    Attributes:
        severity: Kind of the diagnostic.
        line: Line of its position, counted from one; None for no position.
        pattern: Found somewhere in its message.
        text: The pattern as it was written.
        position: Where the expectation is written.
    """

    severity: Severity
    line: int | None
    pattern: re.Pattern[str]
    text: str
    position: Position

    def accepts(self, diagnostic: Diagnostic) -> bool:
        """Return whether a diagnostic is the expected one."""
        line = diagnostic.position.line if diagnostic.position else None
        return (
            diagnostic.severity is self.severity
            and line == self.line
            and self.pattern.search(diagnostic.message) is not None
        )


def find_expectations(lines: Sequence[str], first: int, file: str) -> list[Expectation]:
    """Return the expectations in a part of a file.

    Args:
        lines: The lines of the part.
        first: Number of its first line in the file.
        file: Name of the file.

    Raises:
        ExpectationSyntaxError: A regular expression is wrong, or no line fits.
    """
    designators = [_DESIGNATOR.search(line) for line in lines]
    plain = [first + n for n, match in enumerate(designators) if match is None]
    found = []
    for number, match in enumerate(designators, start=first):
        if match is not None:
            position = Position(file, number, match.start() + 1)
            found.append(
                Expectation(
                    Severity(match["severity"]),
                    _line(match["where"], position, plain),
                    _pattern(match, position),
                    match["text"],
                    position,
                )
            )
    return found


def check_diagnostics(
    expectations: Iterable[Expectation], emitted: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """Match emitted diagnostics with expectations, one to one.

    Returns:
        An error for every diagnostic without expectation and the other way round.
    """
    open_expectations = list(expectations)
    complaints = []
    for diagnostic in _flatten(emitted):
        match = next((e for e in open_expectations if e.accepts(diagnostic)), None)
        if match is not None:
            open_expectations.remove(match)
        elif not diagnostic.message.startswith(_ECHO):
            text = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            complaints.append(Diagnostic(Severity.ERROR, text, diagnostic.position))
    for left in open_expectations:
        text = f'expected {left.severity} "{left.text}" was not produced'
        complaints.append(Diagnostic(Severity.ERROR, text, left.position))
    return complaints


def _flatten(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flatten(diagnostic.notes)


def _line(where: str | None, position: Position, plain: list[int]) -> int | None:
    """Return the line that an expectation is about; `plain` holds no expectations."""
    if where is None:
        return position.line
    if where == "@unknown":
        return None
    if where in ("@above", "@below"):
        is_above = where == "@above"
        sides = [n for n in plain if (n < position.line) == is_above]
        if not sides:
            raise _syntax_error(f"no line is {where[1:]}", position)
        return sides[-1] if is_above else sides[0]
    return position.line + int(where[1:])


def _pattern(match: re.Match[str], position: Position) -> re.Pattern[str]:
    if match["regex"] is None:
        return re.compile(re.escape(match["text"]))
    # Odd parts are the insides of inner braces.
    parts = _INNER.split(match["text"])
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = (f"(?:{part})" for part in parts[1::2])
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise _syntax_error(f"bad regular expression: {error}", position) from error


def _syntax_error(message: str, position: Position) -> ExpectationSyntaxError:
    diagnostic = Diagnostic(Severity.ERROR, message, position)
    return ExpectationSyntaxError(message, (diagnostic,))
