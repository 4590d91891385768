"""magweld-opt: exit codes, output files, streams, start-up, garbled input."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import pytest

from magweld.bindings import ir
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.registry import PassRegistry
from magweld.tools.driver import Chunk, OptDriver, list_passes, split_chunks
from magweld.tools.opt_options import UsageError, parse_arguments

OPT = [sys.executable, "-m", "magweld.tools.magweld_opt"]
GOOD = "func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n"
BAD = "func.func @f() -> i32 {\n  return\n}\n"


@dataclass(frozen=True)
class Crash(Pass):
    """Fail in a way that nobody foresaw."""

    name: ClassVar[str] = "crash"

    def run(self, module: ir.Operation) -> None:
        raise KeyError("surprise")


@dataclass(frozen=True)
class WithOption(Pass):
    """Show an option."""

    name: ClassVar[str] = "o"
    count: Annotated[int, "How many."] = 3

    def run(self, module: ir.Operation) -> None:
        pass


@dataclass(frozen=True)
class Spoil(Pass):
    """Leave an invalid function behind."""

    name: ClassVar[str] = "spoil"

    def run(self, module: ir.Operation) -> None:
        function = module.regions[0].blocks[0].operations[0]
        function.attributes["function_type"] = ir.TypeAttr.parse("() -> ()")


REGISTRY = PassRegistry(
    [("crash", f"{__name__}:Crash"), ("spoil", f"{__name__}:Spoil")]
)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> OptDriver:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Crash.__module__])
    return OptDriver(REGISTRY)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.mlir"
    path.write_text(BAD)
    return path


def run_opt(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    line = [*OPT, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60)


def test_chunks_keep_their_line_numbers() -> None:
    text = "a\n// -----\nb\n  // -----  \n\nc // -----\n// ----- //\n"
    first, second, third = split_chunks(text)
    assert first == Chunk(("a",), 1)
    assert second == Chunk(("b",), 3)
    assert third == Chunk(("", "c // -----", "// ----- //", ""), 5)
    assert third.text().splitlines()[5] == "c // -----"


def test_pass_flags_keep_their_order() -> None:
    arguments = ["--cse", "in.mlir", "--b=k=v", "-o", "out.mlir", "--c={x=1}"]
    options = parse_arguments(arguments)
    assert options.pipeline == "cse,b{k=v},c{{x=1}}"
    assert (options.input, options.output) == ("in.mlir", "out.mlir")


def test_options_of_a_pass_may_have_spaces() -> None:
    arguments = [
        "--b=k=v l=w",
        "--mlir-print-ir-tree-dir=a b",
        "in.mlir",
        "--c=m=1 n=2",
    ]
    options = parse_arguments(arguments)
    assert options.pipeline == "b{k=v l=w},c{m=1 n=2}"
    assert (options.input, options.dump_directory) == ("in.mlir", Path("a b"))


@pytest.mark.parametrize(
    "arguments",
    [["a", "b"], ["-cse"], ["--pass-pipeline=cse", "--cse"], ["-o"], ["--verify-each"]],
)
def test_command_lines_without_sense(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_arguments(arguments)


def test_an_empty_pipeline_is_one(good: Path, driver: OptDriver) -> None:
    assert driver.main(["--pass-pipeline=", str(good), "-o", os.devnull]) == 0


def test_a_crash_in_a_pass_is_one_error(
    good: Path, driver: OptDriver, capfd: pytest.CaptureFixture[str]
) -> None:
    assert driver.main(["--crash", str(good)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "internal error: KeyError: 'surprise'" in err
    assert "in pass 'crash'" in err
    assert "Traceback" not in err


def test_the_highest_debug_level_shows_the_traceback(
    good: Path,
    driver: OptDriver,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAGWELD_DEBUG", "3")
    assert driver.main(["--crash", str(good)]) == 1
    assert "Traceback" in capfd.readouterr().err


def test_a_bad_environment_variable_is_an_error(
    good: Path,
    driver: OptDriver,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAGWELD_DEBUG", "much")
    assert driver.main(["--crash", str(good)]) == 1
    assert "MAGWELD_DEBUG: expected a level" in capfd.readouterr().err


def test_invalid_ir_after_a_pass_names_it_unless_nobody_verifies(
    good: Path, driver: OptDriver, capfd: pytest.CaptureFixture[str]
) -> None:
    assert driver.main(["--spoil", str(good)]) == 1
    err = capfd.readouterr().err
    assert f"{good}:1:1: error: 'func.func' op entry block" in err
    assert "in pass 'spoil'" in err
    assert driver.main(["--spoil", "--verify-each=0", str(good)]) == 0
    assert '"func.func"' in capfd.readouterr().out  # invalid IR prints generically


def test_passes_are_listed_with_their_options() -> None:
    text = list_passes(PassRegistry([("o", f"{__name__}:WithOption")]))
    assert "--o " in text
    assert "Show an option." in text
    assert "--count=<int> (default: 3)  How many." in text


def test_a_failure_keeps_the_old_output_file(good: Path, bad: Path) -> None:
    assert run_opt(good, "-o", good).returncode == 0
    before = good.read_text()
    assert run_opt(bad, "-o", good).returncode == 1
    assert run_opt("--nonsense", good, "-o", good).returncode == 1
    assert good.read_text() == before
    assert sorted(p.name for p in good.parent.iterdir()) == ["bad.mlir", "good.mlir"]


def test_an_output_file_keeps_permissions_and_links(good: Path) -> None:
    target = good.with_name("target.mlir")
    target.write_text("old")
    target.chmod(0o640)
    link = good.with_name("link.mlir")
    link.symlink_to(target)
    assert run_opt(good, "-o", link).returncode == 0
    assert link.is_symlink()
    assert "func.func @f" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("target", ["/dev/full", "/proc/nothing/here", "."])
def test_an_unwritable_output_is_one_error(good: Path, target: str) -> None:
    done = run_opt(good, "-o", target)
    assert done.returncode == 1
    assert done.stderr.startswith(f"magweld-opt: error: cannot write {target}: ")
    assert done.stderr.count("\n") == 1


def test_a_full_or_broken_stdout_is_one_error(good: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*OPT, str(good)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    reader, writer = os.pipe()
    os.close(reader)
    broken = subprocess.run(
        [*OPT, str(good)], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert broken.returncode == 1
    assert broken.stderr == ("magweld-opt: error: cannot write <stdout>: Broken pipe\n")


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    path = tmp_path / "latin.mlir"
    path.write_bytes(b'func.func private @f() attributes {a = "\xff"} // \xe9\n')
    done = subprocess.run([*OPT, str(path)], capture_output=True)
    assert done.returncode == 0
    assert b'a = "\\FF"' in done.stdout


def test_torch_is_never_imported(good: Path) -> None:
    code = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise AssertionError(name)

sys.meta_path.insert(0, Refuse())
from magweld.tools.driver import OptDriver
for arguments in (
    ["--list-passes"],
    ["--emit-irdl"],
    ["--cse", "--fold-transpose", {str(good)!r}],
):
    assert OptDriver().main(arguments) == 0
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_endless_input_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("magweld.tools.driver.MOST_STREAMED", 1000)
    assert OptDriver(REGISTRY).main(["/dev/zero"]) == 1
    assert (
        "cannot read /dev/zero: it has more than 1000 bytes" in capsys.readouterr().err
    )


def test_a_large_regular_file_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("magweld.tools.driver.MOST_STREAMED", 8)
    source, result = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_text(GOOD)
    assert OptDriver(REGISTRY).main([str(source), "-o", str(result)]) == 0
    assert "return %arg0" in result.read_text()
