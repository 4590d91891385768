"""Owns the parts of a RefGraph: nodes, edges, kinds of reads, places, choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.values import is_scalar


class Kind(Enum):
    """What a read asks of its container."""

    # That of the base class is a function of Python and runs at every look-up.
    __hash__ = object.__hash__

    ITEM = auto()  # value of a dict under a key
    INDEX = auto()  # element of a list, tuple or deque
    LENGTH = auto()  # number of elements
    NONEMPTY = auto()  # whether there are elements
    KEYS = auto()  # keys of a dict, in order
    MEMBERS = auto()  # elements of a set, in the order of iteration
    INSTANCE_DICT = auto()  # the instance dict of an object
    SLOT = auto()  # value behind a member descriptor
    CLASS_ATTRIBUTE = auto()  # first hit in the method resolution order
    CELL = auto()  # content of a closure cell
    CONTEXT = auto()  # value of a context variable
    QUERY = auto()  # what a native function without effects says of a process-wide flag
    CODE = auto()  # code of a function
    DEFAULTS = auto()  # positional defaults of a function
    KWDEFAULTS = auto()  # keyword defaults of a function
    CLOSURE = auto()  # cell of a function by number
    RECEIVER = auto()  # `__self__` of a bound method
    FUNCTION = auto()  # `__func__` of a bound method
    NEXT = auto()  # item that an iterator gives, counted from the beginning of the run
    MORE = auto()  # whether an iterator gives such an item
    PART = auto()  # what an iterator like `zip` consists of, by number
    FIELD = auto()  # a read-only field of a native object, e.g. of a slice
    BASE = auto()  # value of an instance of a subclass of int, str, ...
    CONTENT = auto()  # all that a native object consists of, e.g. an array
    FORM = auto()  # dtype, shape and strides of an array
    SELF = auto()  # the object itself, whose identity matters
    REFERENT = auto()  # what a weak reference or a mapping proxy stands for
    DATA = auto()  # a tensor of the data of an array, or of nested sequences
    ANSWER = auto()  # what a native method without effects says of its object


class Where(NamedTuple):
    """Place of an instruction: code object and byte offset."""

    code: CodeType
    offset: int

    def __str__(self) -> str:
        return f"{self.code.co_filename}:{line_at(self.code, self.offset)}"


def line_at(code: CodeType, offset: int) -> int:
    """Return the line of the instruction at an offset, the first if it has none."""
    lines = (line for low, high, line in code.co_lines() if low <= offset < high)
    return next(lines, None) or code.co_firstlineno


class PlaceTexts:
    """Texts of places in the program; to look a line up takes long."""

    def __init__(self) -> None:
        # The places are kept, so that the ids of their code objects stay their own.
        self._known: dict[tuple[int, int], tuple[Where, str]] = {}

    def of(self, where: Where) -> str:
        """Return file and line of an instruction."""
        key = id(where.code), where.offset
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = where, str(where)
        return known[1]


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """One object of the run; kept alive so that its id stays its own.

    Attributes:
        obj: The object.
        external: Whether it existed before the run.
        edge: The first read that reached it; None for roots and internal objects.
        constant: Whether a record may hold it, because its identity is guarded.
        name: Name of a root, e.g. "x".
        written: Keys written by the run, in the order in which a key that was absent
            came in, and whether the key was deleted in between; reads of them need no
            guard.
        owned: Whether the run has determined the whole content.
        appended: Whether the run has only appended to the list so far.
        changed: The instruction that changed it last, if it is external.
    """

    obj: Any
    external: bool
    edge: Edge | None = None
    constant: bool = False
    name: str = ""
    written: dict[Any, bool] = field(default_factory=dict)
    owned: bool = field(init=False)
    appended: bool = False
    changed: Where | None = None

    def __post_init__(self) -> None:
        empty = type(self.obj) is tuple and not self.obj
        self.owned = not self.external or empty


@dataclass(eq=False, slots=True)
class Edge:
    """One guarded read; nothing changes it.

    Attributes:
        container: The object that was read.
        kind: What was read of it.
        key: Key, index, name or descriptor.
        value: A scalar, an identity, a tuple (KEYS), or ABSENT; else the target's.
        target: Node of the value when it is neither scalar nor identity.
        first: Whether this read is the path of the target.
        where: The user's instruction.
    """

    container: Node
    kind: Kind
    key: Any
    value: Any
    target: Node | None
    first: bool
    where: Where | None


# Attributes that hold what is read, where the kind tells which.
ATTRIBUTES: Final = {
    Kind.CODE: "__code__",
    Kind.DEFAULTS: "__defaults__",
    Kind.KWDEFAULTS: "__kwdefaults__",
    Kind.RECEIVER: "__self__",
    Kind.FUNCTION: "__func__",
}
_FUNCTION_PARTS = frozenset({Kind.DEFAULTS, Kind.KWDEFAULTS, Kind.CLOSURE})


def is_fixed(container: Node, kind: Kind, value: Any) -> bool:
    """Return whether the identity of `value` is guarded, so a record may hold it.

    Classes, module namespaces and the functions in them live as long as the program;
    what an argument reaches is guarded by type and path instead.
    """
    if kind in (Kind.CODE, Kind.CLASS_ATTRIBUTE):
        return True
    if not container.constant:
        return False
    if kind is Kind.ITEM:
        return type(value) is FunctionType
    return kind in _FUNCTION_PARTS


def slot_of(obj: Any, kind: Kind, key: Any) -> tuple[int, Kind, Any]:
    """Return what tells the slots of containers apart; the container must live."""
    return id(obj), kind, _key_id(key)


def _key_id(key: Any) -> Any:
    # 1, 1.0 and True are equal as dict keys and find the same entry; other keys are
    # compared by identity unless they are plain tuples.
    if key is None or type(key) is str:
        return key
    return key if is_scalar(key) or type(key) in (tuple, frozenset) else ("id", id(key))


class Choices:
    """Tensors that stand for one of two, and the state that may not change now.

    Attributes:
        merged: Ids of tensors that stand for one of two, by the value of a third.
        check_write: Asked before the run changes an object, if anything is to ask.
        check_part: The same, for a part that may be computed anew.
        sealed: Ids of objects that must not be used now.
    """

    def __init__(self) -> None:
        self.merged: set[int] = set()
        self.check_write: Callable[[Node], None] | None = None
        self.check_part: Callable[[Node], None] | None = None
        self.sealed: frozenset[int] = frozenset()

    def check_sealed(self, obj: Any) -> None:
        """Refuse to use an object of which another run would find another content.

        Raises:
            StopRecordingError: It is one of those.
        """
        if id(obj) in self.sealed:
            raise StopRecordingError("custom-function", "forward uses written state")

    def check_identity(self, left: Any, right: Any) -> None:
        """Refuse to compare a tensor that a branch chose with another by `is`.

        Raises:
            StopRecordingError: The answer would depend on the branch.
        """
        for obj, other in ((left, right), (right, left)):
            if id(obj) in self.merged and type(obj) is type(other):
                raise StopRecordingError("tensor-value", "a tensor that a branch chose")

    def check_read(self, container: Any, value: Any, attributes: bool) -> None:
        """Refuse to reach a tensor that a branch chose from where it was before.

        Args:
            container: Object from before the run that is read.
            attributes: Whether the attributes of the container are read.

        Raises:
            StopRecordingError: What is found would depend on the branch.
        """
        if id(value) in self.merged or (attributes and id(container) in self.merged):
            raise StopRecordingError("tensor-value", "a tensor that a branch chose")
