"""Owns the RefGraph: objects of a run, where they come from, what was read of them."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.draws import CachedAnswer, Draw
from magweld.frontend.state.ends import (
    WATCHED,
    code_at_end_of_all,
    has_finalizer,
    is_watched,
)
from magweld.frontend.state.mro import ABSENT, is_class
from magweld.frontend.state.nodes import (
    Choices,
    Edge,
    Kind,
    Node,
    Where,
    is_fixed,
    slot_of,
)
from magweld.frontend.state.paths import Paths
from magweld.frontend.state.plans import Plans
from magweld.frontend.state.values import (
    is_identity,
    is_scalar,
    same_scalar,
    text_of_key,
)

if TYPE_CHECKING:
    from magweld.frontend.lifting.state import Lifting
    from magweld.frontend.state.set_writes import SetWrite


@dataclass
class RefGraph:
    """Objects and guarded reads of one run.

    Attributes:
        nodes: All known objects by id.
        edges: Guarded reads in the order in which they happened.
        identities: Pairs of external objects compared with `is` and found different.
        members: External objects compared by identity in one container.
        snapshots: Content of external containers before the first write.
        emptied: Those of which a write may have dropped any part.
        advances: Iterators from before the run, once for each time one was advanced.
        steps: How often each of them was asked for an item.
        slot_snapshots: Values in slots and of names in classes before the first write.
        class_names: Names that were written to some class.
        set_writes: What was done to external sets, in order.
        drained: New sets of which elements were taken without a choice.
        looked_up: Dicts whose keys are known to compare without code of the user's.
        pinned: Scalars whose identity has mattered, by id.
        finalizers: Whether classes have a method that runs when an instance goes.
        checks: Run when the recording is complete; each may refuse it.
        locate: Tells the user's instruction that is running.
        draws: Numbers drawn from the generators of the process, and what functions
            with a cache have answered.
        lifting: Told about reads and writes in a run with lifted values.
        changing: Paths of data that keeps changing from call to call.
        lent: Whether arrays whose memory tensors share were read since, by id.
        computed: What owns the memory of arrays that follow from tensors, by id.
        choices: What branches on tensors forbid.
        plans: How attributes are found.
        paths: How external objects are reached.
        moment: Counts what divides the run, such as the beginnings of branches.
        births: Moment at which an object was seen to be made, by id.
        goes_on: Whether the run begins behind a break: frames hold what it began with.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    edges: dict[tuple[int, Kind, Any], Edge] = field(default_factory=dict)
    identities: dict[tuple[int, int], Where | None] = field(default_factory=dict)
    members: dict[int, dict[int, Node]] = field(default_factory=dict)
    snapshots: dict[int, Any] = field(default_factory=dict)
    slot_snapshots: dict[tuple[int, Any], Any] = field(default_factory=dict)
    class_names: set[str] = field(default_factory=set)
    set_writes: dict[int, list[SetWrite]] = field(default_factory=dict)
    drained: set[int] = field(default_factory=set)
    looked_up: set[int] = field(default_factory=set)
    emptied: set[int] = field(default_factory=set)
    pinned: dict[int, Any] = field(default_factory=dict)
    finalizers: dict[type, bool] = field(default_factory=dict)
    checks: list[Callable[[], None]] = field(default_factory=list)
    advances: list[Node] = field(default_factory=list)
    steps: Counter[int] = field(default_factory=Counter)
    locate: Callable[[], Where | None] = lambda: None
    draws: list[Draw | CachedAnswer] = field(default_factory=list)
    lifting: Lifting | None = None
    changing: frozenset[str] = frozenset()
    lent: dict[int, bool] = field(default_factory=dict)
    computed: set[int] = field(default_factory=set)
    choices: Choices = field(default_factory=Choices)
    plans: Plans = field(default_factory=Plans)
    paths: Paths = field(default_factory=Paths)
    moment: int = 0
    births: dict[int, int] = field(default_factory=dict)
    goes_on: bool = False

    def find(self, obj: Any) -> Node | None:
        """Return the node of an object, None if the run has not met it."""
        return self.nodes.get(id(obj))

    def require(self, obj: Any) -> Node:
        """Return the node of an object.

        Raises:
            StopRecordingError: Nothing explains where the object comes from.
        """
        if self.choices.sealed:
            self.choices.check_sealed(obj)
        node = self.nodes.get(id(obj))
        if node is not None:
            return node
        if is_identity(obj):
            return self.constant(obj)
        raise StopRecordingError("unknown-object", type(obj).__qualname__)

    def adopt(self, obj: Any) -> Node | None:
        """Register an unknown object as made by the run; scalars have no node."""
        if is_scalar(obj):
            return None
        node = self.nodes.get(id(obj))
        if node is None:
            # An object of these types that nothing has led to is new.
            known = is_identity(obj) and type(obj) not in _MADE
            node = self._node(obj, external=known)
            node.constant = known
        return node

    def own_class(self, cls: Any) -> None:
        """Register a class that the run has made; another run makes another one."""
        if id(cls) not in self.nodes:
            self._node(cls, external=False)
            self.births[id(cls)] = self.moment

    def bear(self, obj: Any, moment: int | None = None) -> None:
        """Register an object that was seen to be made, by default just now."""
        node = self.adopt(obj)
        if node is not None and not node.external:
            self.births[id(obj)] = self.moment if moment is None else moment

    def next_moment(self) -> int:
        """Return a moment; what is made from now on is made since then."""
        self.moment += 1
        return self.moment

    def is_made_since(self, moment: int, number: int) -> bool:
        """Return whether an object was seen to be made since a moment.

        One that was met, but not seen to be made, is older: it may be held by somebody
        who was not looked at.

        Args:
            moment: What `next_moment` has returned.
            number: The id of the object.
        """
        return self.births.get(number, -1) >= moment

    def older(self, moment: int, numbers: Iterable[int]) -> frozenset[int]:
        """Return the objects, by their ids, that are from before a moment."""
        return frozenset(n for n in numbers if not self.is_made_since(moment, n))

    def bear_part(self, part: Any, whole: Any) -> None:
        """Register an object that came into being with another one, of which it is."""
        moment = self.births.get(id(whole))
        if moment is not None:
            self.births.setdefault(id(part), moment)

    def constant(self, obj: Any) -> Node:
        """Register an object whose identity is fixed by other means."""
        node = self.nodes.get(id(obj))
        if node is None:
            node = self.nodes[id(obj)] = Node(obj, external=True)
        if node.external:
            # What else led to it has to lead to it again.
            node.constant = True
        return node

    def literal(self, obj: Any) -> None:
        """Register a constant of a code object, which holds nothing but constants.

        State that shares the object is then guarded by identity.
        """
        if is_scalar(obj) or is_identity(obj):
            return
        node = self.constant(obj)
        if node.external:
            node.constant = node.owned = True
        for item in obj if type(obj) in (tuple, frozenset) else ():
            self.literal(item)

    def root(self, obj: Any, name: str) -> Node | None:
        """Register an argument; the first of two names of one object is its path."""
        if is_scalar(obj):
            return None
        if is_identity(obj):
            return self.constant(obj)
        node = self.nodes.get(id(obj))
        if node is None:
            _check_kind(type(obj))
            node = self.nodes[id(obj)] = Node(obj, external=True)
            node.name = name
        return node

    def read(self, container: Node, kind: Kind, key: Any, value: Any) -> None:
        """Record that `value` was read, unless the run itself put it there.

        Raises:
            StopRecordingError: The value differs from what was read there before.
        """
        if self.choices.sealed:
            self.choices.check_sealed(container.obj)
        if container.owned or (kind in _KEYED and key in container.written):
            self.adopt(value)
        else:
            self._read_external(container, kind, key, value)
        if self.lifting is not None:
            self.lifting.note_read(container, kind, key, value)

    def _read_external(self, container: Node, kind: Kind, key: Any, value: Any) -> None:
        if self.choices.merged:
            self.choices.check_read(container.obj, value, kind is Kind.INSTANCE_DICT)
        slot = slot_of(container.obj, kind, key)
        known = self.edges.get(slot)
        if known is not None:
            if known.value is not value:
                self._check_same(known, value)
            return
        self.edges[slot] = self._edge(container, kind, key, value)

    @property
    def is_written(self) -> bool:
        """Whether the run has changed state from before it, or will on a hit."""
        written = self.snapshots or self.slot_snapshots
        return bool(written or self.advances or self.draws)

    def written(self) -> list[Node]:
        """Return the objects from before the run that it has changed."""
        held = dict.fromkeys(
            (*self.snapshots, *(key for key, _ in self.slot_snapshots))
        )
        return [*(self.nodes[key] for key in held), *dict.fromkeys(self.advances)]

    def identity(self, obj: Any) -> None:
        """Record that it matters which object this is, not only of which type."""
        node = self.require(obj)
        if node.external and not node.constant:
            self.read(node, Kind.SELF, None, obj)

    def changes(self, node: Node) -> None:
        """Take note that an object is about to change."""
        if node.external:
            node.changed = self.locate()
        for check in (self.choices.check_write, self.choices.check_part):
            if check is not None:
                check(node)

    def distinct(self, left: Any, right: Any) -> None:
        """Record that two objects were compared with `is` and found different."""
        self.pin(left, right)
        a, b = self.find(left), self.find(right)
        if a is None or b is None or not (a.external and b.external):
            return
        if a.constant and b.constant:
            return
        low, high = sorted((id(left), id(right)))
        self.identities.setdefault((low, high), self.locate())

    def release(self) -> None:
        """Forget everything; objects that the program has left go now."""
        nodes = list(self.nodes.values())
        # What ends now may call `_forget`.
        self.nodes.clear()
        for node in nodes:
            # Nodes and edges refer to each other, and nothing collects cycles now.
            node.obj = node.edge = None
        contents: tuple[Any, ...] = (
            *(self.nodes, self.edges, self.snapshots, self.slot_snapshots),
            *(self.identities, self.members, self.set_writes, self.pinned),
            *(
                self.drained,
                self.looked_up,
                self.emptied,
                self.advances,
                self.steps,
                self.births,
                self.plans,
                self.paths,
                self.checks,
            ),
        )
        for content in contents:
            content.clear()

    def _node(self, obj: Any, external: bool) -> Node:
        if type(obj) is GeneratorType:
            # The end of a generator runs code: it must come when the program ends it.
            held = weakref.ref(obj, functools.partial(self._forget, id(obj)))
            node = self.nodes[id(obj)] = Node(held, external)
            return node
        self._check_end(obj, external)
        node = self.nodes[id(obj)] = Node(obj, external)
        return node

    def _check_end(self, obj: Any, external: bool) -> None:
        """Refuse an object whose end runs code: what is kept here would delay it."""
        kind = type(obj)
        _check_kind(kind)
        known = self.finalizers.get(kind)
        if known is None:
            known = self.finalizers[kind] = has_finalizer(kind)
        if known:
            raise StopRecordingError("unknown-function", f"{kind.__qualname__}.__del__")
        if not external and is_watched(obj):
            raise StopRecordingError("unknown-function", WATCHED)

    def check_dropped(self, obj: Any) -> None:
        """Refuse a write that drops an object from before the run if that runs code.

        What the program has met of it would end when the recording does.

        Raises:
            StopRecordingError: It, or what hangs on it, has a finalizer or the like.
        """
        if obj is not ABSENT and not is_scalar(obj) and not is_class(obj):
            reason = code_at_end_of_all(obj)
            if reason:
                raise StopRecordingError("unknown-function", reason)

    def _forget(self, number: int, reference: object) -> None:
        node = self.nodes.get(number)
        if node is not None and node.obj is reference:
            del self.nodes[number]
            self.births.pop(number, None)

    def pin(self, left: Any, right: Any) -> None:
        """Record that the identity of two scalars was compared."""
        if type(left) is type(right) and is_scalar(left):
            self.pinned.update({id(left): left, id(right): right})

    def distinct_members(self, container: Any, objects: Iterable[Any]) -> None:
        """Record that objects were told apart by identity, as elements of a set are."""
        group = self.members.setdefault(id(container), {})
        for obj in objects:
            node = self.nodes.get(id(obj))
            if node is not None and node.external:
                group[id(obj)] = node

    def keep(self, obj: Any) -> None:
        """Register an object of which another guard tells that it is this one.

        A run that gets at it so must not take it for one of its own.
        """
        if is_scalar(obj):
            return
        node = self.nodes.get(id(obj))
        if node is None:
            node = self._node(obj, external=True)
        if node.external:
            node.constant = True

    def hold(self, obj: Any) -> None:
        """Have the identity of an external object guarded, so a record may hold it."""
        node = self.require(obj)
        if node.external:
            node.constant = True

    def _edge(self, container: Node, kind: Kind, key: Any, value: Any) -> Edge:
        fixed = kind in _VALUE_KINDS or kind is Kind.SELF
        if value is ABSENT or is_scalar(value) or fixed:
            return Edge(container, kind, key, value, None, False, self.locate())
        target = self.nodes.get(id(value))
        if target is not None and kind is Kind.CLASS_ATTRIBUTE:
            # Guarded by identity, whatever else has led to it.
            self.constant(value)
        if is_identity(value) or (target is None and is_fixed(container, kind, value)):
            target = target or self.constant(value)
            if target.constant:
                return Edge(container, kind, key, value, None, False, self.locate())
        if target is None:
            target = self._node(value, external=True)
            edge = Edge(container, kind, key, value, target, True, self.locate())
            target.edge = edge
            return edge
        if not target.external:
            raise StopRecordingError("read-after-write", text_of_key(key))
        return Edge(container, kind, key, value, target, False, self.locate())

    def _check_same(self, known: Edge, value: Any) -> None:
        if is_scalar(value):
            same = same_scalar(known.value, value)
        elif known.kind in _VALUE_KINDS:
            same = known.value == value
        else:
            same = known.value is value
        if not same:
            raise StopRecordingError("read-after-write", text_of_key(known.key))


def _check_kind(kind: type) -> None:
    """Refuse frames: those of a program that was split are not its own."""
    if kind is FrameType:
        raise StopRecordingError("frame-access", "a frame")


_MADE = (object, property, staticmethod, classmethod)

# Reads whose result is a value made for the purpose, compared as a whole.
_VALUE_KINDS = frozenset(
    {Kind.LENGTH, Kind.NONEMPTY, Kind.KEYS, Kind.MEMBERS, Kind.CONTENT, Kind.FORM}
)

# Reads that a write to one key of the container makes unnecessary.
_KEYED = frozenset({Kind.ITEM, Kind.SLOT, Kind.CLASS_ATTRIBUTE, Kind.QUERY})
