"""Owns the one program that answers all sizes of a graph with lifted values."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import torch
from torch import fx

from magweld.diagnostics import UnsupportedError
from magweld.graphs.forms import COMPILE_AFTER, COMPILE_BESIDE
from magweld.graphs.shared_sizes import Sharing
from magweld.graphs.size_relation import Shapes, SizeRelation
from magweld.graphs.sized_examples import Examples, SizedExamples, WithNumbers
from magweld.logs import topic
from magweld.tiers import Compiled, TieredGraph

_FALLBACKS: Final[logging.Logger] = topic("fallbacks")
# Programs for all sizes of one graph: the first one may have taken sizes that agree by
# chance for sizes that always do.
_MOST_PROGRAMS: Final = 2
# Kinds of sizes that are remembered: to relate them, and with the program for them.
_MOST_SEEN: Final = 8
_MOST_COVERED: Final = 4096
# In the place of a program of another graph where none is for a graph as well.
_NONE: Final = object()

# Takes the graph for the sizes of a call, the tensors of that call, what returns the
# examples that are compiled, or a program of another graph (it may take long and pauses
# at checkpoints of `magweld.paced`), and what runs the graph through torch.
CompileSizes = Callable[
    [
        fx.GraphModule,
        Sequence[torch.Tensor],
        Callable[[], Examples | Compiled],
        Callable[..., Any],
    ],
    TieredGraph | None,
]


class AllSizes:
    """Has a graph compiled once for all sizes, and finds what runs a call.

    It is compiled at the third call, as soon as calls differ in sizes. Not for several
    threads.

    Args:
        compile_sizes: Compiles the graph.
        with_numbers: Returns the graph for some numbers.
        reference: Runs the graph through torch on tensors, then numbers.
        sharing: Finds the program of another graph that is for this one as well; None
            for no such thing.

    Attributes:
        reason: Why sizes that come back are compiled each by itself; "" if not so.
        awaits: Whether the program of another graph may soon answer the last call that
            none was found for.
    """

    def __init__(
        self,
        compile_sizes: CompileSizes,
        with_numbers: WithNumbers,
        reference: Callable[..., Any],
        sharing: Sharing | None = None,
    ) -> None:
        self._sharing = sharing
        self._compile = compile_sizes
        self._with_numbers = with_numbers
        self._reference = reference
        self._seen: dict[tuple[Shapes, tuple[Any, ...]], None] = {}
        self._tiers: list[TieredGraph] = []
        # The program that is for the sizes and numbers of a call, by these.
        self._covering: dict[Hashable, Any] = {}
        self._borrowed: Any = None
        self._calls = 0
        self._seconds = 0.0
        self.reason = ""
        self.awaits = False

    @property
    def tiers(self) -> list[TieredGraph]:
        """The programs that there are, or that are being compiled."""
        return list(self._tiers)

    @property
    def made(self) -> int:
        """How many programs were compiled for this graph."""
        tiers: list[Any] = self._tiers
        made = [(tier.made, tier.compiled) for tier in tiers]
        own = (count for count, one in made if one is None or not one.is_shared)
        return sum(own)

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling, in calls and behind them."""
        return self._seconds + sum(tier.seconds_behind for tier in self._tiers)

    @property
    def program_seconds(self) -> float:
        """Time spent compiling its programs, also where that was for another graph."""
        made: list[Any] = [tier.compiled for tier in self._tiers]
        is_shared = any(sized is not None and sized.is_shared for sized in made)
        if self._sharing is None or not is_shared:
            return self.compile_seconds
        return max(self.compile_seconds, self._sharing.compile_seconds)

    @property
    def is_whole(self) -> bool:
        """Whether torch runs no part of the programs that are there for its sizes."""
        made: list[Any] = [tier.compiled for tier in self._tiers]
        return all(sized is None or sized.is_whole for sized in made)

    @property
    def grows(self) -> bool:
        """Whether a size and a constant is a size, as of a cache that grows."""
        made: list[Any] = [tier.compiled for tier in self._tiers]
        return any(sized is not None and sized.relation.offsets for sized in made)

    def runtime_tensors(self, key: Hashable) -> tuple[int, ...] | None:
        """Return the numbers of tensors that may have no gaps; None if not known.

        Args:
            key: Sizes and numbers for which `find` has returned something.
        """
        sized = self._covering.get(key)
        return None if sized is None else sized.relation.runtime_tensors

    def note(self, shapes: Shapes, numbers: tuple[Any, ...]) -> None:
        """Remember sizes and numbers of a call, or of the recorded run."""
        if len(self._seen) < _MOST_SEEN:
            self._seen.setdefault((shapes, numbers))

    def find(
        self, key: Hashable, tensors: list[torch.Tensor], numbers: tuple[Any, ...]
    ) -> Any:
        """Return what runs a call on its tensors and numbers; None if nothing does.

        It may be a program that is being compiled, which torch runs meanwhile.

        Args:
            key: The sizes and numbers of the call, as `key_of` gives them.
            tensors: Of the call.
            numbers: Beside them.
        """
        if self.reason:
            return None
        known = self._covering.get(key)
        form = None if known is None else known.known(key, tensors)
        if form is not None:
            return form
        self._calls += 1
        self._drop_borrowed()
        for tier in self._tiers:
            if tier.runs_through_torch:
                if tier.error is not None:
                    return self._refuse(str(tier.error))
                return tier
            form = self._form(tier, key, tensors, numbers)
            if form is not None:
                return form
        # Tensors with gaps run for their own sizes, whatever these are.
        if not all(tensor.is_contiguous() for tensor in tensors):
            return None
        self.note(tuple(tuple(t.shape) for t in tensors), numbers)
        self.awaits = self._awaits_other(tensors)
        if len(self._tiers) == _MOST_PROGRAMS or self.awaits:
            return None
        is_soon = len(self._seen) < 2 or self._calls < COMPILE_AFTER
        if not is_soon:
            return self._make(tensors, numbers)
        return self._borrow(tensors, numbers) if self._may_borrow(tensors) else None

    def _form(
        self,
        tier: TieredGraph,
        key: Hashable,
        tensors: list[torch.Tensor],
        numbers: tuple[Any, ...],
    ) -> Any:
        """Return the form of a program for a call, and remember that it has one."""
        sized: Any = tier.compiled
        form = sized.form(key, tensors, numbers)
        if form is not None:
            if len(self._covering) == _MOST_COVERED:
                self._covering.clear()
            self._covering[key] = sized
        return form

    def _make(self, tensors: list[torch.Tensor], numbers: tuple[Any, ...]) -> Any:
        start = time.perf_counter()
        try:
            tier = self._compile(
                self._with_numbers(numbers),
                tensors,
                lambda: self._shared(tensors, numbers) or self._examples(tensors),
                self._reference,
            )
        except Exception as error:
            # It costs speed at most: sizes that come back are compiled by themselves.
            return self._refuse(str(error))
        finally:
            self._seconds += time.perf_counter() - start
        if tier is None:
            return self._refuse("torch runs a part of the graph")
        self._tiers.append(tier)
        return tier

    def _may_borrow(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether another graph may have a program for a call as well."""
        if self._borrowed is not None or self._sharing is None:
            return False
        return _has_ones(tensors) and self._sharing.may_be

    def _borrow(self, tensors: list[torch.Tensor], numbers: tuple[Any, ...]) -> Any:
        """Return the program of another graph, before calls differ in sizes."""

        def shared() -> Compiled:
            found = self._shared(tensors, numbers)
            if found is None:
                raise UnsupportedError(
                    "size-dependent",
                    "no other graph is the same",
                    hint="a program is compiled for each size that comes back",
                )
            return found

        module = self._with_numbers(numbers)
        try:
            tier = self._compile(module, tensors, shared, self._reference)
        except Exception as error:
            _FALLBACKS.info("no program of another graph: %s", error)
            tier = None
        self._borrowed = tier or _NONE
        if tier is not None:
            self._tiers.append(tier)
        return tier

    def _drop_borrowed(self) -> None:
        """Forget a program of another graph that has turned out to be none for this."""
        borrowed = self._borrowed
        if borrowed is not None and borrowed is not _NONE:
            if borrowed.runs_through_torch and borrowed.error is not None:
                self._tiers.remove(borrowed)
                self._borrowed = _NONE

    def _awaits_other(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether another graph may soon have a program for a call as well.

        Not for ever: that goes on in calls of that graph.
        """
        if self._sharing is None or self._calls >= COMPILE_BESIDE:
            return False
        return _has_ones(tensors) and self._sharing.is_awaited

    def _shared(
        self, tensors: list[torch.Tensor], numbers: tuple[Any, ...]
    ) -> Compiled | None:
        """Return the program of another graph that is for a call as well, if any."""
        if self._sharing is None:
            return None
        found: Compiled | None = self._sharing.program(tensors, numbers)
        return found

    def has_shapes_at(
        self,
        tensors: Sequence[torch.Tensor],
        relation: SizeRelation,
        samples: Iterable[Sequence[int]],
    ) -> bool:
        """Whether shapes in the graph follow from sizes as they do for the numbers.

        Args:
            tensors: Of a call.
            relation: How inputs follow from sizes.
            samples: Some sizes.
        """
        made = SizedExamples(self._with_numbers, tensors)
        return made.have_shapes_at(relation, samples)

    def _examples(self, tensors: list[torch.Tensor]) -> Examples:
        calls = list(self._seen)
        return SizedExamples(self._with_numbers, tensors, calls).made()

    def _refuse(self, reason: str) -> None:
        self.reason = reason
        _FALLBACKS.info("no program for all sizes: %s", reason)


def _has_ones(tensors: Sequence[torch.Tensor]) -> bool:
    return any(1 in tensor.shape for tensor in tensors)
