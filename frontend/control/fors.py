"""Owns `for` loops over lifted ranges while they run: their states and effects."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx

from magweld.frontend.control.comparison import DifferenceError
from magweld.frontend.control.flow import flow_of
from magweld.frontend.control.frame_state import LoopState, StateReader, read_state
from magweld.frontend.expressions.bounds import (
    NUMBERS_OF_LOOPS,
    SIZES,
    Bounds,
    bounds_of,
)
from magweld.frontend.expressions.expressions import Expression, InductionSource, Leaf
from magweld.frontend.monitor.code_table import SUSPENDABLE
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.torch_state import operator_state
from magweld.frontend.state.iterators import content_of
from magweld.frontend.state.nodes import Node

if TYPE_CHECKING:
    from magweld.frontend.lifting.shadow import Shadow
    from magweld.frontend.lifting.state import Lifting
    from magweld.frontend.session.session import Session

# More iterations are not compared.
MAX_ITERATIONS: Final = 512
_TUPLE_ITERATOR: Final = type(iter(()))


@dataclass
class Head:
    """What is known before an iteration.

    Attributes:
        state: The live values of the frame.
        mark: Last operator so far.
        lengths: Number of elements of the lists that the loop has appended to.
        counts: What must not grow in an iteration.
        reads: What must not grow after the iterations have become alike.
    """

    state: LoopState
    mark: fx.Node
    lengths: dict[int, int]
    counts: tuple[Any, ...]
    reads: tuple[int, ...]


@dataclass(eq=False)
class ForLoop:
    """A `for` loop over a range.

    Attributes:
        iterator: What it takes its numbers from.
        range: The range.
        parts: Expressions of start, stop and step of the range; None for fixed ones.
        heads: One before each iteration so far.
        leaves: The number of each iteration.
        known: Ids of the objects from before the iteration.
        older: Ids of the objects from before the loop.
        lists: Lists that it has appended to, by id.
        rows: Operator that has cut the rows that it walks over, if any; `content`.
        read: Ids of lists that it has read.
        tails: Number of elements that it was about to append, by list.
        pieces: Operators of each iteration, when the run is over.
        closed: Whether it has come to its end.
        failure: Why it can be no operator, "" if it can; `where` it is.
    """

    iterator: Any
    range: range
    parts: tuple[Expression | None, ...]
    heads: list[Head] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    rows: fx.Node | None = None
    content: tuple[Any, ...] = ()
    known: frozenset[int] = frozenset()
    older: frozenset[int] = frozenset()
    lists: dict[int, list[Any]] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    tails: dict[int, int] = field(default_factory=dict)
    pieces: list[list[fx.Node]] = field(default_factory=list)
    closed: bool = False
    failure: str = ""
    where: str = ""

    @property
    def bounds(self) -> Bounds:
        """Between which the numbers of its iterations are on every call."""
        if self.rows is not None:
            return SIZES
        start, _, step = self.parts
        first = bounds_of(self.range.start) if start is None else start.bounds
        if step is None and self.range.step > 0 and first is not None:
            return first[0], NUMBERS_OF_LOOPS[1]
        return NUMBERS_OF_LOOPS

    @property
    def is_open(self) -> bool:
        """Whether it runs and may become an operator."""
        return bool(self.heads) and not self.closed and not self.failure


class Loops:
    """Follows the loops of one run; instructions report to it.

    Args:
        session: The run; is asked for its writes.

    Attributes:
        all: The loops, in the order in which they began.
        valued: Operators whose values have decided about the run.
    """

    def __init__(
        self, lifting: Lifting, session: Session, recorder: OperatorRecorder
    ) -> None:
        self.all: list[ForLoop] = []
        self.valued: set[fx.Node] = set()
        self._lifting = lifting
        self._recorder = recorder
        self._operators = session.operators
        self._by_iterator: dict[int, ForLoop] = {}
        self._appends = 0
        self._row_reads: Counter[int] = Counter()

    # What the rules of instructions report.

    def follow(
        self, iterator: Any, source: range, parts: tuple[Expression | None, ...]
    ) -> None:
        """Take note of an iterator over a range whose parts are lifted."""
        loop = ForLoop(iterator, source, parts, where=self._recorder.where_text())
        self._lifting.scalars.shaping.update(part for part in parts if part is not None)
        self.all.append(loop)
        self._by_iterator[id(iterator)] = loop

    def follow_rows(self, iterator: Any) -> bool:
        """Take note of an iterator over the rows of a tensor of lifted size.

        Returns:
            Whether it is followed.
        """
        if type(iterator) is not _TUPLE_ITERATOR:
            return False
        content = content_of(iterator)
        cut = self._lifting.scalars.rows.get(id(content))
        with torch._C.DisableTorchFunction():
            count = None if cut is None else self._lifting.operands.rows_of(cut)
        if count is None or not self.is_read_once(content):
            return False
        self.follow(iterator, range(len(content)), (None, count, None))
        self.all[-1].rows, self.all[-1].content = cut, content
        return True

    def is_read_once(self, content: Any) -> bool:
        """Return whether nothing but one loop has looked at a tuple of rows."""
        return self._row_reads[id(content)] == 1

    def arrive(self, shadow: Shadow, iterator: Any) -> None:
        """Take note that the next number of an iterator is about to be taken."""
        loop = self._by_iterator.get(id(iterator))
        if loop is None or loop.failure:
            return
        for outer in self._open():
            if outer is not loop:
                outer.failure = "a loop within"
        try:
            self._add_head(loop, shadow)
        except DifferenceError as difference:
            loop.failure = str(difference)

    def note_branch(self) -> None:
        """Take note that the value of a tensor decides within the open loops."""
        for loop in self._open():
            loop.failure = "a branch on a tensor within"

    def item(self, iterator: int, item: Any) -> Leaf | None:
        """Return what stands for the number that an iterator, by its id, gave."""
        loop = self._by_iterator.get(iterator)
        if loop is None:
            return None
        number = len(loop.leaves)
        source = InductionSource(self.all.index(loop), number)
        value = item if loop.rows is None else number
        text = f"number of iteration {number}"
        leaf = self._lifting.make.leaf(source, value, text, loop.bounds)
        loop.leaves.append(leaf)
        return leaf if loop.rows is None else None

    def close(self, iterator: int) -> None:
        """Take note that an iterator is exhausted."""
        loop = self._by_iterator.pop(iterator, None)
        if loop is not None:
            loop.closed = True

    def note_append(self, target: Any) -> None:
        """Take note that a comprehension has taken an element."""
        for loop in self._open():
            self._note_tail(loop, target)

    # What the run does to its objects.

    def note_tail(self, node: Node) -> None:
        """Take note that elements are about to be appended to a list."""
        if type(node.obj) is list and not node.external:
            self._appends = id(node.obj)

    def note_change(self, node: Node) -> None:
        """Take note that an object is about to change."""
        appends, self._appends = self._appends, 0
        for loop in self._open():
            if node.obj is loop.iterator:
                continue
            if appends == id(node.obj):
                self._note_tail(loop, node.obj)
            elif id(node.obj) in loop.known or node.external:
                loop.failure = "state is written"
            elif self._is_tensor(node.obj):
                loop.failure = "attributes of a tensor are written"
        if not appends:
            self.note_read(node.obj)

    @property
    def is_open(self) -> bool:
        """Whether the run is within a loop that may become an operator."""
        return bool(self.all) and any(loop.is_open for loop in self.all)

    def note_read(self, obj: Any) -> None:
        """Take note that the content of a container is looked at."""
        if id(obj) in self._lifting.scalars.rows:
            self._row_reads[id(obj)] += 1
        for loop in self.all:
            if loop.is_open:
                loop.read.add(id(obj))
            if loop.heads and id(obj) in loop.lists:
                loop.failure = loop.failure or "its list is looked at"

    def note_whole_use(self, obj: Any) -> bool:
        """Take note that an operator takes all elements of a list.

        Returns:
            Whether that is no reason to read it.
        """
        if not any(id(obj) in loop.lists for loop in self.all):
            return False
        for loop in self._open():
            if id(obj) in loop.lists:
                loop.failure = "its list is used"
        return True

    def forget_change(self) -> None:
        """Take note that a change that was about to happen does not."""
        self._appends = 0

    def _open(self) -> list[ForLoop]:
        return [loop for loop in self.all if loop.is_open]

    def _is_tensor(self, obj: Any) -> bool:
        return self._operators.is_tensor(type(obj))

    def _note_tail(self, loop: ForLoop, target: list[Any]) -> None:
        if id(target) in loop.known:
            loop.lists.setdefault(id(target), target)
            loop.tails[id(target)] = loop.tails.get(id(target), 0) + 1

    def _add_head(self, loop: ForLoop, shadow: Shadow) -> None:
        observer = shadow.observer
        session = observer.session
        assert shadow.step is not None, "an instruction is running"
        row = shadow.step.row
        if observer.code.co_flags & SUSPENDABLE:
            raise DifferenceError("a loop of a generator")
        if len(loop.heads) > MAX_ITERATIONS:
            raise DifferenceError("too many iterations")
        if session.in_branch:
            raise DifferenceError("a loop in a branch on a tensor")
        if not loop.heads:
            loop.older = frozenset(session.graph.nodes)
        recorder = self._recorder
        live = flow_of(session.tables.table(observer.code)).live(row.offset)
        frame = read_state(session, observer, row.depth)
        state = StateReader(shadow, loop.older).read(frame, live)
        counts, reads = self._counts(session), _reads(session)
        head = Head(state, recorder.mark(), self._lengths(loop), counts, reads)
        if loop.heads and head.counts != loop.heads[-1].counts:
            raise DifferenceError("an effect that is no operator")
        loop.heads.append(head)
        loop.tails = {}
        loop.known = frozenset(session.graph.nodes)

    def _counts(self, session: Session) -> tuple[Any, ...]:
        graph = session.graph
        values = self._lifting.operands.values
        return (
            len(graph.draws),
            len(graph.advances),
            len(session.effects),
            len(self._recorder.predicates) + values,
            operator_state(),
        )

    def _lengths(self, loop: ForLoop) -> dict[int, int]:
        lengths = {key: len(target) for key, target in loop.lists.items()}
        for key, length in lengths.items():
            if loop.heads:
                before = loop.heads[-1].lengths.get(key)
                grown = loop.tails.get(key, 0)
                if before is None:
                    loop.heads[-1].lengths[key] = before = length - grown
                if length - before != grown or key in loop.read:
                    raise DifferenceError("a list is changed")
        return lengths


def _reads(session: Session) -> tuple[int, ...]:
    graph = session.graph
    return (len(graph.edges), len(graph.identities), len(graph.checks))
