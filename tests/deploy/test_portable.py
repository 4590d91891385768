"""Portable artifacts: values, errors, threads, without torch, and what is refused."""

from __future__ import annotations

import ctypes
import json
import random
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import c_runtime
import numpy as np
import pytest
import torch
from kinds import inputs
from torch import nn
from torch.utils._pytree import tree_map

import magweld
from magweld.aot.errors import ArtifactError
from magweld.deploy.portable_artifact import PortableArtifact
from magweld.deploy.portable_file import decode, encode, seal
from magweld.diagnostics import UnsupportedError

# Before a script: nothing but Python's own modules, numpy and magweld is there.
ALONE = """
import os
import signal
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        first = name.split(".")[0]
        if first not in sys.stdlib_module_names and first not in ("magweld", "numpy"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
import numpy as np
import magweld
arrays = np.load(sys.argv[2])
artifact = magweld.load(sys.argv[1], threads=2)
inputs = [arrays["ids"], arrays["y"], arrays["mask"]]

expected = [arrays[str(number)] for number in range(9)]

def check():
    for value, other in zip(artifact.run(inputs), expected, strict=True):
        assert (value.shape, value.tobytes()) == (other.shape, other.tobytes())

check()
"""
FORKED = """
child = os.fork()
if child == 0:
    signal.alarm(120)
    try:
        check()
        check()
    except BaseException:
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0) == (child, 0)
check()
"""
# A handler runs once in each turn, wherever the call is then.
SIGNALLED = """
class Stop(Exception):
    pass

raised = []

def handler(number, frame):
    raised.append(number)
    raise Stop

signal.signal(signal.SIGALRM, handler)
caught = 0
for turn in range(60):
    try:
        signal.setitimer(signal.ITIMER_REAL, 2e-5 * (turn + 1))
        check()
        while len(raised) == turn:
            check()
    except Stop:
        caught += 1
    assert len(raised) == turn + 1
assert caught == 60, caught
check()
"""


def run_alone(more: str, artifact: PortableArtifact, path: Path, folder: Path) -> None:
    """Run a script where there is numpy alone, on inputs with known results."""
    given = flat(2)
    results = {str(n): value for n, value in enumerate(artifact.run(given))}
    names = ("ids", "y", "mask")
    np.savez(folder / "a.npz", **dict(zip(names, given, strict=True)), **results)
    command = [sys.executable, "-c", ALONE + more, str(path), str(folder / "a.npz")]
    # Where the script hangs it is better ended than waited for.
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""


def arrays(batch: int, seed: int = 0) -> dict[str, Any]:
    (ids, y), others = inputs(batch, seed)
    mask = others["mask"].numpy()
    return {"ids": ids.numpy(), "y": y.numpy(), "scale": 0.5, "mask": mask}


def flat(batch: int, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    given = arrays(batch, seed)
    return [given["ids"], given["y"], given["mask"]]


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (tuple, list)):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, torch.Tensor):
        assert found.flags.c_contiguous
        torch.testing.assert_close(torch.from_numpy(found), expected)
    else:
        assert found == expected


@pytest.mark.sample(1)
@pytest.mark.parametrize("batch", [2, 3])
def test_results_are_those_of_eager(
    model: nn.Module, artifact: PortableArtifact, batch: int
) -> None:
    for seed in (0, 1):
        (ids, y), others = inputs(batch, seed)
        with torch.no_grad():
            expected = model(ids, y, **others)
        assert_same(artifact(**arrays(batch, seed)), expected)


@pytest.mark.parametrize(
    "more", ["", FORKED, SIGNALLED], ids=["plain", "fork", "signal"]
)
def test_with_numpy_alone(
    more: str, artifact: PortableArtifact, path: Path, tmp_path: Path
) -> None:
    run_alone(more, artifact, path, tmp_path)


