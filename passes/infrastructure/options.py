"""Owns the conversion between the text of pass options and dataclass fields."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from magweld.diagnostics import PipelineSyntaxError, Span, did_you_mean
from magweld.passes.infrastructure.option_codecs import Codec, codec_of

T = TypeVar("T")

# The part of a docstring that describes fields, and the entries in it.
_SECTION = re.compile(r"\n(?:Attributes|Options):\n")
_ENTRY = re.compile(r" {4}(?P<name>\w+): (?P<text>\S.*)")
_CONTINUED = " " * 8

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class OptionInfo:
    """What a user has to know about one option.

    Attributes:
        name: Spelling in pipeline text.
        type_name: What values look like, such as `int` or `one of f32, bf16`.
        default: Text of the default value; None if the option must be given.
        help: The help text of the field's annotation, or what the docstring of the
            class says about it; "" if neither has one.
    """

    name: str
    type_name: str
    default: str | None
    help: str


@dataclass(frozen=True)
class _Assignment:
    name: str
    name_span: Span
    value: str | None
    value_span: Span


def parse_options(cls: type[T], text: str, span: Span | None = None) -> T:
    """Make an instance of a dataclass from the text `key=value other={1, 2}`.

    Args:
        cls: A frozen dataclass; underscores of field names are dashes in text.
        text: The whole pipeline text, so that errors show their place in it.
        span: The part of `text` that holds the options; all of it by default.

    Raises:
        PipelineSyntaxError: An option is unknown, doubled, missing or ill-formed.
    """
    span = span or Span(0, len(text))
    codecs = _codecs(cls)
    values: dict[str, Any] = {}
    for assignment in _assignments(text, span):
        if assignment.name not in codecs:
            hint = did_you_mean(assignment.name, codecs)
            message = f"unknown option '{assignment.name}'{hint}"
            raise PipelineSyntaxError(message, text, assignment.name_span)
        field_name = _field_name(assignment.name)
        if field_name in values:
            message = f"option '{assignment.name}' is given twice"
            raise PipelineSyntaxError(message, text, assignment.name_span)
        values[field_name] = _decode(codecs[assignment.name], assignment, text)
    missing = [info.name for info in describe_options(cls) if info.default is None]
    for name in missing:
        if _field_name(name) not in values:
            raise PipelineSyntaxError(f"option '{name}' must be given", text, span)
    try:
        return cls(**values)
    except ValueError as error:  # what __post_init__ says about the values together
        raise PipelineSyntaxError(str(error), text, span) from error


def format_options(instance: Any) -> str:
    """Return the option text of a dataclass instance; defaults are left out."""
    codecs = _codecs(type(instance))
    parts = []
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if value != _default_of(field):
            name = _option_name(field.name)
            parts.append(f"{name}={codecs[name].encode(value)}")
    return " ".join(parts)


def describe_options(cls: type) -> tuple[OptionInfo, ...]:
    """Describe the options of a dataclass in the order of its fields."""
    codecs = _codecs(cls)
    hints = get_type_hints(cls, include_extras=True)
    written = attribute_texts(cls)
    infos = []
    for field in dataclasses.fields(cls):
        name = _option_name(field.name)
        default = _default_of(field)
        texts = [m for m in getattr(hints[field.name], "__metadata__", ())]
        infos.append(
            OptionInfo(
                name=name,
                type_name=codecs[name].type_name,
                default=None if default is _MISSING else codecs[name].encode(default),
                help=next(
                    (text for text in texts if isinstance(text, str)),
                    written.get(field.name, ""),
                ),
            )
        )
    return tuple(infos)


def attribute_texts(cls: type) -> dict[str, str]:
    """Return what the docstrings of a class and of its bases say about each field."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = _SECTION.split(inspect.cleandoc(base.__doc__ or ""), maxsplit=1)
        name = ""
        for line in section[1].splitlines() if len(section) > 1 else ():
            entry = _ENTRY.fullmatch(line)
            if entry is not None:
                name = entry["name"]
                texts[name] = entry["text"]
            elif line.startswith(_CONTINUED) and name:
                texts[name] += f" {line.strip()}"
            elif line.strip():
                break
    return texts


def without_attributes(text: str) -> str:
    """Return a docstring without the section that describes the fields."""
    return _SECTION.split(text, maxsplit=1)[0].rstrip()


_MISSING = dataclasses.MISSING


def _default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not _MISSING:
        return field.default_factory()
    return field.default


def _codecs(cls: type) -> dict[str, Codec]:
    hints = get_type_hints(cls)
    return {
        _option_name(field.name): codec_of(hints[field.name])
        for field in dataclasses.fields(cls)
    }


def _option_name(field_name: str) -> str:
    return field_name.replace("_", "-")


def _field_name(option_name: str) -> str:
    return option_name.replace("-", "_")


def _decode(codec: Codec, assignment: _Assignment, text: str) -> Any:
    if assignment.value is None and codec.bare_value is not None:
        return codec.decode(codec.bare_value)
    if assignment.value is None:
        message = f"option '{assignment.name}' needs a value: {codec.type_name}"
        raise PipelineSyntaxError(message, text, assignment.name_span)
    try:
        return codec.decode(assignment.value)
    except ValueError as error:
        message = (
            f"bad value for option '{assignment.name}': "
            f"expected {codec.type_name}, got '{assignment.value}'"
        )
        close = difflib.get_close_matches(assignment.value, codec.choices, n=1)
        message += f"; did you mean '{close[0]}'?" if close else ""
        raise PipelineSyntaxError(message, text, assignment.value_span) from error


def _assignments(text: str, span: Span) -> Iterator[_Assignment]:
    position = span.start
    while True:
        while position < span.end and text[position].isspace():
            position += 1
        if position >= span.end:
            return
        match = _NAME.match(text, position, span.end)
        if match is None:
            at = Span(position, position + 1)
            raise PipelineSyntaxError("expected the name of an option", text, at)
        name_span = Span(match.start(), match.end())
        position = match.end()
        value, value_span = None, name_span
        if position < span.end and text[position] == "=":
            value_span = Span(position + 1, _end_of_value(text, position + 1, span.end))
            value = text[value_span.start : value_span.end]
            position = value_span.end
        elif position < span.end and not text[position].isspace():
            at = Span(position, position + 1)
            message = f"expected '=' after option '{match.group()}'"
            raise PipelineSyntaxError(message, text, at)
        yield _Assignment(match.group(), name_span, value, value_span)


def _end_of_value(text: str, start: int, end: int) -> int:
    """Return where a value ends: at white space outside quotes and braces."""
    depth, quoted, position = 0, False, start
    while position < end:
        char = text[position]
        if char == '"':
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
        elif not quoted and depth == 0 and char.isspace():
            break
        position += 1
    if quoted or depth:
        what = "quote" if quoted else "brace"
        message = f"unbalanced {what} in the value of an option"
        raise PipelineSyntaxError(message, text, Span(start, position))
    return position
