"""The grammar of pipeline text: parser, printer, errors with a span."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magweld.diagnostics import PipelineSyntaxError, Span
from magweld.passes.infrastructure.pipeline_text import (
    Element,
    Nest,
    format_pipeline,
    parse_pipeline,
)

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
OPTION_TEXTS = st.recursive(
    st.text(st.sampled_from('abc =",()_1')),
    lambda inner: st.builds("{{{}}}{}".format, inner, inner),
    max_leaves=4,
)
NODES = st.recursive(
    st.builds(Element, NAMES, st.none() | OPTION_TEXTS),
    lambda inner: st.builds(
        Nest,
        st.sampled_from(["func.func", "gpu.module", "any"]),
        st.lists(inner, min_size=1, max_size=3).map(tuple),
    ),
    max_leaves=12,
)


@given(st.lists(NODES, max_size=5).map(tuple))
def test_printed_nodes_parse_to_themselves(nodes: tuple[Element | Nest, ...]) -> None:
    text = format_pipeline(nodes)
    assert parse_pipeline(text) == nodes
    assert format_pipeline(parse_pipeline(text)) == text


def test_the_outer_module_and_space_make_no_difference() -> None:
    expected = (
        Element("a"),
        Element("b", "k=v"),
        Nest("func.func", (Element("c"), Element("d", "x={1, 2}"))),
    )
    text = "a,b{k=v},func.func(c,d{x={1, 2}})"
    spaced = " a , b {k=v} , func.func ( c , d{x={1, 2}} ) "
    assert parse_pipeline(text) == expected
    assert parse_pipeline(spaced) == expected
    assert parse_pipeline(f"builtin.module({spaced})") == expected
    assert parse_pipeline("") == parse_pipeline("builtin.module()") == ()


def test_spans_are_places_in_the_text() -> None:
    text = "builtin.module(a, func.func(bcd{k=v}))"
    _, nest = parse_pipeline(text)
    assert isinstance(nest, Nest)
    (child,) = nest.children
    assert isinstance(child, Element)
    assert text[child.span.start : child.span.end] == "bcd"
    assert text[child.options_span.start : child.options_span.end] == "k=v"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a,", "expected the name of a pass", 3),
        (",a", "expected the name of a pass", 1),
        ("a b", "expected ',' or the end of the pipeline", 3),
        ("a)", "expected ',' or the end of the pipeline", 2),
        ("func.func(a", "'(' is never closed", 10),
        ("func.func(a}", "expected ',' or ')'", 12),
        ("a{k=v", "'{' is never closed", 2),
        ("a{k={v}", "'{' is never closed", 2),
        ("a\n,\n%", "expected the name of a pass", 1),
        ("any(" * 40, "pipelines nest at most 32 deep", 132),
    ],
)
def test_errors_show_the_column(text: str, message: str, column: int) -> None:
    with pytest.raises(PipelineSyntaxError) as caught:
        parse_pipeline(text)
    assert message in caught.value.message
    line = text[: caught.value.span.start].count("\n") + 1
    assert str(caught.value).startswith(f"<pipeline>:{line}:{column}: error: ")


@given(st.text(st.sampled_from("ab(){},= \n\"'.-"), max_size=40))
def test_garbled_text_is_parsed_or_refused(text: str) -> None:
    try:
        nodes = parse_pipeline(text)
    except PipelineSyntaxError as error:
        span = error.span
    else:
        span = Span(0, 0)
        assert parse_pipeline(format_pipeline(nodes)) == nodes
    assert 0 <= span.start <= span.end <= len(text)