def test_without_threads_to_be_had(
    artifact: PortableArtifact, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def refuse(*work: Any) -> None:
        calls.append(work)
        raise RuntimeError("can't start new thread")

    module = "magweld.deploy.portable_artifact"

    assert any(
        n == "magweld_parallel" for c in artifact.program.codes for _, n in c.imports
    )
    monkeypatch.setattr(f"{module}.start_new_thread", refuse)
    alone = PortableArtifact(path.read_bytes(), threads=3)
    found = alone.run(flat(2))
    assert calls
    monkeypatch.undo()
    for one, other in zip(found, artifact.run(flat(2)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_of_threads(path: Path) -> None:
    for threads in (None, 0, 1, np.int64(5)):
        assert len(magweld.load(path, threads=threads).run(flat(2))) == 9
    with pytest.raises(ValueError, match="-1 threads"):
        magweld.load(path, threads=-1)
    for wrong in ("2", 2.0):
        with pytest.raises(TypeError, match="integer"):
            magweld.load(path, threads=wrong)  # type: ignore[arg-type]


def test_c_runs_where_a_process_forks(path: Path, tmp_path: Path) -> None:
    source, folder = Path(__file__).with_name("forked.c"), f"-I{c_runtime.SOURCES}"
    c_runtime.build(tmp_path / "forked", "-O2", folder, source)
    assert subprocess.run([tmp_path / "forked", path]).returncode == 0


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_c_gives_what_python_gives(
    library: ctypes.CDLL,
    artifact: PortableArtifact,
    path: Path,
    level: int,
    threads: int,
) -> None:
    model = c_runtime.Model(library, path, threads, level)
    used = model.number("magweld_level")
    assert used == 3 if level == 3 else used >= 3
    for batch in (2, 3):
        expected = artifact.run(flat(batch))
        for one, other in zip(model.run(flat(batch)), expected, strict=True):
            if level == 3:
                # Other instructions round differently.
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(one, other)
    model.close()


def test_c_describes_the_model(
    library: ctypes.CDLL, artifact: PortableArtifact, path: Path
) -> None:
    model = c_runtime.Model(library, path)
    assert model.names("input") == ["ids", "y", "mask"]
    assert model.names("output") == [
        *("scores", "turned", "loops.0", "loops.1", "any.0"),
        *("shared.0", "shared.1", "ids", "picked"),
    ]
    assert model.number("magweld_form_count") == 2
    assert model.describe("input", 1, 0) == ("int64", [3, 64])
    assert model.describe("output", 0, 1) == ("float32", [64, 2, 6])
    assert model.describe("output", 0, 4) == ("bool", [])
    model.close()


def test_c_takes_strided_inputs_and_memory_for_outputs(
    library: ctypes.CDLL, artifact: PortableArtifact, path: Path
) -> None:
    model = c_runtime.Model(library, path)
    ids, y, mask = flat(2)
    expected = artifact.run([ids, y, mask])
    wide = np.zeros((3, 10), np.float32)
    wide[:, ::-2] = y
    column = np.broadcast_to(mask[:, :1], mask.shape)
    strided = [np.asfortranarray(ids), wide[:, ::-2], column]
    ours = [np.empty_like(value) for value in expected]
    found = model.run(strided, [ours[0], None, ours[2]])
    again = artifact.run([ids, y, np.ascontiguousarray(column)])
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(ours[0], expected[0])
    np.testing.assert_array_equal(ours[2], expected[2])
    model.close()


def test_c_says_what_is_wrong_with_a_call(library: ctypes.CDLL, path: Path) -> None:
    model = c_runtime.Model(library, path)
    ids, y, mask = flat(2)
    memory = np.zeros((3, 5), np.float32)
    wrong: list[tuple[list[Any], list[Any], str]] = [
        (
            [ids, y.astype(np.float64), mask],
            [],
            r"'y' has type 2 \(float64\), expected float32",
        ),
        (
            [ids[:1], y, mask],
            [],
            r"shapes: \(1, 64\) \(3, 5\) \(3, 5\); it takes \(2, 64\) \(3, 5\) \(3, 5\)"
            r" or \(3, 64\) \(4, 5\) \(4, 5\)$",
        ),
        ([ids + 11, y, mask], [], "index out of range"),
        ([ids - 11, y, mask], [], "kinds.py:"),
        (
            [ids, y, mask],
            [ids],
            r"'scores' has another type or shape, int64 \(2, 64\); expected float32 "
            r"\(2, 64, 6\)$",
        ),
        ([ids, y, mask], [None, None, y], "output 'loops.0' shares memory with 'y'"),
        ([ids, y, mask], [None, None, memory, memory], "shares memory with 'loops.0'"),
    ]
    for given, outputs, message in wrong:
        with pytest.raises(c_runtime.RuntimeFailure, match=message):
            model.run(given, outputs)
    assert len(model.run([ids, y, mask])) == 9
    model.close()


def test_python_says_what_is_wrong_with_a_call(artifact: PortableArtifact) -> None:
    good = arrays(2)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"y": good["y"].astype(np.float64)}, TypeError, "expected float32"),
        ({"y": torch.zeros(3, 5)}, TypeError, "expected a numpy array"),
        ({"y": np.ma.masked_array(good["y"])}, TypeError, "a MaskedArray, expected"),
        ({"y": good["y"][:2]}, ValueError, "compiled for"),
        ({"scale": 0.25}, ValueError, "compiled for 0.5"),
        ({"ids": good["ids"] + 11}, IndexError, "index out of range"),
        ({"more": 1}, TypeError, "positional arguments"),
    ]
    for changed, kind, message in wrong:
        with pytest.raises(kind, match=message):
            artifact(**{**good, **changed})


