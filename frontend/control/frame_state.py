"""Owns the values in a frame, functions that go on with them, states of loops."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from magweld.frontend.control.comparison import DifferenceError, form_of
from magweld.frontend.control.flow import Join
from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.monitor.code_table import Row, slot_count
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.segments.continuation import Continuations
from magweld.frontend.segments.liveness import StackSlot
from magweld.frontend.segments.shape import Shape
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.values import is_identity, is_scalar, same_scalar

if TYPE_CHECKING:
    from magweld.frontend.lifting.join_expressions import Noted
    from magweld.frontend.lifting.shadow import Shadow
    from magweld.frontend.session.session import Session


@dataclass(frozen=True)
class FrameState:
    """The values in a frame at an instruction.

    Attributes:
        slots: Locals, cells and free variables; NULL where there is none.
        stack: Value stack, NULL for its empty entries.
        noted: Expressions in the frame, None if none are followed.
        nodes: Nodes of the tensors in it, by id, where they matter. One object may
            stand for several nodes in turn.
    """

    slots: tuple[Any, ...]
    stack: tuple[Any, ...]
    noted: Noted | None = None
    nodes: Mapping[int, fx.Node] = field(default_factory=dict)

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors in the slots and on top of the stack."""
        values = (*self.slots, *self.stack[-1:])
        return [value for value in values if isinstance(value, torch.Tensor)]

    def node(self, slot: int) -> fx.Node:
        """Return the node of the tensor in a slot."""
        return self.nodes[id(self.slots[slot])]

    def ends(self, carried: Sequence[int]) -> list[fx.Node]:
        """Return the nodes of carried tensors and of the one to be tested."""
        return [*map(self.node, carried), self.nodes[id(self.stack[-1])]]

    def differs(self, before: FrameState, slot: int) -> bool:
        """Return whether a slot holds something else than it did before."""
        mine, other = self.slots[slot], before.slots[slot]
        if isinstance(mine, torch.Tensor):
            return mine is not other or self.node(slot) is not before.node(slot)
        return mine is not other and not (is_scalar(mine) and same_scalar(mine, other))


@dataclass(frozen=True)
class ContinuedFunction:
    """A function that continues another one.

    Attributes:
        function: The function.
        shift: How many bytes its instructions lie behind those of the original.
        values: What it starts with.
    """

    function: FunctionType
    shift: int
    values: list[Any]

    def run(self) -> Any:
        """Go on, once; return what the original would return."""
        try:
            return self.function(self.values)
        finally:
            self.values.clear()


def continue_at(
    original: FunctionType, offset: int, state: FrameState
) -> ContinuedFunction:
    """Return a function that runs the code of another from an instruction on.

    Exceptions leave it: it has none of the handlers of the original.

    Args:
        original: Whose code and globals are used.
        offset: Where it goes on, the prefixes of the instruction included.
        state: The values to go on with.

    Raises:
        ValueError: It cannot be made.
    """
    slots = tuple(n for n, value in enumerate(state.slots) if value is not NULL)
    stack = (
        StackSlot.EMPTY if value is NULL else StackSlot.VALUE for value in state.stack
    )
    shape = Shape(offset, slots, tuple(stack))
    made = _continuations(original.__code__).make(shape, handlers=False)
    values = [value for value in (*state.slots, *state.stack) if value is not NULL]
    function = made.function(original.__globals__, values)
    return ContinuedFunction(function, made.shift, values)


@functools.lru_cache(maxsize=128)
def _continuations(code: CodeType) -> Continuations:
    return Continuations(code)


def read_state(session: Session, observer: Observer, depth: int) -> FrameState:
    """Return the values in a frame whose event this is.

    Args:
        depth: How much of the value stack counts.
    """
    reader = session.reader
    count = slot_count(observer.code)
    slots = tuple(reader.slot(observer.frame, index) for index in range(count))
    stack = tuple(reader.stack(observer.frame, depth))
    plain = tuple(reader.plain(value) for value in stack)
    return FrameState(slots, plain, observer.noted(depth))


def state_at_end(
    session: Session, join: Join, observer: Observer, row: Row
) -> FrameState:
    """Return what lives at the end of a branch."""
    if not join.returns:
        return read_state(session, observer, row.depth)
    value = row.argval
    if row.opname != "RETURN_CONST":
        value = session.reader.stack(observer.frame, row.depth)[-1]
    return FrameState((), (value,), observer.noted(row.depth))


