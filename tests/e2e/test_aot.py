"""Artifacts: compiled ahead of time, saved, loaded and called against eager."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import magweld
from magweld.aot.artifact import Artifact
from magweld.aot.errors import ArtifactError
from magweld.aot.files import DIGEST, digest_of
from magweld.diagnostics import UnsupportedError
from magweld.runtime.errors import InputMismatchError
from magweld.runtime.gpu.driver import DeviceError

LOAD = """
import sys, torch, magweld
artifact = magweld.load(sys.argv[1])
x, expected = torch.load(sys.argv[2])
torch.testing.assert_close(artifact(x), expected)
assert not [name for name in sys.modules if "torch_mlir" in name]
assert "magweld.compiler" not in sys.modules
"""


def layers() -> nn.Module:
    made = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 4))
    return made.eval().requires_grad_(False)


def structured(x: Tensor, y: Tensor) -> dict[str, Any]:
    return {"both": (x + y, [x * 2, 3, None]), "same": x, "view": y.t(), "n": "text"}


def through_torch(x: Tensor) -> tuple[Tensor, Tensor]:
    values, order = (x + 1).sort(dim=1, descending=True)
    return values * 2, order


def shared(x: Tensor) -> tuple[Tensor, Tensor]:
    doubled = x * 2
    return doubled, doubled[1:]


def writing(x: Tensor) -> Tensor:
    x[:, 1].mul_(2)
    return x.sum(0)


class Strided(nn.Module):
    """State that is not row-major, of which results have strides."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        self.register_buffer("turned", torch.randn(4, 3).t())
        rows = torch.randn(4, dtype=torch.complex64)
        self.register_buffer("spread", torch.randn(3, 1).expand(3, 4))
        self.register_buffer("gaps", torch.randn(3, 9)[:, 1::2])
        self.register_buffer("imaginary", rows.imag)
        self.register_buffer("negated", rows.conj().imag)
        self.requires_grad_(False)

    def forward(self, x: Tensor) -> Any:
        turned, spread, gaps = self.turned * 2, self.spread + 1, self.gaps.t() + 1
        both = self.imaginary * 2, self.negated * 3
        return self.conv(x), turned, self.turned, self.spread, spread, gaps, both


CASES: dict[str, tuple[Callable[..., Any], list[Tensor]]] = {
    "module": (layers(), [torch.randn(3, 6)]),
    "embedding": (
        nn.Embedding(8, 4).requires_grad_(False),
        [torch.tensor([[1, 7], [0, 3]])],
    ),
    "structured": (structured, [torch.randn(3, 4), torch.randn(3, 4)]),
    "externals": (through_torch, [torch.randn(3, 4)]),
    "shared": (shared, [torch.randn(3, 4)]),
    "writing": (writing, [torch.randn(3, 4)]),
    "strided": (Strided(), [torch.randn(2, 3, 8, 8)]),
    "bytes": (lambda x: x + 3, [torch.arange(6, dtype=torch.uint8)]),
    "transposed": (lambda x: x.relu(), [torch.randn(4, 3).t()]),
    "half": (lambda x: x.softmax(-1), [torch.randn(3, 4, dtype=torch.bfloat16)]),
}


def saved_and_loaded(artifact: Any, folder: Path) -> Any:
    artifact.save(folder / "a.mw")
    return magweld.load(folder / "a.mw")


@pytest.mark.parametrize("name", CASES)
def test_artifacts_agree_with_eager(name: str, tmp_path: Path, same: Any) -> None:
    function, inputs = CASES[name]
    artifact = magweld.compile(function, copy.deepcopy(inputs))
    for callable_ in (artifact, saved_and_loaded(artifact, tmp_path)):
        mine, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
        same(callable_(*mine), function(*theirs))
        same(mine, theirs)


def test_a_result_that_is_an_input_is_that_input(tmp_path: Path) -> None:
    artifact = magweld.compile(structured, [torch.randn(2, 3), torch.randn(2, 3)])
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    result = saved_and_loaded(artifact, tmp_path)(x, y)
    assert result["same"] is x
    assert result["view"].data_ptr() == y.data_ptr()


def test_tensors_that_a_program_tells_apart_may_not_be_passed_twice(
    tmp_path: Path,
) -> None:
    def asks(x: Tensor, y: Tensor) -> Tensor:
        return x * 2 if x is y else x + y

    x, y = torch.randn(3), torch.randn(3)
    artifact = saved_and_loaded(magweld.compile(asks, (x, y)), tmp_path)
    torch.testing.assert_close(artifact(x, y), x + y)
    with pytest.raises(InputMismatchError, match="passed twice"):
        artifact(x, x)
    torch.testing.assert_close(magweld.compile(torch.add, (x, y))(x, x), x + x)