def test_nested_inputs(library: ctypes.CDLL, tmp_path: Path) -> None:
    def function(xs: list[torch.Tensor], by: dict[str, Any], *, w: Any) -> Any:
        first, scale = by["pair"]
        return xs[0] * scale + xs[1].t(), torch.cat([first, w[0]])

    def call(seed: int) -> tuple[Any, Any, Any]:
        torch.manual_seed(seed)
        pair = (torch.randn(4), 2.5)
        return [torch.randn(2, 3), torch.randn(3, 2)], {"pair": pair}, (torch.rand(3),)

    def numpy(value: Any) -> Any:
        return value.numpy() if isinstance(value, torch.Tensor) else value

    xs, by, w = call(0)
    artifact = magweld.compile_portable(function, {"xs": xs, "by": by, "w": w})
    xs, by, w = call(1)
    expected = function(xs, by, w=w)
    xs, by, w = tree_map(numpy, (xs, by, w))
    turned = [np.asfortranarray(x) for x in xs]
    assert_same(artifact(xs=turned, by=by, w=w), expected)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"xs": tuple(xs)}, TypeError, "argument 0 is a tuple, not a list"),
        ({"xs": xs[:1]}, TypeError, "argument 0 has 1 items, expected 2"),
        ({"by": {"other": 1}}, TypeError, "in this order, expected"),
        ({"by": {"pair": (xs[0], 3.0)}}, ValueError, r"1\['pair'\]\[1\] is 3.0"),
    ]
    for changed, kind, message in wrong:
        with pytest.raises(kind, match=message):
            artifact(**{"xs": xs, "by": by, "w": w, **changed})
    artifact.save(tmp_path / "nested.mwp")
    model = c_runtime.Model(library, tmp_path / "nested.mwp")
    assert model.names("input") == ["xs.0", "xs.1", "by.pair.0", "w.0"]
    found = model.run([*turned, by["pair"][0], w[0]])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-6)
    model.close()


def test_runs_at_the_same_time(
    library: ctypes.CDLL, artifact: PortableArtifact, path: Path
) -> None:
    model = c_runtime.Model(library, path, threads=3)
    cases = [(batch, seed) for batch in (2, 3) for seed in range(4)]
    expected = {case: artifact.run(flat(*case)) for case in cases}

    def call(case: tuple[int, int]) -> None:
        for run in (model.run, artifact.run):
            for one, other in zip(run(flat(*case)), expected[case], strict=True):
                np.testing.assert_array_equal(one, other)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, cases * 5))
    model.close()


