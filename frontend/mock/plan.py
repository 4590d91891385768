"""Owns the derivation of a mock: the difference between after and before a run."""

from __future__ import annotations

import contextvars
import operator
import types
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.expressions.expressions import Expression, text_of
from magweld.frontend.mock.rebuild import (
    Lifted,
    extend_dict,
    namespace_fills,
    recipe_for,
)
from magweld.frontend.state import steps
from magweld.frontend.state.contents import (
    base_class,
    builtin_base,
    cell_value,
    elements,
    keys_of,
    slot_value,
)
from magweld.frontend.state.iterators import WALKING, advance, content_of, stands_in
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.mro import ABSENT, find_in_mro, find_own, is_class
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.set_writes import SetWrite
from magweld.frontend.state.steps import (
    Call,
    Constant,
    Fetched,
    Made,
    Mock,
    Output,
    Recipe,
)
from magweld.frontend.state.values import is_identity, is_scalar


@dataclass
class Planner:
    """Plans the mock of one run.

    Attributes:
        graph: What the run has met and written.
        output_of: Gives for a tensor that the run made the number of a graph output,
            None for any other object.
        effects: Steps that repeat what the run did outside of the program.
        twin_of: Gives the tensor that an array shows, None if it shows none of the run.
        fetched: External objects that a hit needs, in order.
    """

    graph: RefGraph
    output_of: Callable[[Any], int | None]
    effects: Sequence[steps.HitStep] = ()
    twin_of: Callable[[Any], Any] = lambda obj: None
    fetched: list[Node | Expression] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._made: dict[int, int] = {}
        self._makes: list[steps.HitStep] = []
        self._fills: list[steps.HitStep] = []
        self._pending: list[tuple[steps.Source, Any, tuple[Any, ...]]] = []
        self._filled: set[int] = set()
        self._last: list[tuple[steps.Source, Any, tuple[Any, ...]]] = []
        # Parts that a recipe made must not lose their ids while planning.
        self._kept: list[Any] = []

    def makes(self, obj: Any) -> bool:
        """Return whether a hit makes an object anew."""
        return id(obj) in self._made

    def plan(self, result: Any, lifted: Expression | None = None) -> Mock:
        """Return the mock for a result and all writes of the run.

        Args:
            result: What the program returned.
            lifted: Its expression, if it is a lifted value.

        Raises:
            StopRecordingError: Something cannot be rebuilt or repeated.
        """
        for check in self.graph.checks:
            check()
        source = self.source(result if lifted is None else Lifted(lifted))
        writes: list[Call] = []
        # The run has not advanced an iterator whose container it had written.
        for node in self.graph.advances:
            writes += _placed(node, [Call(advance, self._fetch(node))])
        for key in self.graph.snapshots:
            node = self.graph.nodes[key]
            writes += _placed(node, self._writes(node))
        for (key, descriptor), before in self.graph.slot_snapshots.items():
            node = self.graph.nodes[key]
            writes += _placed(node, self._slot_write(node, descriptor, before))
        self._fill()
        everything = (*self._makes, *self._fills, *self.effects, *writes)
        return Mock(everything, source, len(self._made))

    def source(self, obj: Any) -> steps.Source:
        """Return where a hit takes an object from."""
        if is_scalar(obj):
            return Constant(obj)
        if type(obj) is Lifted:
            return self._fetch(obj.expression)
        number = self.output_of(obj)
        if number is not None:
            self._fill_tensor(number, obj)
            return Output(number)
        node = self.graph.find(obj)
        if node is not None and node.external:
            return Constant(obj) if node.constant else self._fetch(node)
        if node is None and is_identity(obj):
            return Constant(obj)
        return self._make(obj)

    def _fill_tensor(self, number: int, tensor: Any) -> None:
        # Attributes that the run has given to a tensor which it made.
        namespace = instance_dict(tensor)
        if namespace and number not in self._filled:
            self._filled.add(number)
            fills = namespace_fills(tensor, self._part)
            self._pending += [(Output(number), *fill) for fill in fills]

    def _fetch(self, item: Node | Expression) -> Fetched:
        if item not in self.fetched:
            self.fetched.append(item)
        path = self.graph.paths.of(item) if isinstance(item, Node) else text_of(item)
        return Fetched(self.fetched.index(item), path)

    def _part(self, obj: Any, kind: Kind, key: Any, value: Any) -> Any:
        """Return a part of an object, or what stands for it if it is lifted."""
        lifting = self.graph.lifting
        expression = None if lifting is None else lifting.at(obj, kind, key)
        return value if expression is None else Lifted(expression)

    def _at(self, obj: Any, kind: Kind, key: Any, value: Any) -> steps.Source:
        return self.source(self._part(obj, kind, key, value))

    def _pin_others(self, obj: Any, recipe: Recipe) -> None:
        """Pin what is lifted of an object and has no place in its recipe."""
        lifting = self.graph.lifting
        if lifting is None:
            return
        groups = (recipe.parts, *(contents for _, contents in recipe.fills))
        lifted = [part for group in groups for part in group if type(part) is Lifted]
        taken = {part.expression for part in lifted}
        for space in (obj, instance_dict(obj)):
            for _, expression in lifting.inside(space):
                if expression not in taken:
                    lifting.pin(expression)

    def _make(self, obj: Any) -> Made:
        known = self._made.get(id(obj))
        if known is not None:
            return Made(known)
        kind = self.graph.find(type(obj))
        if kind is not None and not kind.external:
            # Its class is another one on every call.
            raise StopRecordingError("result-object", type(obj).__qualname__)
        if type(obj) in WALKING:
            self._check_walk(obj)
        if id(obj) in self.graph.drained:
            raise StopRecordingError("result-object", "a set that was drained")
        twin = self.twin_of(obj)
        shown = Recipe(_array_of, (twin,))
        recipe = recipe_for(obj, self._part) if twin is None else shown
        self._pin_others(obj, recipe)
        self._kept += (obj, recipe)
        if recipe.late:
            # A shell now, its content at the end: this is what closes cycles.
            parts: tuple[steps.Source, ...] = tuple(map(Constant, recipe.parts))
        else:
            parts = tuple(self.source(part) for part in recipe.parts)
        if recipe.early and any(isinstance(part, Made) for part in parts):
            raise StopRecordingError("result-object", type(obj).__qualname__)
        if recipe.make is frozenset and any(map(self._has_content, recipe.parts)):
            raise StopRecordingError("result-object", "a frozenset of new objects")
        index = self._made[id(obj)] = len(self._made)
        self._makes.append(steps.Make(index, recipe.make, parts, recipe.packed))
        made = Made(index)
        self._pending += [(made, *fill) for fill in recipe.fills]
        self._last += [(made, *fill) for fill in recipe.finals]
        return made

    def _check_walk(self, iterator: Any) -> None:
        """Refuse an iterator that the content from before the run has no place for.

        A hit makes it before it repeats the writes.
        """
        content = content_of(iterator)
        before = self.graph.snapshots.get(id(content))
        if before is None:
            return
        node = self.graph.nodes[id(content)]
        cleared = type(content) is dict and node.owned
        if cleared or not stands_in(iterator, before):
            raise StopRecordingError("result-object", "an iterator over written state")

    def _fill(self) -> None:
        hashing: list[steps.HitStep] = []
        finals: list[steps.HitStep] = []
        keys: list[Any] = []
        filled: list[Any] = []
        while self._pending or self._last:
            late = not self._pending
            queue = self._last if late else self._pending
            target, function, contents = queue.pop(0)
            sources = tuple(self.source(part) for part in contents)
            step = Call(function, target, sources, packed=True)
            made = self._hashed_by_content(function, contents)
            if made:
                keys += made
                filled.append(target)
            (finals if late else hashing if made else self._fills).append(step)
        self._check_keys(keys, filled)
        # What decides about a hash has to be there before it is asked for.
        self._fills += hashing + finals

    def _hashed_by_content(
        self, function: Callable[..., Any], contents: Sequence[Any]
    ) -> list[Any]:
        """Return the new objects that a step takes for keys, hashed by content."""
        if function is extend_dict:
            contents = contents[::2]
        elif function is not steps.replace_set:
            return []
        return [key for key in contents if self._has_own_hash(key)]

    def _has_own_hash(self, obj: Any) -> bool:
        by_identity = find_in_mro(type(obj), "__hash__") is object.__hash__
        return self.makes(obj) and not by_identity

    def _has_content(self, obj: Any) -> bool:
        """Return whether the hash of a new object follows from what fills it."""
        if type(obj) is tuple:
            return any(map(self._has_content, obj))
        return self._has_own_hash(obj) and type(obj) is not frozenset

    def _check_keys(self, keys: list[Any], filled: list[Any]) -> None:
        """Refuse keys whose hash may depend on a container that is filled as late."""
        late = {target.index for target in filled if isinstance(target, Made)}
        seen: set[int] = set()
        while keys:
            obj = keys.pop()
            if id(obj) in seen or is_scalar(obj):
                continue
            seen.add(id(obj))
            if self._made.get(id(obj)) in late:
                kind = type(obj).__qualname__
                raise StopRecordingError("result-object", f"a key that holds a {kind}")
            keys += elements(obj) if builtin_base(obj) is not None else ()
            namespace = instance_dict(obj)
            keys += () if namespace is None else namespace.values()

    def _writes(self, node: Node) -> list[Call]:
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
        if base is set:
            return self._set_writes(node, target)
        items = tuple(
            self._at(node.obj, Kind.INDEX, index, item)
            for index, item in enumerate(after)
        )
        if base is deque:
            return [
                Call(deque.clear, target),
                Call(deque.extend, target, items, packed=True),
            ]
        return [Call(steps.replace_list, target, items, packed=True)]

    def _set_writes(self, node: Node, target: steps.Source) -> list[Call]:
        result: list[Call] = []
        for write in self.graph.set_writes.get(id(node.obj), ()):
            whole = write.twin is not None
            items = tuple(map(self.source, () if whole else write.items))
            parts = (self._operand(write),) if whole else items
            packed = not (whole or write.spread)
            result.append(Call(write.method, target, parts, packed=packed))
        return result

    def _operand(self, write: SetWrite) -> steps.Source:
        node = self.graph.find(write.operand)
        stays = id(write.operand) not in self.graph.snapshots
        if node is not None and node.external and stays:
            return self.source(write.operand)
        return Constant(write.twin)

    def _dict_writes(self, node: Node, target: steps.Source) -> list[Call]:
        owner = base_class(node.obj)
        after = node.obj
        if node.owned:
            before = [*self.graph.snapshots[id(after)]]
            kept = keys_of(after)[: len(before)]
            stays = len(kept) == len(before) and all(map(operator.is_, kept, before))
            # Others may be in the middle of a loop over it.
            result: list[Call] = [] if stays else [Call(owner.clear, target)]
            for key, value in zip(keys_of(after), elements(after), strict=True):
                parts = (self.source(key), self._at(after, Kind.ITEM, key, value))
                result.append(Call(owner.__setitem__, target, parts))
            return result
        result = []
        for key, moved in node.written.items():
            if moved:
                # On a hit it may be there although it was not in the recorded run.
                result.append(Call(steps.discard_key, target, (self.source(key),)))
            value = dict.get(after, key, ABSENT)
            if value is not ABSENT:
                parts = (self.source(key), self._at(after, Kind.ITEM, key, value))
                result.append(Call(owner.__setitem__, target, parts))
        return result

    def _slot_write(self, node: Node, descriptor: Any, before: Any) -> list[Call]:
        target = Constant(node.obj) if node.constant else self._fetch(node)
        if is_class(node.obj):
            return self._class_write(node.obj, descriptor, target)
        if type(node.obj) is contextvars.ContextVar:
            value = node.obj.get(ABSENT)
            if value is before:
                return []
            if value is ABSENT:
                raise StopRecordingError("result-object", "a context variable")
            return [Call(contextvars.ContextVar.set, target, (self.source(value),))]
        if type(node.obj) is types.CellType:
            value = cell_value(node.obj)
            if value is ABSENT:
                return [Call(steps.clear_cell, target)]
            part = self._at(node.obj, Kind.CELL, None, value)
            return [Call(steps.set_cell, target, (part,))]
        value = slot_value(node.obj, descriptor)
        if value is ABSENT:
            # On a hit it may be there although it was not in the recorded run.
            return [Call(steps.discard_slot, target, (Constant(descriptor),))]
        part = self._at(node.obj, Kind.SLOT, descriptor, value)
        return [Call(descriptor.__set__, target, (part,))]

    def _class_write(self, cls: type, name: str, target: steps.Source) -> list[Call]:
        value = find_own(cls, name)
        if value is ABSENT:
            return [Call(steps.discard_attribute, target, (Constant(name),))]
        part = self._at(cls, Kind.CLASS_ATTRIBUTE, name, value)
        return [Call(steps.set_class_attribute, target, (Constant(name), part))]


def _array_of(tensor: Any) -> Any:
    return tensor.numpy()


def _placed(node: Node, calls: Sequence[Call]) -> list[Call]:
    """Return calls with the place where the run changed an object."""
    where = "" if node.changed is None else str(node.changed)
    return [replace(call, where=where) for call in calls]
