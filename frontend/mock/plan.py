"""Owns the derivation of a mock: the difference between after and before a run."""

from __future__ import annotations

import contextvars
import types
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.lifting.expressions import Expression
from magweld.frontend.lifting.mock import Lifted, lift_recipe
from magweld.frontend.mock import steps
from magweld.frontend.mock.rebuild import Recipe, recipe_for
from magweld.frontend.mock.steps import Call, Constant, Fetched, Made, Mock, Output
from magweld.frontend.rules.names import cell_value
from magweld.frontend.state.contents import builtin_base
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.refgraph import Kind, Node, RefGraph
from magweld.frontend.state.values import is_identity, is_scalar


@dataclass
class Planner:
    """Plans the mock of one run.

    Attributes:
        graph: What the run has met and written.
        output_of: Gives for a tensor that the run made the number of a graph output,
            None for any other object.
        fetched: External objects that a hit needs, in order.
    """

    graph: RefGraph
    output_of: Callable[[Any], int | None]
    fetched: list[Node | Expression] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._made: dict[int, int] = {}
        self._makes: list[steps.Step] = []
        self._fills: list[steps.Step] = []
        self._pending: list[tuple[int, Any, tuple[Any, ...]]] = []
        # Parts that a recipe made must not lose their ids while planning.
        self._kept: list[Any] = []

    def plan(self, result: Any, lifted: Expression | None = None) -> Mock:
        """Return the mock for a result and all writes of the run.

        Args:
            result: What the program returned.
            lifted: Its expression, if it is a lifted value.

        Raises:
            StopRecordingError: Something cannot be rebuilt or repeated.
        """
        source = self.source(result if lifted is None else Lifted(lifted))
        writes: list[steps.Step] = []
        for key in self.graph.snapshots:
            writes += self._writes(self.graph.nodes[key])
        for (key, descriptor), before in self.graph.slot_snapshots.items():
            writes += self._slot_write(self.graph.nodes[key], descriptor, before)
        self._fill()
        everything = (*self._makes, *self._fills, *writes)
        return Mock(everything, source, len(self._made))

    def source(self, obj: Any) -> steps.Source:
        """Return where a hit takes an object from."""
        if is_scalar(obj):
            return Constant(obj)
        if type(obj) is Lifted:
            return self._fetch(obj.expression)
        number = self.output_of(obj)
        if number is not None:
            return Output(number)
        node = self.graph.find(obj)
        if node is not None and node.external:
            return Constant(obj) if node.constant else self._fetch(node)
        if is_identity(obj):
            return Constant(obj)
        return self._make(obj)

    def _fetch(self, item: Node | Expression) -> Fetched:
        if item not in self.fetched:
            self.fetched.append(item)
        return Fetched(self.fetched.index(item))

    def _at(self, obj: Any, kind: Kind, key: Any, value: Any) -> steps.Source:
        lifting = self.graph.lifting
        expression = None if lifting is None else lifting.at(obj, kind, key)
        return self.source(value if expression is None else Lifted(expression))

    def _make(self, obj: Any) -> Made:
        known = self._made.get(id(obj))
        if known is not None:
            return Made(known)
        recipe = recipe_for(obj)
        if self.graph.lifting is not None:
            recipe = lift_recipe(self.graph.lifting, obj, recipe)
        self._kept += (obj, recipe)
        if recipe.late:
            # A shell now, its content at the end: this is what closes cycles.
            parts: tuple[steps.Source, ...] = self._constants(recipe)
        else:
            parts = tuple(self.source(part) for part in recipe.parts)
        index = self._made[id(obj)] = len(self._made)
        self._makes.append(steps.Make(index, recipe.make, parts, recipe.packed))
        for function, contents in recipe.fills:
            self._pending.append((index, function, contents))
        return Made(index)

    def _fill(self) -> None:
        while self._pending:
            index, function, contents = self._pending.pop(0)
            sources = tuple(self.source(part) for part in contents)
            self._fills.append(Call(function, Made(index), sources, packed=True))

    def _constants(self, recipe: Recipe) -> tuple[steps.Source, ...]:
        return tuple(Constant(part) for part in recipe.parts)

    def _writes(self, node: Node) -> list[steps.Step]:
        target = Constant(node.obj) if node.constant else self._fetch(node)
        base = builtin_base(node.obj)
        if base is dict:
            return self._dict_writes(node, target)
        before = self.graph.snapshots[id(node.obj)]
        assert base is not None, "only containers are snapshotted"
        after = list(base.__iter__(node.obj))
        if node.appended:
            added = tuple(
                self._at(node.obj, Kind.INDEX, index, after[index])
                for index in range(len(before), len(after))
            )
            return [Call(list.extend, target, added, packed=True)]
        items = tuple(
            self._at(node.obj, Kind.INDEX, index, item)
            for index, item in enumerate(after)
        )
        if base is deque:
            return [
                Call(deque.clear, target),
                Call(deque.extend, target, items, packed=True),
            ]
        replace = steps.replace_list if base is list else steps.replace_set
        return [Call(replace, target, items, packed=True)]

    def _dict_writes(self, node: Node, target: steps.Source) -> list[steps.Step]:
        owner: Any = OrderedDict if isinstance(node.obj, OrderedDict) else dict
        before, after = self.graph.snapshots[id(node.obj)], node.obj
        if node.owned:
            result: list[steps.Step] = [Call(owner.clear, target)]
            for key in dict.keys(after):
                value = dict.__getitem__(after, key)
                parts = (self.source(key), self._at(after, Kind.ITEM, key, value))
                result.append(Call(owner.__setitem__, target, parts))
            return result
        _check_order(before, after)
        result = []
        for key in node.written:
            value = dict.get(after, key, ABSENT)
            if value is not ABSENT:
                parts = (self.source(key), self._at(after, Kind.ITEM, key, value))
                result.append(Call(owner.__setitem__, target, parts))
            elif key in before:
                result.append(Call(owner.__delitem__, target, (self.source(key),)))
        return result

    def _slot_write(self, node: Node, descriptor: Any, before: Any) -> list[steps.Step]:
        target = Constant(node.obj) if node.constant else self._fetch(node)
        if type(node.obj) is contextvars.ContextVar:
            value = node.obj.get(ABSENT)
            if value is before:
                return []
            if value is ABSENT:
                raise StopRecordingError("result-object", "a context variable")
            return [Call(steps.set_context, target, (self.source(value),))]
        if type(node.obj) is types.CellType:
            value = cell_value(node.obj)
            if value is ABSENT:
                return [Call(steps.clear_cell, target)] if before is not ABSENT else []
            part = self._at(node.obj, Kind.CELL, None, value)
            return [Call(steps.set_cell, target, (part,))]
        try:
            value = descriptor.__get__(node.obj)
        except AttributeError:
            return [] if before is ABSENT else [Call(descriptor.__delete__, target)]
        part = self._at(node.obj, Kind.SLOT, descriptor, value)
        return [Call(descriptor.__set__, target, (part,))]


def _check_order(before: dict[Any, Any], after: dict[Any, Any]) -> None:
    # A key that was deleted and set again has moved to the end.
    kept = [key for key in before if key in after]
    if kept != [key for key in dict.keys(after) if key in before]:
        raise StopRecordingError("result-object", "a dict whose order changed")
