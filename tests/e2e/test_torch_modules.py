"""Modules in the torch dialect as inputs of `compile`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import magweld
from magweld.aot.torch_module import load_torch_module
from magweld.bindings import ir
from magweld.context import make_context
from magweld.diagnostics import UnsupportedError

MATRIX = "!torch.vtensor<[3,4],f32>"
OPEN = "!torch.vtensor<[?,4],f32>"
WEIGHT = torch.arange(8, dtype=torch.float32).reshape(4, 2) / 8
BLOB = "0x04000000" + WEIGHT.numpy().tobytes().hex().upper()
# Literals of several kinds, an operator with an element type, one with two results.
TEXT = f"""
!open = {OPEN}
!pairs = !torch.vtensor<[?,2],f32>
!wide = !torch.vtensor<[?,2],f64>
!weight = !torch.vtensor<[4,2],f32>
!numbers = !torch.vtensor<[2],si64>
!bits = !torch.vtensor<[2],i1>
!best = !torch.vtensor<[?,1],f32>
!which = !torch.vtensor<[?,1],si64>
!int = !torch.int
!bool = !torch.bool
module {{
  func.func @main(%x: !open) -> (!wide, !which) {{
    %w = torch.vtensor.literal(dense_resource<w> : tensor<4x2xf32>) : !weight
    %i = torch.vtensor.literal(dense<[3, -1]> : tensor<2xsi64>) : !numbers
    %b = torch.vtensor.literal(dense<[true, false]> : tensor<2xi1>) : !bits
    %one = torch.constant.int 1
    %type = torch.constant.int 7
    %scale = torch.constant.float 5.000000e-01
    %true = torch.constant.bool true
    %none = torch.constant.none
    %false = torch.constant.bool false
    %0 = torch.aten.mm %x, %w : !open, !weight -> !pairs
    %1 = torch.aten.add.Tensor %0, %i, %scale
      : !pairs, !numbers, !torch.float -> !pairs
    %2 = torch.aten.where.self %b, %1, %0 : !bits, !pairs, !pairs -> !pairs
    %3 = torch.aten.to.dtype %2, %type, %false, %false, %none
      : !pairs, !int, !bool, !bool, !torch.none -> !wide
    %values, %indices = torch.aten.topk %2, %one, %one, %true, %true
      : !pairs, !int, !int, !bool, !bool -> !best, !which
    return %3, %indices : !wide, !which
  }}
}}
{{-# dialect_resources: {{ builtin: {{ w: "{BLOB}" }} }} #-}}
"""


def eager(x: Tensor) -> tuple[Tensor, Tensor]:
    product = x @ WEIGHT
    added = product + 0.5 * torch.tensor([3, -1])
    chosen = torch.where(torch.tensor([True, False]), added, product)
    return chosen.double(), chosen.topk(1, 1)[1]


@pytest.fixture(scope="module", params=["text", "bytecode"])
def path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("module") / "model.mlir"
    path.write_text(TEXT, encoding="utf-8")
    if request.param == "bytecode":
        with make_context():
            module = ir.Module.parse(TEXT)
            with path.open("wb") as file:
                module.operation.write_bytecode(file)
    return path


def test_results(path: Path, tmp_path: Path) -> None:
    module = load_torch_module(path)
    x = torch.randn(5, 4)
    magweld.compile(module, (x,)).save(tmp_path / "a.mw")
    for one, other in zip(magweld.load(tmp_path / "a.mw")(x), eager(x), strict=True):
        assert one.dtype is other.dtype
        torch.testing.assert_close(one, other)


def test_arguments_of_other_sizes_are_refused(path: Path) -> None:
    module = load_torch_module(path)
    for inputs, identity in (
        (None, "export-sizes"),
        ((torch.randn(5, 3),), "export-inputs"),
        ((torch.randn(5, 4).double(),), "export-inputs"),
        ((torch.randn(5, 4), 1), "export-inputs"),
        ({"x": torch.randn(5, 4)}, "export-inputs"),
    ):
        with pytest.raises(UnsupportedError) as raised:
            magweld.compile(module, inputs)
        assert raised.value.id == identity


def test_portable_artifacts_of_modules(tmp_path: Path) -> None:
    text = f"""
    func.func @anything(%x: {MATRIX}) -> {MATRIX} {{
      %0 = torch.aten.exp %x : {MATRIX} -> {MATRIX}
      return %0 : {MATRIX}
    }}"""
    path = tmp_path / "exp.mlir"
    path.write_text(text, encoding="utf-8")
    artifact = magweld.compile_portable(load_torch_module(path))
    x = torch.randn(3, 4)
    torch.testing.assert_close(torch.from_numpy(artifact(x.numpy())), x.exp())


HEAD = f"func.func @main(%x: {MATRIX}) -> {MATRIX} {{\n"
TAIL = f"return %0 : {MATRIX} }}"
CALL = f"(%x) : ({MATRIX}) -> {MATRIX}\n"


@pytest.mark.parametrize(
    ("text", "identity", "message"),
    [
        ("", "module-function", "model.mlir"),
        ("module {", "module-damaged", "expected"),
        ("func.func private @f()", "module-function", "model.mlir"),
        ("func.func @main() { return }", "module-operation", "no tensors"),
        (
            HEAD + f'%0 = torch.operator "onnx.Odd"{CALL}{TAIL}',
            "module-operation",
            ":2",
        ),
        (HEAD + f'%0 = "torch.aten.nothing"{CALL}{TAIL}', "module-damaged", "nothing"),
        (
            "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> "
            "{ return %x : tensor<3xf32> }",
            "module-operation",
            "tensor<3xf32>",
        ),
        (
            HEAD + f"%1 = torch.copy.to_tensor %x : !torch.tensor<[3,4],f32>\n"
            f"%0 = torch.copy.to_vtensor %1 : {MATRIX}\n{TAIL}",
            "module-operation",
            "torch.copy.to_tensor",
        ),
        (
            HEAD + "%0 = torch.vtensor.literal(dense_resource<w> : tensor<3x4xf32>) "
            f": {MATRIX}\n{TAIL}",
            "module-operation",
            "its data",
        ),
    ],
)
def test_what_is_no_program(
    text: str, identity: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnsupportedError) as raised:
        load_torch_module(path)
    assert raised.value.id == identity
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_operators_that_write_to_values_are_refused(tmp_path: Path) -> None:
    kind, row = "!torch.vtensor<[4,3],f32>", "!torch.vtensor<[3],f32>"
    types = ", ".join([kind, *[row] * 4, "!torch.bool", *["!torch.float"] * 2])
    for training in ("true", "false"):
        text = f"""
        func.func @main(%x: {kind}, %mean: {row}) -> {kind} {{
          %w = torch.vtensor.literal(dense<1.0> : tensor<3xf32>) : {row}
          %training = torch.constant.bool {training}
          %small = torch.constant.float 1.0e-5
          %0 = torch.aten.batch_norm %x, %w, %w, %mean, %w, %training, %small, %small,
            %training : {types}, !torch.bool -> {kind}
          return %0 : {kind}
        }}"""
        path = tmp_path / f"{training}.mlir"
        path.write_text(text, encoding="utf-8")
    inputs = torch.randn(4, 3), torch.randn(3)
    with pytest.raises(UnsupportedError, match="module-write"):
        magweld.compile(load_torch_module(tmp_path / "true.mlir"), inputs)
    artifact = magweld.compile(load_torch_module(path), inputs)
    ones = torch.ones(3)
    expected = nn.functional.batch_norm(inputs[0], inputs[1], ones, ones, ones)
    torch.testing.assert_close(artifact(*inputs), expected)


def test_damaged_modules_are_one_error(path: Path, tmp_path: Path) -> None:
    intact, damaged = path.read_bytes(), tmp_path / "damaged.mlir"
    generator = random.Random(0)
    messages = []
    for _ in range(40):
        content = bytearray(intact)
        for _ in range(generator.choice((1, 5))):
            content[generator.randrange(len(content))] = generator.randrange(256)
        damaged.write_bytes(content[: generator.choice((len(content), 300))])
        try:
            load_torch_module(damaged)
        except UnsupportedError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert not any("\n" in message for message in messages)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.narrow = nn.Linear(8, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return torch.softmax(self.narrow(self.table(ids)), -1)


def test_what_torch_mlir_writes(tmp_path: Path) -> None:
    importer = pytest.importorskip("torch_mlir.fx")
    model, ids = Layers().eval(), torch.randint(0, 10, (2, 5))
    path = tmp_path / "model.mlir"
    path.write_text(str(importer.export_and_import(model, ids, output_type="torch")))
    artifact = magweld.compile(load_torch_module(path))
    torch.testing.assert_close(artifact(ids), model(ids))
