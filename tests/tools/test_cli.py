"""The `magweld` command: what it prints and writes, and what it says of bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from magweld import api
from magweld.runtime.plans import MeasuredPlan, identity_digest, plan_cache
from magweld.targets import device_names
from magweld.tools.magweld_cli import main
from magweld.tuning.entry import plan_identity

MODEL = """
import torch

def mlp():
    torch.manual_seed(0)
    layers = (torch.nn.Linear(6, 9), torch.nn.GELU(), torch.nn.Linear(9, 4))
    return torch.nn.Sequential(*layers).eval()

def sorting():
    return lambda x: {"sorted": (x * 2).sort(dim=1)[0], "first": x[0]}

def broken():
    raise RuntimeError("no such luck")

number = lambda: 3
text = "not callable"


def leaving():
    raise SystemExit(7)


def exits_in_call():
    def call(x):
        raise SystemExit(5)

    return call
"""
MLP = ["model.py:mlp", "--inputs", "5x6xf32"]


@pytest.fixture(autouse=True)
def folder(
    shared_workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A current folder with models and a cache of its own."""
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "leaving.py").write_text("import sys; sys.exit(3)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAGWELD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    api.compile_service.cache_clear()
    yield tmp_path
    sys.modules.pop("model", None)
    sys.modules.pop("leaving", None)
    api.compile_service.cache_clear()


def eager_mlp(x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    layers = (torch.nn.Linear(6, 9), torch.nn.GELU(), torch.nn.Linear(9, 4))
    with torch.no_grad():
        return torch.nn.Sequential(*layers).eval()(x)


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    output = capsys.readouterr().out
    assert "\ncpu: " in f"\n{output}"
    for name in device_names():
        assert f"\n{name}" in output
    assert "a100 (nvvm:sm_80): 108 units" in output
    assert "unbounded" in output


def test_devices_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "v100+host", "mi50"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("v100+host: 80 units")
    assert "\nmi50: 60 units" in output
    assert "h100" not in output
    assert "125000" in output
    assert "levels.host.bandwidth: computed: PCIe 3.0" in output


def test_devices_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data) == ["cpu", *device_names()]
    assert data["cpu"]["levels"][0]["name"] == "dram"
    assert data["h100"]["instructions"][0]["shape"] == [64, 256, 16]
    assert data["v100"]["sources"]["peak_gflops"].startswith("V100 whitepaper")


def test_devices_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "a100", "--toml"]) == 0
    text = capsys.readouterr().out
    (folder / "mine.toml").write_text(text.replace("a100", "mine"))
    assert main(["devices", "--file", "mine.toml"]) == 0
    assert "mine (nvvm:sm_80): 108 units" in capsys.readouterr().out
    assert main(["devices", "mine.toml#mine+host", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["mine+host"]
    assert main(["devices", "yours", "--file", "mine.toml"]) == 1
    assert "error: unknown device 'yours'" in capsys.readouterr().err


def test_devices_tells_what_is_wrong_in_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.toml").write_text("[mine]\nunits = 0\n")
    assert main(["devices", "--file", "mine.toml"]) == 1
    error = capsys.readouterr().err
    expected = "mine.toml: mine.units: expected a whole number of at least 1, got 0"
    assert f"error: {expected}\n" in error
    assert "mine.toml: mine.levels: expected tables" in error


def test_a_target_planned_for_a_device_of_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["devices", "a100", "--toml"]) == 0
    text = capsys.readouterr().out.replace("a100", "mine")
    (folder / "mine.toml").write_text(text)
    target = f"nvvm:sm_80@{folder / 'mine.toml'}#mine"
    assert main(["compile", *MLP, "--target", target, "-o", "mlp-gpu.mw"]) == 0
    assert main(["compile", *MLP, "--target", f"{target}s", "-o", "x.mw"]) == 1
    assert "unknown device 'mines'" in capsys.readouterr().err


def test_help_does_not_load_torch() -> None:
    code = (
        "import sys\nfrom magweld.tools.magweld_cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'torch_mlir'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "bench" in done.stdout


@pytest.mark.parametrize("options", [[], ["--portable"]])
def test_compile_and_run(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert main(["compile", *MLP, *options, "-o", "mlp.mw"]) == 0
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    np.savez("in.npz", x)
    assert main(["run", "mlp.mw", "--inputs", "in.npz", "-o", "out.npz"]) == 0
    assert "arr_0: 5x4 float32" in capsys.readouterr().out
    with np.load("out.npz") as arrays:
        expected = eager_mlp(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(arrays["arr_0"], expected, rtol=1e-5, atol=1e-6)


def test_exported_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    model, x = torch.nn.Linear(6, 4), torch.randn(5, 6)
    sizes = ({0: torch.export.Dim("batch", max=9)},)
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=sizes), "m.pt2")
    assert main(["compile", "m.pt2", "-o", "m.mw"]) == 0
    several = ["--inputs", "7x6xf32", "--inputs", "2x6xf32"]
    assert main(["compile", "m.pt2", "--portable", *several, "-o", "m.mwp"]) == 0
    for name, batch in (("m.mw", 5), ("m.mwp", 7), ("m.mwp", 2)):
        x = torch.randn(batch, 6)
        np.savez("in.npz", x.numpy())
        assert main(["run", name, "--inputs", "in.npz", "-o", "out.npz"]) == 0
        with np.load("out.npz") as arrays, torch.no_grad():
            np.testing.assert_allclose(arrays["arr_0"], model(x).numpy(), rtol=1e-5)
    kind = "!torch.vtensor<[2,3],f32>"
    Path("m.mlir").write_text(
        f"func.func @main(%x: {kind}) -> {kind} {{\n"
        f"%0 = torch.aten.relu %x : {kind} -> {kind}\n return %0 : {kind} }}"
    )
    assert main(["compile", "m.mlir", "-o", "relu.mw"]) == 0
    assert main(["run", "relu.mw", "-o", "out.npz"]) == 0
    with np.load("out.npz") as arrays:
        assert arrays["arr_0"].min() == 0 < arrays["arr_0"].max()
    Path("bad.mlir").write_text("func.func @main(")
    capsys.readouterr()
    with zipfile.ZipFile("m.pt2") as archive:
        largest = max(archive.infolist(), key=lambda member: member.file_size)
    content = bytearray(Path("m.pt2").read_bytes())
    # Behind the header of the member and its name.
    content[largest.header_offset + 30 + len(largest.filename) + 200] ^= 1
    Path("damaged.pt2").write_bytes(content)
    Path("short.pt2").write_bytes(content[:-100])
    with zipfile.ZipFile("foreign.pt2", "w") as archive:
        archive.writestr("data", "nothing of torch")
    for words, message in (
        (["damaged.pt2"], f"the checksum of '{largest.filename}' is wrong"),
        (["short.pt2"], "is no intact program of torch.export"),
        (["foreign.pt2"], "is no intact program of torch.export"),
        (["none.pt2"], "No such file"),
        (["bad.mlir"], "[module-damaged]"),
        (["none.mlir"], "No such file"),
        (["m.pt2", "--inputs", "5x7xf32"], "[export-inputs]"),
        (["model.py:mlp"], "--inputs is missing"),
        ([*MLP, "--inputs", "4x6xf32"], "only with --portable"),
    ):
        assert main(["compile", *words, "-o", "x.mw"]) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.count("\n") == 1
        assert message in error
        assert not Path("x.mw").exists()


def test_the_sources_of_the_c_runtime_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["runtime"]) == 0
    shown = Path(capsys.readouterr().out.strip())
    assert {"magweld.c", "magweld.h"} <= {path.name for path in shown.iterdir()}


def test_run_on_random_inputs(folder: Path) -> None:
    words = ["model.py:sorting", "--inputs", "3x4xf32"]
    assert main(["compile", *words, "-o", "sort.mw"]) == 0
    for name in ("a.npz", "b.npz"):
        assert main(["run", "sort.mw", "-o", name]) == 0
    with np.load("a.npz") as first, np.load("b.npz") as second:
        assert first.files == ["arr_0", "arr_1"]
        assert (np.diff(first["arr_0"]) >= 0).all()
        np.testing.assert_array_equal(first["arr_1"], second["arr_1"])


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "model.py:sorting", "--inputs", "3x4xf32"]) == 0
    output = capsys.readouterr().out
    assert "1 record(s)" in output
    assert "tile graph for cpu: 1 generated, 1 external" in output
    place = MODEL[: MODEL.index("lambda")].count("\n") + 1
    assert re.search(rf"through torch: sort\w* \(.*model\.py:{place}\)", output)


