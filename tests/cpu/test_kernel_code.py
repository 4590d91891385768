"""Checks the lowering of kernels that are beside other functions of a module."""

from pathlib import Path
from string import Template

from magweld.bindings import ir
from magweld.codegen.host import HostTarget
from magweld.context import make_context
from magweld.kernel_code import lower_kernels
from magweld.passes.infrastructure.execution import RunOptions

KERNELS = Path(__file__).parent / "kernels"
SIZES = {"C": 4, "H": 8, "COUNT": 64, "T": 2}
CALLER = """
func.func @main(%x: tensor<4x8x8xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @kernel_0(%x, %out)
      : (tensor<4x8x8xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def test_what_calls_kernels_is_erased() -> None:
    kernel = Template((KERNELS / "mean_inner.mlir").read_text()).substitute(SIZES)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(kernel + CALLER)
        signatures = lower_kernels(module, HostTarget.detect(), RunOptions())
        names = [str(op.attributes["sym_name"]) for op in module.body.operations]
    assert list(signatures) == ["kernel_0"]
    assert signatures["kernel_0"].pointers == 2
    assert '"main"' not in names
