"""Owns the driver behind `magweld-opt`: chunks in, passes, chunks out, exit codes."""

from __future__ import annotations

import os
import re
import stat
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import magweld
from magweld import env
from magweld.bindings import ir
from magweld.context import make_context
from magweld.diagnostics import (
    Diagnostic,
    MagweldError,
    PassError,
    Severity,
    VerificationError,
    collect_diagnostics,
    from_mlir,
    render_diagnostic,
)
from magweld.dialects import irdl_module
from magweld.passes.infrastructure.execution import RunOptions, run_pipeline
from magweld.passes.infrastructure.options import describe_options
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.infrastructure.registry import PASSES, PassRegistry
from magweld.tools.native_stderr import captured_stderr
from magweld.tools.opt_options import OptOptions, UsageError, parse_arguments
from magweld.tools.output import write_data, write_output
from magweld.tools.phase_compilation import PhaseCompilation, list_phases, object_of
from magweld.tools.verify_diagnostics import check_diagnostics, find_expectations

# Bytes that are read of what is no regular file.
MOST_STREAMED = 256 * 1024 * 1024

_MARKER = re.compile(r"^[ \t]*// -----[ \t]*$")
# What MLIR calls a text that it did not read from a file itself.
_NAMELESS = "-"


@dataclass(frozen=True)
class Chunk:
    """A part of the input file that is a module of its own.

    Attributes:
        lines: Its lines, without the markers around it.
        first: Number of its first line in the file, from one.
    """

    lines: tuple[str, ...]
    first: int

    def text(self) -> str:
        """Return the chunk with its line numbers as they are in the file."""
        return "\n" * (self.first - 1) + "\n".join(self.lines)


def split_chunks(text: str) -> list[Chunk]:
    """Split a text at its `// -----` lines."""
    lines = text.split("\n")
    markers = [n for n, line in enumerate(lines) if _MARKER.match(line)]
    starts = [0, *(n + 1 for n in markers)]
    ends = [*markers, len(lines)]
    return [
        Chunk(tuple(lines[start:end]), start + 1)
        for start, end in zip(starts, ends, strict=True)
    ]


class OptDriver:
    """Runs one command line; a subclass may bring its own passes and dialects."""

    def __init__(self, registry: PassRegistry = PASSES) -> None:
        self._registry = registry

    def make_context(self) -> ir.Context:
        """Return the context of one chunk, with every dialect loaded."""
        return make_context()

    def main(self, arguments: Sequence[str]) -> int:
        """Run a command line; errors go to stderr.

        Returns:
            0 on success; 1 for bad IR, passes, options, files.
        """
        try:
            return self._run(parse_arguments(arguments))
        except (UsageError, OSError, env.EnvironmentVariableError) as error:
            return _complain(f"magweld-opt: error: {error}")
        except MagweldError as error:
            return _complain(str(error))

    def _run(self, options: OptOptions) -> int:
        actions = {
            "version": lambda: f"magweld-opt {magweld.__version__}\n",
            "list-passes": lambda: list_passes(self._registry),
            "list-phases": list_phases,
            "emit-irdl": irdl_module,
        }
        if options.action in actions:
            write_output(actions[options.action](), options.output)
            return 0
        work: Pipeline | PhaseCompilation
        if options.compilation is None:
            work = self.parse_pipeline(options.pipeline)
        else:
            work = PhaseCompilation.of(options.compilation, self.parse_pipeline)
            if work.writes_object and options.split_input_file:
                raise UsageError("object files cannot be split: --split-input-file")
        text = _read(options.input)
        session = _Session(self, options, work, text)
        chunks = split_chunks(text) if options.split_input_file else None
        return session.run(chunks or [Chunk(tuple(text.split("\n")), 1)])

    def parse_pipeline(self, text: str) -> Pipeline:
        """Read pipeline text.

        Raises:
            MagweldError: It is wrong.
        """
        # Native option parsers print what is wrong and return only that it is.
        with captured_stderr() as printed:
            try:
                return Pipeline.parse(text, self._registry)
            except MagweldError as error:
                failure = error
        reasons = [line.strip(" :") for line in printed() if line.strip(" :")]
        notes = tuple(Diagnostic(Severity.NOTE, reason) for reason in reasons)
        failure.diagnostics = (*failure.diagnostics, *notes)
        raise MagweldError(str(failure), notes) from failure


