"""Owns the building of a guard program: which condition each read becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from magweld.frontend.expressions.expressions import (
    NUMBERS,
    ArgumentSource,
    EdgeSource,
    Expression,
    SizeSource,
    StridesSource,
    ValueSource,
)
from magweld.frontend.guards import emit
from magweld.frontend.guards.checks import ClassGuards
from magweld.frontend.guards.guard import (
    Category,
    DrawingProgram,
    Elsewhere,
    GuardProgram,
    shown,
)
from magweld.frontend.guards.listing import ExpressionWriter, Listing, Test
from magweld.frontend.guards.versions import (
    Shortcut,
    Source,
    Stability,
    versions_work,
)
from magweld.frontend.state.draws import Draws
from magweld.frontend.state.mro import ABSENT, is_class, is_immutable
from magweld.frontend.state.natives import is_array
from magweld.frontend.state.nodes import Edge, Kind, Node, Where, slot_of
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_scalar


class Builder:
    """Builds the guard program of one run.

    Attributes:
        listing: The program so far.
        expressions: Writes conditions on lifted values into it.
        paths: How the objects of the run are reached.
    """

    def __init__(self, graph: RefGraph) -> None:
        self.listing = Listing()
        self.expressions = ExpressionWriter(self.listing, self._leaf)
        self._names = self.listing.names
        self.paths = graph.paths
        self._lifted = {} if graph.lifting is None else graph.lifting.lifted()
        self._leaves: dict[Any, str] = {}
        self._graph = graph
        self._stability = Stability(graph.snapshots)
        self._variables: dict[int, str] = {}
        self._named: list[tuple[str, Node]] = []
        self._shares = False

    def _leaf(self, source: Any) -> str:
        """Return the expression for a lifted read that has been guarded."""
        if isinstance(source, SizeSource):
            return f"{self.variable(source.of)}.shape[{source.dim}]"
        if isinstance(source, StridesSource):
            return f"{self.variable(source.of)}.stride()"
        if isinstance(source, ValueSource):
            compute = self._names.constant(source.compute)
            return emit.call(compute, *map(self.variable, source.nodes))
        return self.listing.hand_on(self._leaves[source])

    def variable(self, node: Node) -> str:
        """Return the expression for an external object that is known by now."""
        if node.constant:
            return self._names.constant(node.obj)
        return self.listing.hand_on(self._variables[id(node.obj)])

    def signature(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Guard the form of the call."""
        names, guard = self._names, self.listing.guard
        count = f"{names.constant(len)}(args) == {len(args)}"
        guard(Category.ARGUMENT, "len(args)", f"== {len(args)}", None, test=Test(count))
        keys = "not kwargs"
        if kwargs:
            keys = f"{names.constant(tuple)}(kwargs) == {names.constant(tuple(kwargs))}"
        guard(
            Category.ARGUMENT, "keywords", f"== {list(kwargs)}", None, test=Test(keys)
        )

    def argument(self, holder: str, key: Any, value: Any, path: str) -> None:
        """Guard one argument by value, identity or type."""
        source = f"{holder}[{self._names.literal(key)}]"
        if ArgumentSource(holder, key) in self._lifted:
            self._any(ArgumentSource(holder, key), source, path, None)
            return
        target = None if is_scalar(value) else self._graph.require(value)
        first = target is not None and id(value) not in self._variables
        self._outcome(Category.ARGUMENT, path, source, value, target, first, None)

    def constant(self, node: Node) -> None:
        """Guard the class of an object that the record holds, e.g. of the program."""
        kind = type(node.obj)
        if is_immutable(kind) or is_class(node.obj):
            return
        self._stability.note_class(node)
        self.listing.covered.add(self._read_begins())
        test = Test(emit.type_is(self._names, self.variable(node), kind))
        path, expected = self.paths.of(node), f"has type {kind.__qualname__}"
        self.listing.guard(Category.TYPE, path, expected, None, test=test)

    def _any(self, leaf: Any, source: str, path: str, where: Where | None) -> None:
        """Guard a lifted read by type only."""
        variable = self._leaves[leaf] = f"n{len(self._leaves)}"
        kind = type(self._lifted[leaf].value)
        test = Test(emit.type_is(self._names, variable, kind), variable)
        fetch = f"{variable} = {source}"
        expected = f"is any {kind.__name__}"
        self.listing.guard(Category.VALUE, path, expected, where, fetch, test=test)

    def edge(self, edge: Edge) -> None:
        """Guard one read."""
        if edge.kind is Kind.CLASS_ATTRIBUTE:
            return
        begin = self._read_begins()
        if self._lifted and type(edge.value) in NUMBERS:
            slot = slot_of(edge.container.obj, edge.kind, edge.key)
            if EdgeSource(slot) in self._lifted:
                source = emit.fetch(edge, self.variable(edge.container), self._names)
                path = self.paths.describe(edge)
                self._any(EdgeSource(slot), source, path, edge.where)
                return
        self._read(edge)
        if self._stability.covers(edge):
            self.listing.covered.update(range(begin, len(self.listing.guards)))

    def _read_begins(self) -> int:
        """Return the number of the guard that comes next, which is about a read."""
        number = len(self.listing.guards)
        if self.listing.reads_begin is None:
            self.listing.reads_begin = number
        return number

    def _read(self, edge: Edge) -> None:
        base = self.variable(edge.container)
        where, path = edge.where, self.paths.describe(edge)
        if edge.kind is Kind.ITEM and edge.value is ABSENT:
            test = Test(self._is_absent(edge, base))
            self.listing.guard(Category.ABSENCE, path, "absent", where, test=test)
            return
        source = emit.fetch(edge, base, self._names)
        if edge.kind is Kind.NONEMPTY:
            test = Test(source if edge.value else f"not {source}")
            expected = f"== {edge.value}"
            self.listing.guard(Category.CONTENT, path, expected, where, test=test)
            return
        compared = emit.COMPARED.get(edge.kind)
        if compared is not None:
            test = Test(compared(self._names, "t", edge.value), "t")
            expected, fetch = f"== {shown(edge.value)}", f"t = {source}"
            data = self._data(edge)
            self.listing.guard(
                Category.CONTENT, path, expected, where, fetch, test=test, data=data
            )
            return
        data, category = self._data(edge), _category(edge)
        read = (edge.value, edge.target, edge.first, where)
        self._outcome(category, path, source, *read, data)

    def _data(self, edge: Edge) -> tuple[str, ...]:
        """Return the paths of the array or sequences whose numbers a read is about."""
        paths: list[str] = []
        read: Edge | None = edge
        while read is not None and _is_of_sequence(read):
            paths.append(self.paths.of(read.container))
            read = read.container.edge
        if edge.kind is Kind.CONTENT and is_array(edge.container.obj):
            paths.append(self.paths.of(edge.container))
        return tuple(paths)

    def _is_absent(self, edge: Edge, base: str) -> str:
        if type(edge.container.obj) is dict:
            return f"{self._names.literal(edge.key)} not in {base}"
        found = emit.fetch(edge, base, self._names)
        return f"{found} is {self._names.constant(ABSENT)}"

    def _outcome(
        self,
        category: Category,
        path: str,
        source: str,
        value: Any,
        target: Node | None,
        first: bool,
        where: Where | None,
        data: tuple[str, ...] = (),
    ) -> None:
        # A name of its own is for objects that later statements go on from.
        named = first and target is not None and not target.constant
        read = f"v{len(self._variables)}" if named else "t"
        names = self._names
        if id(value) in self._graph.pinned:
            test = f"{read} is {names.constant(value)}"
            expected = f"is {shown(value)}"
        elif is_scalar(value):
            test = emit.scalar_is(names, read, value)
            expected = f"== {shown(value)}"
        elif target is None or target.constant:
            test = f"{read} is {names.constant(value)}"
            expected = f"is {shown(value)}"
        elif first:
            self._variables[id(target.obj)] = read
            self._named.append((read, target))
            test = emit.type_is(names, read, type(value))
            expected = f"has type {type(value).__qualname__}"
        else:
            test = f"{read} is {self.variable(target)}"
            category, expected = Category.ALIAS, f"is {self.paths.of(target)}"
        final: Test | None = Test(test, read)
        if first and category is Category.TYPE and path.endswith(".__dict__"):
            final = None  # an instance dict is always a dict
        lifts = (path, type(value)) if type(value) in NUMBERS else None
        fetch = f"{read} = {source}"
        self.listing.guard(
            category, path, expected, where, fetch, test=final, lifts=lifts, data=data
        )

    def distinct(self, left: Node, right: Node, where: Where | None) -> None:
        """Guard that two objects are not one."""
        test = Test(f"{self.variable(left)} is not {self.variable(right)}")
        if self._stability.is_stable(left) and self._stability.is_stable(right):
            self.listing.covered.add(len(self.listing.guards))
        path, expected = self.paths.of(left), f"is not {self.paths.of(right)}"
        self.listing.guard(Category.ALIAS, path, expected, where, test=test)

    def is_stable(self, node: Node) -> bool:
        """Return whether the shortcut knows a node to be the same object."""
        return self._stability.is_stable(node)

    def external(
        self,
        category: Category,
        path: str,
        expected: str,
        check: Callable[..., Any],
        nodes: Sequence[Node] = (),
        reason: Callable[..., Any] | None = None,
        lifts: tuple[str, type] | None = None,
        *,
        numbers: Sequence[Expression] = (),
        shares: bool = False,
    ) -> None:
        """Guard by a function of fetched objects; it returns whether they fit.

        Args:
            category: What the guard is about.
            path: What it tests, for the reader.
            expected: What must come out, for the reader.
            reason: Function of the same arguments that tells why they do not fit.
            lifts: Path and type of the number that is tested, if it is one.
            numbers: Lifted numbers that the function takes behind the objects.
            shares: Whether the function takes a list first, which all that do share
                and which is empty at the first of them.
        """
        setup, values = self.expressions.operands(numbers)
        arguments = [*map(self.variable, nodes), *values]
        setup += [] if self._shares or not shares else ["shared = []"]
        self._shares |= shares
        taken = ["shared", *arguments] if shares else arguments
        test = emit.call(self._names.constant(check), *taken)
        why = ""
        if reason is not None:
            why = emit.call(self._names.constant(reason), *arguments)
        final = Test(test, why)
        self.listing.guard(
            category, path, expected, None, *setup, test=final, lifts=lifts
        )

    def lookups(self, guards: ClassGuards, edges: Sequence[Edge]) -> None:
        """Guard all class lookups by one call; it tells which of them fails."""
        names = self._names
        setup = [f"t = {names.constant(guards.check)}()"]
        test: Test | None = Test("t < 0", f"{names.constant(Elsewhere)}(t)")
        for edge in edges:
            expected = f"is {shown(edge.value)}"
            path = self.paths.describe(edge)
            where = edge.where
            self.listing.guard(Category.CLASS, path, expected, where, *setup, test=test)
            setup, test = [], None

    def finish(self, fetched: Sequence[Node | Expression]) -> GuardProgram:
        """Compile the program; a success returns the fetched objects as a list."""
        values = [item for item in fetched if not isinstance(item, Node)]
        self.expressions.values(values)
        result = [
            self.variable(item)
            if isinstance(item, Node)
            else self.expressions.value(item)
            for item in fetched
        ]
        run, text = self.listing.compile(result)
        parts = tuple(self.listing.guards), run, None, text, self._names.values
        program = (
            DrawingProgram(*parts, Draws(self._graph.draws))
            if self._graph.draws
            else GuardProgram(*parts)
        )
        if self._stability.watched and versions_work():
            program.shortcut = self._shortcut(run, result)
        return program

    def _shortcut(self, run: Callable[..., Any], result: Sequence[str]) -> Shortcut:
        stability = self._stability
        stable = [name for name, node in self._named if stability.is_stable(node)]

        # Nothing that outlives the recording may hold on to the objects of the run.
        def collect(args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
            variables = run(args, kwargs, everything=True)
            return {name: variables[name] for name in stable}

        watched = [(self._source(node), how) for node, how in stability.watched]
        typed = [self._source(node) for node in stability.typed]
        parts = [(self._source(node), name) for node, name in stability.parts]
        return Shortcut(watched, typed, parts, self.listing.rest(result), collect)

    def _source(self, node: Node) -> Source:
        if node.constant:
            return Source("", node.obj)
        return Source(self._variables[id(node.obj)])


def _is_of_sequence(edge: Edge) -> bool:
    sequence = type(edge.container.obj) in (list, tuple)
    return sequence and edge.kind in (Kind.INDEX, Kind.LENGTH)


def _category(edge: Edge) -> Category:
    if is_scalar(edge.value):
        return Category.VALUE
    if edge.target is None or edge.target.constant:
        return Category.IDENTITY
    return Category.TYPE
