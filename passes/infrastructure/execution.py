"""Owns the running of pipelines: one PassManager, and errors that name the pass."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magweld.bindings import ir, passmanager
from magweld.diagnostics import (
    Diagnostic,
    MagweldError,
    PassError,
    Severity,
    collect_diagnostics,
    from_mlir,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.pipeline import Pipeline, Upstream
from magweld.reproducer import write_reproducer

# `<numbers>_<pass>.mlir`, as tree printing calls its files.
_DUMP_NAME = re.compile(r"(?:\d+_)+(?P<name>.+)\.mlir")


@dataclass(frozen=True)
class RunOptions:
    """How a pipeline is watched while it runs.

    Attributes:
        verify_each: Verify the IR after every pass.
        verify_last: Verify the IR behind the last pass.
        print_before_all: Print the IR before every pass, to stderr.
        print_after_all: Print the IR after every pass, to stderr.
        print_generic: Print in generic form.
        print_debuginfo: Print locations.
        timing: Print a table of times at the end, to stderr.
        dump_directory: Write the IR after every pass into files below it.
        reproducer_directory: Where a failed pipeline leaves its input.
    """

    verify_each: bool = True
    verify_last: bool = False
    print_before_all: bool = False
    print_after_all: bool = False
    print_generic: bool = False
    print_debuginfo: bool = False
    timing: bool = False
    dump_directory: Path | None = None
    reproducer_directory: Path | None = None


def run_pipeline(
    pipeline: Pipeline,
    module: ir.Module | ir.Operation,
    options: RunOptions = RunOptions(),
) -> tuple[Diagnostic, ...]:
    """Run a pipeline on a module in place.

    After an error the module is in the state between two passes or worse: drop it.

    Returns:
        The warnings and remarks that passes emitted.

    Raises:
        PassError: A pass failed or left invalid IR; it is named, the diagnostics say
            where and why, the last note how to repeat it.
        PipelineSyntaxError: The text of an `Upstream` step is wrong.
        MagweldError: What a pass of ours raised, with a note that names the pass.
    """
    operation = module.operation
    before = operation.clone() if options.reproducer_directory else None
    try:
        return _Run(options, operation.context).run(pipeline, operation)
    except MagweldError as error:
        if before is None or options.reproducer_directory is None:
            raise
        text = str(before)
        note = _reproducer_note(options.reproducer_directory, text, str(pipeline))
        error.diagnostics = (*error.diagnostics, note)
        raise


def _reproducer_note(directory: Path, ir_text: str, pipeline: str) -> Diagnostic:
    try:
        command = write_reproducer(directory, ir_text, pipeline).command
    except OSError as error:
        return Diagnostic(Severity.NOTE, f"no reproducer was written: {error}")
    return Diagnostic(Severity.NOTE, f"reproduce with: {command}")


class _Run:
    """One run of one pipeline: its diagnostics and what its passes raised."""

    def __init__(self, options: RunOptions, context: ir.Context) -> None:
        self._options = options
        self._context = context
        self._diagnostics: list[Diagnostic] = []
        self._raised: tuple[Pass, BaseException] | None = None

    def run(
        self, pipeline: Pipeline, operation: ir.Operation
    ) -> tuple[Diagnostic, ...]:
        manager = self._manager(pipeline)
        with (
            tempfile.TemporaryDirectory(prefix="magweld-pass-") as trace,
            collect_diagnostics(self._context) as self._diagnostics,
        ):
            # Writes nothing unless a pass fails, and then one file named after it:
            # the only way to learn which native pass it was, verifier included.
            manager.enable_ir_printing(
                print_after_all=True,
                print_after_failure=True,
                large_elements_limit=16,
                tree_printing_dir_path=trace,
            )
            try:
                manager.run(operation)
                if self._options.verify_last:
                    operation.verify()
            except ir.MLIRError as error:
                self._fail(_failed_pass(Path(trace)), error)
        return tuple(self._diagnostics)

    def _manager(self, pipeline: Pipeline) -> passmanager.PassManager:
        # Never pass `op_name` to add(): a mismatch there aborts the process.
        manager = passmanager.PassManager("builtin.module", self._context)
        for step in pipeline.steps:
            if isinstance(step, Upstream):
                step.check(self._context)
                manager.add(step.text)
            else:
                name = type(step).__name__
                manager.add(self._native(step), name=name, argument=step.name)
        _watch(manager, self._options)
        return manager

    def _native(self, step: Pass) -> Callable[[Any, Any], None]:
        def call(module: ir.Operation, external_pass: Any) -> None:
            emitted = len(self._diagnostics)
            try:
                with module.context, module.location:
                    step.run(module)
            except BaseException as error:
                # An exception must not unwind through the native pass manager.
                self._raised = (step, error)
                external_pass.signal_pass_failure()
                return
            if _has_error(self._diagnostics[emitted:]):
                external_pass.signal_pass_failure()

        return call

    def _fail(self, pass_name: str, error: ir.MLIRError) -> None:
        if self._raised is not None:
            blamed = self._blame(*self._raised)
            raise blamed from blamed.__cause__
        diagnostics = tuple(self._diagnostics)
        diagnostics += tuple(map(from_mlir, error.error_diagnostics))
        raise PassError(
            _first_error(diagnostics) or "it gave no reason",
            pass_name=pass_name,
            diagnostics=diagnostics,
        ) from error

    def _blame(self, step: Pass, error: BaseException) -> BaseException:
        """Return what to raise for an exception in a pass of ours."""
        if isinstance(error, PassError):
            error.pass_name = error.pass_name or step.name
            return error
        if isinstance(error, MagweldError) or not isinstance(error, Exception):
            error.add_note(f"in pass '{step.name}'")
            return error
        native = getattr(error, "error_diagnostics", ())
        wrapped = PassError(
            f"internal error: {type(error).__name__}: {error}",
            pass_name=step.name,
            diagnostics=(*self._diagnostics, *map(from_mlir, native)),
        )
        wrapped.__cause__ = error
        return wrapped


def _watch(manager: passmanager.PassManager, options: RunOptions) -> None:
    manager.enable_verifier(options.verify_each)
    if options.print_before_all or options.print_after_all:
        manager.enable_ir_printing(
            print_before_all=options.print_before_all,
            print_after_all=options.print_after_all,
            enable_debug_info=options.print_debuginfo,
            print_generic_op_form=options.print_generic,
        )
    if options.dump_directory is not None:
        manager.enable_ir_printing(tree_printing_dir_path=str(options.dump_directory))
    if options.timing:
        manager.enable_timing()


def _failed_pass(trace: Path) -> str:
    # Outer pass managers fail because of the inner one, which wrote its file first.
    names = [_DUMP_NAME.fullmatch(path.name) for path in sorted(trace.rglob("*.mlir"))]
    return next((match["name"] for match in names if match), "")


def _has_error(diagnostics: list[Diagnostic]) -> bool:
    return any(d.severity is Severity.ERROR for d in diagnostics)


def _first_error(diagnostics: tuple[Diagnostic, ...]) -> str:
    errors = (d.message for d in diagnostics if d.severity is Severity.ERROR)
    return next(errors, "")
