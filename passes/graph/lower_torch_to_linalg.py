"""Owns the lowering of the torch dialect to linalg on static tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, ir, passmanager
from magweld.diagnostics import (
    Diagnostic,
    PassError,
    Severity,
    collect_diagnostics,
    position_of,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.static_shapes import require_static_shapes
from magweld.passes.ir.utils import node_of, operations_of, users_of

# The stages of torch-mlir's own pipelines, less those that a functional graph of
# static shapes does not need (inlining, shape and dtype refinement) and less its
# final check, which knows no calls: the check here does, and names what is left.
_PREPARE = (
    "builtin.module(func.func("
    "torch-reduce-op-variants,canonicalize,torch-decompose-complex-ops,canonicalize,"
    "torch-restructure-non-constant-axes,torch-scalarize-shapes,canonicalize,cse))"
)
# Constants are converted last: folding would turn them into literals of torch again.
_CONVERT = (
    "builtin.module(func.func(convert-torch-to-linalg,canonicalize,"
    "convert-torch-to-tensor,convert-torch-to-scf,convert-torch-to-arith))"
)
_FINALIZE = (
    "builtin.module(torch-func-backend-type-conversion,"
    "func.func(torch-finalizing-backend-type-conversion,canonicalize,"
    "resolve-shaped-type-result-dims,canonicalize,cse),symbol-dce)"
)
# Operations without tensors vanish with the operation that uses them.
_TENSOR_TYPE = "!torch.vtensor"


@dataclass(frozen=True)
class Unlowered:
    """An operation of the torch dialect that no conversion takes.

    Attributes:
        operation: Its name, e.g. "torch.aten.sort".
        node: Name of the graph node it was imported from; "" when its location
            has none.
    """

    operation: str
    node: str


class UnloweredError(PassError):
    """Operations are left that have no lowering; `str()` locates each.

    Attributes:
        operations: What is left, in order of the module. A caller that has the graph
            can make the nodes external and lower again.
    """

    def __init__(
        self, operations: Sequence[Unlowered], diagnostics: Sequence[Diagnostic]
    ) -> None:
        first = operations[0]
        super().__init__(
            f"no lowering to linalg for '{first.operation}'",
            pass_name=LowerTorchToLinalg.name,
            diagnostics=diagnostics,
        )
        self.operations = tuple(operations)

    @property
    def nodes(self) -> list[str]:
        """Names of the graph nodes that are left, sorted; unnamed ones are not in."""
        return sorted({op.node for op in self.operations if op.node})


@dataclass(frozen=True)
class LowerTorchToLinalg(Pass):
    """Lower the torch dialect to linalg on static tensors.

    Functions take and return builtin tensors afterwards. Calls of private functions
    without a body (operators that run through a library) stay calls, with converted
    types; `torch.prim.If` and `torch.prim.Loop` become `scf.if`, `scf.while` and
    `scf.for`. The torch dialect must have value semantics and static shapes.

        %0 = torch.aten.mm %a, %b : ... -> !torch.vtensor<[4,8],f32>

    becomes

        %1 = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>)
        %2 = linalg.matmul ins(%a, %b : ...) outs(%1 : tensor<4x8xf32>)

    An operation without a lowering fails the pass with `UnloweredError`, which names
    the operation and, where its location has one, the graph node.
    """

    name: ClassVar[str] = "lower-torch-to-linalg"

    def run(self, module: ir.Operation) -> None:
        """Lower all functions of the module in place.

        Raises:
            UnloweredError: Operations without a lowering are left.
            UnsupportedError: `dynamic-size`.
            PassError: A conversion failed otherwise.
        """
        _run(module, _PREPARE)
        _run(module, _CONVERT)
        _require_lowered(module)
        _run(module, _FINALIZE)
        _keep_signed_zeros(module)
        require_static_shapes(module)


def _keep_signed_zeros(module: ir.Operation) -> None:
    """Let rectifiers return a zero as it comes, as torch does.

    `x ugt 0 ? x : 0`, the lowering of relu, makes 0.0 of -0.0; `x olt 0 ? 0 : x` is the
    same for all other values, nan included.
    """
    for select in operations_of(module, arith.SelectOp):
        compared = getattr(select.operands[0].owner, "opview", None)
        if not isinstance(compared, arith.CmpFOp) or not _is_zero(select.operands[2]):
            continue
        greater = int(compared.predicate) == int(arith.CmpFPredicate.UGT)
        same = (*compared.operands,) == (*select.operands[1:],)
        if not (greater and same):
            continue
        value, zero = compared.operands
        with ir.InsertionPoint(select), select.location:
            below = arith.cmpf(arith.CmpFPredicate.OLT, value, zero)
            kept = arith.select(below, zero, value)
        select.result.replace_all_uses_with(kept)
        select.operation.erase()
        if not users_of(compared.result):
            compared.operation.erase()


def _is_zero(value: ir.Value) -> bool:
    constant = getattr(value.owner, "opview", None)
    if not isinstance(constant, arith.ConstantOp):
        return False
    return isinstance(value.type, ir.FloatType) and constant.literal_value == 0.0


def _run(module: ir.Operation, pipeline: str) -> None:
    manager = passmanager.PassManager.parse(pipeline, module.context)
    nodes: list[str] = []

    def note_node(diagnostic: Any) -> bool:
        nodes.append(node_of(diagnostic.location))
        return False

    with collect_diagnostics(module.context) as diagnostics:
        # Attached last, it is asked first and leaves the diagnostic to the collector.
        handler = module.context.attach_diagnostic_handler(note_node)
        try:
            manager.run(module)
        except ir.MLIRError as error:
            left = [op for op in _unlowered(module) if node_of(op.location) in nodes]
            if left:
                raise _unlowered_error(left) from error
            errors = [d for d in diagnostics if d.severity is Severity.ERROR]
            text = errors[0].message if errors else str(error)
            raise PassError(
                text, pass_name=LowerTorchToLinalg.name, diagnostics=errors
            ) from error
        finally:
            handler.detach()


def _unlowered(module: ir.Operation) -> list[ir.Operation]:
    return [
        view.operation
        for view in operations_of(module, ir.OpView)
        if view.operation.name.startswith("torch.") and _has_tensor(view.operation)
    ]


def _has_tensor(op: ir.Operation) -> bool:
    values = [*op.operands, *op.results]
    return any(str(value.type).startswith(_TENSOR_TYPE) for value in values)


def _require_lowered(module: ir.Operation) -> None:
    left = _unlowered(module)
    if left:
        raise _unlowered_error(left)


def _unlowered_error(left: Sequence[ir.Operation]) -> UnloweredError:
    operations = [Unlowered(_torch_name(op), node_of(op.location)) for op in left]
    diagnostics = [
        Diagnostic(
            Severity.ERROR,
            f"'{_torch_name(op)}' op has no lowering to linalg on static tensors",
            position_of(op.location),
        )
        for op in left
    ]
    return UnloweredError(operations, diagnostics)


def _torch_name(op: ir.Operation) -> str:
    if op.name != "torch.operator":
        return str(op.name)
    return str(ir.StringAttr(op.attributes["name"]).value)
