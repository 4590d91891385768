"""Owns lifted values as operands of tensor operators, and what these tell of them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx
from torch.overrides import handle_torch_function

from magweld.frontend.control.rolling import Rolled
from magweld.frontend.expressions.expressions import (
    Expression,
    Literal,
    ValueSource,
    is_of_sizes,
)
from magweld.frontend.lifting.queries import (
    Queries,
    Query,
    TensorNumber,
    number_in,
    require_integers,
    size_path,
)
from magweld.frontend.lifting.scalars import Scalars
from magweld.frontend.lifting.shadow import Step, is_same
from magweld.frontend.lifting.state import NEW_NUMBERS, Lifting
from magweld.frontend.monitor.code_table import CALLS
from magweld.frontend.operators.kinds import (
    FORMLESS,
    OF_PROBABILITIES,
    OPERANDS,
    PASSES_AT_ZERO,
    TOTAL,
    is_value_only,
    name_of,
)
from magweld.frontend.operators.predicates import (
    Memory,
    Predicate,
    is_liftable,
    slice_of,
    text_of_predicate,
)
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.state.nodes import Kind, Node

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

Lifted = tuple[Expression | None, ...]


class Operands:
    """Follows lifted values into torch calls, and numbers that come out of tensors.

    Attributes:
        queries: What else Python asked about tensors.
        rolled: Loops that have become operators, by node.
        results: Nodes whose tensors a hit needs, when the run is over.
        values: How many values of tensors were lifted.
        risky: Expressions on whose value it may depend whether an operator raises.
        bounded: What an operator accepts of an expression: up to which number.
    """

    def __init__(
        self, lifting: Lifting, session: Session, recorder: OperatorRecorder
    ) -> None:
        self._lifting = lifting
        self._session = session
        self._recorder = recorder
        self.risky: set[Expression] = set()
        self.bounded: dict[Expression, float] = {}
        self.values = 0
        self.queries: list[Query] = []
        self.rolled: dict[fx.Node, Rolled] = {}
        self.results: list[fx.Node] = []

    def attach(self) -> None:
        """Let the recorder and its tensors ask here, until `detach`."""
        self._recorder.operands = self._lifting.operands = self
        scalars = Scalars(self._lifting, self._recorder.tensors)
        self._recorder.tensors.scalars = self._lifting.scalars = scalars

    def detach(self) -> None:
        """Let go of the recorder: together they would be a cycle that keeps tensors."""
        self._recorder.operands = self._recorder.tensors.scalars = None

    @property
    def is_symbolic(self) -> bool:
        """Whether shapes may be others on a hit."""
        return bool(self._lifting.scalars.shaping) or any(
            self.lifted_dims(item.node) for item in self._recorder.inputs
        )

    def lifted_dims(self, node: Node) -> frozenset[int]:
        """Return the lifted dimensions of a graph input; 0 and 1 stay as they are."""
        path = self._recorder.paths.of(node)
        wanted = self._lifting.wanted
        return frozenset(
            dim
            for dim, size in enumerate(node.obj.shape)
            if size > 1 and size_path(path, dim) in wanted
        )

    def rows_of(self, cut: fx.Node) -> Expression | None:
        """Return the number of rows that a tensor was cut into, if it is lifted."""
        source: Any = cut.args[0]
        dim = cut.args[1] if len(cut.args) > 1 else cut.kwargs.get("dim", 0)
        tensor = self._recorder.tensors.tensor(source)
        if tensor is None or type(dim) is not int:
            return None
        size = self._asked().size(tensor, dim % tensor.dim())
        return None if isinstance(size, Literal) else size

    def is_unused(self, node: fx.Node) -> bool:
        """Return whether a node cuts a tensor into rows that only a loop has used."""
        cut = node.args[0] if node.target is operator.getitem else node
        if all(
            rolled.iterations.loop.rows is not cut for rolled in self.rolled.values()
        ):
            return False
        parts = cut.users if isinstance(cut, fx.Node) else ()
        return not any(part.users or part in self.results for part in parts)

    def note_answer(
        self, func: Any, name: str, args: Any, kwargs: Any, result: Any
    ) -> None:
        """Take note of a question about tensors and its answer."""
        if self.is_symbolic and name not in FORMLESS:
            self._asked().note(func, name, args, kwargs, result)

    def _asked(self) -> Queries:
        return Queries(self._recorder.tensors, self._lifting, self._session)

    def note_operand_as_result(self, node: fx.Node, result: Any) -> None:
        """Pin the numbers of a torch call that has given back an operand."""
        tensors = self._recorder.tensors
        taken = [tensors.tensor(source) for source in node.all_input_nodes]
        if any(tensor is result for tensor in taken):
            for source in node.all_input_nodes:
                self._lifting.pin(self._lifting.scalars.expressions.get(source))

    def arguments(
        self, func: Any, args: Any, kwargs: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a torch call as the graph holds them."""
        lifted, lifted_kwargs = self._aligned(args, kwargs)
        name = name_of(func)
        fx_args = tuple(
            self._argument(name, index, value, found, args)
            for index, (value, found) in enumerate(zip(args, lifted, strict=True))
        )
        fx_kwargs = {
            key: self._argument(name, key, value, lifted_kwargs.get(key), args)
            for key, value in kwargs.items()
        }
        return fx_args, fx_kwargs

    def _argument(
        self, name: str, key: Any, value: Any, found: Expression | None, args: Any
    ) -> Any:
        """Return one argument as the graph holds it."""
        value_only, scalars = is_value_only(name, key), self._lifting.scalars
        if found is None:
            return scalars.part(value, value_only)
        if value_only:
            self._note_number(name, key, found, args)
            if name in PASSES_AT_ZERO:
                self._lifting.truth(found, bool(value))
        else:
            scalars.shape(found)
        return scalars.node_of(found)

    def _note_number(self, name: str, key: Any, found: Expression, args: Any) -> None:
        """Take note of when an operator accepts a number beside tensors."""
        largest = _largest(args)
        if largest is None:
            self.risky.add(found)
        elif name in OF_PROBABILITIES:
            for compare, limit in ((operator.ge, 0), (operator.le, 1)):
                holds = compare(found.value, limit)
                condition = (found, Literal(limit))
                self._lifting.truth(
                    self._lifting.make.apply(compare, condition, holds), holds
                )
        elif name not in TOTAL or key not in OPERANDS:
            if self.in_loop:
                self.risky.add(found)
            else:
                self.bounded[found] = min(largest, self.bounded.get(found, largest))

    @property
    def in_loop(self) -> bool:
        """Whether a loop is open that may become an operator."""
        return self._lifting.in_loop

    def number_in(self, read: fx.Node, memory: Memory) -> TensorNumber | None:
        """Return the number that a node reads from a tensor, None if it is none."""
        needed = slice_of(self._recorder.graph, read, memory)
        return number_in(self._lifting, self._recorder.tensors, read, needed)

    def take(self, number: TensorNumber, value_only: bool) -> Any:
        """Return what stands in the graph for the number in a tensor.

        Args:
            value_only: Whether no shape depends on it.
        """
        scalars, expression = self._lifting.scalars, number.expression
        require_integers(self._lifting, number.integers)
        if value_only:
            self.risky.add(expression)
        else:
            scalars.shape(expression)
        return scalars.node_of(expression)

    def lifts(self, predicate: Predicate) -> bool:
        """Take note of a value that decides; return whether it needs no guard."""
        lifting = self._lifting
        if lifting.loops is not None:
            lifting.loops.valued |= predicate.needed
        leaf = self._value_leaf(lifting, predicate)
        if leaf is not None:
            self.values += 1
            self._asked().answer(leaf)
            return True
        for number in predicate.numbers:
            expression = lifting.scalars.expressions.get(number)
            if not self._is_taken_anew(predicate, expression):
                lifting.pin(expression)
        return False

    def _is_taken_anew(
        self, predicate: Predicate, expression: Expression | None
    ) -> bool:
        """Return whether a guard computes the number that a predicate takes.

        A guard of tensors runs in front of conditions on numbers. What follows from
        sizes by sums and products neither raises nor takes long.
        """
        is_part = self._session.in_branch or self._lifting.in_loop
        is_known = expression is not None and is_of_sizes(expression)
        return bool(predicate.placeholders) and is_known and not is_part

    def _value_leaf(self, lifting: Lifting, predicate: Predicate) -> Expression | None:
        """Return what stands for a value of tensors, None where it is guarded."""
        in_branch = self._session.in_branch
        if in_branch or not predicate.placeholders or not is_liftable(predicate):
            return None
        nodes = self._recorder.tensors_of(predicate)
        path = text_of_predicate(predicate, nodes, self._recorder.paths)
        changes = NEW_NUMBERS in lifting.wanted and self._follows_a_call(predicate)
        if path not in lifting.wanted and not changes:
            return None
        source = ValueSource(predicate.compute, nodes)
        return lifting.make.leaf(source, predicate.value, path)

    def _follows_a_call(self, predicate: Predicate) -> bool:
        """Return whether a value is a fraction that follows from an argument.

        None of these comes back; that of a weight does.
        """
        nodes = self._recorder.tensors_of(predicate)
        paths = map(self._recorder.paths.of, nodes)
        return type(predicate.value) is float and any(
            path.startswith(("args[", "kwargs[")) for path in paths
        )

    def _aligned(self, args: Any, kwargs: Any) -> tuple[Lifted, dict[str, Expression]]:
        """Return the expressions of the arguments of a torch call."""
        nothing: tuple[Lifted, dict[str, Expression]] = (None,) * len(args), {}
        observer = self._session.current
        shadow = None if observer is None else observer.shadow
        step = None if shadow is None else shadow.step
        if step is None or observer is None:
            return nothing
        link = step.link
        opaque = link is not None and link.callee == id(handle_torch_function)
        if not observer.awaits_operator and not opaque:
            return nothing
        given = None if kwargs else _given(step, args)
        if given is not None:
            return self._align(step, given, {})
        sliced = _sliced(step, args)
        if sliced is not None:
            self._place_ends(step, args[1])
            return self._align(step, sliced, {})
        lifted_kwargs = {} if link is None else link.lifted_kwargs
        for values, lifted in _layouts(step, len(args)):
            if any(found is not None for found in (*lifted, *lifted_kwargs)):
                if _same(values, args) and lifted_kwargs.keys() <= kwargs.keys():
                    return self._align(step, lifted, lifted_kwargs)
        if link is not None:
            # The operator takes them in a way that is not known.
            for expression in (*link.lifted, *lifted_kwargs.values()):
                self._lifting.pin(expression)
        return nothing

    def _place_ends(self, step: Step, made: slice) -> None:
        """Follow the ends of a slice that an instruction makes of values it takes."""
        # The node keeps it: nothing else will have its id.
        self._session.graph.adopt(made)
        for name, depth in (("start", 1), ("stop", 0)):
            descriptor, found = slice.__dict__[name], step.peek(depth)
            self._lifting.place(made, Kind.SLOT, descriptor, found)

    def _align(
        self, step: Step, lifted: Lifted, lifted_kwargs: dict[str, Expression]
    ) -> tuple[Lifted, dict[str, Expression]]:
        step.aligned += 1
        if step.aligned > 1:
            # Two operators in one instruction: which takes what is not known.
            for expression in (*lifted, *lifted_kwargs.values()):
                self._lifting.pin(expression)
        return lifted, lifted_kwargs