def test_parameters_are_the_artifact_s_own(tmp_path: Path) -> None:
    model = layers()
    x = torch.randn(3, 6)
    artifact = magweld.compile(model, [x])
    expected = model(x)
    model[0].weight.zero_()  # type: ignore[index, union-attr, operator]
    torch.testing.assert_close(artifact(x), expected)
    torch.testing.assert_close(saved_and_loaded(artifact, tmp_path)(x), expected)


def test_a_parameter_that_is_returned_is_a_plain_tensor() -> None:
    weight = nn.Parameter(torch.randn(3))
    artifact = magweld.compile(lambda x: (x * weight, weight), [torch.randn(3)])
    (_, first), (_, second) = (artifact(torch.randn(3)) for _ in range(2))
    assert first is second
    assert type(first) is Tensor
    assert not first.requires_grad
    torch.testing.assert_close(first, weight.detach())


def test_a_buffer_is_updated_in_the_artifact(tmp_path: Path) -> None:
    model = nn.BatchNorm1d(4).requires_grad_(False)
    artifact = magweld.compile(model, [torch.randn(8, 4)])
    for _ in range(2):
        x = torch.randn(8, 4)
        torch.testing.assert_close(artifact(x), model(x))
    (name,) = [n for n in artifact.state if "running_mean" in n]
    torch.testing.assert_close(artifact.state[name], model.running_mean)
    loaded = saved_and_loaded(artifact, tmp_path)
    torch.testing.assert_close(loaded.state[name], model.running_mean)


def test_keywords_and_constants(tmp_path: Path) -> None:
    def function(x: Tensor, factor: int, shift: Tensor | None = None) -> Tensor:
        return x * factor if shift is None else x * factor + shift

    x, shift = torch.randn(3), torch.randn(3)
    arguments = {"x": x, "shift": shift, "factor": 3}
    artifact = saved_and_loaded(magweld.compile(function, arguments), tmp_path)
    torch.testing.assert_close(artifact(factor=3, x=x, shift=shift), x * 3 + shift)
    with pytest.raises(InputMismatchError, match="is 4, compiled for 3"):
        artifact(factor=4, x=x, shift=shift)


def nested(
    xs: list[Tensor], pairs: dict[str, tuple[Tensor, int]], *, by: Any = None
) -> Any:
    first, factor = pairs["b"]
    return xs[0] - first * factor, {"all": torch.cat([x for x, _ in pairs.values()])}


def test_nested_inputs(tmp_path: Path) -> None:
    a, b, c = torch.randn(3), torch.randn(3), torch.randn(3)
    arguments = {"xs": [a], "pairs": {"b": (b, 2), "c": (c, 0)}, "by": (None,)}
    artifact = saved_and_loaded(magweld.compile(nested, arguments), tmp_path)
    other = {"xs": [c], "pairs": {"b": (a, 2), "c": (b, 0)}, "by": (None,)}
    torch.testing.assert_close(artifact(**other), nested(**other))  # type: ignore[arg-type]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"xs": (c,)}, "argument 0 is a tuple, not a list"),
        ({"xs": [c, c]}, "argument 0 has 2 items, expected 1"),
        ({"xs": [torch.randn(4)]}, r"argument 0\[0\] has shape \[4\], expected"),
        ({"pairs": [a]}, "argument 1 is a list, not a dict"),
        # The program goes through the dict in its order.
        ({"pairs": {"c": (b, 0), "b": (a, 2)}}, r"keys \['c', 'b'\], in this order"),
        ({"pairs": {"b": (a, 3), "c": (b, 0)}}, r"1\['b'\]\[1\] is 3, compiled for 2"),
        ({"by": (1,)}, r"argument 2\[0\] is 1, compiled for None"),
    ]
    for changed, message in wrong:
        with pytest.raises(InputMismatchError, match=message):
            artifact(**{**other, **changed})


def test_constants_are_equal_when_their_text_is() -> None:
    def function(x: Tensor, zero: float) -> Tensor:
        return x / zero

    artifact = magweld.compile(function, [torch.ones(2), 0.0])
    with pytest.raises(InputMismatchError, match=r"is -0.0, compiled for 0.0"):
        artifact(torch.ones(2), -0.0)
    nothing = magweld.compile(function, [torch.ones(2), math.nan])
    assert nothing(torch.ones(2), math.nan).isnan().all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.randn(4, 6),), r"shape \[4, 6\], expected \[3, 6\]"),
        ((torch.randn(3, 6, dtype=torch.float64),), "dtype torch.float64"),
        ((torch.randn(6, 3).t(),), "strides"),
        (("x",), "is a str"),
        ((), "0 positional arguments"),
    ],
)
def test_other_arguments_are_refused(arguments: Any, message: str) -> None:
    artifact = magweld.compile(layers(), [torch.randn(3, 6)])
    with pytest.raises(InputMismatchError, match=message):
        artifact(*arguments)


