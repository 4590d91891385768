"""Owns expand-math: math functions become calls to arithmetic made for the lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from magweld.bindings import func, ir, math
from magweld.passes.cpu.emit_double_math import DOUBLE_EXPANSIONS
from magweld.passes.cpu.emit_lookup import emit_erf, emit_tanh
from magweld.passes.cpu.emit_math import EXPANSIONS
from magweld.passes.cpu.emit_power import expand_constant_power
from magweld.passes.cpu.emit_scaled_exp import emit_exp, emit_exp2
from magweld.passes.cpu.emit_trigonometry import TRIGONOMETRY
from magweld.passes.cpu.emit_vectors import element_type, lanes_of
from magweld.passes.cpu.kernels import kernels_of
from magweld.passes.cpu.register_tile import VectorUnit
from magweld.passes.cpu.vector_unit_pass import VectorUnitPass
from magweld.passes.ir.utils import operations_of

Emit = Callable[[ir.Value], ir.Value]
_EMITTERS: dict[str, dict[str, Emit]] = {
    "f32": EXPANSIONS | TRIGONOMETRY,
    "f64": DOUBLE_EXPANSIONS,
}
# CPUs that multiply pairs of bf16 have the instructions that these take.
_IN_REGISTERS: dict[str, Emit] = {
    "f32 math.erf": emit_erf,
    "f32 math.exp": emit_exp,
    "f32 math.exp2": emit_exp2,
    "f32 math.tanh": emit_tanh,
}


@dataclass(frozen=True)
class ExpandMath(VectorUnitPass):
    """Replace math functions and those of vectors by straight arithmetic.

        math.exp %v : vector<16xf32>   =>   call @exp_16xf32(%v)

    The private functions are made once for each number of lanes and are inlined by
    LLVM. exp, exp2, expm1, log, log2, log1p, erf, tanh, rsqrt, sin, cos and small
    constant powers of f32 have an expansion (`passes/cpu/emit_math.py` and
    `emit_trigonometry.py` state the errors), and expm1 and log1p of f64, which would
    lose accuracy near zero (`emit_double_math.py`). The other functions stay: they
    become calls into the C library, lane by lane. CPUs with AVX512-BF16 look up the
    coefficients of erf and tanh (`emit_lookup.py`), and scale exp and exp2 by one
    instruction (`emit_scaled_exp.py`).

    Attributes:
        vector_bits: Width of a vector register.
        vector_registers: Number of vector registers.
        bf16_pairs: Whether one instruction multiplies pairs of bf16.
    """

    name: ClassVar[str] = "expand-math"

    def run(self, module: ir.Operation) -> None:
        """Rewrite the operations of all kernels of the module."""
        made: dict[str, func.FuncOp] = {}
        for function in kernels_of(module):
            for op in operations_of(function, math.PowFOp):
                expand_constant_power(op)
            for op in operations_of(function, ir.OpView):
                if op.operation.name.startswith("math."):
                    _expand(op.operation, module, made, self.unit)


def _expand(
    op: ir.Operation,
    module: ir.Operation,
    made: dict[str, func.FuncOp],
    unit: VectorUnit,
) -> None:
    x, *others = op.operands
    kind = str(element_type(x.type))
    emit = _EMITTERS.get(kind, {}).get(op.name)
    if unit.pairs:
        emit = _IN_REGISTERS.get(f"{kind} {op.name}", emit)
    if emit is None or others:
        return
    name = f"{op.name.removeprefix('math.')}_{lanes_of(x)}x{kind}"
    if name not in made:
        made[name] = _make(name, op, module, emit)
    with ir.InsertionPoint(op), op.location:
        call = func.CallOp(made[name], [x])
    op.results[0].replace_all_uses_with(call.results[0])
    op.erase()


def _make(name: str, op: ir.Operation, module: ir.Operation, emit: Emit) -> func.FuncOp:
    kind = op.operands[0].type
    with ir.InsertionPoint(module.regions[0].blocks[0]), ir.Location.unknown():
        function = func.FuncOp(name, ([kind], [kind]), visibility="private")
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            func.ReturnOp([emit(block.arguments[0])])
    function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    function.attributes["passthrough"] = ir.ArrayAttr.get(
        [ir.StringAttr.get("alwaysinline")]
    )
    return function
