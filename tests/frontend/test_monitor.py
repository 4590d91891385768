"""The monitor without torch, on every interpreter that is at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from magweld.frontend import trace
from magweld.frontend.capture.capture import can_read_frames, frame_reader
from magweld.frontend.monitor import stack
from magweld.frontend.monitor.stack import FrameReader

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = pytest.mark.parametrize(
    "script", ["interpreter_check.py", "continuation_check.py"]
)


def run_script(interpreter, script):
    done = subprocess.run(
        [interpreter, "-E", str(Path(__file__).with_name(script)), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_version(interpreter, version):
    code = f"import sys; sys.exit(sys.version_info[:2] != {version})"
    done = subprocess.run([interpreter, "-c", code], capture_output=True, check=False)
    return done.returncode == 0


def interpreter_of(version):
    """Return a command that runs a version of Python, None if there is none.

    What pyenv puts on PATH runs the versions that are switched on, and reports an error
    for the others, which lie beside it.
    """
    major, minor = version
    name = f"python{major}.{minor}"
    found = os.environ.get(f"MAGWELD_TEST_PYTHON{major}{minor}", shutil.which(name))
    if found is None:
        return None
    versions = Path(found).parent.parent / "versions"
    others = sorted(versions.glob(f"{major}.{minor}.*/bin/{name}"))
    known = (str(one) for one in (found, *others))
    return next((one for one in known if is_version(one, version)), None)


@SCRIPTS
def test_on_this_interpreter(script):
    assert run_script(sys.executable, script) == f"ok {tuple(sys.version_info[:2])}\n"


@SCRIPTS
@pytest.mark.parametrize("version", [(3, 12), (3, 13)])
def test_on_another_interpreter(script, version):
    major, minor = version
    interpreter = interpreter_of(version)
    if interpreter is None:
        variable = f"MAGWELD_TEST_PYTHON{major}{minor}"
        pytest.skip(f"no python{major}.{minor} on PATH; set {variable}")
    assert run_script(interpreter, script) == f"ok {version}\n"


def test_an_unknown_interpreter_runs_eagerly(monkeypatch):
    monkeypatch.setattr(stack, "_LAYOUTS", {})
    can_read_frames.cache_clear()
    try:
        fast = trace(lambda x: x + 1, backend="eager")
        results = [fast(torch.ones(2)) for _ in range(3)]
    finally:
        can_read_frames.cache_clear()
    assert all(torch.equal(result, torch.full((2,), 2.0)) for result in results)
    assert fast.stats()["records"] == 0
    assert {stop.id for stop in fast.breaks} == {"interpreter"}


def test_stack_readers_agree():
    native, own = frame_reader(), FrameReader()
    seen = []

    def look(frame):
        depth = 2
        for reader in (native, own):
            values = reader.stack(frame, depth)
            seen.append(["null" if v is reader.null else v for v in values])

    def program(a, b):
        return [a, b, look(sys._getframe())]

    program(1, 2)
    assert seen[0] == seen[1]
    assert seen[0] == [1, 2]


def test_torch_is_not_needed_to_import_the_package():
    code = (
        "import sys, magweld.frontend, magweld.frontend.session.session\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert torch.__version__
