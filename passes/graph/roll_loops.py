"""Owns roll-loops: alike iterations of a straight line become one loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from math import prod
from typing import Any, ClassVar

from magweld.bindings import func, ir, linalg, tensor
from magweld.passes.analysis.loop_calls import LOOP, LoopCall
from magweld.passes.analysis.repeats import (
    Inner,
    Iterations,
    Line,
    Obstacle,
    Operand,
    Outer,
    Source,
)
from magweld.passes.analysis.written_out import WrittenOut, note_written_out
from magweld.passes.graph.stacked_rows import Row, join_rows
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import defining_op, nested_deeply
from magweld.passes.ir.slices import Slice, static_slice
from magweld.passes.ir.tensor_slices import extract_slice
from magweld.passes.ir.utils import Declarations, functions_of, node_of

# A loop pays from so many iterations on, and so many operators in all: less is
# compiled in little time, and kernels may then reach across iterations.
LEAST_TRIPS = 4
LEAST_OPERATORS = 96
# Operators of the body at least: kernels reach across the iterations in it.
BODY_OPERATORS = 32
# What is no loop is told from this part of its operators on.
_TOLD = 4
# Loops of a function at most.
_MOST_LOOPS = 16
# Slices of one tensor from which on it is read part by part in a loop.
_SLICES = 8

# Operations that take no time of their own where a reader takes them up.
_VIEWS = frozenset(
    {"tensor.extract_slice", "tensor.collapse_shape", "tensor.expand_shape"}
)
_FLOATING = _VIEWS | {"linalg.transpose", "linalg.fill"}
_ROLLED = frozenset({"tensor.insert_slice", "tensor.pad", "tensor.concat"}) | _VIEWS


@dataclass(frozen=True)
class RollLoops(Pass):
    """Make one loop of consecutive iterations that do the same.

    ```mlir
    %1 = linalg.generic ... ins(%0, %w)    // iteration 0
    %2 = linalg.generic ... ins(%1, %w)    // iteration 1
    ...                                    // up to iteration 63
    ```
    becomes
    ```mlir
    %64 = func.call @loop_0(%0, %w)
    ```
    `@loop_body_0` is the function of an iteration; `magweld.loop` of the declaration
    `@loop_0` says how often it runs and what it reads: values that are the same in
    every iteration, results of the iteration before, and slice number i of a tensor.
    Results that leave from all iterations become one tensor that has them one after
    another; concatenations of them become reshapes of it. A slice that does not lie in
    one piece is read from a transposed copy.

    Short iterations are joined to a body of at least 32 operators. Iterations that read
    different weights, constants that change, or results from two iterations before are
    left. The function keeps in `magweld.written_out` why what repeats is no loop.

    Attributes:
        least_operators: Operators of all iterations from which a loop is made.
        body_operators: Operators of the body at least.
    """

    name: ClassVar[str] = "roll-loops"

    least_operators: int = LEAST_OPERATORS
    body_operators: int = BODY_OPERATORS

    def run(self, module: Any) -> None:
        """Roll the loops of all functions of the module."""
        for function in list(functions_of(module)):
            if not function.is_external:
                self._function(module, function)

    def _function(self, module: Any, function: Any) -> None:
        rows: dict[Any, Row] = {}
        for number in range(_MOST_LOOPS):
            # A loop gives rows of a tensor to what is behind it: it is read anew.
            body = _Body(function)
            found = body.line.iterations(LEAST_TRIPS)
            joined = found and self._joined(body, found)
            if joined is None:
                # Of a loop that was made, a few iterations may be left.
                left = None if number else self._written_out(body, found)
                if left is not None:
                    note_written_out(function, left)
                break
            rows.update(_Loop(module, body, joined).build())
        if rows:
            join_rows(function, rows)

    def _written_out(self, body: _Body, found: Iterations | None) -> WrittenOut | None:
        """Return what is no loop, and why, if it is large enough to be told."""
        if found is not None:
            first = body.operations[found.start]
            return self._told(body, found, "loop-too-small", first)
        for line, id in ((body.line, ""), (body.loose_line(), "loop-external")):
            obstacle = line.obstacle(LEAST_TRIPS)
            alike = obstacle or line.iterations(LEAST_TRIPS)
            if alike is None:
                continue
            reader = body.operations[alike.start]
            if id:
                period = body.operations[alike.start : alike.start + alike.period]
                reader = next((op for op in period if op.name == "func.call"), reader)
            elif obstacle is not None:
                reader = body.operations[obstacle.reader]
                far = "loop-other-iterations"
                id = "loop-other-values" if obstacle.from_before else far
            return self._told(body, alike, id, reader)
        return None

    def _told(
        self, body: _Body, alike: Iterations | Obstacle, id: str, reader: Any
    ) -> WrittenOut | None:
        each = body.operators(alike.start, alike.period)
        if _TOLD * each * alike.count < self.least_operators:
            return None
        return WrittenOut(id, alike.count, each, node_of(reader.location))

    def _joined(self, body: _Body, found: Iterations) -> Iterations | None:
        """Return iterations with a body that is large enough; None if they are few."""
        each = body.operators(found.start, found.period)
        if each * found.count < self.least_operators:
            return None
        least = max(1, -(-self.body_operators // each))
        most = min(2 * least - 1, found.count // LEAST_TRIPS)
        if most < least:
            return None
        # What is left over is compiled as it stands.
        factor = min(range(least, most + 1), key=lambda one: (found.count % one, one))
        count = found.count // factor
        joined = body.line.match(found.start, found.period * factor, count)
        return joined if isinstance(joined, Iterations) else None


class _Body:
    """The operations of a function, those that float left out.

    Constants, reshapes, slices and transposes of what is there before any iteration
    float: they can be anywhere, so that what reads them decides.

    Attributes:
        operations: The others, in order.
        floating: Those that float.
        line: What the search for iterations needs.
    """

    def __init__(self, function: Any) -> None:
        self.operations: list[Any] = []
        self.floating: set[Any] = set()
        self._positions: dict[Any, int] = {}
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []
        self._since: dict[Any, int] = {}
        self._texts: dict[str, int] = {}
        kinds, operands = [], []
        for view in function.regions[0].blocks[0].operations:
            op = view.operation
            if self._floats(op):
                self.floating.add(op)
                since = max(map(self._since_of, reads(op)), default=-1)
                self._since.update(dict.fromkeys(op.results, since))
                continue
            kinds.append(self._kind(op))
            operands.append(tuple(map(self._operand, reads(op))))
            self._positions[op] = len(self.operations)
            self.operations.append(op)
        self.line = Line(kinds, operands, self._prefix)

    def operators(self, start: int, count: int) -> int:
        """Return how many of some operations compute."""
        found = self.operations[start : start + count]
        return sum(op.name.startswith("linalg.") for op in found)

    def loose_line(self) -> Line:
        """Return the line with calls of functions of one type taken for equal.

        What repeats in it is no loop: externals are calls of different functions.
        """
        types: dict[tuple[Any, ...], int] = {}
        kinds = [
            kind
            if op.name != "func.call"
            else len(self._texts)
            + types.setdefault(
                tuple(str(v.type) for v in (*op.operands, *op.results)), len(types)
            )
            for op, kind in zip(self.operations, self.line.kinds, strict=True)
        ]
        return Line(kinds, self.line.operands, self._prefix)

    def maker(self, value: Any) -> Any | None:
        """Return the operation that a value is from if it floats."""
        op = defining_op(value)
        return op.operation if op and op.operation in self.floating else None

    def alike(self, values: Sequence[Any]) -> int:
        """Return how many values, from the first on, follow from the number of each.

        They are one value, slices of one tensor at a constant distance, or the same
        reshapes of such ones.
        """
        makers = [self.maker(value) for value in values]
        if makers[0] is None or all(value == values[0] for value in values):
            other = (k for k, value in enumerate(values) if value != values[0])
            return next(other, len(values))
        found = list(takewhile(partial(_same, makers[0]), makers))
        if makers[0].name == "tensor.extract_slice":
            return rows_of(found).count
        for number in range(len(reads(makers[0]))):
            found = found[: self.alike([reads(op)[number] for op in found])]
        return len(found)

    def _since_of(self, value: Any) -> int:
        op = defining_op(value)
        if op is None:
            return -1
        return self._since.get(value, self._positions.get(op.operation, -1))

    def _floats(self, op: Any) -> bool:
        if op.name in ("arith.constant", "tensor.empty"):
            return True
        return op.name in _FLOATING and all(map(self._is_base, op.operands))

    def _is_base(self, value: Any) -> bool:
        op = defining_op(value)
        return op is None or op.operation in self.floating or _is_sliced(value)

    def _kind(self, op: Any) -> int:
        if not (op.name.startswith("linalg.") or op.name in _ROLLED):
            return -1 - len(self.operations)
        # Operands have no names in the text of an operation by itself.
        text = op.clone().get_asm(print_generic_op_form=True, assume_verified=True)
        return self._texts.setdefault(text, len(self._texts))

    def _operand(self, value: Any) -> Operand:
        op = defining_op(value)
        if op is not None and op.operation in self._positions:
            number = list(op.operation.results).index(value)
            return Operand(self._positions[op.operation], number)
        if value not in self._numbers:
            self._numbers[value] = len(self._values)
            self._values.append(value)
        return Operand(-1, self._numbers[value], self._since_of(value))

    def _prefix(self, operands: Sequence[Operand]) -> int:
        if any(operand.maker >= 0 for operand in operands):
            other = (k for k, o in enumerate(operands) if o != operands[0])
            return next(other, len(operands))
        return self.alike([self._values[operand.number] for operand in operands])


def reads(op: Any) -> list[Any]:
    """Return the operands of an operation, then what its regions take from outside."""
    return [*op.operands, *(user.operands[at] for user, at in _captures(op))]


def _captures(op: Any) -> list[tuple[Any, int]]:
    """Return the uses in the regions of `op` of values from outside, one by one."""
    inside: set[Any] = set()
    uses = []
    for nested in nested_deeply(op):
        inside.update(nested.operation.block.arguments)
        uses += [
            (nested, at) for at, v in enumerate(nested.operands) if v not in inside
        ]
        inside.update(nested.results)
    return uses


def _with_operands(op: Any, values: Sequence[Any]) -> Any:
    """Clone an operation at the insertion point over other values, as `reads` has."""
    clone = op.clone()
    count = len(clone.operands)
    for number in range(count):
        clone.operands[number] = values[number]
    # Captures are looked up in the original: in the clone some are replaced already.
    nested = list(nested_deeply(clone))
    places = {user: index for index, user in enumerate(nested_deeply(op))}
    for (user, at), value in zip(_captures(op), values[count:], strict=True):
        nested[places[user]].operands[at] = value
    return clone


def _is_sliced(value: Any) -> bool:
    users = [use.owner.operation.name for use in value.uses]
    return users.count("tensor.extract_slice") >= _SLICES


def _same(one: Any, other: Any) -> bool:
    """Whether two operations differ in operands and in where slices begin, at most."""
    if other is None or one.name != other.name:
        return False
    types = [[v.type for v in (*op.operands, *op.results)] for op in (one, other)]
    return bool(types[0] == types[1] and _attributes(one) == _attributes(other))


def _attributes(op: Any) -> dict[str, Any]:
    return {a: op.attributes[a] for a in op.attributes if a != "static_offsets"}


@dataclass(frozen=True)
class Rows:
    """Slices of one tensor at a constant distance along a dimension.

    Attributes:
        first: The first one.
        dim: The dimension.
        step: The distance.
        count: How many they are.
    """

    first: Slice
    dim: int
    step: int
    count: int


def rows_of(ops: Sequence[Any]) -> Rows:
    """Return the slices that some operations take, as far as they have a distance."""
    found = [static_slice(op) for op in ops]
    first = found[0]
    if first is None:
        whole = tuple(ir.RankedTensorType(ops[0].operands[0].type).shape)
        return Rows(Slice(ops[0].operands[0], (), whole, ()), 0, 0, 1)
    second = found[1] if len(found) > 1 else None
    moved = [
        dim
        for dim in range(len(first.offsets))
        if second is not None and second.offsets[dim] != first.offsets[dim]
    ]
    if second is None or len(moved) != 1 or not _one_piece(first, moved[0]):
        return Rows(first, 0, 0, 1)
    dim = moved[0]
    step = second.offsets[dim] - first.offsets[dim]
    for count, other in enumerate(found):
        offsets = list(first.offsets)
        offsets[dim] += count * step
        wanted = Slice(first.source, tuple(offsets), first.sizes, first.kept)
        if other != wanted:
            return Rows(first, dim, step, count)
    return Rows(first, dim, step, len(found))


def _one_piece(part: Slice, dim: int) -> bool:
    """Whether slices along a dimension lie in one piece once that is the first one."""
    return part.sizes[dim] == 1 or is_contiguous(part, dim)


def is_contiguous(part: Slice, dim: int) -> bool:
    """Whether a slice lies in one piece where it is."""
    shape: tuple[int, ...] = tuple(ir.RankedTensorType(part.source.type).shape)
    leading, trailing = part.sizes[:dim], part.sizes[dim + 1 :]
    return all(size == 1 for size in leading) and trailing == shape[dim + 1 :]


@dataclass
class _Argument:
    """An argument of the body.

    Attributes:
        operand: The operand of the call.
        start: The element where it begins in the first iteration.
        stride: How many elements later in each further one.
        fed_by: The result of the iteration before it is, as operation and number.
    """

    operand: Any
    start: int = 0
    stride: int = 0
    fed_by: tuple[int, int] | None = None


@dataclass
class _Loop:
    """Makes the loop of some iterations, and the function of one of them."""

    module: Any
    body: _Body
    found: Iterations
    _arguments: list[_Argument] = field(default_factory=list)
    _known: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start, stop = self.found.start, self.found.stop
        self._window = self.body.operations[start:stop]
        self._members = set(self._window)
        self._declarations = Declarations(self.module)

    def build(self) -> dict[Any, Row]:
        """Replace the iterations; return which values are rows of a result."""
        place = self._window[0]
        leaving = self._leaving()
        with place.location:
            self._function = self._declarations.add("loop_body", [], [])
            self._block = self._function.add_entry_block()
            made = self._clone_body()
            results = self._results(leaving)
            types = self._finish_body([made[at].results[n] for at, n in results])
            rows = self._call(place, results, leaving, types)
        for op in reversed(self._window):
            op.erase()
        return rows

    def _leaving(self) -> dict[tuple[int, int], set[int]]:
        """Return the results that are read behind the loop, and of which iterations."""
        found: dict[tuple[int, int], set[int]] = {}
        for position, op in enumerate(self._window):
            trip, at = divmod(position, self.found.period)
            for number, value in enumerate(op.results):
                owners = {top_level(use.owner) for use in value.uses}
                if owners - self._members:
                    found.setdefault((at, number), set()).add(trip)
        return found

    def _results(
        self, leaving: dict[tuple[int, int], set[int]]
    ) -> list[tuple[int, int]]:
        fed = [a.fed_by for a in self._arguments if a.fed_by is not None]
        return list(dict.fromkeys([*fed, *leaving]))

    def _clone_body(self) -> list[Any]:
        made: list[Any] = []
        with ir.InsertionPoint(self._block):
            for at, sources in enumerate(self.found.sources):
                # Read anew: loops before have replaced some of what was read.
                lines = [reads(op) for op in self._window[at :: self.found.period]]
                read = zip(sources, zip(*lines, strict=True), strict=True)
                values = [self._read(source, of, made) for source, of in read]
                made.append(_with_operands(self._window[at], values))
        return made

    def _read(self, source: Source, of: Sequence[Any], made: Sequence[Any]) -> Any:
        """Return the value of the body for one that iterations have as `of`."""
        if isinstance(source, Inner):
            return made[source.at].results[source.number]
        if isinstance(source, Outer):
            return self._outer(of)
        fed_by = (source.at, source.number)
        return self._argument(
            (fed_by, of[0]), of[0].type, _Argument(of[0], fed_by=fed_by)
        )

    def _argument(self, key: Any, type_: Any, argument: _Argument) -> Any:
        if key not in self._known:
            self._arguments.append(argument)
            self._known[key] = self._block.add_argument(type_, ir.Location.unknown())
        return self._known[key]

    def _outer(self, values: Sequence[Any]) -> Any:
        """Return the value of the body for those that iterations read from before."""
        first = values[0]
        op = self.body.maker(first)
        if op is None or _is_tensor_constant(op):
            return self._argument(first, first.type, _Argument(first))
        # The first two tell all others.
        key = tuple(values[:2])
        if key not in self._known:
            self._known[key] = self._floating(op, values, key)
        return self._known[key]

    def _floating(self, op: Any, values: Sequence[Any], key: Any) -> Any:
        moving = any(value != values[0] for value in values)
        makers = [value.owner.operation for value in values]
        if moving and op.name == "tensor.extract_slice":
            return self._row(rows_of(makers), values[0], key)
        read = zip(*map(reads, makers), strict=True)
        return _with_operands(op, [self._outer(of) for of in read]).results[0]

    def _row(self, rows: Rows, value: Any, key: Any) -> Any:
        """Return the argument that is a row of a tensor, or of its transposed copy."""
        part, dim = rows.first, rows.dim
        source = part.source
        if is_contiguous(part, dim):
            shape = tuple(ir.RankedTensorType(source.type).shape)
            each = prod(shape[dim + 1 :])
            start = sum(
                offset * prod(shape[d + 1 :]) for d, offset in enumerate(part.offsets)
            )
        else:
            with ir.InsertionPoint(self._window[0]):
                source = _rows_first(self._before(source), part, dim)
            each = prod(part.sizes)
            start = part.offsets[dim] * each
        argument = _Argument(source, start, rows.step * each)
        return self._argument(("row", *key), value.type, argument)

    def _before(self, value: Any) -> Any:
        """Make sure that a value is there before the loop."""
        op = self.body.maker(value)
        if op is not None and self._window[0].is_before_in_block(op):
            for operand in reads(op):
                self._before(operand)
            op.move_before(self._window[0])
        return value

    def _finish_body(self, results: list[Any]) -> list[Any]:
        with ir.InsertionPoint(self._block):
            func.ReturnOp(results)
        types = [value.type for value in results]
        inputs = [argument.type for argument in self._block.arguments]
        self._function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, types)
        )
        return types

    def _call(
        self,
        place: Any,
        results: list[tuple[int, int]],
        leaving: dict[tuple[int, int], set[int]],
        types: list[Any],
    ) -> dict[Any, Row]:
        last = self.found.count - 1
        stacked = tuple(bool(leaving.get(key, set()) - {last}) for key in results)
        returned = [
            _stack_type(type_, self.found.count) if one else type_
            for type_, one in zip(types, stacked, strict=True)
        ]
        operands = [self._before(argument.operand) for argument in self._arguments]
        callee = self._declarations.add(
            "loop", [value.type for value in operands], returned
        )
        callee.attributes[LOOP] = LoopCall(
            self._function.name.value,
            self.found.count,
            tuple(argument.start for argument in self._arguments),
            tuple(argument.stride for argument in self._arguments),
            tuple(
                -1 if argument.fed_by is None else results.index(argument.fed_by)
                for argument in self._arguments
            ),
            stacked,
        ).attribute()
        rows: dict[Any, Row] = {}
        with ir.InsertionPoint(place):
            call = func.CallOp(callee, operands)
            for key, one, value in zip(results, stacked, call.results, strict=True):
                for trip in sorted(leaving.get(key, ())):
                    new = _row_of(value, trip) if one else value
                    if one:
                        rows[new] = Row(value, trip)
                    self._replace(self._result(key, trip), new)
        return rows

    def _result(self, key: tuple[int, int], trip: int) -> Any:
        at, number = key
        return self._window[trip * self.found.period + at].results[number]

    def _replace(self, old: Any, new: Any) -> None:
        """Let what is behind the loop read another value."""
        for use in list(old.uses):
            if top_level(use.owner) not in self._members:
                use.owner.operation.operands[use.operand_number] = new


def top_level(op: Any) -> Any:
    """Return the operation of the function's block that an operation is in."""
    op = op.operation
    while op.parent.operation.name != "func.func":
        op = op.parent.operation
    return op


