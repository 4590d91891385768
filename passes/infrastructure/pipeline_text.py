"""Owns the grammar of pipeline text: its parser and its printer.

    pipeline := element (',' element)*
    element  := name ('{' options '}')? | name '(' pipeline ')'

Options are kept as they are written: what they mean is a matter of the pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from magweld.diagnostics import PipelineSyntaxError, Span

ROOT = "builtin.module"

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_SPACE = re.compile(r"\s*")
# Upstream's parser is recursive in native code; deeper text would overrun its stack.
_MAX_DEPTH = 32


@dataclass(frozen=True)
class Element:
    """A pass or a pipeline by name.

    Attributes:
        name: As it is registered.
        options: Text between the braces; None without braces.
        span: Place of the name.
        options_span: Place of `options`; empty, behind the name, without braces.
    """

    name: str
    options: str | None = None
    span: Span = field(default=Span(0, 0), compare=False)
    options_span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True)
class Nest:
    """A pipeline that runs on each operation of one kind, directly below."""

    anchor: str
    children: tuple[Node, ...]
    span: Span = field(default=Span(0, 0), compare=False)


Node = Element | Nest


def parse_pipeline(text: str) -> tuple[Node, ...]:
    """Parse pipeline text, with or without the outer `builtin.module(...)`.

    Returns:
        The nodes of the outer pipeline, which runs on a module.

    Raises:
        PipelineSyntaxError: With the span of what does not fit.
    """
    parser = _Parser(text)
    nodes = parser.parse_all()
    match nodes:
        case (Nest(anchor=anchor, children=children),) if anchor == ROOT:
            return children
    return nodes


def format_pipeline(nodes: Iterable[Node]) -> str:
    """Print nodes such that `parse_pipeline` gives them back."""
    return f"{ROOT}({_join(nodes)})"


def _join(nodes: Iterable[Node]) -> str:
    return ",".join(format_node(node) for node in nodes)


def format_node(node: Node) -> str:
    """Print one node without the outer `builtin.module(...)`."""
    match node:
        case Nest(anchor=anchor, children=children):
            return f"{anchor}({_join(children)})"
        case Element(name=name, options=None):
            return name
        case Element(name=name, options=options):
            return f"{name}{{{options}}}"


class _Parser:
    """Recursive descent over one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._skip_space()

    def parse_all(self) -> tuple[Node, ...]:
        if self._position == len(self._text):
            return ()
        nodes = self._pipeline(depth=0)
        if self._position < len(self._text):
            raise self._error("expected ',' or the end of the pipeline")
        return nodes

    def _pipeline(self, depth: int) -> tuple[Node, ...]:
        nodes = [self._node(depth)]
        while self._accept(","):
            nodes.append(self._node(depth))
        return tuple(nodes)

    def _node(self, depth: int) -> Node:
        match = _NAME.match(self._text, self._position)
        if match is None:
            raise self._error("expected the name of a pass")
        span = Span(match.start(), match.end())
        self._position = match.end()
        self._skip_space()
        if self._peek() == "(":
            return Nest(match.group(), self._nested(depth), span)
        if self._peek() != "{":
            return Element(match.group(), None, span, Span(span.end, span.end))
        options_span = self._options()
        options = self._text[options_span.start : options_span.end]
        return Element(match.group(), options, span, options_span)

    def _nested(self, depth: int) -> tuple[Node, ...]:
        opening = self._position
        if depth == _MAX_DEPTH:
            raise self._error(f"pipelines nest at most {_MAX_DEPTH} deep")
        self._accept("(")
        if self._accept(")"):
            return ()
        children = self._pipeline(depth + 1)
        if self._accept(")"):
            return children
        if self._position < len(self._text):
            raise self._error("expected ',' or ')'")
        self._position = opening
        raise self._error("'(' is never closed")

    def _options(self) -> Span:
        opening, depth = self._position, 0
        for position in range(opening, len(self._text)):
            char = self._text[position]
            # Braces count even inside quotes: upstream's parser sees no quotes.
            depth += (char == "{") - (char == "}")
            if depth == 0:
                self._position = position + 1
                self._skip_space()
                return Span(opening + 1, position)
        raise self._error("'{' is never closed")

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _accept(self, char: str) -> bool:
        if self._peek() != char:
            return False
        self._position += 1
        self._skip_space()
        return True

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._position)
        self._position = match.end() if match else self._position

    def _error(self, message: str) -> PipelineSyntaxError:
        at = Span(self._position, min(self._position + 1, len(self._text)))
        return PipelineSyntaxError(message, self._text, at)
