"""Owns outline-control: branches and loops on truth values become calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, func, ir, passmanager, scf, tensor
from magweld.dialects.tile_graph import captured_values
from magweld.passes.analysis.control_calls import IF, WHILE, IfCall, WhileCall
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import (
    ValueMap,
    clone_helper,
    clone_mapped,
    defining_op,
    nested_operations,
)
from magweld.passes.ir.utils import (
    Declarations,
    functions_of,
    located_error,
    operations_of,
    users_of,
)

_CONTROL = (scf.IfOp, scf.WhileOp)
# A call cannot hand over what is no tensor, and need not hand over these.
_MADE_ANEW = frozenset({"arith.constant", "tensor.empty"})
# Bodies are functions that are called once: what is in them belongs to the caller.
_INLINE = "builtin.module(inline{default-pipeline=},symbol-dce)"


@dataclass(frozen=True)
class OutlineControl(Pass):
    """Make calls of `scf.if` and `scf.while`, and functions of their regions.

    ```mlir
    %t = tensor.extract %test[] : tensor<i1>
    %r = scf.if %t -> (tensor<4xf32>) { ... %x ... } else { ... %w ... }
    ```
    becomes
    ```mlir
    %r = func.call @if_0(%test, %x, %w)
    ```
    `magweld.if` of the declaration `@if_0` names the functions of both arms, which take
    what either of them reads; `magweld.while` names the function of an iteration, which
    returns what it carries on and the next truth value. Constants are made anew in the
    functions. Functions with a body that are called are inlined first.

    A truth value has to be the element of a tensor, and a loop has to test in front of
    each iteration and nothing else; anything else fails the pass.
    """

    name: ClassVar[str] = "outline-control"

    def run(self, module: Any) -> None:
        """Outline all control flow of the module, what is inside first.

        Raises:
            PassError: A branch or loop is of another form.
        """
        if not any(map(_is_control, operations_of(module, ir.OpView))):
            return
        manager = passmanager.PassManager.parse(_INLINE, module.context)
        manager.run(module.operation)
        outliner = _Outliner(module)
        for function in list(functions_of(module)):
            if not function.is_external:
                outliner.outline(function.operation)
        for extract in operations_of(module, tensor.ExtractOp):
            if not users_of(extract.result):
                extract.operation.erase()


class _Outliner:
    def __init__(self, module: Any) -> None:
        self._declarations = Declarations(module)

    def outline(self, op: Any) -> None:
        """Outline what is in the regions of an operation, what is inside first."""
        for nested in list(nested_operations(op)):
            self.outline(nested)
            view = nested.opview
            with nested.location:
                if not list(nested.results) and isinstance(view, _CONTROL):
                    nested.erase()  # functions of values have no effects
                elif isinstance(view, scf.WhileOp):
                    self._while(nested)
                elif _is_control(view):
                    self._if(nested)

    def _if(self, op: Any) -> None:
        """Outline a branch, or a choice between two tensors that are there."""
        if isinstance(op.opview, scf.IfOp):
            bodies = [_block_body(region.blocks[0]) for region in op.regions]
            captures = _handed_over(captured_values(op))
        else:
            bodies = [_Body((), [value]) for value in list(op.operands)[1:]]
            captures = _handed_over(list(op.operands)[1:])
        then, other = (
            self._function(kind, captures, body, {})
            for kind, body in zip(("then", "else"), bodies, strict=True)
        )
        call = IfCall(then, other).attribute()
        results = self._call(
            op, "if", IF, call, [_tensor_of(op.operands[0]), *captures]
        )
        _replace(op, results)

    def _while(self, op: Any) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        ends = list(before.operations)[-1].operation
        if len(list(before.operations)) > 1 or ends.operands[0] not in before.arguments:
            raise located_error(op, "expected a loop that only tests what it carries")
        test = list(before.arguments).index(ends.operands[0])
        handed_on = list(ends.operands)[1:]
        state = _without(before.arguments, test)
        own = {value: state.index(value) for value in handed_on if value in state}
        outside = [value for value in handed_on if value not in own]
        captures = _handed_over([*outside, *captured_values(op.regions[1].owner)])
        captures = [value for value in captures if value not in own]
        # What the iteration takes is what is carried, some of it under other names.
        names = dict(zip(after.arguments, handed_on, strict=True))
        body = _block_body(after)
        ordered = [*_without(body.results, test), body.results[test]]
        step = self._function(
            "step", [*state, *captures], _Body(body.operations, ordered), names
        )
        carried = _without(op.operands, test)
        made = self._call(
            op,
            "while",
            WHILE,
            WhileCall(step).attribute(),
            [_tensor_of(op.operands[test]), *carried, *captures],
            len(state),
        )
        _replace(op, [made[own[v]] if v in own else v for v in handed_on])

    def _call(
        self,
        op: Any,
        kind: str,
        name: str,
        attribute: Any,
        operands: Sequence[Any],
        carried: int | None = None,
    ) -> list[Any]:
        """Call a new declaration in front of an operation, return what it returns."""
        inputs = [value.type for value in operands]
        results = [value.type for value in op.results]
        if carried is not None:
            results = inputs[1 : 1 + carried]
        callee = self._declarations.add(kind, inputs, results)
        callee.attributes[name] = attribute
        with ir.InsertionPoint(op):
            return list(func.CallOp(callee, list(operands)).results)

    def _function(
        self,
        kind: str,
        arguments: Sequence[Any],
        body: _Body,
        names: Mapping[Any, Any],
    ) -> str:
        """Return the name of a new function of some operations.

        Args:
            kind: What its name begins with.
            arguments: The values that its arguments stand for.
            body: The operations, and what it returns.
            names: Values of the operations that are others of these.
        """
        types = [value.type for value in body.results]
        function = self._declarations.add(
            kind, [value.type for value in arguments], types
        )
        entry = function.add_entry_block()
        values = ValueMap()
        for old, new in zip(arguments, entry.arguments, strict=True):
            values[old] = new
        inside = {value for op in body.operations for value in op.results}
        with ir.InsertionPoint(entry):
            # What is not handed over is a constant, which is made anew.
            for name, value in names.items():
                clone_helper(value, values)
                values[name] = values[value]
            for op in body.operations:
                for value in [*op.operands, *captured_values(op)]:
                    if value not in inside:
                        clone_helper(value, values)
                clone_mapped(op, values)
            for value in body.results:
                if value not in inside:
                    clone_helper(value, values)
            func.ReturnOp([values[value] for value in body.results])
        return str(function.name.value)


@dataclass(frozen=True)
class _Body:
    """Operations, and the tensors that they return."""

    operations: Sequence[Any]
    results: Sequence[Any]


def _block_body(block: Any) -> _Body:
    *operations, ends = (op.operation for op in block.operations)
    return _Body(operations, [_tensor_of(value) for value in ends.operands])


def _is_control(op: Any) -> bool:
    if isinstance(op, arith.SelectOp):
        return isinstance(op.result.type, ir.RankedTensorType) and not isinstance(
            op.operands[0].type, ir.RankedTensorType
        )
    return isinstance(op, _CONTROL)


def _tensor_of(value: Any) -> Any:
    """Return the tensor whose element a truth value is; a tensor is itself.

    Raises:
        PassError: It is made otherwise.
    """
    if isinstance(value.type, ir.RankedTensorType):
        return value
    maker = defining_op(value)
    if maker is not None and isinstance(maker.opview, tensor.ExtractOp):
        source = maker.operation.operands[0]
        if ir.RankedTensorType(source.type).rank == 0:
            return source
    raise located_error(
        value.owner, "expected a truth value to be the element of a tensor"
    )


def _handed_over(values: Sequence[Any]) -> list[Any]:
    """Return the values that a call hands over: all that is not made of constants."""
    return [value for value in dict.fromkeys(values) if not _is_constant(value)]


def _is_constant(value: Any) -> bool:
    maker = defining_op(value)
    if maker is None:
        return False
    operands = [*maker.operation.operands, *captured_values(maker)]
    name = maker.operation.name
    return name in _MADE_ANEW and all(map(_is_constant, operands))


def _without(values: Iterable[Any], position: int) -> list[Any]:
    found = list(values)
    return [*found[:position], *found[position + 1 :]]


def _replace(op: Any, values: Sequence[Any]) -> None:
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