# Where a value is: a slot of the frame, then indices into tuples.
Path = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """A tensor in the state.

    Attributes:
        tensor: The tensor.
        node: Its node, None for one from before the run that no operator has used.
        form: All that Python can learn of it, but for where its memory begins.
    """

    tensor: torch.Tensor
    node: fx.Node | None
    form: tuple[Any, ...]


@dataclass
class LoopState:
    """The live values of a frame before an iteration.

    Attributes:
        tensors: The tensors, by path.
        others: Everything else, by path, in a form that can be compared.
    """

    tensors: dict[Path, Place] = field(default_factory=dict)
    others: dict[Path, tuple[Any, ...]] = field(default_factory=dict)

    def is_like(self, other: LoopState) -> bool:
        """Return whether a program in either state goes on in the same way."""
        return (
            _same_others(self.others, other.others)
            and self.tensors.keys() == other.tensors.keys()
            and all(
                place.form == other.tensors[path].form
                for path, place in self.tensors.items()
            )
            and self.partition() == other.partition()
        )

    def partition(self) -> dict[Path, Path]:
        """Return the first path of each tensor."""
        first: dict[int, Path] = {}
        return {
            path: first.setdefault(id(place.tensor), path)
            for path, place in self.tensors.items()
        }


def _same_others(left: Mapping[Path, Any], right: Mapping[Path, Any]) -> bool:
    if left.keys() != right.keys():
        return False
    return all(_same(mine, right[path]) for path, mine in left.items())


def _same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    if left[0] != right[0]:
        return False
    if left[0] == "scalar":
        return left[2] is right[2] and same_scalar(left[1], right[1])
    return left == right


class StateReader:
    """Reads the state of one frame.

    Args:
        shadow: Its expressions.
        known: Ids of the objects from before the loop.
    """

    def __init__(self, shadow: Shadow, known: frozenset[int]) -> None:
        self._shadow = shadow
        self._known = known
        self._state = LoopState()
        self._tuples: dict[int, Path] = {}
        self._older: set[Path] = set()

    def read(self, frame: FrameState, live: frozenset[int]) -> LoopState:
        """Return the state.

        Raises:
            DifferenceError: It holds something that cannot be compared.
        """
        names = self._shadow.names
        variables = self._shadow.observer.code.co_varnames
        for slot in sorted(live):
            name = variables[slot] if slot < len(variables) else ""
            self._add((slot,), frame.slots[slot], names.get(name))
        first = len(frame.slots)
        for position, value in enumerate(frame.stack):
            self._add((first + position,), value, self._shadow.stack.get(position))
        return self._state

    def _add(self, path: Path, value: Any, expression: Expression | None) -> None:
        others = self._state.others
        if value is NULL:
            others[path] = ("nothing",)
        elif isinstance(value, torch.Tensor):
            self._add_tensor(path, value)
        elif is_scalar(value):
            others[path] = ("scalar", value, expression)
        elif type(value) is tuple:
            self._add_tuple(path, value)
        elif is_identity(value) or self._is_known(path, value):
            others[path] = ("object", id(value))
        else:
            raise DifferenceError(f"a {type(value).__qualname__}")

    def _add_tensor(self, path: Path, tensor: torch.Tensor) -> None:
        tensors = self._shadow.observer.session.operators.tensors  # type: ignore[attr-defined]
        with torch._C.DisableTorchFunction():
            form = list(form_of(tensor))
        form[3] = 0  # slices of one tensor differ in where they begin
        self._state.tensors[path] = Place(tensor, tensors.find(tensor), tuple(form))

    def _is_known(self, path: Path, value: Any) -> bool:
        # What lies in a tuple from before the loop lives as long as that.
        within = path[:-1] in self._older
        return within or self._shadow.observer.session.graph.find(value) is not None

    def _add_tuple(self, path: Path, value: tuple[Any, ...]) -> None:
        lifting = self._shadow.lifting
        first = self._tuples.setdefault(id(value), path)
        older = id(value) if id(value) in self._known else 0
        if older:
            self._older.add(path)
        self._state.others[path] = ("tuple", len(value), first, older)
        for index, item in enumerate(value):
            expression = lifting.at(value, Kind.INDEX, index)
            self._add((*path, index), item, expression)
