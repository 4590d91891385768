"""Owns the text form of single option values, one codec for each kind of type."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

_INTEGER = re.compile(r"[+-]?[0-9]+")
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")
_QUOTED = re.compile(r'"[^"]*"')
# What would end or nest a value in pipeline text, or read as a list or a quotation.
_NEEDS_QUOTES = re.compile(r'[\s,"\'\\{}()=]')
_ESCAPED = frozenset('"\\{}') | {chr(code) for code in range(0x20)}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_NONE = "none"


@dataclass(frozen=True)
class Codec:
    """How the values of one type are written.

    Attributes:
        type_name: What a value looks like, for messages and documentation.
        decode: Text to value; raises ValueError.
        encode: Value to text, such that `decode(encode(v)) == v`.
        bare_value: What an option without `=value` means; None if it must have one.
        choices: The values where there are few, for hints.
    """

    type_name: str
    decode: Callable[[str], Any]
    encode: Callable[[Any], str]
    bare_value: str | None = None
    choices: tuple[str, ...] = ()


def codec_of(annotation: Any) -> Codec:
    """Return the codec of a field's type.

    Raises:
        TypeError: The type cannot be an option; a mistake in the pass's class.
    """
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice({str(member.value): member for member in annotation})
    maker = _GENERIC.get(get_origin(annotation))
    if maker is None:
        raise TypeError(f"no text form for options of type {annotation}")
    return maker(get_args(annotation))


def _decode_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _decode_float(text: str) -> float:
    value = float(text)
    if "_" in text or text != text.strip() or math.isnan(value):
        raise ValueError(text)
    return value


def _decode_bool(text: str) -> bool:
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


def _decode_str(text: str) -> str:
    if _QUOTED.fullmatch(text):
        return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text[1:-1])
    if '"' in text:
        raise ValueError(text)
    if text.startswith("{") and text.endswith("}"):
        return text[1:-1]
    return text


def _encode_str(value: str) -> str:
    if value and value != _NONE and not _NEEDS_QUOTES.search(value):
        return value
    escaped = (f"\\{ord(c):02X}" if c in _ESCAPED else c for c in value)
    return f'"{"".join(escaped)}"'


def _choice(members: dict[str, Any]) -> Codec:
    texts = {_encode_str(text): value for text, value in members.items()}

    def decode(text: str) -> Any:
        if _decode_str(text) not in members:
            raise ValueError(text)
        return members[_decode_str(text)]

    def encode(value: Any) -> str:
        return next(text for text, member in texts.items() if member == value)

    return Codec(f"one of {', '.join(texts)}", decode, encode, choices=tuple(members))


def _literal(arguments: tuple[Any, ...]) -> Codec:
    return _choice({str(argument): argument for argument in arguments})


def _optional(arguments: tuple[Any, ...]) -> Codec:
    inner_types = [a for a in arguments if a is not types.NoneType]
    if len(inner_types) != 1:
        raise TypeError(f"no text form for a union of {arguments}")
    inner = codec_of(inner_types[0])
    return Codec(
        f"{inner.type_name} or {_NONE}",
        lambda text: None if text == _NONE else inner.decode(text),
        lambda value: _NONE if value is None else inner.encode(value),
        inner.bare_value,
    )


def _tuple(arguments: tuple[Any, ...]) -> Codec:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _sequence(codec_of(arguments[0]))
    return _record(tuple(codec_of(argument) for argument in arguments))


def _sequence(element: Codec) -> Codec:
    return Codec(
        f"list of {element.type_name}",
        lambda text: tuple(element.decode(part) for part in _split(text)),
        lambda value: "{" + ",".join(map(element.encode, value)) + "}",
    )


def _record(elements: tuple[Codec, ...]) -> Codec:
    def decode(text: str) -> tuple[Any, ...]:
        parts = _split(text)
        if len(parts) != len(elements):
            raise ValueError(text)
        return tuple(e.decode(part) for e, part in zip(elements, parts, strict=True))

    def encode(value: tuple[Any, ...]) -> str:
        texts = [e.encode(item) for e, item in zip(elements, value, strict=True)]
        return "{" + ",".join(texts) + "}"

    names = ", ".join(element.type_name for element in elements)
    return Codec(f"{{{names}}}", decode, encode)


def _split(text: str) -> list[str]:
    """Split a list at its commas outside quotes and braces; braces around it go."""
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    if not text.strip():
        return []
    parts, depth, quoted = [""], 0, False
    for char in text:
        quoted ^= char == '"'
        depth += 0 if quoted else (char == "{") - (char == "}")
        if char == "," and not quoted and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


_SCALARS: dict[Any, Codec] = {
    int: Codec("int", _decode_int, str),
    float: Codec("float", _decode_float, repr),
    bool: Codec("bool", _decode_bool, lambda v: str(v).lower(), bare_value="true"),
    str: Codec("str", _decode_str, _encode_str),
    Path: Codec("path", lambda t: Path(_decode_str(t)), lambda v: _encode_str(str(v))),
}

_GENERIC: dict[Any, Callable[[tuple[Any, ...]], Codec]] = {
    Literal: _literal,
    Union: _optional,
    types.UnionType: _optional,
    tuple: _tuple,
}
