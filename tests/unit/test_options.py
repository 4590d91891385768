"""Pass options: text to fields, fields to text, and errors that show the place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magweld.diagnostics import PipelineSyntaxError, Span
from magweld.passes.infrastructure.options import (
    describe_options,
    format_options,
    parse_options,
)


class Order(StrEnum):
    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True)
class Options:
    count: Annotated[int, "How many."] = 1
    ratio: float = 0.5
    fast: bool = False
    label: str = ""
    tile_sizes: tuple[int, ...] = ()
    labels: tuple[str, ...] = ("a",)
    pair: tuple[int, str] = (0, "x")
    limit: int | None = None
    note: str | None = None
    mode: Literal["near", "far away"] = "near"
    width: Literal[16, 32] = 16
    order: Order = Order.ROWS
    path: Path = Path("here")


@dataclass(frozen=True)
class Required:
    level: str
    depth: int = 0

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise ValueError("depth must not be negative")


TEXTS = st.text(st.characters(codec="utf-8"))
FLOATS = st.floats(allow_nan=False)


@given(
    st.builds(
        Options,
        count=st.integers(),
        ratio=FLOATS,
        fast=st.booleans(),
        label=TEXTS,
        tile_sizes=st.lists(st.integers()).map(tuple),
        labels=st.lists(TEXTS).map(tuple),
        pair=st.tuples(st.integers(), TEXTS),
        limit=st.none() | st.integers(),
        note=st.none() | TEXTS | st.just("none"),
        mode=st.sampled_from(["near", "far away"]),
        width=st.sampled_from([16, 32]),
        order=st.sampled_from(Order),
        path=TEXTS.map(Path),
    )
)
def test_text_gives_the_fields_back(options: Options) -> None:
    text = format_options(options)
    assert parse_options(Options, text) == options
    assert text.count("{") == text.count("}")


def test_default_values_are_not_printed() -> None:
    assert format_options(Options()) == ""
    assert format_options(Options(tile_sizes=(4, 8))) == "tile-sizes={4,8}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Options()),
        ("  count=7  ratio=1e-3 ", Options(count=7, ratio=1e-3)),
        ("fast", Options(fast=True)),
        ("fast=1 count=-2", Options(fast=True, count=-2)),
        ("tile-sizes=4,8", Options(tile_sizes=(4, 8))),
        ("tile-sizes={ 4, 8 }", Options(tile_sizes=(4, 8))),
        ("tile-sizes={}", Options()),
        ('label="a b=c"', Options(label="a b=c")),
        ("label={a b}", Options(label="a b")),
        ('labels="a,b",c', Options(labels=("a,b", "c"))),
        ("limit=none", Options()),
        ('note="none"', Options(note="none")),
        ('mode="far away"', Options(mode="far away")),
        ("width=32", Options(width=32)),
        ("order=columns", Options(order=Order.COLUMNS)),
    ],
)
def test_texts_that_are_read(text: str, expected: Options) -> None:
    assert parse_options(Options, text) == expected


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ("count=x", "expected int, got 'x'", Span(6, 7)),
        ("count=1_0", "expected int", Span(6, 9)),
        ("ratio=nan", "expected float", Span(6, 9)),
        ("fast=perhaps", "expected bool", Span(5, 12)),
        ("fast count", "option 'count' needs a value: int", Span(5, 10)),
        ("tile-sizes=4,b", "expected list of int, got '4,b'", Span(11, 14)),
        ("pair=1", "expected {int, str}", Span(5, 6)),
        ("width=64", "expected one of 16, 32", Span(6, 8)),
        ("order=none", "expected one of rows, columns", Span(6, 10)),
        ("conut=1", "unknown option 'conut'; did you mean 'count'?", Span(0, 5)),
        ("tile_sizes=1", "did you mean 'tile-sizes'?", Span(0, 10)),
        ("count=1 count=2", "option 'count' is given twice", Span(8, 13)),
        ("=1", "expected the name of an option", Span(0, 1)),
        ("count:1", "expected '=' after option 'count'", Span(5, 6)),
        ('label="a', "unbalanced quote", Span(6, 8)),
        ("label={a", "unbalanced brace", Span(6, 8)),
    ],
)
def test_errors_point_at_the_place(text: str, message: str, span: Span) -> None:
    before = "pass{"
    whole = f"{before}{text}}}"
    with pytest.raises(PipelineSyntaxError) as caught:
        parse_options(Options, whole, Span(len(before), len(whole) - 1))
    assert message in caught.value.message
    shift = len(before)
    assert caught.value.span == Span(span.start + shift, span.end + shift)


def test_required_options_and_the_class_s_own_checks() -> None:
    assert parse_options(Required, "level=l2") == Required("l2")
    with pytest.raises(PipelineSyntaxError, match="option 'level' must be given"):
        parse_options(Required, "depth=1")
    with pytest.raises(PipelineSyntaxError, match="depth must not be negative"):
        parse_options(Required, "level=l2 depth=-1")


def test_descriptions_name_type_default_and_help() -> None:
    infos = {info.name: info for info in describe_options(Options)}
    assert infos["count"].help == "How many."
    assert infos["count"].default == "1"
    assert infos["tile-sizes"].type_name == "list of int"
    assert infos["limit"].type_name == "int or none"
    assert describe_options(Required)[0].default is None


def test_a_type_without_text_form_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd:
        table: dict[str, int]

    with pytest.raises(TypeError, match="no text form"):
        describe_options(Odd)