def test_loading_needs_no_compiler(tmp_path: Path) -> None:
    model, x = layers(), torch.randn(3, 6)
    magweld.compile(model, [x]).save(tmp_path / "a.mw")
    torch.save((x, model(x)), tmp_path / "x.pt")
    paths = [str(tmp_path / name) for name in ("a.mw", "x.pt")]
    subprocess.run([sys.executable, "-c", LOAD, *paths], check=True, timeout=120)


X = torch.ones(3)
RETURNED = "artifact-returns-argument"


class Result:
    def __init__(self, value: Tensor) -> None:
        self.value = value


class Counting(nn.Module):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * 2


@pytest.mark.parametrize(
    ("function", "arguments", "identity"),
    [
        (lambda x: Result(x + 1), [torch.randn(3)], "artifact-output"),
        (lambda x: x + zlib.crc32(b""), [torch.randn(3)], "artifact-no-graph"),
        (lambda x: x[x > 0], [torch.randn(3)], "data-dependent-shape"),
        (lambda x: x * float(x.sum()), [torch.randn(3)], "artifact-data-dependent"),
        (lambda x: x if x.sum() > 0 else -x, [X], "artifact-data-dependent"),
        (lambda x, y: x + y, [X, X], "artifact-repeated-input"),
        (lambda x: x + 1, [{torch.randn(3)}], "artifact-input"),
        (lambda xs: (xs, xs[0] + 1), [[X]], RETURNED),
        (lambda xs: {"a": xs["b"]["c"] + 1} | xs, [{"b": {"c": X}}], RETURNED),
        (lambda xs: xs.append(xs[0] + 1), [[X]], "artifact-state-change"),
        (Counting(), [torch.randn(3)], "artifact-state-change"),
        (lambda x: x + 1, [torch.randn(3, dtype=torch.complex128)], "tensor-dtype"),
    ],
)
def test_refusals(function: Any, arguments: Any, identity: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        magweld.compile(function, arguments)
    assert raised.value.id == identity
    assert raised.value.hint


def test_inputs_that_share_memory_are_refused_where_it_matters() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return x + y

    artifact = magweld.compile(function, [torch.randn(4), torch.randn(4)])
    memory = torch.randn(6)
    with pytest.raises(InputMismatchError, match="share memory"):
        artifact(memory[:4], memory[2:])


def rewrite(
    path: Path, change: Callable[[dict[str, bytes]], None], *, sealed: bool = True
) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    if sealed:
        members[DIGEST] = digest_of(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def change_manifest(key: str, value: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest[key] = value
        members["manifest.json"] = json.dumps(manifest).encode()

    return change


@pytest.mark.parametrize(
    ("change", "identity"),
    [
        (change_manifest("version", 99), "artifact-version"),
        (change_manifest("kind", "other"), "artifact-damaged"),
        (change_manifest("template", ["nonsense"]), "artifact-damaged"),
        (change_manifest("plan", {}), "artifact-damaged"),
        (
            change_manifest("host", {"triple": "other", "features": []}),
            "artifact-host",
        ),
        (lambda members: members.pop("program.bin"), "artifact-damaged"),
        (lambda members: members.update({"program.bin": b"x"}), "artifact-damaged"),
        (
            lambda members: members.update({"state.safetensors": b"x"}),
            "artifact-damaged",
        ),
    ],
)
def test_damaged_files(change: Any, identity: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mw"
    magweld.compile(layers(), [torch.randn(3, 6)]).save(path)
    rewrite(path, change)
    with pytest.raises(ArtifactError) as raised:
        magweld.load(path)
    assert raised.value.id == identity


def change_plan(key: str, value: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest["plan"][key] = value
        members["manifest.json"] = json.dumps(manifest).encode()

    return change


@pytest.mark.parametrize(
    "change",
    [
        change_plan("feeds", [[False, 3]]),
        change_plan("arguments", [0, 9, 1]),
        change_plan("arguments", [0]),
        change_plan("converted", [7]),
        change_plan("writes", [[0, 5]]),
        change_plan("outputs", [["ResultOutput", {"result": 4, "window": None}]]),
        change_plan("externals", {"f": {"call": {"operator": "aten.no.such"}}}),
        change_manifest("template", ["tensor", "outputs", 5]),
        change_manifest("template", ["tensor", "nowhere", 0]),
        change_manifest("target", "nvvm:sm_80"),
        change_manifest("state", ["no such tensor"]),
    ],
)
def test_parts_that_do_not_fit_are_found_at_loading(
    change: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.mw"
    magweld.compile(layers(), [torch.randn(3, 6)]).save(path)
    rewrite(path, change)
    with pytest.raises(ArtifactError) as raised:
        magweld.load(path)
    assert raised.value.id in ("artifact-damaged", "artifact-operator")


def test_a_changed_member_is_found_by_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "a.mw"
    magweld.compile(layers(), [torch.randn(3, 6)]).save(path)
    rewrite(path, change_manifest("host", {}), sealed=False)
    with pytest.raises(ArtifactError, match="digest"):
        magweld.load(path)


def test_no_bytes_raise_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "a.mw"
    magweld.compile(layers(), [torch.randn(3, 6)]).save(path)
    data = path.read_bytes()
    generator = random.Random(3)
    refused = 0
    for _ in range(200):
        changed = bytearray(data)
        for _ in range(generator.choice((1, 1, 4))):
            # Headers of the archive are at both ends and between the members.
            changed[generator.randrange(len(data))] = generator.randrange(256)
        path.write_bytes(changed)
        try:
            magweld.load(path)
        except ArtifactError:
            refused += 1
    assert refused > 150


def test_what_is_compressed_is_not_inflated(tmp_path: Path) -> None:
    path = tmp_path / "a.mw"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", "[" * (1 << 24))
    with pytest.raises(ArtifactError, match="is compressed"):
        magweld.load(path)


def test_truncated_files(tmp_path: Path) -> None:
    path = tmp_path / "a.mw"
    magweld.compile(layers(), [torch.randn(3, 6)]).save(path)
    data = path.read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ArtifactError, match="artifact-damaged"):
            magweld.load(path)


@pytest.mark.parametrize("target", ["nvvm:sm_80", "nvvm:sm_90a", "rocdl:gfx942"])
def test_gpus(target: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    artifact = magweld.compile(layers(), [torch.randn(32, 6)], target=target)
    program = artifact.program
    assert artifact.target == target
    assert program.launches
    assert "refused" not in artifact.report()
    for launch in program.launches:
        codes = [program.objects[image] for image in launch.images]
        assert any(launch.kernel.encode() in code for code in codes)
        assert min(*launch.grid, *launch.block) >= 1
    loaded = saved_and_loaded(artifact, tmp_path)
    assert loaded.program == program
    same_state = zip(artifact.state.values(), loaded.state.values(), strict=True)
    assert all(torch.equal(a, b) for a, b in same_state)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_artifact_says_that_there_is_no_gpu(tmp_path: Path) -> None:
    artifact = magweld.compile(layers(), [torch.randn(32, 6)], "nvvm:sm_80")
    for one in (artifact, saved_and_loaded(artifact, tmp_path)):
        with pytest.raises(ArtifactError, match="torch sees none") as raised:
            one(torch.randn(32, 6))
        assert raised.value.id == "artifact-device"
        with pytest.raises(DeviceError, match="device-missing"):
            one.to("cuda:1")
    with pytest.raises(DeviceError, match="device-missing"):
        magweld.load(tmp_path / "a.mw", device="cuda:0")
    on_host = magweld.compile(layers(), [torch.randn(32, 6)])
    with pytest.raises(DeviceError, match="device-chip"):
        on_host.to("cuda:0")


def test_a_gpu_artifact_runs_through_torch_what_has_no_code() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        values, order = x.exp().sort(dim=1)
        return values * 2, order

    inputs = [torch.randn(4, 8, dtype=torch.float64)]
    artifact = magweld.compile(function, inputs, "nvvm:sm_80")
    report = artifact.report()
    assert report["externals"] == ["exp", "sort"]
    # One was known to have none, the other was tried.
    assert "gpu-math-function" in report["refused"]["exp"]
    assert artifact.program.step_kinds().count("external") == 2


def test_an_unknown_target_is_refused_before_the_model_runs() -> None:
    def function(x: Tensor) -> Tensor:
        raise AssertionError("it must not run")

    with pytest.raises(UnsupportedError, match="unknown-target"):
        magweld.compile(function, [torch.randn(3)], target="nvvm:sm_1")


def test_an_artifact_reports_its_kernels() -> None:
    artifact = magweld.compile(layers(), [torch.randn(3, 6)])
    assert isinstance(artifact, Artifact)
    assert artifact.report()["groups"]


COPIES: dict[str, Callable[[Artifact], Artifact]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda artifact: pickle.loads(pickle.dumps(artifact)),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_called_artifact_can_be_copied(way: str) -> None:
    norm = nn.BatchNorm1d(6)
    x = torch.randn(5, 6)
    artifact = magweld.compile(copy.deepcopy(norm), (x,))
    torch.testing.assert_close(artifact(x), norm(x))
    other = COPIES[way](artifact)
    for name, tensor in artifact.state.items():
        assert torch.equal(other.state[name], tensor)
        shares = tensor.data_ptr() == other.state[name].data_ptr()
        assert shares == (way == "copy")
    torch.testing.assert_close(other(x), norm(x))
