"""The monitor without torch, on every interpreter that is at hand."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from magweld.frontend import trace
from magweld.frontend.capture import capture as capture_module
from magweld.frontend.capture.capture import can_read_frames, frame_reader
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor import stack
from magweld.frontend.monitor.events import EventSource
from magweld.frontend.monitor.stack import FrameReader
from magweld.frontend.state.nodes import Edge, PlaceTexts, Where

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
    unpacked = ROOT / "build" / name / "usr" / "bin"
    path = os.pathsep.join((os.environ["PATH"], str(unpacked)))
    named = os.environ.get(f"MAGWELD_TEST_PYTHON{major}{minor}")
    found = named or shutil.which(name, path=path)
    if found is None:
        return None
    versions = Path(found).parent.parent / "versions"
    others = sorted(versions.glob(f"{major}.{minor}.*/bin/{name}"))
    known = (str(one) for one in (found, *others))
    return next((one for one in known if is_version(one, version)), None)


@SCRIPTS
def test_on_this_interpreter(script):
    assert run_script(sys.executable, script) == f"ok {tuple(sys.version_info[:2])}\n"


@pytest.mark.sample(2)
@SCRIPTS
@pytest.mark.parametrize("version", [(3, 12), (3, 13), (3, 14)])
def test_on_another_interpreter(script, version):
    major, minor = version
    interpreter = interpreter_of(version)
    if interpreter is None:
        variable = f"MAGWELD_TEST_PYTHON{major}{minor}"
        pytest.skip(f"no python{major}.{minor} on PATH or in build; set {variable}")
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


def test_no_collection_goes_through_a_recording():
    found = []

    def look(phase, info):
        if phase == "start":
            youngest = gc.get_objects(generation=0)
            found.append(sum(type(obj) is Edge for obj in youngest))

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    traced, x = trace(model, backend="eager"), torch.ones(2, 3)
    before = gc.get_threshold()
    gc.callbacks.append(look)
    # Whatever is made is looked at, but never the older objects.
    gc.set_threshold(1, 1 << 30)
    try:
        traced(x)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(look)
    assert len(traced.records) == 1
    assert found
    assert not any(found)


def test_a_call_that_is_not_observed_is_collected_as_ever(monkeypatch):
    collects = []

    def program(x):
        collects.append(gc.isenabled())
        return x + 1

    class Busy(EventSource):
        def run(self, sink, call):
            raise StopRecordingError("tool-busy")

    monkeypatch.setattr(capture_module, "event_source", Busy)
    traced = trace(program, backend="eager")
    assert torch.equal(traced(torch.zeros(2)), torch.ones(2))
    assert collects == [True]
    assert [found.id for found in traced.breaks] == ["tool-busy"]


def test_texts_of_places_tell_equal_code_objects_apart():
    text = "x = 1\n\ny = 2\n"
    first, second = (compile(text, name, "exec") for name in ("a.py", "b.py"))
    assert first == second
    last = len(first.co_code) - 2
    texts = PlaceTexts()
    for _ in range(2):
        assert texts.of(Where(first, last)) == "a.py:3"
        assert texts.of(Where(second, last)) == "b.py:3"
        assert texts.of(Where(first, 2)) == "a.py:1"
