"""Owns the expressions of lifted values in one observed frame."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.expressions.expressions import Expression, Slot
from magweld.frontend.lifting.join_expressions import ExpressionJoin, Noted
from magweld.frontend.monitor.code_table import CALLS, Row
from magweld.frontend.monitor.observer import Held, Observer
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.values import same_scalar

if TYPE_CHECKING:
    from magweld.frontend.lifting.moves import Moves
    from magweld.frontend.lifting.state import Lifting

# Objects whose end nobody can notice; all others must not live longer than they do
# without a monitor.
_HELD: Final = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), tuple, list, dict),
        *(slice, range, set, frozenset, type(iter([])), type(iter(()))),
    }
)


@dataclass(eq=False, slots=True)
class Released:
    """Stands for an object that is not held.

    Attributes:
        address: Its id.
        kind: Its type.
    """

    address: int
    kind: type


def hold(obj: Any) -> Any:
    """Return an object if it may be held, else what stands for it."""
    kind = type(obj)
    return obj if kind in _HELD or issubclass(kind, tuple) else Released(id(obj), kind)


def is_same(held: Any, obj: Any) -> bool:
    """Return whether something held stands for an object that lives."""
    if type(held) is Released:
        return bool(held.address == id(obj))
    return held is obj


def address_of(held: Any) -> int:
    """Return the id of an object, by what stands for it."""
    return held.address if type(held) is Released else id(held)


def kind_of(held: Any) -> type:
    """Return the type of an object, by what stands for it."""
    return held.kind if type(held) is Released else type(held)


def elements_met(
    source: Any, size: int, reads: Sequence[tuple[Slot, Expression]]
) -> dict[int, Expression]:
    """Return what reads of a sequence met, by the position of the element."""
    return {
        slot[2] % size: expression
        for slot, expression in reads
        if slot[:2] == (id(source), Kind.INDEX)
    }


@dataclass
class Link:
    """A call: how expressions reach the frame that it runs, and come back.

    Attributes:
        callee: Id of the function that the call runs; it lives as long as the call.
        args: Positional arguments, the receiver included, as held; none where a
            function of Python gets no expression.
        kwargs: Keyword arguments, likewise.
        lifted: Expressions of the positional arguments.
        lifted_kwargs: Expressions of the keyword arguments.
        returns: Whether the result of the call is what the function returns.
        entered: Whether the function was seen to start.
        result: Expression that came back.
        value: What came back, as held, if the function was seen to return it.
        spread: Id and length of the sequence that holds the last positional arguments,
            if one does.
    """

    callee: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    lifted: tuple[Expression | None, ...]
    lifted_kwargs: dict[str, Expression]
    returns: bool = True
    entered: bool = False
    result: Expression | None = None
    value: Any = None
    spread: tuple[int, int] | None = None

    def take(
        self, holders: Sequence[Any], reads: Sequence[tuple[Slot, Expression]]
    ) -> None:
        """Give the arguments the expressions that reads of their holder met."""
        for holder in holders:
            if self.spread is None or id(holder) != self.spread[0]:
                continue
            count = self.spread[1]
            met = elements_met(holder, count, reads)
            first = len(self.lifted) - count
            self.lifted = tuple(
                met.get(place - first, expression)
                for place, expression in enumerate(self.lifted)
            )


@dataclass(eq=False, repr=False, slots=True)
class Step:
    """One instruction between its two events.

    Attributes:
        row: The instruction.
        before: Value stack before it, as held, where the instruction takes from it.
        operands: Expressions of the values that it takes, by stack position; a rule
            removes those that it follows, the rest is pinned.
        reads: Reads that met an expression.
        stores: Slots that it writes.
        rewrites: Containers that it rearranges.
        link: The call that it makes.
        moves: Where it moves numbers, if that is known before it runs.
        answer: Expression of a number that a query of a tensor gave.
        aligned: Number of tensor operators that took over the operands.
        calls_back: Whether it has run a function of Python that no link leads to: what
            it gives may follow from anything then.
        advances: Id of the frame of the generator whose items it takes, 0 if of none.
        given: These items, as held, and their expressions.
        called: Calls of functions of Python that native code makes in it.
    """

    row: Row
    before: list[Any]
    operands: dict[int, Expression]
    reads: list[tuple[Slot, Expression]] = field(default_factory=list)
    stores: list[Slot] = field(default_factory=list)
    rewrites: list[Node] = field(default_factory=list)
    link: Link | None = None
    moves: Moves | None = None
    answer: Expression | None = None
    aligned: int = 0
    calls_back: bool = False
    advances: int = 0
    given: list[tuple[Any, Expression | None]] = field(default_factory=list)
    called: list[Link] = field(default_factory=list)

    def take(self, depth: int) -> Expression | None:
        """Remove and return the expression `depth` places below the top."""
        return self.operands.pop(len(self.before) - 1 - depth, None)

    def forget(self, container: Any) -> None:
        """Drop the reads of a container: its content is followed otherwise."""
        self.reads = [read for read in self.reads if read[0][0] != id(container)]

    def take_elements(self, source: Any) -> dict[int, Expression]:
        """Remove the reads of elements of a sequence; return them by position."""
        met = elements_met(source, len(source), self.reads)
        elements = (id(source), Kind.INDEX)
        self.reads = [read for read in self.reads if read[0][:2] != elements]
        return met

    def forget_arguments(self) -> None:
        """Forget what went into the arguments of a call, which others follow."""
        self.operands.clear()
        self.given.clear()
        if self.row.opname == "CALL_FUNCTION_EX":
            for holder in self.before[-2:]:
                self.forget(holder)

    def peek(self, depth: int) -> Expression | None:
        """Return the expression `depth` places below the top."""
        return self.operands.get(len(self.before) - 1 - depth)


Rule = Callable[["Shadow", Step, list[Any]], None]
Stepless = Callable[["Shadow", Row, list[Any]], bool]


# Calls whose operands are arguments, and a callable.
_LINKED: Final = ("CALL", "CALL_KW")


@dataclass(eq=False, repr=False, slots=True)
class Shadow:
    """Follows lifted values through one frame, beside its observer.

    Attributes:
        observer: Of the frame.
        lifting: The lifted values of the run.
        stack: Expressions on the value stack, by position.
        names: Expressions of local variables, by name.
        step: The current instruction.
        caller: The call that made this frame, if its result is followed.
        beneath: Whether native code around it may look into containers when it comes
            back: what it finds there is not seen.
    """

    observer: Observer
    lifting: Lifting
    stack: dict[int, Expression] = field(default_factory=dict)
    names: dict[str, Expression] = field(default_factory=dict)
    step: Step | None = None
    caller: Link | None = None
    beneath: bool = False

    def passes(self, row: Row) -> bool:
        """Return whether an instruction goes by: it has no handler, and no expression.

        It pins what no instruction before it has claimed, as each one does.
        """
        self.lifting.flush()
        held = row.parts or (self.names and row.argval in self.names)
        return not self.stack and not held

    def begin(self, row: Row, stack: list[Any]) -> Step | None:
        """Return the step of an instruction that is about to run.

        None if it needs none, unless its handler meets an expression.
        """
        self.lifting.flush()
        stepless = row.instruction.stepless
        if stepless is None or self.stack or row.parts:
            return self._begin(row, stack)
        if (self.names and row.argval in self.names) or not stepless(self, row, stack):
            return self._begin(row, stack)
        return None

    def _begin(self, row: Row, stack: list[Any]) -> Step:
        floor = len(stack) - row.taken
        operands = {}
        if self.stack:
            for position in [p for p in self.stack if p >= floor]:
                operands[position] = self.stack.pop(position)
        seen = max(0, min(floor, len(stack) - 1))
        if not operands and row.opname in _LINKED:
            seen = len(stack)  # its link has the arguments
        before = [None] * seen
        before += [hold(obj) for obj in stack[seen:]]
        step = self.step = Step(row, before, operands)
        if row.instruction.begin is not None:
            row.instruction.begin(self, step, stack)
        return step

    def collect(self, step: Step | None, row: Row, stack: list[Any]) -> None:
        """Take what the handler of an instruction has read and written.

        Args:
            step: What `begin` gave for it.
            stack: The values before it.
        """
        lifting = self.lifting
        if step is None:
            if not (lifting.reads or lifting.stores or lifting.rewrites):
                return
            step = self._begin(row, stack)
        # Most instructions have met nothing.
        if lifting.reads:
            step.reads, lifting.reads = lifting.reads, []
        if lifting.stores:
            step.stores, lifting.stores = lifting.stores, []
        if lifting.rewrites:
            step.rewrites, lifting.rewrites = lifting.rewrites, []
        if step.row.opname == "CALL_FUNCTION_EX" and step.link is not None:
            step.link.take(step.before[-2:], step.reads)

    def finish(self, stack: list[Any], raised: bool) -> None:
        """Take note that the current instruction is done; `stack` is what it left."""
        step, self.step = self.step, None
        if step is None:
            return
        if raised:
            for position in [p for p in self.stack if p >= len(stack) - 1]:
                del self.stack[position]
        elif not self._is_taken(step, stack) and not (
            step.calls_back and step.row.opname != "GET_ITER"  # which looks at it
        ):
            if step.row.instruction.finish is not None:
                step.row.instruction.finish(self, step, stack)
        self._close(step)

    def _is_taken(self, step: Step, stack: list[Any]) -> bool:
        """Finish an instruction whose operands a function or an operator has taken."""
        link = step.link
        if link is not None and link.entered:
            step.forget_arguments()
            if link.returns:
                self.push(stack, self._given(step.row, link.result, stack[-1]))
            return True
        if step.aligned != 1:
            return False
        step.forget_arguments()
        if step.row.opname in CALLS:
            self.push_answer(stack, step)
        return True

    def _given(
        self, row: Row, result: Expression | None, value: Any
    ) -> Expression | None:
        """Return the expression of what an instruction makes of what a function gave.

        A comparison of 3.13 may take its truth.
        """
        tested = result is not None and type(result.value) is not bool
        if result is None or not (row.tests_result and tested):
            return result
        return self.lifting.make.apply(operator.truth, (result,), value)

    def _close(self, step: Step) -> None:
        """Pin what the instruction used and no rule has followed."""
        for expression in step.operands.values():
            self.lifting.pin(expression)
        for _, expression in step.reads:
            self.lifting.pin(expression)
        self.lifting.pin(step.answer)
        for _, item in step.given:
            self.lifting.pin(item)
        for link in step.called:
            self.lifting.pin(link.result)
        for node in step.rewrites:
            self.lifting.pin_content(node.obj)

    def returned(self) -> None:
        """Take note that the frame ends; a result goes to the caller."""
        step, self.step = self.step, None
        if step is None:
            return
        if step.row.opname == "RETURN_VALUE" and self.caller is not None:
            self.caller.result, self.caller.value = step.take(0), step.before[-1]
        elif step.row.opname == "YIELD_VALUE":
            self._hand_over(step)
        self._close(step)

    def _hand_over(self, step: Step) -> None:
        """Give an item of a generator to the instruction that takes it."""
        caller = self.observer.session.caller
        outer = None if caller is None or caller.shadow is None else caller.shadow.step
        if outer is not None and outer.advances == id(self.observer.frame):
            outer.given.append((step.before[-1], step.take(0)))

    def suspended(self) -> None:
        """Take note that the recording ends in the middle of a call of the frame."""
        step, self.step = self.step, None
        if step is None:
            return
        if step.link is not None and step.link.entered:
            step.forget_arguments()
        # Defaults of the function, for one: they have become its local variables.
        self._close(step)

    def fork_for(self, observer: Observer) -> Shadow:
        """Return the same expressions for a frame that goes on where this one is."""
        made = Shadow(observer, self.lifting)
        made.names.update(self.names)
        made.stack.update(self.stack)
        return made

    def noted(self, depth: int) -> Noted:
        """Return the expressions in the frame, whose stack has a certain depth."""
        return Noted(dict(self.names), dict(self.stack), depth)

    def join(self, depth: int, other: Noted, values: Held, returns: bool) -> None:
        mine = Noted(self.names, self.stack, depth)
        names = self.observer.code.co_varnames
        ExpressionJoin(self.lifting, mine, other).check(names, values, returns)

    def operand(self, position: int) -> Expression | None:
        """Return the expression at a position of the stack before the instruction."""
        operands = {} if self.step is None else self.step.operands
        return operands.get(position, self.stack.get(position))

    def push_answer(self, stack: list[Any], step: Step) -> None:
        """Attach what a query of a tensor gave to the value on top, if that is it."""
        answer = step.answer
        if answer is not None and same_scalar(answer.value, stack[-1]):
            self.push(stack, answer)
            step.answer = None

    def push(self, stack: list[Any], expression: Expression | None) -> None:
        """Attach an expression to the value on top of the stack."""
        if expression is not None:
            self.stack[len(stack) - 1] = expression