class _Session:
    """One input file under one command line."""

    def __init__(
        self,
        driver: OptDriver,
        options: OptOptions,
        work: Pipeline | PhaseCompilation,
        text: str,
    ) -> None:
        self._driver = driver
        self._options = options
        self._work = work
        self._text = text
        self._shows_tracebacks = env.DEBUG.get() == len(env.DEBUG_LEVELS) - 1
        self._file = "<stdin>" if options.input == "-" else options.input
        self._run_options = RunOptions(
            verify_each=options.verify_each,
            print_before_all=options.print_before_all,
            print_after_all=options.print_after_all,
            print_generic=options.print_generic,
            print_debuginfo=options.print_debuginfo,
            timing=options.timing,
            dump_directory=options.dump_directory,
        )

    def run(self, chunks: list[Chunk]) -> int:
        outputs = [self._run_chunk(chunk) for chunk in chunks]
        printed = [output for output in outputs if output is not None]
        if len(printed) < len(outputs):
            return 1
        write_data(b"// -----\n".join(printed), self._options.output)
        return 0

    def _run_chunk(self, chunk: Chunk) -> bytes | None:
        """Return the result, nothing if it is expected to fail, None on error."""
        output, error, emitted = self._process(chunk)
        if self._options.verify_diagnostics:
            complaints = self._unexpected(chunk, error, emitted)
            self._print(complaints)
            return None if complaints else output or b""
        self._print(emitted)
        if error is not None:
            self._print_error(error)
        return None if error is not None else output

    def _process(
        self, chunk: Chunk
    ) -> tuple[bytes | None, MagweldError | None, tuple[Diagnostic, ...]]:
        with self._driver.make_context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = (
                self._options.allow_unregistered_dialect
            )
            emitted: list[Diagnostic] = []
            try:
                with collect_diagnostics(context) as emitted:
                    module = self._parse(chunk)
                pipeline = self._pipeline_for(module)
                warnings = run_pipeline(pipeline, module, self._run_options)
                output = self._result(module)
            except MagweldError as error:
                return None, error, ()
            except ir.MLIRError as error:
                found = (*emitted, *map(from_mlir, error.error_diagnostics))
                return None, VerificationError("invalid IR", found), ()
            return output, None, (*emitted, *warnings)

    def _pipeline_for(self, module: ir.Module) -> Pipeline:
        work = self._work
        pipeline = work if isinstance(work, Pipeline) else work.pipeline(module)
        if self._options.dump_pass_pipeline:
            print(pipeline, file=sys.stderr)
        return pipeline

    def _result(self, module: ir.Module) -> bytes:
        if isinstance(self._work, PhaseCompilation) and self._work.writes_object:
            return object_of(module)
        return self._format(module).encode("utf-8", "surrogateescape")

    def _parse(self, chunk: Chunk) -> ir.Module:
        if not self._options.split_input_file and Path(self._options.input).is_file():
            # The only way for locations in the IR to carry the name of the file.
            return ir.Module.parseFile(self._options.input)
        return ir.Module.parse(chunk.text().encode("utf-8", "surrogateescape"))

    def _format(self, module: ir.Module) -> str:
        text = module.operation.get_asm(
            enable_debug_info=self._options.print_debuginfo,
            print_generic_op_form=self._options.print_generic,
        )
        return f"{str(text).rstrip()}\n"

    def _unexpected(
        self,
        chunk: Chunk,
        error: MagweldError | None,
        emitted: tuple[Diagnostic, ...],
    ) -> list[Diagnostic]:
        expectations = find_expectations(chunk.lines, chunk.first, self._file)
        found = (*emitted, *(_diagnostics_of(error) if error else ()))
        return check_diagnostics(expectations, [self._named(d) for d in found])

    def _print(self, diagnostics: Sequence[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            named = self._named(diagnostic)
            prefix = f"{self._file}: " if named.position is None else ""
            print(prefix + render_diagnostic(named, self._text), file=sys.stderr)

    def _print_error(self, error: MagweldError) -> None:
        self._print(_diagnostics_of(error))
        notes = [*getattr(error, "__notes__", ())]
        if isinstance(error, PassError) and error.pass_name:
            notes.append(f"in pass '{error.pass_name}'")
        for note in notes:
            print(f"{self._file}: note: {note}", file=sys.stderr)
        if self._shows_tracebacks and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)

    def _named(self, diagnostic: Diagnostic) -> Diagnostic:
        """Give a diagnostic the name of the file that was read."""
        position = diagnostic.position
        if position is not None and position.line == 0:
            position = None  # how MLIR spells an unknown place
        if position is not None and position.file == _NAMELESS:
            position = replace(position, file=self._file)
        notes = tuple(self._named(note) for note in diagnostic.notes)
        return replace(diagnostic, position=position, notes=notes)


def _diagnostics_of(error: MagweldError) -> tuple[Diagnostic, ...]:
    """Return what an error has to say, at least one error diagnostic."""
    if any(d.severity is Severity.ERROR for d in error.diagnostics):
        return error.diagnostics
    return (Diagnostic(Severity.ERROR, error.message), *error.diagnostics)


def list_passes(registry: PassRegistry) -> str:
    """Return the passes of a registry with summaries and options, for a terminal."""
    lines = ["magweld's passes:"]
    for name in registry.names():
        pass_class = registry.get(name)
        lines.append(f"  --{name:<30} {pass_class.summary()}")
        for option in describe_options(pass_class):
            default = "" if option.default is None else f" (default: {option.default})"
            lines.append(
                f"      --{option.name}=<{option.type_name}>{default}  {option.help}"
            )
    lines.append("Upstream passes run as well: torch-mlir-opt --help lists them.")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _read(name: str) -> str:
    try:
        if name == "-":
            data = _read_stdin()
        else:
            with Path(name).open("rb") as stream:
                data = _read_stream(stream)
    except OSError as error:
        shown = "<stdin>" if name == "-" else name
        reason = error.strerror or str(error)
        raise OSError(f"cannot read {shown}: {reason}") from error
    return data.decode("utf-8", "surrogateescape")


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise OSError("it is closed")
    return _read_stream(sys.stdin.buffer)


def _read_stream(stream: BinaryIO) -> bytes:
    """Read all of a regular file; of anything else, which may never end, some."""
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream.read()
    data = stream.read(MOST_STREAMED + 1)
    if len(data) > MOST_STREAMED:
        raise OSError(f"it has more than {MOST_STREAMED} bytes and is no regular file")
    return data


def _complain(text: str) -> int:
    if sys.stderr is not None:
        print(text, file=sys.stderr)
    return 1