def test_files_that_are_none(
    library: ctypes.CDLL, artifact: PortableArtifact, path: Path, tmp_path: Path
) -> None:
    intact = path.read_bytes()
    newer = intact[:8] + struct.pack("<Q", 2) + intact[16:]
    flipped = bytearray(intact)
    flipped[len(intact) // 2] ^= 1
    damaged = tmp_path / "damaged.mwp"
    for content, code, message in (
        (b"", 3, "does not begin"),
        (b"PK" + intact[2:], 3, "does not begin"),
        (newer, 4, "version 2"),
        (intact[:-1], 3, "length"),
        (bytes(flipped), 3, "digest"),
    ):
        damaged.write_bytes(content)
        with pytest.raises(c_runtime.RuntimeFailure, match=message) as caught:
            c_runtime.Model(library, damaged)
        assert caught.value.status == code
        with pytest.raises(ArtifactError):
            magweld.load(damaged)
    with pytest.raises(c_runtime.RuntimeFailure, match="No such file"):
        c_runtime.Model(library, tmp_path / "nowhere.mwp")
    with pytest.raises(c_runtime.RuntimeFailure, match="it is no regular file"):
        c_runtime.Model(library, tmp_path)
    with pytest.raises(c_runtime.RuntimeFailure, match=r"up to x86-64-v2.*x86-64-v3$"):
        c_runtime.Model(library, path, level=2)
    with pytest.raises(c_runtime.RuntimeFailure, match=r"^level -1$"):
        c_runtime.Model(library, path, level=-1)


def test_arrays_that_a_program_tells_apart_may_not_be_passed_twice() -> None:
    def asks(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * 2 if x is y else x + y

    given = torch.randn(3), torch.randn(3)
    x, y = (tensor.numpy() for tensor in given)
    artifact = magweld.compile_portable(asks, given, levels=("x86-64-v3",))
    np.testing.assert_allclose(artifact(x, y), x + y)
    with pytest.raises(ValueError, match="passed twice"):
        artifact(x, x)
    plain = magweld.compile_portable(torch.add, given, levels=("x86-64-v3",))
    np.testing.assert_allclose(plain(x, x), x + x)


def test_every_part_of_a_file_is_covered_by_the_digest(path: Path) -> None:
    intact = bytearray(path.read_bytes())
    # Each byte of the header, one of each 64 behind it.
    steps = range(0, len(intact) - 64, max(64, len(intact) // 400 // 64 * 64))
    for at in (*range(64), *(64 + step + step // 64 % 64 for step in steps)):
        at = min(at, len(intact) - 1)
        intact[at] ^= 0x40
        with pytest.raises(ArtifactError):
            decode(bytes(intact))
        intact[at] ^= 0x40
    assert decode(bytes(intact))


def test_a_structure_that_does_not_fit_is_found_at_loading(path: Path) -> None:
    program = decode(path.read_bytes())
    good = json.loads(program.structure)
    for wrong in (
        "{",
        "[]",
        json.dumps({**good, "positional": [{"tensor": 0}]}),
        json.dumps({**good, "keywords": [["x", {"what": 1}]]}),
        json.dumps({**good, "result": {"tensor": 9}}),
        json.dumps({**good, "result": {"tuple": 3}}),
        "[" * 100_000,
    ):
        changed = encode(replace(program, structure=wrong, data=b""))
        with pytest.raises(ArtifactError, match="the structure is none"):
            PortableArtifact(changed)


def test_damage_behind_a_fitting_digest_is_one_error(path: Path) -> None:
    intact, rng = path.read_bytes(), random.Random(0)
    (described,) = struct.unpack_from("<Q", intact, 24)
    refused = 0
    for _ in range(300):
        body = bytearray(intact[64:])
        at = rng.randrange(described // 8) * 8
        value = rng.choice((0, 1, -1, 1 << 47, -(1 << 63), rng.randrange(5000)))
        struct.pack_into("<q", body, at, value)
        try:
            decode(seal(bytes(body), described))
        except ArtifactError:
            refused += 1
    assert refused > 50


def test_damaged_files_never_crash(path: Path, tmp_path: Path) -> None:
    program, sanitizers = tmp_path / "fuzz", "-fsanitize=address,undefined"
    source, folder = Path(__file__).with_name("fuzz.c"), f"-I{c_runtime.SOURCES}"
    flags = ("-g", "-O2", folder, source)
    strict = "-fno-sanitize-recover=all"
    if not c_runtime.build(program, *flags, sanitizers, strict):
        assert c_runtime.build(program, *flags)
    run = subprocess.run([program, path, "200"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "loaded" in run.stdout


def test_operators_without_code_are_named_with_their_lines() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        values, _ = (x + 1).sort(dim=1)
        return torch.lgamma(values)

    with pytest.raises(UnsupportedError) as caught:
        magweld.compile_portable(function, (torch.randn(3, 4),))
    message = str(caught.value)
    assert "[portable-operator]" in message
    assert message.index("aten.sort") < message.index("aten.lgamma")
    assert message.count("test_portable.py:") == 2


def test_writes_and_other_types_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="portable-writes"):
        magweld.compile_portable(lambda x: x.add_(1), (torch.zeros(3),))
    with pytest.raises(UnsupportedError, match="portable-calls"):
        magweld.compile_portable(
            lambda x: x * 2, (torch.zeros(3),), (torch.zeros(3, dtype=torch.int64),)
        )
