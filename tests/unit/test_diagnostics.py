"""Errors, and diagnostics of MLIR as plain data and rendered text."""

from __future__ import annotations

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.diagnostics import (
    Diagnostic,
    MagweldError,
    PassError,
    PipelineSyntaxError,
    Position,
    Severity,
    Span,
    UnsupportedError,
    VerificationError,
    collect_diagnostics,
    from_mlir,
    position_of,
    render_diagnostic,
)

BAD = "func.func @f() {\n\tfoo.bar\n  return\n}\n"


def test_parse_errors_are_collected_with_position_and_notes() -> None:
    context = make_context()
    with collect_diagnostics(context) as found, pytest.raises(ir.MLIRError):
        ir.Module.parse(BAD, context)
    (error,) = found
    assert error.severity is Severity.ERROR
    assert error.message.startswith("Dialect `foo' not found")
    assert error.position == Position("-", 2, 2)
    assert error.notes[0].message.startswith("Available dialects:")


def test_errors_that_an_exception_carries_have_positions() -> None:
    with pytest.raises(ir.MLIRError) as raised:
        ir.Module.parse(BAD, make_context())
    (error,) = map(from_mlir, raised.value.error_diagnostics)
    assert error.position == Position("-", 2, 2)
    assert error.notes[0].position == Position("-", 2, 2)


def test_diagnostics_are_collected_only_inside() -> None:
    context = make_context()
    with context, ir.Location.file("a.py", 3, 4) as location:
        with collect_diagnostics(context) as found:
            location.emit_error("first")
        assert not context.emit_error_diagnostics
    assert [str(d) for d in found] == ["a.py:3:4: error: first"]


def test_the_context_is_restored_after_an_exception() -> None:
    context = make_context()
    with pytest.raises(KeyError), collect_diagnostics(context):
        raise KeyError
    with pytest.raises(ir.MLIRError, match="Dialect `foo' not found"):
        ir.Module.parse(BAD, context)


def test_positions_are_found_in_nested_locations() -> None:
    with make_context():
        at, user = ir.Location.file("a.py", 3, 4), ir.Location.file("b.py", 5, 6)
        unknown = ir.Location.unknown()
        expected = Position("a.py", 3, 4)
        assert position_of(at) == expected
        assert position_of(ir.Location.name("x", at)) == expected
        assert position_of(ir.Location.callsite(at, [user])) == expected
        assert position_of(ir.Location.callsite(unknown, [at])) == expected
        assert position_of(ir.Location.fused([unknown, at, user])) == expected
        assert position_of(unknown) is None


def test_the_caret_stands_under_the_column() -> None:
    note = Diagnostic(Severity.NOTE, "see here", Position("f.mlir", 1, 1))
    error = Diagnostic(Severity.ERROR, "no", Position("f.mlir", 2, 2), (note,))
    assert render_diagnostic(error, BAD).splitlines() == [
        "f.mlir:2:2: error: no",
        "\tfoo.bar",
        "\t^",
        "f.mlir:1:1: note: see here",
        "func.func @f() {",
        "^",
    ]


@pytest.mark.parametrize("position", [None, Position("f", 0, 0), Position("f", 99, 1)])
def test_a_position_outside_of_the_source_shows_no_line(
    position: Position | None,
) -> None:
    error = Diagnostic(Severity.ERROR, "no", position)
    assert render_diagnostic(error, BAD).endswith("error: no")


def test_errors_say_what_they_carry() -> None:
    located = Diagnostic(Severity.ERROR, "bad op", Position("f", 1, 2))
    assert str(VerificationError("invalid IR", [located])) == (
        "invalid IR\nf:1:2: error: bad op"
    )
    assert str(PassError("no", pass_name="cse")) == "pass 'cse' failed: no"
    assert str(PassError("no")) == "no"
    refusal = UnsupportedError("odd-rank", "rank 3", where="matmul_0", hint="reshape")
    assert str(refusal) == "rank 3 at matmul_0 [odd-rank]; hint: reshape"
    kinds = (VerificationError, PassError, PipelineSyntaxError, UnsupportedError)
    assert all(issubclass(kind, MagweldError) for kind in kinds)


def test_a_pipeline_error_underlines_its_span() -> None:
    error = PipelineSyntaxError("unknown pass 'b'", "a,\nbc", Span(3, 5))
    assert str(error).splitlines() == [
        "<pipeline>:2:1: error: unknown pass 'b'",
        "bc",
        "^^",
    ]
