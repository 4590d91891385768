"""Pipelines: text to steps, running them, and errors that name the pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from magweld.bindings import arith, func, ir
from magweld.context import make_context
from magweld.diagnostics import (
    PassError,
    PipelineSyntaxError,
    Severity,
    UnsupportedError,
)
from magweld.passes.infrastructure.base import FunctionPass, Pass, apply_patterns
from magweld.passes.infrastructure.execution import RunOptions, run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline, Upstream
from magweld.passes.ir.utils import located_error, operations_of

MODULE = """
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.muli %a, %a : i32
  return %0 : i32
}
func.func private @declared()
func.func @g() {
  return
}
"""


@pytest.fixture
def module() -> Iterator[ir.Module]:
    with make_context(), ir.Location.unknown():
        yield ir.Module.parse(MODULE)


@dataclass(frozen=True)
class Call(Pass):
    """Call a function with the module."""

    name: ClassVar[str] = "call"
    function: Callable[[ir.Operation], None]

    def run(self, module: ir.Operation) -> None:
        self.function(module)


@dataclass(frozen=True)
class Visit(FunctionPass):
    """Remember the functions."""

    name: ClassVar[str] = "visit"
    seen: list[str]

    def run_on_function(self, function: func.FuncOp) -> None:
        self.seen.append(function.name.value)


def run_call(module: ir.Module, function: Callable[[ir.Operation], None]) -> None:
    run_pipeline(Pipeline((Upstream("cse"), Call(function), Upstream("cse"))), module)


def break_signature(module: ir.Operation) -> None:
    function = module.regions[0].blocks[0].operations[0]
    function.attributes["function_type"] = ir.TypeAttr.parse("() -> ()")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", "builtin.module()"),
        ("cse,canonicalize", "builtin.module(cse,canonicalize)"),
        ("builtin.module(fold-transpose)", "builtin.module(fold-transpose)"),
        (
            "cse{},func.func(cse,canonicalize{max-iterations=3}),fold-transpose",
            "builtin.module(cse{},func.func(cse,canonicalize{max-iterations=3}),"
            "fold-transpose)",
        ),
        (
            "func.func(cse,fold-transpose,canonicalize)",
            "builtin.module(func.func(cse),fold-transpose,func.func(canonicalize))",
        ),
        ("any(sparsifier)", "builtin.module(any(sparsifier))"),
        ("gpu-lower-to-nvvm-pipeline", "builtin.module(gpu-lower-to-nvvm-pipeline)"),
        (
            "func.func(buffer-deallocation-pipeline)",
            "builtin.module(func.func(buffer-deallocation-pipeline))",
        ),
    ],
)
def test_text_becomes_steps_and_text_again(text: str, printed: str) -> None:
    pipeline = Pipeline.parse(text)
    assert str(pipeline) == printed
    assert Pipeline.parse(printed) == pipeline


@pytest.mark.parametrize(
    ("text", "message", "culprit"),
    [
        ("cse,cze", "'cze' does not refer to a registered pass", "cze"),
        ("fold-transpos", "did you mean 'fold-transpose'?", "fold-transpos"),
        ("cse{loud=1}", "no such option loud", "cse"),
        ("fold-transpose{x=1}", "unknown option 'x'", "x"),
        (
            "func.func(convert-func-to-llvm)",
            "Can't add pass",
            "convert-func-to-llvm",
        ),
        ("func.func(sparsifier)", "Can't add pass", "sparsifier"),
        (
            "any(func.func(gpu-lower-to-nvvm-pipeline))",
            "Can't add pass",
            "gpu-lower-to-nvvm-pipeline",
        ),
        ("any(fold-transpose)", "cannot be nested under any", "fold-transpose"),
        (
            "func.func(scf.for(fold-transpose))",
            "cannot be nested under scf.for",
            "fold-transpose",
        ),
    ],
)
def test_bad_pipelines_are_refused_at_the_place(
    text: str, message: str, culprit: str
) -> None:
    with pytest.raises(PipelineSyntaxError) as caught:
        Pipeline.parse(text)
    assert message in caught.value.message
    span = caught.value.span
    assert text[span.start : span.end] == culprit


def test_steps_run_in_order_on_the_module(module: ir.Module) -> None:
    counts: list[int] = []

    def count(root: ir.Operation) -> None:
        counts.append(len(operations_of(root, arith.MulIOp)))

    run_pipeline(Pipeline((Call(count), Upstream("canonicalize"), Call(count))), module)
    assert counts == [1, 0]


def test_a_function_pass_sees_functions_with_a_body(module: ir.Module) -> None:
    visit = Visit([])
    run_pipeline(Pipeline((visit,)), module)
    assert visit.seen == ["f", "g"]


def test_operations_made_by_a_pass_have_a_location(module: ir.Module) -> None:
    def make(root: ir.Operation) -> None:
        with ir.InsertionPoint(root.regions[0].blocks[0]):
            func.FuncOp("made", ir.FunctionType.get([], []), visibility="private")

    run_call(module, make)
    assert "@made" in str(module)


def test_the_failing_upstream_pass_is_named(module: ir.Module) -> None:
    pipeline = Pipeline.parse("cse,func.func(canonicalize,inline),cse")
    with pytest.raises(PassError) as caught:
        run_pipeline(pipeline, module)
    assert caught.value.pass_name == "inline"
    assert caught.value.diagnostics[0].severity is Severity.ERROR
    position = caught.value.diagnostics[0].position
    assert position is not None
    assert position.line == 2


def test_invalid_ir_is_blamed_on_the_pass_that_left_it(module: ir.Module) -> None:
    with pytest.raises(PassError, match="entry block must have 0 arguments") as caught:
        run_call(module, break_signature)
    assert caught.value.pass_name == "call"


def test_without_verification_nobody_looks(module: ir.Module) -> None:
    pipeline = Pipeline((Call(break_signature),))
    run_pipeline(pipeline, module, RunOptions(verify_each=False))


def test_the_end_alone_can_be_verified(module: ir.Module) -> None:
    pipeline = Pipeline((Call(break_signature), Call(lambda _: None)))
    with pytest.raises(PassError):
        run_pipeline(pipeline, module, RunOptions(verify_each=False, verify_last=True))


def test_a_pass_error_gets_the_name_of_its_pass(module: ir.Module) -> None:
    def refuse(root: ir.Operation) -> None:
        raise located_error(operations_of(root, arith.AddIOp)[0], "is not wanted")

    with pytest.raises(PassError) as caught:
        run_call(module, refuse)
    assert caught.value.pass_name == "call"
    (diagnostic,) = caught.value.diagnostics
    assert str(diagnostic) == "-:3:8: error: 'arith.addi' op is not wanted"


def test_an_emitted_error_fails_the_pass(module: ir.Module) -> None:
    with pytest.raises(PassError, match="no good") as caught:
        run_call(module, lambda root: root.location.emit_error("no good"))
    assert caught.value.pass_name == "call"


def test_other_errors_of_ours_keep_their_type(module: ir.Module) -> None:
    def refuse(root: ir.Operation) -> None:
        raise UnsupportedError("odd-thing", "odd", hint="make it even")

    with pytest.raises(UnsupportedError) as caught:
        run_call(module, refuse)
    assert caught.value.__notes__ == ["in pass 'call'"]


def test_a_bug_in_a_pass_is_an_internal_error_with_its_cause(module: ir.Module) -> None:
    with pytest.raises(PassError, match="internal error: ZeroDivisionError") as caught:
        run_call(module, lambda root: print(1 // 0))
    assert caught.value.pass_name == "call"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupt_is_no_error_of_the_pass(module: ir.Module) -> None:
    def interrupt(root: ir.Operation) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_call(module, interrupt)


def test_a_native_error_inside_a_pass_keeps_its_diagnostics(module: ir.Module) -> None:
    with pytest.raises(PassError, match="internal error: MLIRError") as caught:
        run_call(module, lambda root: print(ir.Module.parse("func.func @f(")))
    assert any(d.severity is Severity.ERROR for d in caught.value.diagnostics)


def test_a_wrong_upstream_step_is_refused_before_it_aborts(module: ir.Module) -> None:
    with pytest.raises(PipelineSyntaxError, match="Can't add pass"):
        run_pipeline(Pipeline((Upstream("func.func(sparsifier)"),)), module)


def test_patterns_return_whether_they_rewrote(module: ir.Module) -> None:
    def to_add(op: arith.MulIOp, rewriter: object) -> bool:
        if op.lhs != op.rhs:
            return False
        added = arith.AddIOp(op.lhs, op.rhs)
        rewriter.replace_op(op.operation, added.operation)  # type: ignore[attr-defined]
        return True

    source = "func.func @f(%a: i32, %b: i32) -> (i32, i32) {\n"
    source += "%0 = arith.muli %a, %a : i32\n%1 = arith.muli %a, %b : i32\n"
    root = ir.Module.parse(source + "return %0, %1 : i32, i32\n}").operation
    apply_patterns(root, [(arith.MulIOp, to_add)])
    assert len(operations_of(root, arith.AddIOp)) == 1
    assert len(operations_of(root, arith.MulIOp)) == 1


def test_an_exception_in_a_pattern_reaches_the_caller(module: ir.Module) -> None:
    def fail(op: arith.AddIOp, rewriter: object) -> bool:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        apply_patterns(module.operation, [(arith.AddIOp, fail)])


def test_the_ir_after_every_pass_can_be_dumped(
    module: ir.Module, tmp_path: Path
) -> None:
    visit = Visit([])
    pipeline = Pipeline((Upstream("cse"), visit))
    run_pipeline(pipeline, module, RunOptions(dump_directory=tmp_path))
    assert sorted(p.name for p in tmp_path.rglob("*.mlir")) == [
        "0_cse.mlir",
        "1_visit.mlir",
    ]