def test_explain_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *MLP, "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    (graph,) = record["graphs"]
    assert graph["device"]["name"] == "cpu"
    nodes = [n for s in graph["steps"] for o in s["operators"] for n in o["nodes"]]
    assert {"mm", "gelu"} <= set(nodes)
    assert set(nodes) <= set(graph["sources"])
    assert "measured_seconds" not in graph["steps"][0]


def test_explain_measures_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    sorting = ["model.py:sorting", "--inputs", "3x4xf32"]
    assert main(["explain", *sorting, "--measure", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    (graph,) = record["graphs"]
    assert [step["kind"] for step in graph["steps"]] == ["generated", "external"]
    assert all(step["measured_seconds"] > 0 for step in graph["steps"])
    assert main(["explain", *sorting, "--measure"]) == 0
    assert ", measured " in capsys.readouterr().out


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *MLP, "--rounds", "3", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["records"], data["breaks"], data["hits"]) == (1, 0, 3)
    for name in ("eager", "magweld"):
        assert 0 < data[name]["min_ms"] <= data[name]["median_ms"]


def test_plans(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plans", "list"]) == 0
    assert capsys.readouterr().out == "no plans\n"
    cache = plan_cache(folder / "cache")
    mine = identity_digest(plan_identity(torch.get_num_threads()))
    measured = {"tile 8": 0.002, "tile 4": 0.001}
    cache.put("1" * 64, MeasuredPlan("text", "tile 4", mine, measured))
    cache.put("2" * 64, MeasuredPlan("text", "tile 8", "elsewhere", measured))
    assert main(["plans", "list"]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split()[0] == "1" * 12
    assert "this machine" in first
    assert "1.000" in first
    assert "another" in second
    assert main(["plans", "export", "plans.bin"]) == 0
    assert main(["plans", "clear"]) == 0
    assert cache.keys() == []
    assert main(["plans", "import", "plans.bin"]) == 0
    output = capsys.readouterr().out
    assert "plans.bin: 2 plans\n2 plans forgotten\n2 plans, 1 of them" in output
    assert len(cache.keys()) == 2


def test_plans_of_a_file_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plans", "import", "model.py"]) == 1
    assert "error: model.py is no file of plans" in capsys.readouterr().err


def test_compile_for_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", *MLP, "--target", "nvvm:sm_80", "-o", "gpu.mw"]) == 0
    assert "for nvvm:sm_80, kernels: 1" in capsys.readouterr().out
    assert main(["run", "gpu.mw", "-o", "out.npz"]) == 1
    assert "torch sees none" in capsys.readouterr().err
    assert not Path("out.npz").exists()


def test_a_package_that_is_missing_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "magweld.tools.cli.run", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["run", "m.mwp", "-o", "out.npz"]) == 1
    error = capsys.readouterr().err
    assert error == "error: the command needs the package 'torch', which is missing\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", *MLP, "--passes"], "--passes needs --html"),
        (["explain", *MLP, "--against", "x.json"], "--against needs --html"),
        (["explain", *MLP, "--peers", "eager"], "needs --html and --measure"),
        (["explain", *MLP, "--html", "-", "--against", "model.py"], "no output of"),
        (["explain", *MLP, "--html", "-", "--against", "none"], "No such file"),
        (
            ["explain", *MLP, "--html", "-", "--measure", "--peers", "no"],
            "torch.compile has no backend 'no'",
        ),
        (["explain", "nowhere:mlp", "--inputs", "f32"], "No module named 'nowhere'"),
        (["explain", "none.py:mlp", "--inputs", "f32"], "cannot load 'none.py'"),
        (["explain", "model.py", "--inputs", "f32"], "expected MODULE:FACTORY"),
        (["explain", "model.py:", "--inputs", "f32"], "expected MODULE:FACTORY"),
        (["explain", "model.py:nothing", "--inputs", "f32"], "is not there"),
        (["explain", "model.py:text", "--inputs", "f32"], "is not callable"),
        (["explain", "model.py:number", "--inputs", "f32"], "gave a int"),
        (["explain", "model.py:broken", "--inputs", "f32"], "no such luck"),
        (["explain", "model.py:leaving", "--inputs", "f32"], "SystemExit: 7"),
        (["explain", "leaving.py:mlp", "--inputs", "f32"], "SystemExit: 3"),
        (["bench", "model.py:exits_in_call", "--inputs", "f32"], "raised SystemExit"),
        (["bench", "model.py:mlp", "--inputs", "9x9999999999999xf32"], "no input '9x"),
        (["bench", "model.py:mlp", "--inputs", f"{10**30}xf32"], "no input '1000"),
        (["explain", "model.py:mlp", "--inputs", "5x6"], "such as 1x3x8x8xf32"),
        (["explain", "model.py:mlp", "--inputs", "5x-6xf32"], "got '5x-6xf32'"),
        (["explain", "model.py:mlp", "--inputs", "5x6xf31"], "types: f64, f32"),
        (["bench", "model.py:mlp", "--inputs", "5x7xf32"], "cannot be multiplied"),
        (["bench", *MLP, "--rounds", "0"], "at least one round"),
        (["compile", *MLP, "--target", "nvvm:sm_1", "-o", "x"], "unknown target"),
        (["compile", *MLP, "-o", "no/folder/x"], "cannot write 'no/folder/x'"),
        (["run", "nothing.mw", "-o", "x.npz"], "nothing.mw"),
        (["run", "model.py", "-o", "x.npz"], "no intact artifact"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(os.listdir(folder))
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    left = set(os.listdir(folder)) - {*before, "cache", "__pycache__"}
    assert not left


def test_inputs_of_another_shape_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compile", *MLP, "-o", "mlp.mw"]) == 0
    np.savez("in.npz", np.zeros((6, 6), np.float32))
    assert main(["run", "mlp.mw", "--inputs", "in.npz", "-o", "out.npz"]) == 1
    assert "has shape [6, 6], expected [5, 6]" in capsys.readouterr().err
    np.save("one.npy", np.zeros((5, 6), np.float32))
    assert main(["run", "mlp.mw", "--inputs", "one.npy", "-o", "out.npz"]) == 1
    assert "expected what numpy.savez writes" in capsys.readouterr().err
    Path("bad.npz").write_bytes(b"PK but no archive")
    assert main(["run", "mlp.mw", "--inputs", "bad.npz", "-o", "out.npz"]) == 1
    assert "bad.npz" in capsys.readouterr().err
    assert not Path("out.npz").exists()
