"""What a failed pipeline leaves behind: its input and a command that repeats it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.diagnostics import MagweldError, PassError, Severity
from magweld.passes.infrastructure.execution import RunOptions, run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.reproducer import write_reproducer

MODULE = """
func.func @f(%a: i32) -> i32 {
  %0 = arith.muli %a, %a : i32
  return %a : i32
}
"""


@pytest.fixture
def module() -> Iterator[ir.Module]:
    with make_context(), ir.Location.unknown():
        yield ir.Module.parse(MODULE)


def test_a_failed_pipeline_leaves_its_input_and_a_command(
    module: ir.Module, tmp_path: Path
) -> None:
    options = RunOptions(reproducer_directory=tmp_path / "new" / "folder")
    pipeline = Pipeline.parse("canonicalize,func.func(inline)")
    with pytest.raises(PassError) as caught:
        run_pipeline(pipeline, module, options)
    (path,) = (tmp_path / "new" / "folder").iterdir()
    note = caught.value.diagnostics[-1]
    assert note.severity is Severity.NOTE
    command = note.message.removeprefix("reproduce with: ")
    assert command in path.read_text().splitlines()[0]
    assert "arith.muli" in path.read_text()  # canonicalize would have removed it
    path_variable = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    again = subprocess.run(
        shlex.split(command),
        env={**os.environ, "PATH": path_variable},
        capture_output=True,
        text=True,
    )
    assert again.returncode == 1
    assert "in pass 'inline'" in again.stderr


def test_a_pipeline_that_works_leaves_nothing(
    module: ir.Module, tmp_path: Path
) -> None:
    options = RunOptions(reproducer_directory=tmp_path)
    run_pipeline(Pipeline.parse("cse"), module, options)
    assert not list(tmp_path.iterdir())


def test_an_unwritable_reproducer_does_not_hide_the_error(
    module: ir.Module, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    options = RunOptions(reproducer_directory=tmp_path / "file" / "folder")
    with pytest.raises(MagweldError) as caught:
        run_pipeline(Pipeline.parse("func.func(inline)"), module, options)
    assert "no reproducer was written" in str(caught.value)


def test_a_reproducer_is_named_after_its_content(tmp_path: Path) -> None:
    one = write_reproducer(tmp_path, "module {}", "builtin.module(cse)")
    assert write_reproducer(tmp_path, "module {}", "builtin.module(cse)") == one
    assert write_reproducer(tmp_path, "module {}", "builtin.module()") != one
    assert one.command == (
        f"magweld-opt '--pass-pipeline=builtin.module(cse)' {one.path}"
    )
