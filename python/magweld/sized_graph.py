"""Owns a captured graph that is compiled once for all sizes of its inputs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from torch import Tensor

from magweld import env
from magweld.comparison import Turns
from magweld.graphs.forms import Forms, key_of
from magweld.graphs.size_relation import SizeRelation
from magweld.stand_by import StandBy, stand_by_of
from magweld.tiers import Compiled, Race, TieredGraph, Work, common_verdict

# Kinds of sizes that are compared each by itself.
_FEW: Final = 16
# Steps of equal ratio, for each doubling of a size, within which sizes are about equal.
_STEPS: Final = 4

Call = Callable[..., Any]


class Repeating(Compiled, Protocol):
    """Compiled code that checks its inputs, and need not do so again."""

    def call_alike(self, inputs: list[Any]) -> Any:
        """Run on tensors of the form of those that it has run on."""


@dataclass(frozen=True)
class SizedForm:
    """The compiled code with all that is bound to the sizes of one kind of calls.

    Attributes:
        compiled: Takes the tensors of a call.
        tensors: How many of the inputs of a call are tensors; numbers follow.
        held_bytes: Bytes of its arena; the code is shared by all forms.
    """

    compiled: Repeating
    tensors: int
    held_bytes: int

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph on tensors, then numbers that follow from their sizes."""
        return self.compiled(*inputs[: self.tensors])

    def call_alike(self, inputs: list[Any]) -> Any:
        """Run the graph on inputs of the form of those that it has run on.

        Class, dtype, device, shape and strides of the tensors are theirs; who calls has
        made sure.
        """
        has_more = len(inputs) > self.tensors
        tensors = inputs[: self.tensors] if has_more else inputs
        return self.compiled.call_alike(tensors)

    @property
    def stand_by(self) -> StandBy | None:
        """What answers a call in which the code raises."""
        return stand_by_of(self.compiled)

    def mlir(self, stage: str) -> str:
        """Return the module at a stage, with the numbers that stand for sizes."""
        return self.compiled.mlir(stage)

    def report(self) -> dict[str, Any]:
        """Return what was decided."""
        return self.compiled.report()


@dataclass(frozen=True)
class SizedGraph:
    """A graph as one program for all sizes; call it with tensors, then numbers.

    Memory is planned and addresses are bound for each kind of sizes when a call first
    has them, in a few milliseconds. For each kind the code is timed against torch; of
    many, those of about equal sizes are timed together, and those of a cache that grows
    from the start: it comes back to one length once in a text.

    Attributes:
        relation: How inputs follow from the sizes.
        compiled: The graph for the numbers that stand for sizes; not run.
        at: Makes it for some sizes.
        reference: Runs the graph through torch.
        races: Whether the code must be faster than torch to be used.
        is_shared: Whether it is that of another graph, which has compiled it.
        is_whole: Whether torch runs no part of the graph for its sizes: none that it
            would not run in a program for one size as well.
        forms: What was made for sizes, by those of the calls.
    """

    relation: SizeRelation
    compiled: Compiled
    at: Callable[[Sequence[int]], SizedForm]
    reference: Call
    races: bool
    is_whole: bool
    is_shared: bool = False
    forms: Forms = field(default_factory=lambda: Forms(env.FORMS_BYTES.get()))
    _turns: dict[tuple[int, ...], Turns] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph; inputs that the relation does not cover go to torch."""
        count = len(self.relation.shapes)
        tensors, numbers = inputs[:count], inputs[count:]
        form = self.form(key_of(tensors, numbers), tensors, numbers)
        return self.reference(*inputs) if form is None else form(*inputs)

    @property
    def held_bytes(self) -> int:
        """Bytes of code and constants; the arenas of the forms are counted there."""
        return self.compiled.held_bytes

    def mlir(self, stage: str) -> str:
        """Return the module at a stage, with the numbers that stand for sizes."""
        return self.compiled.mlir(stage)

    def report(self) -> dict[str, Any]:
        """Return what was decided."""
        return self.compiled.report()

    def form(
        self, key: Hashable, tensors: Sequence[Tensor], numbers: Sequence[Any]
    ) -> TieredGraph | None:
        """Return what runs the graph for the sizes of a call.

        None if the program is not for these: the relation does not hold, or a tensor
        whose sizes change has gaps.

        Args:
            key: The sizes and numbers of the call, as `key_of` gives them.
            tensors: Of the call.
            numbers: Beside them.
        """
        sizes = self.relation.sizes_of([t.shape for t in tensors], numbers)
        if sizes is None or self._has_gaps(tensors):
            return None
        with self._lock:
            form: Any = self.forms.find(key)
            if form is None:
                form = self._make(sizes)
                self.forms.add(key, form)
        found: TieredGraph = form
        return found

    def known(self, key: Hashable, tensors: Sequence[Tensor]) -> TieredGraph | None:
        """Return what `form` has made for a key, None if that has gone or has gaps.

        Args:
            key: Sizes and numbers for which `form` has returned something.
            tensors: Of a call with these.
        """
        if self._has_gaps(tensors):
            return None
        with self._lock:
            form: Any = self.forms.find(key)
        found: TieredGraph | None = form
        return found

    def shared(self, relation: SizeRelation, reference: Call) -> SizedGraph:
        """Return the same program for another graph, with forms of its own.

        Args:
            relation: How the inputs of that graph follow from the sizes.
            reference: Runs it through torch.
        """
        made = (self.compiled, self.at, reference, self.races, self.is_whole)
        return SizedGraph(relation, *made, is_shared=True)

    def _has_gaps(self, tensors: Sequence[Tensor]) -> bool:
        runtime = self.relation.runtime_tensors
        return not all(tensors[number].is_contiguous() for number in runtime)

    def _make(self, sizes: tuple[int, ...]) -> TieredGraph:
        form = TieredGraph(self.reference, f"sizes {', '.join(map(str, sizes))}")
        verdict = common_verdict(self.forms.values())
        if verdict is not None:
            form.presume(verdict)
        race = self._race(sizes) if self.races else None
        form.compile(lambda: Work(lambda: self.at(sizes), race))
        return form

    def _race(self, sizes: tuple[int, ...]) -> Race:
        """Return how the form for some sizes is compared with torch."""
        if self.forms.made < _FEW and not self.relation.offsets:
            return Race()
        free = sizes[: len(self.relation.places)]
        about = tuple(round(_STEPS * math.log2(size)) for size in free)
        turns = self._turns.setdefault(about, Turns())
        return Race(turns=turns, is_shared=True)