def _largest(args: Any) -> float | None:
    """Return the largest number that floating-point operands hold, None for others."""
    parts = [p for a in args for p in (a if isinstance(a, (list, tuple)) else (a,))]
    kinds = {part.dtype for part in parts if isinstance(part, torch.Tensor)}
    kinds.discard(torch.bool)
    if not kinds or not all(kind.is_floating_point for kind in kinds):
        return None
    return min(torch.finfo(kind).max for kind in kinds)


# Instructions of 3.12 that make a slice of the two values on top: how many they take.
_SLICING: Final = {"BINARY_SLICE": 3, "STORE_SLICE": 4}


def _sliced(step: Step, args: Any) -> Lifted | None:
    """Return the expressions of what an operator takes beside such a slice, if it does.

    It takes the container, the slice, and what is stored.
    """
    count = _SLICING.get(step.row.opname)
    if count is None or len(args) != count - 1 or type(args[1]) is not slice:
        return None
    *stored, container, start, stop = step.before[-count:]
    given = (args[0], args[1].start, args[1].stop, *args[2:])
    if not _same((container, start, stop, *stored), given):
        return None
    return (None, None, *(step.peek(3) for _ in stored))


def _given(step: Step, args: Any) -> Lifted | None:
    """Return the expressions of what an operator takes of a generator, if it does."""
    count, first = len(step.given), len(args) - len(step.given)
    spread = step.row.opname == "CALL_FUNCTION_EX" and count
    if not spread or first < 0:
        return None
    if not _same(tuple(value for value, _ in step.given), args[first:]):
        return None
    return (*(None,) * first, *(expression for _, expression in step.given))


def _layouts(step: Step, count: int) -> Iterator[tuple[tuple[Any, ...], Lifted]]:
    """Yield in which order an operator may take the operands of an instruction.

    A call may have a receiver, or what else decides about the operator, in front of
    what that takes.
    """
    link = step.link
    if link is not None and step.row.opname in CALLS:
        skipped = max(len(link.args) - count, 0)
        yield link.args[skipped:], link.lifted[skipped:]
        return
    orders = {
        "BINARY_OP": ((1, 0), (0, 1)),
        "COMPARE_OP": ((1, 0), (0, 1)),
        "BINARY_SUBSCR": ((1, 0),),
        "STORE_SUBSCR": ((1, 0, 2),),
    }
    for order in orders.get(step.row.opname, ()):
        values = tuple(step.before[-1 - depth] for depth in order)
        yield values, tuple(step.peek(depth) for depth in order)


def _same(held: tuple[Any, ...], args: Any) -> bool:
    return len(held) == len(args) and all(map(is_same, held, args))
