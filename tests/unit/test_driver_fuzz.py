"""magweld-opt on garbled input: an error and exit code 1, whatever native code does."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

# Each line runs in a process of its own: what all of them import, the first one does.
FUZZ = """
import gc, os, random
from magweld.passes.infrastructure.registry import PASSES
from magweld.tools.driver import OptDriver
from magweld.tools.supervision import run_supervised

for name in PASSES.names():
    PASSES.get(name)
gc.freeze()
generator = random.Random(2)
for arguments in {generator}:
    line = [*arguments, "-o", os.devnull]
    print(run_supervised("opt", lambda: OptDriver().main(line)))
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.mlir"
    path.write_text("func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n")
    return path


def fuzz(generator: str) -> subprocess.CompletedProcess[str]:
    code = FUZZ.replace("{generator}", generator)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )


def test_a_crash_in_native_code_is_an_error() -> None:
    code = (
        "import os\n"
        "from magweld.tools.supervision import run_supervised\n"
        "raise SystemExit(run_supervised('opt', os.abort))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "opt: error: native code crashed (SIGABRT)\n"


def test_garbled_ir_ends_in_an_error(tmp_path: Path, whole: bool) -> None:
    lit = Path(__file__).parents[2] / "lit_tests/passes/graph/fold-transpose.mlir"
    source = lit.read_bytes().split(b"// -----")[0]
    source = source[source.rindex(b"func.func @") :]
    generator = random.Random(2)
    count = 200 if whole else 20
    for number in range(count):
        start, length = generator.randrange(len(source)), generator.randrange(40)
        piece = bytes(generator.choice(b'%@#!(){}<>:,"x0 ') for _ in range(3))
        variants = [
            source[:start],
            source[:start] + source[start + length :],
            source[:start] + piece + source[start:],
        ]
        (tmp_path / f"{number}.mlir").write_bytes(generator.choice(variants))
    done = fuzz(
        f"[['--fold-transpose', f'{tmp_path}/{{n}}.mlir'] for n in range({count})]"
    )
    assert set(done.stdout.split()) == {"0", "1"}
    assert len(done.stdout.split()) == count
    assert "Traceback" not in done.stderr


def test_garbled_pipelines_never_reach_native_code(good: Path, whole: bool) -> None:
    words = (
        "func.func any gpu.module builtin.module cse canonicalize inline "
        "fold-transpose sparsifier gpu-lower-to-nvvm-pipeline convert-func-to-llvm "
        "one-shot-bufferize max-iterations=3 ( ) ( ) { } , , ="
    ).split()
    count = 400 if whole else 40
    done = fuzz(
        f"[['--pass-pipeline=' + ''.join(generator.choices({words!r}, k=n % 8)), "
        f"{str(good)!r}] for n in range({count})]"
    )
    assert set(done.stdout.split()) == {"0", "1"}
    assert len(done.stdout.split()) == count
    assert "Traceback" not in done.stderr
    assert "crashed" not in done.stderr
