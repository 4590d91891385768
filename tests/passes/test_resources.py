"""Constants whose data stands beside the module, as importers write weights."""

from __future__ import annotations

import numpy as np
import pytest

from magweld.bindings import ir
from magweld.compiler import compile_text, lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.diagnostics import PassError
from magweld.host_function import read_host_function

MODULE = """
func.func @main(%a: tensor<2x{0}>) -> (tensor<2x{0}>, tensor<2x{0}>) {{
  %w = arith.constant dense_resource<weight> : tensor<2x{0}>
  %b = arith.constant dense_resource<bias> : tensor<2x{0}>
  %e = tensor.empty() : tensor<2x{0}>
  %0 = linalg.add ins(%a, %w : tensor<2x{0}>, tensor<2x{0}>)
      outs(%e : tensor<2x{0}>) -> tensor<2x{0}>
  %1 = linalg.mul ins(%a, %b : tensor<2x{0}>, tensor<2x{0}>)
      outs(%e : tensor<2x{0}>) -> tensor<2x{0}>
  return %0, %1 : tensor<2x{0}>, tensor<2x{0}>
}}
{{-# dialect_resources: {{ builtin: {{ {1} }} }} #-}}
"""


def resources(**values: np.ndarray) -> str:
    return ", ".join(
        f'{name}: "0x04000000{value.tobytes().hex().upper()}"'
        for name, value in values.items()
    )


@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i64"])
def test_the_data_of_resources_is_in_the_program(kind: str) -> None:
    dtype = np.dtype(kind[0] + str(int(kind[1:]) // 8))
    weight, bias = np.array([1, 2], dtype), np.array([5, 7], dtype)
    text = MODULE.format(kind, resources(weight=weight, bias=bias))
    program = compile_text(text, CompileOptions())
    assert set(program.constants) == {weight.tobytes(), bias.tobytes()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        resources(weight=np.ones(1, np.float32)),
        resources(weight=np.ones(2, np.float32), bias=np.ones(3, np.float32)),
    ],
)
def test_data_that_is_missing_is_an_error_at_the_constant(text: str) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE.format("f32", text))
        lower_to_tiles(module, CompileOptions())
        with pytest.raises(PassError, match=r"'arith.constant' op has no data"):
            read_host_function(module)
