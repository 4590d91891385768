"""Models of ONNX as inputs of `compile`, beside the evaluator that ONNX has."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import magweld
from magweld.aot.onnx_model import load_onnx
from magweld.diagnostics import UnsupportedError
from magweld.tools.magweld_cli import main

onnx = pytest.importorskip("onnx")
helper = importlib.import_module("onnx.helper")
numpy_helper = importlib.import_module("onnx.numpy_helper")

F32, I64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
RANDOM = np.random.default_rng(0)


def weight(name: str, *shape: int) -> Any:
    values = RANDOM.standard_normal(shape, np.float32) / np.sqrt(
        max(np.prod(shape[1:]), 1)
    )
    return numpy_helper.from_array(values.astype(np.float32), name)


def numbers(name: str, *values: int) -> Any:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model_of(
    nodes: Sequence[Any],
    inputs: Sequence[tuple[str, int, Sequence[int | str]]],
    outputs: Sequence[tuple[str, Sequence[int | str]]],
    initial: Sequence[Any] = (),
) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info(name, F32, shape) for name, shape in outputs],
        list(initial),
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )


def images() -> Any:
    """A network for images: windows, a norm, pooling, a product, two results."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "b", "b", "b", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["a"]),
        helper.make_node("Flatten", ["a"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "second"], ["u"]),
        helper.make_node("Squeeze", ["u", "second"], ["f"]),
        helper.make_node("Gemm", ["f", "wide", "bias"], ["g"], transB=1),
        helper.make_node("Softmax", ["g"], ["scores"], axis=-1),
    ]
    ones = numpy_helper.from_array(np.full(8, 2.0, np.float32), "v")
    initial = [weight("w", 8, 3, 3, 3), weight("b", 8), ones, numbers("second", 1)]
    initial += [weight("wide", 10, 8), weight("bias", 10)]
    shape = (2, 3, 12, 12)
    outputs = [("scores", (2, 10)), ("f", (2, 8))]
    return model_of(nodes, [("x", F32, shape)], outputs, initial)


