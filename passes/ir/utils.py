"""Owns small helpers on IR that know nothing of any dialect of ours."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from magweld.bindings import func, ir, scf, tensor
from magweld.diagnostics import Diagnostic, PassError, Severity, position_of

OpT = TypeVar("OpT", bound=ir.OpView)

REMARKS = "magweld.remarks"


def operations_of(root: ir.Operation | ir.OpView, kind: type[OpT]) -> list[OpT]:
    """Return all operations of a class below and including `root`, pre-order.

    The list is made before it is returned, so that the caller may rewrite.
    """
    found: list[OpT] = []
    # Making the view of an operation takes longer than reading its name.
    name = getattr(kind, "OPERATION_NAME", None)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if name is not None and op.name != name:
            return ir.WalkResult.ADVANCE
        view = op.opview
        if isinstance(view, kind):
            found.append(view)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def functions_of(module: ir.Operation) -> Iterator[func.FuncOp]:
    """Yield the `func.func` operations directly in a module."""
    for op in list(module.regions[0].blocks[0]):
        if isinstance(op, func.FuncOp):
            yield op


def find_function(module: ir.Operation, name: str) -> func.FuncOp:
    """Return the function of a module by its symbol name.

    Raises:
        PassError: There is none; located at the module.
    """
    for function in functions_of(module):
        if function.name.value == name:
            return function
    raise located_error(module, f"expected a function @{name}")


class Declarations:
    """Declares functions in a module, each with a name that no symbol has."""

    def __init__(self, module: Any) -> None:
        self._symbols = ir.SymbolTable(module.operation)
        self._block = module.operation.regions[0].blocks[0]

    def add(self, prefix: str, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """Return a private function, named by the prefix and the first number left."""
        name = next(unused_names(self._symbols, prefix))
        with ir.InsertionPoint(self._block):
            types = list(inputs), list(results)
            function = func.FuncOp(name, types, visibility="private")
        self._symbols.insert(function)
        return function


def unused_names(symbols: ir.SymbolTable, prefix: str) -> Iterator[str]:
    """Yield names that no symbol has when they are asked for, each once."""
    names = (f"{prefix}_{number}" for number in itertools.count())
    return (name for name in names if name not in symbols)


def node_of(location: ir.Location) -> str:
    """Return the first name in a location, "" if there is none."""
    if hasattr(location, "name_str"):
        return str(location.name_str)
    parts = [
        *(getattr(location, side, None) for side in ("callee", "caller")),
        *getattr(location, "locations", ()),
    ]
    names = (node_of(part) for part in parts if part is not None)
    return next((name for name in names if name), "")


def callee_of(call: Any) -> str:
    """Return the name of the function that a `func.call` is of."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def users_of(value: ir.Value) -> list[ir.OpView]:
    """Return the operations that use a value, once per use."""
    return [use.owner for use in value.uses]


def located_error(op: ir.Operation | ir.OpView, message: str) -> PassError:
    """Return an error to raise that points at the source of an operation.

    The text names the operation first, as MLIR's own diagnostics do.
    """
    text = f"'{op.operation.name}' op {message}"
    diagnostic = Diagnostic(Severity.ERROR, text, position_of(op.location))
    return PassError(text, diagnostics=(diagnostic,))


def groups_of(op: tensor.ExpandShapeOp | tensor.CollapseShapeOp) -> list[list[int]]:
    """Return which dimensions a reshape splits one into, or joins to one."""
    return [
        [int(ir.IntegerAttr(i).value) for i in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(op.reassociation)
    ]


def forall_grid(forall: scf.ForallOp) -> list[tuple[int, int, int]] | None:
    """Return lower bound, step and trip count of each dimension, None if dynamic."""
    bounds = [
        list(forall.attributes[name])
        for name in ("staticLowerBound", "staticUpperBound", "staticStep")
    ]
    dynamic = ir.ShapedType.get_dynamic_size()
    if any(dynamic in numbers for numbers in bounds):
        return None
    return [
        (low, step, max(0, -(-(high - low) // step)))
        for low, high, step in zip(*bounds, strict=True)
    ]


def add_remark(function: func.FuncOp, text: str) -> None:
    """Keep a remark about a decision on the function that it is about."""
    known = list(function.attributes[REMARKS]) if REMARKS in function.attributes else []
    remark = ir.StringAttr.get(text)
    if remark not in known:
        function.attributes[REMARKS] = ir.ArrayAttr.get([*known, remark])


def remarks_of(function: func.FuncOp) -> list[str]:
    """Return the remarks that are kept on a function."""
    if REMARKS not in function.attributes:
        return []
    return [str(ir.StringAttr(one).value) for one in function.attributes[REMARKS]]