def _is_tensor_constant(op: Any) -> bool:
    """Whether an operation is a constant with data; a splat is cheap to make again."""
    if op.name != "arith.constant":
        return False
    value = op.attributes["value"]
    is_tensor = isinstance(op.results[0].type, ir.RankedTensorType)
    return is_tensor and not (
        isinstance(value, ir.DenseElementsAttr) and value.is_splat
    )


def _rows_first(source: Any, part: Slice, dim: int) -> Any:
    """Return a copy of rows along a dimension, one after another."""
    shape = tuple(ir.RankedTensorType(source.type).shape)
    offsets, sizes = list(part.offsets), list(part.sizes)
    offsets[dim], sizes[dim] = 0, shape[dim]
    if tuple(sizes) != shape:
        source = extract_slice(source, offsets, sizes, sizes)
    order = [dim, *(d for d in range(len(sizes)) if d != dim)]
    element = ir.RankedTensorType(source.type).element_type
    empty = tensor.EmptyOp([sizes[d] for d in order], element).result
    return linalg.transpose(source, outs=[empty], permutation=order).results[0]


def _stack_type(type_: Any, count: int) -> Any:
    ranked = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get([count, *ranked.shape], ranked.element_type)


def _row_of(stacked: Any, number: int) -> Any:
    shape = list(ir.RankedTensorType(stacked.type).shape)
    offsets = [number, *[0] * (len(shape) - 1)]
    return extract_slice(stacked, offsets, [1, *shape[1:]], shape[1:])
