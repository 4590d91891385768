"""Owns the building of a guard program: one generated function for all conditions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from magweld.frontend.guards import emit
from magweld.frontend.guards.classes import ClassGuards
from magweld.frontend.guards.emit import Names
from magweld.frontend.guards.generate import COMPARED, compile_guards, locate
from magweld.frontend.guards.guard import (
    Category,
    DrawingProgram,
    Guard,
    GuardProgram,
    failure,
    shown,
)
from magweld.frontend.guards.versions import (
    UNCHANGED,
    Shortcut,
    Source,
    Stability,
    versions_work,
)
from magweld.frontend.lifting.emission import ExpressionWriter
from magweld.frontend.lifting.expressions import NUMBERS, Expression
from magweld.frontend.lifting.sources import (
    ArgumentSource,
    EdgeSource,
    SizeSource,
    StridesSource,
)
from magweld.frontend.state.draws import Draws
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.nodes import Edge, Kind, Node, Where
from magweld.frontend.state.paths import describe, path_of
from magweld.frontend.state.refgraph import RefGraph, slot_of
from magweld.frontend.state.values import is_scalar


class Builder:
    """Builds the guard program of one run."""

    def __init__(self, graph: RefGraph) -> None:
        self.names = Names()
        self.expressions = ExpressionWriter(self)
        self._lifted = {} if graph.lifting is None else graph.lifting.lifted()
        self._leaves: dict[Any, str] = {}
        self._graph = graph
        self._guards: list[Guard] = []
        self._body: list[ast.stmt] = []
        # Numbers of statements that the versions of dicts make unnecessary.
        self._covered: set[int] = set()
        self._reads_begin: int | None = None
        self._stability = Stability(graph.snapshots)
        self._variables: dict[int, str] = {}

    def guard(
        self,
        category: Category,
        path: str,
        expected: str,
        where: Where | None,
        *statements: ast.stmt,
        lifts: tuple[str, type] | None = None,
    ) -> None:
        """Append one condition; its statements carry its number as line number."""
        at = "" if where is None else str(where)
        self._guards.append(Guard(category, path, expected, at, lifts))
        for statement in statements:
            locate(statement, len(self._guards))
            self._body.append(statement)

    def unless(self, condition: ast.expr, value: ast.expr | None = None) -> ast.stmt:
        """Return a statement that leaves with a failure when `condition` holds."""
        index = ast.Constant(len(self._guards))
        parts = [index] if value is None else [index, value]
        result = emit.call(self.names.constant(failure), *parts)
        return ast.If(condition, [ast.Return(result)], [])

    def leaf(self, source: Any) -> ast.expr:
        """Return the expression for a lifted read that has been guarded."""
        if isinstance(source, SizeSource):
            shape = ast.Attribute(self.variable(source.of), "shape", ast.Load())
            return ast.Subscript(shape, ast.Constant(source.dim), ast.Load())
        if isinstance(source, StridesSource):
            tensor = self.variable(source.of)
            return emit.call(ast.Attribute(tensor, "stride", ast.Load()))
        return emit.name(self._leaves[source])

    def variable(self, node: Node) -> ast.expr:
        """Return the expression for an external object that is known by now."""
        if node.constant:
            return self.names.constant(node.obj)
        return emit.name(self._variables[id(node.obj)])

    def signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Guard the form of the call."""
        count = emit.call(self.names.constant(len), emit.name("args"))
        test = emit.compare(count, ast.NotEq(), ast.Constant(len(args)))
        self.guard(
            Category.ARGUMENT, "len(args)", f"== {len(args)}", None, self.unless(test)
        )
        keys = emit.call(self.names.constant(tuple), emit.name("kwargs"))
        test = emit.compare(keys, ast.NotEq(), self.names.constant(tuple(kwargs)))
        self.guard(
            Category.ARGUMENT, "keywords", f"== {list(kwargs)}", None, self.unless(test)
        )

    def argument(self, holder: str, key: Any, value: Any, path: str) -> None:
        """Guard one argument by value, identity or type."""
        source = ast.Subscript(emit.name(holder), ast.Constant(key), ast.Load())
        if ArgumentSource(holder, key) in self._lifted:
            self._any(ArgumentSource(holder, key), source, path, None)
            return
        target = None if is_scalar(value) else self._graph.require(value)
        first = target is not None and id(value) not in self._variables
        self._outcome(Category.ARGUMENT, path, source, value, target, first, None)

    def _any(self, leaf: Any, source: ast.expr, path: str, where: Where | None) -> None:
        """Guard a lifted read by type only."""
        variable = self._leaves[leaf] = f"n{len(self._leaves)}"
        read, kind = emit.name(variable), type(self._lifted[leaf].value)
        test = emit.type_differs(self.names, read, kind)
        body = [emit.assign(variable, source), self.unless(test, read)]
        self.guard(Category.VALUE, path, f"is any {kind.__name__}", where, *body)

    def edge(self, edge: Edge) -> None:
        """Guard one read."""
        if edge.kind is Kind.CLASS_ATTRIBUTE:
            return
        begin = len(self._body)
        if self._reads_begin is None:
            self._reads_begin = begin
        slot = slot_of(edge.container.obj, edge.kind, edge.key)
        if EdgeSource(slot) in self._lifted:
            source = emit.fetch(edge, self.variable(edge.container), self.names)
            self._any(EdgeSource(slot), source, describe(edge), edge.where)
            return
        self._read(edge)
        if self._stability.covers(edge):
            self._covered.update(range(begin, len(self._body)))

    def _read(self, edge: Edge) -> None:
        base = self.variable(edge.container)
        where, path = edge.where, describe(edge)
        if edge.kind is Kind.ITEM and edge.value is ABSENT:
            self._absent(edge, base, path)
            return
        source = emit.fetch(edge, base, self.names)
        if edge.kind is Kind.NONEMPTY:
            filled: bool = edge.value
            wrong = ast.UnaryOp(ast.Not(), source) if filled else source
            expected = f"== {filled}"
            self.guard(Category.CONTENT, path, expected, where, self.unless(wrong))
            return
        if edge.kind in COMPARED:
            temporary = emit.assign("t", source)
            test = COMPARED[edge.kind](self.names, emit.name("t"), edge.value)
            guard = self.unless(test, emit.name("t"))
            expected = f"== {shown(edge.value)}"
            self.guard(Category.CONTENT, path, expected, where, temporary, guard)
            return
        self._outcome(
            _category(edge), path, source, edge.value, edge.target, edge.first, where
        )

    def _absent(self, edge: Edge, base: ast.expr, path: str) -> None:
        key = self.names.literal(edge.key)
        if type(edge.container.obj) is dict:
            test = emit.compare(key, ast.In(), base)
        else:
            found = emit.fetch(edge, base, self.names)
            test = emit.is_not(found, self.names.constant(ABSENT))
        self.guard(Category.ABSENCE, path, "absent", edge.where, self.unless(test))

    def _outcome(
        self,
        category: Category,
        path: str,
        source: ast.expr,
        value: Any,
        target: Node | None,
        first: bool,
        where: Where | None,
    ) -> None:
        # A name of its own is for objects that later statements go on from.
        named = first and target is not None and not target.constant
        variable = f"v{len(self._variables)}" if named else "t"
        read = emit.name(variable)
        if id(value) in self._graph.pinned:
            test = emit.is_not(read, self.names.constant(value))
            expected = f"is {value!r}"
        elif is_scalar(value):
            test = emit.scalar_differs(self.names, read, value)
            expected = f"== {value!r}"
        elif target is None or target.constant:
            test = emit.is_not(read, self.names.constant(value))
            expected = f"is {shown(value)}"
        elif first:
            self._variables[id(target.obj)] = variable
            test = emit.type_differs(self.names, read, type(value))
            expected = f"has type {type(value).__qualname__}"
        else:
            test = emit.is_not(read, self.variable(target))
            category, expected = Category.ALIAS, f"is {path_of(target)}"
        body = [emit.assign(variable, source), self.unless(test, read)]
        if first and category is Category.TYPE and path.endswith(".__dict__"):
            del body[1]  # an instance dict is always a dict
        lifts = (path, type(value)) if type(value) in NUMBERS else None
        self.guard(category, path, expected, where, *body, lifts=lifts)

    def distinct(self, left: Node, right: Node, where: Where | None) -> None:
        """Guard that two objects are not one."""
        same = emit.compare(self.variable(left), ast.Is(), self.variable(right))
        expected = f"is not {path_of(right)}"
        if self._stability.is_stable(left) and self._stability.is_stable(right):
            self._covered.add(len(self._body))
        self.guard(Category.ALIAS, path_of(left), expected, where, self.unless(same))

    def external(
        self,
        category: Category,
        path: str,
        expected: str,
        check: Callable[..., Any],
        nodes: Sequence[Node] = (),
        reason: Callable[..., Any] | None = None,
    ) -> None:
        """Guard by a function of fetched objects; it returns whether they fit.

        Args:
            category: What the guard is about.
            path: What it tests, for the reader.
            expected: What must come out, for the reader.
            check: The function.
            nodes: Its arguments.
            reason: Function of the same arguments that tells why they do not fit.
        """
        called = emit.call(self.names.constant(check), *map(self.variable, nodes))
        why = None
        if reason is not None:
            why = emit.call(self.names.constant(reason), *map(self.variable, nodes))
        leave = self.unless(ast.UnaryOp(ast.Not(), called), why)
        self.guard(category, path, expected, None, leave)

    def lookups(self, guards: ClassGuards, edges: Sequence[Edge]) -> None:
        """Guard all class lookups by one call; it tells which of them fails."""
        first = len(self._guards)
        number = emit.assign("t", emit.call(self.names.constant(guards.check)))
        index = ast.BinOp(ast.Constant(first), ast.Add(), emit.name("t"))
        result = emit.call(self.names.constant(failure), index)
        test = emit.compare(emit.name("t"), ast.GtE(), ast.Constant(0))
        statements: list[ast.stmt] = [number, ast.If(test, [ast.Return(result)], [])]
        for edge in edges:
            expected = f"is {shown(edge.value)}"
            path = describe(edge)
            self.guard(Category.CLASS, path, expected, edge.where, *statements)
            statements = []

    def _fetched(self, item: Node | Expression) -> ast.expr:
        if isinstance(item, Node):
            return self.variable(item)
        return self.expressions.value(item)

    def finish(self, fetched: Sequence[Node | Expression]) -> GuardProgram:
        """Compile the program; a success returns the fetched objects as a list."""
        values = [item for item in fetched if not isinstance(item, Node)]
        self.expressions.values(values)
        result = ast.List([self._fetched(item) for item in fetched], ast.Load())
        leave = ast.Return(result)
        locate(leave, len(self._guards) + 1)
        run = compile_guards([*self._body, leave], self.names.values)
        guards = tuple(self._guards)
        program = (
            DrawingProgram(guards, run, draws=Draws(self._graph.draws))
            if self._graph.draws
            else GuardProgram(guards, run)
        )
        if self._stability.watched and versions_work():
            program.shortcut = self._shortcut(leave)
        return program

    def _shortcut(self, leave: ast.stmt) -> Shortcut:
        begin = self._reads_begin or 0
        changed = ast.UnaryOp(ast.Not(), emit.call(emit.name(UNCHANGED)))
        undecided = ast.If(changed, [ast.Return(ast.Constant(None))], [])
        everything = ast.Return(emit.call(emit.name("locals")))
        for added in (undecided, everything):
            locate(added, 1)
        rest = [
            statement
            for number, statement in enumerate(self._body)
            if number >= begin and number not in self._covered
        ]
        body = [*self._body[:begin], undecided, *rest, leave]

        # Nothing that outlives the recording may hold on to the objects of the run.
        names, stability = self.names, self._stability
        full = [*self._body, everything]
        stable = [
            variable
            for key, variable in self._variables.items()
            if stability.is_stable(self._graph.nodes[key])
        ]

        def compile_rest(variables: dict[str, Any]) -> Callable[..., Any]:
            return compile_guards(body, {**names.values, **variables})

        def collect(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            variables = compile_guards(full, names.values)(args, kwargs)
            return {name: variables[name] for name in stable}

        watched = [(self._source(node), how) for node, how in stability.watched]
        typed = [self._source(node) for node in stability.typed]
        return Shortcut(watched, typed, compile_rest, collect)

    def _source(self, node: Node) -> Source:
        if node.constant:
            return Source("", node.obj)
        return Source(self._variables[id(node.obj)])


def _category(edge: Edge) -> Category:
    if is_scalar(edge.value):
        return Category.VALUE
    if edge.target is None or edge.target.constant:
        return Category.IDENTITY
    return Category.TYPE