def encoder() -> Any:
    """A layer of attention over the rows of a table, with shapes that are tensors."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("LayerNormalization", ["e", "one", "zero"], ["n"], axis=-1),
        helper.make_node("MatMul", ["n", "w"], ["q"]),
        helper.make_node("Reshape", ["q", "heads"], ["h"]),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Transpose", ["h"], ["k"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["t", "k"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "t"], ["o"]),
        helper.make_node("Transpose", ["o"], ["back"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["back", "joined"], ["j"]),
        helper.make_node("Add", ["j", "e"], ["y"]),
        helper.make_node("Erf", ["y"], ["z"]),
    ]
    initial = [
        weight("table", 20, 16),
        weight("w", 16, 16),
        numbers("heads", 2, 6, 4, 4),
    ]
    initial += [numbers("joined", 2, 6, 16), weight("zero", 16)]
    initial += [
        numpy_helper.from_array(np.ones(16, np.float32), "one"),
        numpy_helper.from_array(np.array(0.5, np.float32), "scale"),
    ]
    return model_of(nodes, [("ids", I64, (2, 6))], [("z", (2, 6, 16))], initial)


def inputs_of(model: Any, rows: int = 0) -> list[np.ndarray[Any, Any]]:
    found = []
    for value in model.graph.input:
        shape = [one.dim_value or rows for one in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == I64:
            found.append(RANDOM.integers(0, 20, shape))
        else:
            found.append(RANDOM.standard_normal(shape, np.float32))
    return found


def expected_of(model: Any, inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    names = [value.name for value in model.graph.input]
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
    return list(evaluator.run(None, dict(zip(names, inputs, strict=True))))


@pytest.mark.parametrize("make", [images, encoder])
def test_results(make: Any, tmp_path: Path) -> None:
    model, path = make(), tmp_path / "model.onnx"
    onnx.save_model(model, path)
    artifact = magweld.compile(load_onnx(path))
    inputs = inputs_of(model)
    found = artifact(*map(torch.from_numpy, inputs))
    if isinstance(found, torch.Tensor):
        found = (found,)
    for one, other in zip(found, expected_of(model, inputs), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-5)


def test_sizes_that_are_open_are_those_of_inputs(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Tanh", ["y"], ["z"]),
    ]
    given, made = [("x", F32, ("rows", 8))], [("z", ("rows", 32))]
    model = model_of(nodes, given, made, [weight("w", 8, 32)])
    path = tmp_path / "open.onnx"
    # Weights beside the model; what is saved so is not what the evaluator takes.
    saved = onnx.ModelProto.FromString(model.SerializeToString())
    onnx.save_model(saved, path, save_as_external_data=True, size_threshold=0)
    read = load_onnx(path)
    with pytest.raises(UnsupportedError, match="export-sizes"):
        magweld.compile(read)
    for rows in (3, 5):
        (x,) = inputs_of(model, rows)
        artifact = magweld.compile_portable(
            read, (torch.from_numpy(x),), levels=("x86-64-v3",)
        )
        (expected,) = expected_of(model, [x])
        np.testing.assert_allclose(artifact(x), expected, rtol=1e-4, atol=1e-5)


def test_what_is_computed_of_sizes_needs_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "axis"], ["m"]),
        helper.make_node("Concat", ["m", "rest"], ["k"], axis=0),
        helper.make_node("Reshape", ["x", "k"], ["y"]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    initial = [numbers("rest", -1), numbers("axis", 0)]
    initial.append(numpy_helper.from_array(np.array(0), "first"))
    given, made = [("x", F32, ("n", 3, 4))], [("z", ("n", 12))]
    monkeypatch.chdir(tmp_path)
    onnx.save_model(model_of(nodes, given, made, initial), "m.onnx")
    with pytest.raises(UnsupportedError, match="onnx-operator"):
        load_onnx(Path("m.onnx"))
    for shapes in ([], [(5, 3)], [(5, 3, 5)]):
        with pytest.raises(UnsupportedError, match="export-inputs"):
            load_onnx(Path("m.onnx"), shapes)
    assert main(["compile", "m.onnx", "--inputs", "5x3x4xf32", "-o", "m.mw"]) == 0
    x = torch.randn(5, 3, 4)
    torch.testing.assert_close(magweld.load("m.mw")(x), x.reshape(5, 12).relu())


def test_the_command_line_takes_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = model_of(
        [helper.make_node("Sigmoid", ["x"], ["y"])],
        [("x", F32, (3, 4))],
        [("y", (3, 4))],
    )
    onnx.save_model(model, tmp_path / "m.onnx")
    output = str(tmp_path / "m.mw")
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", output]) == 0
    x = torch.randn(3, 4)
    torch.testing.assert_close(magweld.load(output)(x), x.sigmoid())
    assert "kernels: 1" in capsys.readouterr().out


def test_what_is_no_model_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    for content in (
        b"",
        b"PK\x03\x04",
        bytes(range(256)),
        images().SerializeToString()[:99],
    ):
        path.write_bytes(content)
        with pytest.raises(UnsupportedError, match=r"\[onnx-damaged\]") as raised:
            load_onnx(path)
        assert "\n" not in str(raised.value)
    with pytest.raises(OSError, match=r"nowhere\.onnx"):
        load_onnx(tmp_path / "nowhere.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UnsupportedError, match=r"\[onnx-package\].*pip install"):
        load_onnx(path)


def test_operators_without_a_conversion_are_named(tmp_path: Path) -> None:
    branches = [
        helper.make_graph(
            [helper.make_node(kind, ["x"], [kind])],
            kind,
            [],
            [helper.make_tensor_value_info(kind, F32, (3,))],
        )
        for kind in ("Neg", "Abs")
    ]
    both = dict(zip(("then_branch", "else_branch"), branches, strict=True))
    condition = helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0)
    truth = helper.make_node("Cast", ["m"], ["c"], to=onnx.TensorProto.BOOL)
    for nodes, named in (
        (
            [helper.make_node("Odd", ["x"], ["y"], name="odd", domain="a.b")],
            "onnx.Odd' (odd",
        ),
        ([condition, truth, helper.make_node("If", ["c"], ["y"], **both)], "prim.If'"),
    ):
        model = model_of(nodes, [("x", F32, (3,))], [("y", (3,))])
        model.opset_import.append(helper.make_opsetid("a.b", 1))
        onnx.save_model(model, tmp_path / "model.onnx")
        with pytest.raises(UnsupportedError, match=r"\[onnx-operator\]") as raised:
            load_onnx(tmp_path / "model.onnx")
        assert named in str(raised.value)
        assert "\n" not in str(raised.value)
