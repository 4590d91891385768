"""Owns the lifted values of one run: where they lie, and what must hold of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import BuiltinMethodType, GeneratorType, MethodWrapperType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.expressions.bounds import SIZES
from magweld.frontend.expressions.expressions import (
    NUMBERS,
    Condition,
    EdgeSource,
    Expression,
    Expressions,
    InductionSource,
    Leaf,
    Literal,
    Operation,
    SizeSource,
    Slot,
    StridesSource,
)
from magweld.frontend.lifting.shadow import Link
from magweld.frontend.lifting.simplifier import Resolve, Simplifier
from magweld.frontend.state.contents import Extent, size_of
from magweld.frontend.state.iterators import behind
from magweld.frontend.state.nodes import Edge, Kind, Node, Where, slot_of
from magweld.frontend.state.refgraph import RefGraph

if TYPE_CHECKING:
    from magweld.frontend.control.fors import Loops
    from magweld.frontend.lifting.operands import Operands
    from magweld.frontend.lifting.scalars import Scalars

# Reads whose value may be lifted.
_LIFTED_KINDS = frozenset({Kind.ITEM, Kind.INDEX, Kind.CELL, Kind.SLOT})


# Native methods that are bound to an object.
_METHODS: Final = (BuiltinMethodType, MethodWrapperType)

# Stands among the paths to lift for fractions that follow from tensors of a call.
NEW_NUMBERS: Final = "item()"


def all_of(sequence: str) -> str:
    """Return what stands there for all numbers in the sequence at a path."""
    return f"{sequence}[:]"


class Lifting:
    """Lifted values of one run.

    An expression belongs to a place: a slot of a container, or one of a frame. Whoever
    uses a value in a way that is not followed here pins its expression: then a hit
    needs the same value again.

    Attributes:
        wanted: Paths of the reads to lift.
        make: Makes expressions.
        reads: Reads of the current instruction that met an expression.
        stores: Slots that the current instruction writes.
        rewrites: Containers that the current instruction rearranges.
        writes: How often the run has written to a container.
        pinned: Expressions that must have the value of the run.
        undecided: Pinned expressions that another value need not have pinned.
        untold: What asks for sizes that are not followed, "" if nothing does.
        loops: Loops over lifted ranges, if the run has operators.
        root: The call of the program; its result is that of the run.
        operands: Follows lifted values into operators, if the run has any.
        scalars: The inputs of its graph that are numbers.
    """

    operands: Operands
    scalars: Scalars

    def __init__(self, wanted: frozenset[str], graph: RefGraph) -> None:
        self.wanted = wanted
        self.make = Expressions()
        self.reads: list[tuple[Slot, Expression]] = []
        self.stores: list[Slot] = []
        self.rewrites: list[Node] = []
        self.writes = 0
        self.pinned: dict[Expression, Where | None] = {}
        self.undecided: set[Expression] = set()
        self.untold = ""
        self.loops: Loops | None = None
        self.root = Link(0, (), {}, (), {})
        self.resumed: dict[int, Leaf] = {}
        self._graph = graph
        self._heap: dict[int, dict[Slot, Expression | None]] = {}
        self._conditions: dict[tuple[Expression, Any], Condition] = {}
        self._iterators: dict[int, Any] = {}
        self._kept: list[Any] = []

    # What lies where.

    def at(self, obj: Any, kind: Kind, key: Any = None) -> Expression | None:
        """Return the expression in a slot of a container."""
        slot = slot_of(obj, kind, key)
        return self._heap.get(slot[0], {}).get(slot)

    def put(self, slot: Slot, expression: Expression | None) -> None:
        """Set what lies in a slot of a container that the graph keeps alive."""
        self._heap.setdefault(slot[0], {})[slot] = expression

    def place(
        self, obj: Any, kind: Kind, key: Any, expression: Expression | None
    ) -> None:
        """Set what lies in a slot of a container that the run has made."""
        if expression is not None:
            self._kept.append(obj)
            self.put(slot_of(obj, kind, key), expression)
        elif id(obj) in self._heap:
            self.put(slot_of(obj, kind, key), None)

    def holds(self, slot: Slot, expression: Expression) -> bool:
        """Return whether an expression lies in a slot."""
        return self._heap.get(slot[0], {}).get(slot) is expression

    def inside(self, obj: Any) -> list[tuple[Slot, Expression]]:
        """Return the expressions in a container."""
        slots = self._heap.get(id(obj), {}).items()
        return [(slot, found) for slot, found in slots if found is not None]

    def pin_content(self, obj: Any) -> None:
        """Pin all expressions in a container and forget where they are."""
        for slot, expression in self.inside(obj):
            self.pin(expression)
            self.put(slot, None)

    def follow(self, iterator: Any, source: Any) -> None:
        """Take note that an iterator delivers the elements of a sequence."""
        self._kept.append(iterator)
        self._iterators[id(iterator)] = source

    def followed(self, iterator: Any) -> Any:
        """Return the sequence whose elements an iterator delivers, or None."""
        return self._iterators.get(id(iterator))

    def save(self) -> Saved:
        """Return what `restore` takes."""
        heap = {key: dict(slots) for key, slots in self._heap.items()}
        current = (self.reads, self.stores, self.rewrites)
        self.reads, self.stores, self.rewrites = [], [], []
        known = frozenset(self._graph.nodes)
        return heap, known, current, (dict(self.pinned), dict(self._conditions))

    def restore(self, saved: Saved, relied_on: bool) -> None:
        """Forget what a branch on trial has done to places from before it.

        Args:
            saved: What `save` returned before it.
            relied_on: Whether what must hold for this branch must hold.
        """
        heap, known, current, demands = saved
        for key in self._heap.keys() - heap.keys():
            node = self._graph.nodes.get(key)
            if node is not None and (node.external or key in known):
                del self._heap[key]
        self._heap.update(heap)
        self.reads, self.stores, self.rewrites = current
        if not relied_on:
            self.pinned, self._conditions = demands

    # What the RefGraph reports.

    @property
    def in_loop(self) -> bool:
        """Whether a loop is open that may become an operator; all reads matter then."""
        return self.loops is not None and self.loops.is_open

    def note_read(self, node: Node, kind: Kind, key: Any, value: Any) -> None:
        """Take note of a read; the instruction may claim it."""
        if self.loops is not None:
            self.loops.note_read(node.obj)
        expression = self._find(node, kind, key, value)
        if expression is not None:
            self.reads.append((slot_of(node.obj, kind, key), expression))

    def _find(self, node: Node, kind: Kind, key: Any, value: Any) -> Expression | None:
        places = self._heap.get(id(node.obj))
        lifts = type(value) in NUMBERS and kind in _LIFTED_KINDS
        if places is None and not lifts:
            return None  # most reads
        if kind is Kind.INDEX and key < 0 and node.owned:
            key += size_of(node.obj)
        slot = slot_of(node.obj, kind, key)
        if places is not None and slot in places:
            return places[slot]
        if not lifts:
            return None
        edge = self._graph.edges.get(slot)
        if edge is None or node.owned or key in node.written:
            return None
        path = self._graph.paths.describe(edge)
        if path in self.wanted or self._wants_all(edge):
            return self.make.leaf(EdgeSource(slot), value, path)
        return None

    def _wants_all(self, edge: Edge) -> bool:
        if edge.kind is not Kind.INDEX:
            return False
        return all_of(self._graph.paths.of(edge.container)) in self.wanted

    def note_content(self, node: Node) -> None:
        """Take note of a read of everything in a container that the run determined."""
        if self.loops is not None:
            self.loops.note_read(node.obj)
        self.reads += self.inside(node.obj)

    def keep_content(self, obj: Any, first: int) -> None:
        """Take note that a container is the run's from now on: what hits fill it with.

        Args:
            first: How many reads there were before its content was read.
        """
        for slot, expression in self.reads[first:]:
            if slot[0] == id(obj) and slot not in self._heap.get(slot[0], {}):
                self.put(slot, expression)

    def note_advance(self, iterator: Any) -> None:
        """Take note that a native iterator or view of the run gives something.

        That comes from containers as they are now, and may have changed them by their
        methods. A generator runs observed.
        """
        if type(iterator) is GeneratorType:
            return
        source = self.followed(iterator)
        if source is not None:
            if self.loops is not None:
                self.loops.note_read(source)
            return
        for part in behind(iterator):
            node = self._graph.find(part)
            if node is not None and not isinstance(part, tuple):
                self.note_content(node)
            elif node is not None:
                self.reads += self.inside(part)  # its length is known
            elif type(part) in _METHODS:
                receiver = self._graph.find(part.__self__)
                self.rewrites += [] if receiver is None else [receiver]

    def note_write(self, node: Node, extent: Extent, key: Any) -> None:
        """Take note of a write to a container, before it happens."""
        self.writes += 1
        if extent is Extent.KEY:
            self.note_store(slot_of(node.obj, Kind.ITEM, key))
        elif extent is Extent.TAIL:
            if self.loops is not None:
                self.loops.note_tail(node)
            self.note_store(slot_of(node.obj, Kind.INDEX, size_of(node.obj)))
        else:
            self.rewrites.append(node)

    def note_store(self, slot: Slot) -> None:
        """Take note of a write to a slot, before it happens."""
        self.put(slot, None)
        self.stores.append(slot)

    def pin_reads(self, count: int) -> None:
        """Pin what the current instruction has read since there were `count` reads."""
        for _, expression in self.reads[count:]:
            self.pin(expression)
        del self.reads[count:]

    def flush(self) -> None:
        """Pin what no instruction has claimed."""
        if not (self.reads or self.stores or self.rewrites):
            return
        for _, expression in self.reads:
            self.pin(expression)
        for node in self.rewrites:
            self.pin_content(node.obj)
        self.reads, self.stores, self.rewrites = [], [], []

    def size_leaf(self, source: SizeSource, value: int) -> Leaf:
        """Return the leaf of a size."""
        of = source.of
        name = self._graph.paths.of(of) if isinstance(of, Node) else str(of)
        return self.make.leaf(source, value, f"{name}.shape[{source.dim}]", SIZES)

    def strides_leaf(self, node: Node) -> Leaf:
        """Return the leaf of the strides of a graph input."""
        text = f"{self._graph.paths.of(node)}.stride()"
        return self.make.leaf(StridesSource(node), tuple(node.obj.stride()), text)

    def give_up(self) -> None:
        """Demand that every lifted read has the value of the run."""
        for leaf in self.make.leaves():
            self.pin(leaf)

    # What must hold.

    def pin(self, expression: Expression | None) -> None:
        """Demand that an expression has the value of the run."""
        if expression is not None and not isinstance(expression, Literal):
            self.pinned.setdefault(expression, self._graph.locate())

    def truth(self, expression: Expression, outcome: bool) -> None:
        """Demand that the truth of an expression is as in the run."""
        if type(expression.value) is not bool:
            expression = self.make.apply(operator.truth, (expression,), outcome)
        self._demand(expression, outcome)

    def compute(
        self, function: Callable[..., Any], operands: Sequence[Expression], value: Any
    ) -> Expression:
        """Return what a function that the program has called gives on a hit.

        A hit computes what may raise, or have another type, whether or not the result
        is used: it must have the type that it had in the run.
        """
        if function in (int, float, operator.index) and type(value) is type(
            operands[0].value
        ):
            return operands[0]
        expression = self.make.apply(function, operands, value)
        if isinstance(expression, Operation) and not expression.is_total:
            kind = type(expression.value)
            self._demand(self.make.apply(type, (expression,), kind), kind)
        return expression

    def _demand(self, expression: Expression, expected: Any) -> None:
        key = (expression, expected)
        if key not in self._conditions and not isinstance(expression, Literal):
            condition = Condition(expression, expected, self._graph.locate())
            self._conditions[key] = condition

    def demanded(self) -> list[Expression]:
        """Return the expressions that a hit must agree with in one way or another."""
        conditions = self._conditions.values()
        return [*self.pinned, *(condition.expression for condition in conditions)]

    def release(self) -> None:
        """Let go of objects of the program: nothing is recorded any more."""
        self._kept.clear()
        self._iterators.clear()

    def close(self) -> None:
        """Let go of operators, loops and containers, which know the lifted values."""
        self.loops = None
        self.release()
        if hasattr(self, "operands"):
            self.operands.detach()
            del self.operands, self.scalars

    # What comes out.

    def lifted(self) -> dict[Any, Leaf]:
        """Return the leaves whose value is not guarded, by source."""
        return {
            leaf.source: leaf for leaf in self.make.leaves() if leaf not in self.pinned
        }

    def simplifier(self, resolve: Resolve = lambda leaf: leaf) -> Simplifier:
        """Return what replaces leaves and folds what has become constant."""
        return Simplifier(self, resolve)

    def decisive(self) -> tuple[str, ...]:
        """Return the paths of leaves that the run has pinned."""
        return tuple(
            leaf.text
            for leaf in self.make.leaves()
            if leaf in self.pinned and leaf not in self.undecided
            if not isinstance(leaf.source, InductionSource)
        )

    def require(self, expression: Expression) -> None:
        """Demand that an expression, which was true in the run, is true."""
        self._demand(expression, True)

    def conditions(self, simplify: Simplifier) -> list[Condition]:
        """Return what must hold beside the guards of pinned reads.

        What the program has computed first comes first. So a hit computes nothing that
        the program would not: `2**n` behind `if n < 9` is computed for small `n` only.
        """
        pins = [
            (
                expression,
                Condition(simplify.subject(expression), expression.value, where),
            )
            for expression, where in self.pinned.items()
        ]
        others = [
            (
                one.expression,
                Condition(simplify(one.expression), one.expected, one.where),
            )
            for one in self._conditions.values()
        ]
        ordered = sorted([*pins, *others], key=lambda pair: _serial_of(pair[0]))
        return [c for _, c in ordered if not isinstance(c.expression, Literal)]


def _serial_of(expression: Expression) -> int:
    assert not isinstance(expression, Literal), "nothing is demanded of literals"
    return expression.serial


Saved = tuple[
    dict[int, dict[Slot, Expression | None]],
    frozenset[int],
    tuple[Any, ...],
    tuple[Any, Any],
]
